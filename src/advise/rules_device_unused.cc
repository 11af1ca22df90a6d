// A machine with a GPU that torch can use, and a program that computes on the CPU.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "advise/evidence.h"
#include "advise/host_evidence.h"
#include "advise/op_facts.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/device/device_peaks.h"
#include "analyze/host/cpu_ops.h"
#include "analyze/ops/flops.h"
#include "analyze/ops/op_storages.h"
#include "base/text.h"

namespace firelane::advise {

namespace {

// To call an operator that launches a kernel, and the kernel itself where it is small.
constexpr double kLaunchLowNs = 16'000;
constexpr double kLaunchHighNs = 8'000;
constexpr double kOfPeak = 0.1;    // of fp32, that a program as it is reaches
constexpr double kMostKept = 0.6;  // of a step; more is not worth a move
constexpr double kComputes = 0.4;  // of a step in operators on the CPU, at least
constexpr int64_t kLeastStepNs = 1'000'000;

bool launches_nothing(std::string_view name) {
  return analyze::is_view_op(name) || contains(name, "empty") || contains(name, "resize") || contains(name, "detach") ||
         name == "aten::to" || name == "aten::item" || name == "aten::result_type" || !name.starts_with("aten::");
}

// Outermost operators with what each would launch on a device.
struct OnCpu {
  Row op = kNoRow;
  int64_t launches = 0;
  double flops = 0;
};

std::vector<OnCpu> operators(const Context& context) {
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  // Kernels are launched by the innermost operators that compute; those around them only call these.
  std::vector<bool> calls_others(host.size());
  for (Row row = 0; row < host.size(); ++row) {
    if (host.kind[row] != HostKind::kOp || launches_nothing(name_of_op(model, row))) continue;
    for (Row parent = host.parent[row]; parent != kNoRow && !calls_others[parent]; parent = host.parent[parent])
      calls_others[parent] = true;
  }
  analyze::FlopsTable flops(model);
  std::vector<OnCpu> all;
  for (Row row = 0; row < host.size(); ++row) {
    if (host.kind[row] != HostKind::kOp || !context.in_window(host.start_ns[row])) continue;
    if (is_outermost_op(host, row)) all.push_back({.op = row});
    if (all.empty() || calls_others[row] || launches_nothing(name_of_op(model, row))) continue;
    ++all.back().launches;
    all.back().flops += static_cast<double>(flops.of(row).op_flops);
  }
  return all;
}

// Whether the recording shows that operators took tensors of the CPU, and no others.
bool tensors_are_on_cpu(const Model& model) {
  bool is_known = false;
  for (Row detail = 0; detail < model.op_details.size(); ++detail) {
    const StringId tensors = model.op_details.tensors[detail];
    if (tensors == kNoString) continue;
    for (const analyze::StorageInput& input : analyze::parse_storages(model.text(tensors))) {
      if (!input.on_cpu) return false;
      is_known = true;
    }
  }
  return is_known;
}

bool torch_has_device(const Model& model) {
  const bool uses_it = std::any_of(model.info.metadata.begin(), model.info.metadata.end(),
                                   [](const MetadataEntry& entry) { return entry.key == "cuda_runtime_version"; });
  return uses_it && !model.info.devices.empty();
}

std::vector<Finding> find_device_unused(const Context& context) {
  const Model& model = context.model;
  if (context.study == nullptr || context.has_device_work || model.device_slices.size() > 0) return {};
  if (!torch_has_device(model) || context.step_ns < kLeastStepNs || !tensors_are_on_cpu(model)) return {};
  const analyze::DevicePeaks* peaks = analyze::peaks_of(model, 0);
  const double flops_per_ns = 1000 * kOfPeak * (peaks == nullptr ? 10 : peaks->fp32_tflops);
  Evidence evidence(context);
  std::vector<Row> ops;
  double taken_ns = 0;
  double kept_ns = 0;
  for (const OnCpu& each : operators(context)) {
    const auto ns = static_cast<double>(std::max<int64_t>(1, context.took_ns(each.op)));
    const auto kept = [&](double launch_ns) {
      const double device_ns = each.flops / flops_per_ns;
      return std::min(1.0, std::max(static_cast<double>(each.launches) * launch_ns, device_ns) / ns);
    };
    taken_ns += ns;
    kept_ns += ns * kept(kLaunchLowNs);
    if (each.launches == 0) continue;
    evidence.add_call(each.op, kept(kLaunchLowNs), kept(kLaunchHighNs));
    ops.push_back(each.op);
  }
  if (evidence.empty() || kept_ns > kMostKept * taken_ns) return {};
  Finding finding{
      .id = "device-unused",
      .try_text = "move the model and each batch to the GPU",
      .try_code = "model.to('cuda')  # before the optimizer is made; and batch = batch.to('cuda') in the loop",
      .confidence = Confidence::kMedium,
      .confirm_by = "time some steps with model and data on the GPU",
      .cause = "device-unused",
      .precedence = Precedence::kNeedless};
  evidence.fill(finding);
  if (finding.share_of_step < kComputes) return {};
  // Threads of the CPU that were waited for make some steps long: the gain is that of a usual one.
  const int64_t usual_ns = context.study->undone.usual_ns;
  if (usual_ns > 0 && usual_ns < context.step_ns) {
    const double part = static_cast<double>(usual_ns) / static_cast<double>(context.step_ns);
    finding.gain.low_ns = static_cast<int64_t>(part * static_cast<double>(finding.gain.low_ns));
    finding.gain.high_ns = static_cast<int64_t>(part * static_cast<double>(finding.gain.high_ns));
  }
  finding.events = static_cast<int64_t>(ops.size());
  const std::string& name = model.info.devices[0].name;
  finding.title = "the machine has a GPU (" + (name.empty() ? "of unknown name" : name) +
                  ") that torch can use, and nothing runs on it: operators on the CPU take " +
                  short_percent(finding.share_of_step) + " of a step";
  add_longest(finding, model, ops);
  return {finding};
}

}  // namespace

std::vector<Rule> device_unused_rules() {
  return {
      {"device-unused", "host", 0.1, true,
       "The machine has a GPU, this torch is built for it, and all tensors of the program are on the CPU: most often\n"
       "the line that moves the model or the data is missing, or torch.cuda.is_available() was false when it was\n"
       "asked.\n\n"
       "Found where a recording of firelane with CUDA (record_options: cuda, on by default) names a GPU, has no work\n"
       "of it, and follows tensors, all of which are on the CPU. A small program is as fast there: operators have to\n"
       "take two fifths of a step of at least 1 ms, and what they would cost on a GPU (8 to 16 us for each that\n"
       "launches something, or their FLOPs at a tenth of its peak) at most three fifths of what they take now. The\n"
       "gain is a replay with that.\n\n"
       "What to do: model.to('cuda') before the optimizer is made, batch.to('cuda', non_blocking=True) from pinned\n"
       "memory in the loop.\n\n"
       "When not: the GPU is somebody else's, or has no memory left.",
       find_device_unused},
  };
}

}  // namespace firelane::advise
