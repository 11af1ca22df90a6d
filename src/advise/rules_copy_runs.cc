// Many copies between host and device in a row: small ones whose cost is their number, and weights that are copied to
// the host in every step.
#include <algorithm>
#include <string>
#include <vector>

#include "advise/copy_runs.h"
#include "advise/gain.h"
#include "advise/host_evidence.h"
#include "advise/rule.h"
#include "advise/text.h"

namespace firelane::advise {

namespace {

void add_waits_in_runs(const Context& context, const std::vector<DeviceCopyRun>& runs, analyze::WhatIf& change) {
  for (const analyze::SyncRow& sync : context.study->syncs.rows) {
    if (is_in_run(runs, context.model.host_slices.lane[sync.call], sync.start_ns)) change.waits.push_back(sync.call);
  }
}

std::vector<Finding> find_small_copies(const Context& context) {
  if (context.study == nullptr) return {};
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  const auto& runs = context.trace.get<small_copy_runs>();
  if (runs.empty()) return {};
  std::vector<Row> ops;
  int64_t copies = 0;
  int64_t bytes = 0;
  int64_t spent_ns = 0;
  for (const DeviceCopyRun& run : runs) {
    copies += static_cast<int64_t>(run.copies.size());
    bytes += run.bytes;
    for (const Row op : run.ops) {
      spent_ns += host.end_ns(op) - way_start_ns(model, op);
      ops.push_back(op);
    }
  }
  const auto gain_if = [&](double keep) {
    analyze::WhatIf change;
    add_waits_in_runs(context, runs, change);
    for (const DeviceCopyRun& run : runs) {
      // One copy stays, with all of the bytes.
      for (size_t i = 1; i < run.ops.size(); ++i) {
        const Row op = run.ops[i];
        change.host.push_back({run.lane, way_start_ns(model, op), host.end_ns(op), keep});
      }
      for (size_t i = 1; i < run.copies.size(); ++i) change.device.push_back({run.copies[i], 0});
    }
    return context.gain_ns(change);
  };
  // To pack them takes a little for each where they do not come together.
  constexpr double kPacking = 0.15;
  Finding finding{.id = "small-copies", .cost_ns = context.study->per_step(spent_ns)};
  finding.share_of_step = context.share_of_step(finding.cost_ns);
  finding.gain.low_ns = std::max<int64_t>(0, gain_if(kPacking));
  finding.gain.high_ns = std::max(finding.gain.low_ns, gain_if(0));
  finding.events = copies;
  finding.title = counted(std::max<int64_t>(1, context.study->per_step(copies)), "small copy", "small copies") +
                  " to the device one by one (" + short_bytes(context.study->per_step(bytes)) + " in all, " +
                  short_bytes(bytes / copies) + " each) take " + short_time(finding.cost_ns) + " of each step (" +
                  short_percent(finding.share_of_step) + ")";
  add_longest(finding, model, std::move(ops));
  finding.ranges.push_back({runs[0].start_ns, runs[0].end_ns});
  finding.try_text =
      "pack them into one tensor on the host and copy that once; the cost is in the calls, not the bytes, so pinned "
      "memory changes little";
  finding.try_code = "packed = torch.cat([t.flatten() for t in tensors]).to(device)  # then packed.split(sizes)";
  finding.confidence = Confidence::kMedium;
  finding.part_of = "overhead";
  finding.cause = "small-copies";
  return {finding};
}

std::vector<Finding> find_weights_to_host(const Context& context) {
  if (context.study == nullptr) return {};
  const Model& model = context.model;
  const auto& runs = context.trace.get<weight_copy_runs>();
  if (runs.empty()) return {};
  analyze::WhatIf change;
  add_waits_in_runs(context, runs, change);
  std::vector<Row> ops;
  int64_t bytes = 0;
  int64_t spent_ns = 0;
  for (const DeviceCopyRun& run : runs) {
    change.host.push_back({run.lane, run.start_ns, run.end_ns, 0});
    for (const Row copy : run.copies) change.device.push_back({copy, 0});
    spent_ns += run.end_ns - run.start_ns;
    bytes += run.bytes;
    ops.insert(ops.end(), run.ops.begin(), run.ops.end());
  }
  Finding finding{.id = "weights-to-host", .cost_ns = context.study->per_step(spent_ns)};
  finding.share_of_step = context.share_of_step(finding.cost_ns);
  const int64_t gain_ns = context.gain_ns(change);
  set_gain_of_all(context, {gain_ns * 9 / 10, gain_ns}, finding);
  finding.events = static_cast<int64_t>(ops.size());
  finding.title = "weights, gradients or optimizer state are copied to the host in every step: " +
                  counted(std::max<int64_t>(1, context.study->per_step(finding.events)), "tensor", "tensors") +
                  " one by one, " + short_bytes(context.study->per_step(bytes)) + "; with the host's work on them, " +
                  short_time(finding.cost_ns) + " of each step (" + short_percent(finding.share_of_step) + ")";
  add_longest(finding, model, std::move(ops));
  finding.ranges.push_back({runs[0].start_ns, runs[0].end_ns});
  finding.try_text =
      "do it every few hundred steps, keep the copy on the device, or compute what you need from them there; each "
      ".cpu() "
      "waits for the device";
  finding.try_code =
      "torch._foreach_copy_(best, list(model.parameters()))  # best: made once, on the device; to the host at the end";
  finding.confidence = Confidence::kMedium;
  finding.confirm_by = "leave it out of some steps and compare step times";
  finding.part_of = "overhead";
  finding.cause = "weights-to-host";
  return {finding};
}

}  // namespace

std::vector<Rule> copy_runs_rules() {
  return {
      {"small-copies", "input", 0.03, true,
       "Many small tensors are sent to the device one after another: the boxes, labels and masks of each image of a\n"
       "batch. Each copy costs the host a PyTorch call and a CUDA call, and a wait if it comes from pageable\n"
       "memory, however few bytes it moves.\n\n"
       "This finding covers at least 16 copies to the device in a row, with no other device work between them, of\n"
       "at most 64 KiB on average. The gain is a replay in which each such series is one copy; at worst packing\n"
       "takes 15% of what the calls took.\n\n"
       "What to do: pack what belongs together into one tensor where it is created (a collate_fn, NumPy), copy it\n"
       "once, and split it into views on the device. pin_memory alone changes little.\n\n"
       "When not: the tensors arrive one by one over a longer time, and each is needed immediately.",
       find_small_copies},
      {"weights-to-host", "host", 0.05, true,
       "Parameters, gradients or the optimizer's state are copied to the host in every step: the weights of the\n"
       "best step so far, histograms for a log, an average of weights that is kept on the CPU. Each tensor is a\n"
       "separate copy, for which the host waits until the device has finished all earlier work.\n\n"
       "This finding covers at least 8 copies to the host in a row, with no other device work between them, three\n"
       "quarters of them of tensors that the optimizer uses, in at least half of the steps. Needs a recording that\n"
       "follows tensors (firelane record does). The gain is a replay without them and without the host's work\n"
       "between them.\n\n"
       "What to do: copy less often; or copy on the device first (torch._foreach_copy_ into tensors that are kept),\n"
       "and to the host only when needed; or asynchronously into pinned memory.\n\n"
       "When not: the optimizer runs on the CPU because the device's memory is too small.",
       find_weights_to_host},
  };
}

}  // namespace firelane::advise
