// Waiting for data: a loader that does not keep up, copies that make the host wait.
#include <algorithm>
#include <cmath>
#include <map>

#include "advise/copy_runs.h"
#include "advise/gain.h"
#include "advise/host_evidence.h"
#include "advise/host_work.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "model/host_role.h"

namespace firelane::advise {

namespace {

// Copies from pinned memory: GB/s over a PCIe link of the fifth generation, at worst and at best; what the call takes;
// and, where the trace does not say how much was copied, the part of a pageable copy's time that they take.
constexpr double kSlowLink = 40;
constexpr double kFastLink = 53;
constexpr double kQueuedCopyNs = 10'000;
constexpr double kPinnedKeep = 0.2;

std::vector<Row> loader_calls(const Context& context) { return annotations(context, loads_batch); }

// With worker processes that keep up a call still has to take the batch out of the queue: nobody waits then.
bool only_handed_over(const Context& context, const std::vector<Row>& calls) {
  constexpr int64_t kHandOverNs = 1'000'000;
  const HostSlices& host = context.model.host_slices;
  int64_t total_ns = 0;
  for (const Row row : calls) {
    if (host.role[row] != HostRole::kBatchFromWorkers) return false;
    total_ns += context.took_ns(row);
  }
  return !calls.empty() && total_ns / static_cast<int64_t>(calls.size()) < kHandOverNs;
}

// As many as help, and no more than there are cores for: one stays with the program.
std::string workers(const Context& context, int64_t wanted) {
  const int64_t cores = context.model.info.environment.cores_allowed;
  return std::to_string(cores == kNoNumber ? wanted : std::clamp<int64_t>(cores - 1, 1, wanted));
}

std::vector<Finding> find_input_bound(const Context& context) {
  const int64_t cost = activity_ns(context, analyze::Activity::kInput);
  if (cost == 0) return {};
  const auto gain_if = [&](double keep) {
    return context.gain_ns({.host = cuts_of(context, {analyze::Activity::kInput}, keep)});
  };
  Finding finding{.id = "input-bound", .cost_ns = cost, .share_of_step = context.share_of_step(cost)};
  set_gain_of_all(context, {gain_if(0.15), gain_if(0)}, finding);
  const std::vector<Row> calls = loader_calls(context);
  if (only_handed_over(context, calls)) return {};
  const bool single = std::any_of(calls.begin(), calls.end(), [&](Row row) {
    return context.model.host_slices.role[row] == HostRole::kBatchInProcess;
  });
  finding.title = "the program waits " + short_time(cost) + " of each step (" + short_percent(finding.share_of_step) +
                  ") for its next batch" + (single ? ": the DataLoader has no workers" : "");
  finding.events = static_cast<int64_t>(calls.size());
  add_longest(finding, context.model, calls);
  add_gaps(finding, context,
           [](analyze::IdleCause cause) { return cause == analyze::cause_of(analyze::Activity::kInput); });
  const std::string pinned = context.has_device_work ? ", pin_memory=True" : "";
  if (single) {
    finding.try_text = "load batches in worker processes, so that the next one is ready when the step ends";
    finding.try_code = "DataLoader(dataset, num_workers=" + workers(context, 8) + pinned + ", persistent_workers=True)";
  } else {
    finding.try_text = "give the loader more workers or less to do per item (decode and augment once, or on the GPU)";
    finding.try_code = "DataLoader(dataset, num_workers=" + workers(context, 16) + ", prefetch_factor=4" + pinned +
                       ", persistent_workers=True)";
  }
  finding.confidence = calls.empty() ? Confidence::kMedium : Confidence::kHigh;
  if (calls.empty()) finding.confirm_by = "iterate a torch DataLoader while recording, so that its calls are marked";
  finding.cause = "input";
  return {finding};
}

std::vector<Finding> find_pageable_copies(const Context& context) {
  const Model& model = context.model;
  Finding finding{.id = "pageable-copies"};
  std::vector<Row> calls;
  std::vector<Row> copies;
  const auto& built = context.trace.get<host_work>();  // its copies go with it
  const auto is_built = [&](Row call) {
    const int64_t at = model.host_slices.start_ns[call];
    return std::any_of(built.begin(), built.end(),
                       [&](const HostWork& work) { return at >= work.start_ns && at < work.end_ns; });
  };
  const auto& small = context.trace.get<small_copy_runs>();  // pinned memory would not help these
  const auto is_claimed = [&](Row call) {
    return is_built(call) || is_in_run(small, model.host_slices.lane[call], model.host_slices.start_ns[call]);
  };
  // The copying call itself moves the data to a staging buffer; a wait may follow it.
  for (Row row = 0; row < model.device_slices.size(); ++row) {
    const Row launch = model.device_slices.launch[row];
    if (model.device_slices.kind[row] != DeviceKind::kCopy || launch == kNoRow) continue;
    const CopyKinds kinds = model.copy_kinds(row);
    const bool pageable = kinds.source == MemoryKind::kPageable && kinds.target == MemoryKind::kDevice;
    if (!pageable || !context.in_window(model.host_slices.start_ns[launch]) || is_claimed(launch)) continue;
    calls.push_back(launch);
    copies.push_back(row);
  }
  if (calls.empty()) return {};
  for (const analyze::SyncRow& sync : context.study->syncs.rows) {
    if (sync.in_window && sync.reason == analyze::SyncReason::kPageableCopy && !is_claimed(sync.call))
      calls.push_back(sync.call);
  }
  std::sort(calls.begin(), calls.end());
  calls.erase(std::unique(calls.begin(), calls.end()), calls.end());
  analyze::WhatIf change;
  int64_t cost = 0;
  for (const Row call : calls) {
    cost += model.host_slices.duration_ns[call];
    change.waits.push_back(call);
    const auto took = static_cast<double>(std::max<int64_t>(1, model.host_slices.duration_ns[call]));
    change.host.push_back({model.host_slices.lane[call], model.host_slices.start_ns[call],
                           model.host_slices.end_ns(call), std::min(1.0, kQueuedCopyNs / took)});
  }
  finding.cost_ns = context.study->per_step(cost);
  finding.share_of_step = context.share_of_step(finding.cost_ns);
  // From pinned memory the copy itself is as fast as the link, too.
  const auto gain_if = [&](double gb_s) {
    change.device.clear();
    for (const Row copy : copies) {
      const Row detail = model.device_slices.detail[copy];
      const int64_t bytes = detail == kNoRow ? 0 : model.copy_details.bytes[detail];
      const auto took = static_cast<double>(std::max<int64_t>(1, model.device_slices.duration_ns[copy]));
      const double keep = bytes > 0 ? static_cast<double>(bytes) / gb_s / took : kPinnedKeep;
      change.device.push_back({copy, std::min(1.0, keep)});
    }
    return context.gain_ns(change);
  };
  finding.gain = {gain_if(kSlowLink), gain_if(kFastLink)};
  finding.events = static_cast<int64_t>(copies.size());
  finding.title = counted(finding.events, "copy", "copies") +
                  " to the device from pageable memory make the host wait " + short_time(finding.cost_ns) +
                  " of each step (" + short_percent(finding.share_of_step) + ")";
  add_longest(finding, context.model, std::move(calls));
  finding.try_text = "pin the batch in host memory and copy asynchronously";
  finding.try_code = "DataLoader(..., pin_memory=True); x = x.to(device, non_blocking=True)";
  finding.confidence = Confidence::kHigh;
  finding.part_of = "overhead";
  finding.cause = "pageable";
  return {finding};
}

// Below this part of a step copies are left to the rules that know their cause.
constexpr double kMuchCopied = 0.1;

std::string_view advice_for_copies(CopyDirection direction) {
  switch (direction) {
    case CopyDirection::kHtoD:
      return "keep data that is the same in every step on the device; copy the next batch on a stream of its own while "
             "this "
             "one computes";
    case CopyDirection::kDtoH:
      return "keep results on the device, and copy them less often or on a stream of their own";
    default: return "overlap them with kernels that do not need them, on a stream of their own, or copy less";
  }
}

// Copies that the device waits for, whatever memory they come from; those of pageable memory have a rule of their own.
std::vector<Finding> find_exposed_copies(const Context& context) {
  const Model& model = context.model;
  const analyze::Study& study = *context.study;
  if (!context.has_device_work) return {};
  std::vector<Row> copies;
  std::map<CopyDirection, int64_t> by_direction;
  int64_t all_ns = 0;
  int64_t own_ns = 0;
  int64_t bytes = 0;
  for (Row row = 0; row < model.device_slices.size(); ++row) {
    if (model.device_slices.kind[row] != DeviceKind::kCopy || !context.holds(row)) continue;
    const int64_t took = model.device_slices.duration_ns[row];
    all_ns += took;
    const CopyKinds kinds = model.copy_kinds(row);
    if (kinds.touches(MemoryKind::kPageable)) continue;
    own_ns += took;
    copies.push_back(row);
    by_direction[kinds.direction] += took;
    const Row detail = model.device_slices.detail[row];
    if (detail != kNoRow && model.copy_details.bytes[detail] > 0) bytes += model.copy_details.bytes[detail];
  }
  if (own_ns == 0) return {};
  // The breakdown does not tell copies apart: each has its part of what nothing hides.
  const auto cost = static_cast<int64_t>(static_cast<double>(study.per_step(study.breakdown.total.copy_ns)) *
                                         static_cast<double>(own_ns) / static_cast<double>(all_ns));
  Finding finding{.id = "exposed-copies", .cost_ns = cost, .share_of_step = context.share_of_step(cost)};
  if (finding.share_of_step < kMuchCopied) return {};
  const auto gain_if = [&](double keep) {
    analyze::WhatIf change;
    for (const Row copy : copies) change.device.push_back({copy, keep});
    return context.gain_ns(change);
  };
  finding.gain = {gain_if(0.5), gain_if(0)};
  finding.events = static_cast<int64_t>(copies.size());
  const auto most = std::max_element(by_direction.begin(), by_direction.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  finding.title = "copies that do not overlap with kernels take " + short_time(cost) + " of each step (" +
                  short_percent(finding.share_of_step) + "): no kernel runs meanwhile";
  if (bytes > 0) {
    finding.title += "; they move " + short_bytes(study.per_step(bytes)) + " a step at " +
                     std::to_string(std::llround(static_cast<double>(bytes) / static_cast<double>(own_ns))) + " GB/s";
  }
  std::sort(copies.begin(), copies.end(),
            [&](Row a, Row b) { return model.device_slices.duration_ns[a] > model.device_slices.duration_ns[b]; });
  for (size_t i = 0; i < std::min(copies.size(), kEvidenceSlices); ++i) finding.slices.push_back({copies[i], true});
  finding.try_text = advice_for_copies(most->first);
  finding.confidence = Confidence::kMedium;
  finding.said_by_share = true;
  return {finding};
}

}  // namespace

std::vector<Rule> input_rules() {
  return {
      {"input-bound", "input", 0.05, true,
       "The training loop blocks until the DataLoader hands over the next batch. While it waits, nothing is\n"
       "launched and the device idles.\n\n"
       "Why: with num_workers=0 items are loaded and transformed inside the loop; with workers, they are too few "
       "or\n"
       "too slow. The time measured is that of enumerate(DataLoader).__next__ on the training thread.\n\n"
       "What to do: worker processes (num_workers), batches prepared ahead (prefetch_factor), cheaper items (decode "
       "once,\n"
       "smaller images, augment on the GPU), pinned memory. Check that the machine has as many free cores as "
       "workers.\n\n"
       "When not: in the first steps of an epoch, workers are still starting.",
       find_input_bound},
      {"pageable-copies", "input", 0.02, true,
       "A copy to the device from ordinary (pageable) memory goes through a staging buffer, and the call returns\n"
       "only when the data has been read: the host waits instead of preparing more work.\n\n"
       "What to do: pin_memory=True in the DataLoader (or tensor.pin_memory()) and non_blocking=True in .to().\n\n"
       "When not: tensors that are copied once, before training.",
       find_pageable_copies},
      {"exposed-copies", "input", 0.03, true,
       "A copy, between host and device, between devices or within one, adds its whole time to the step when no\n"
       "kernel runs meanwhile. The link is much slower than the device's own memory.\n\n"
       "What to do: keep what does not change on the device, copy less (a smaller dtype, indices instead of data),\n"
       "or overlap copies with compute: pinned memory, non_blocking=True and a stream of their own, one batch\n"
       "ahead. Weights that are offloaded to the host are copied in every step: offload less, or prefetch the next\n"
       "layer.\n\n"
       "When not: a trace of loading a model, which copies its weights once.\n\n"
       "The gain is a replay with these copies taking half (lower end) or no time (upper end).",
       find_exposed_copies},
  };
}

}  // namespace firelane::advise
