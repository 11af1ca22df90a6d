#include "analyze/steps/input_pipeline.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "analyze/common/median.h"
#include "analyze/steps/find_steps.h"
#include "analyze/steps/step_spans.h"
#include "model/host_role.h"

namespace firelane::analyze {

namespace {

LoaderKind loader_kind(HostRole role) {
  if (role == HostRole::kBatchInProcess) return LoaderKind::kSingleProcess;
  if (role == HostRole::kBatchFromWorkers) return LoaderKind::kMultiProcess;
  return LoaderKind::kOther;
}

StepInput& input_of(size_t step, InputPipeline& out) { return step < out.steps.size() ? out.steps[step] : out.outside; }

void add_loader(const Model& model, const std::vector<FoundStep>& steps, InputPipeline& out) {
  const HostSlices& host = model.host_slices;
  for (Row row = 0; row < host.size(); ++row) {
    if (host.kind[row] != HostKind::kAnnotation && host.kind[row] != HostKind::kOp) continue;
    if (!is_of_data_loader(host.role[row])) continue;
    const bool nested = host.parent[row] != kNoRow && is_of_data_loader(host.role[host.parent[row]]);
    if (nested) continue;
    out.loader = loader_kind(host.role[row]);
    StepInput& step = input_of(step_at(steps, host.start_ns[row]), out);
    step.wait_ns += host.duration_ns[row];
    ++step.loads;
    out.wait_ns += host.duration_ns[row];
    if (out.loader == LoaderKind::kSingleProcess) out.load_ns += host.duration_ns[row];
  }
}

void add_transfers(const Model& model, const std::vector<FoundStep>& steps, InputPipeline& out) {
  const DeviceSlices& device = model.device_slices;
  std::vector<Interval> kernels;
  for (Row row = 0; row < device.size(); ++row) {
    if (device.kind[row] == DeviceKind::kKernel) kernels.push_back({device.start_ns[row], device.end_ns(row)});
  }
  const IntervalSet computing(std::move(kernels));
  std::unordered_map<uint32_t, size_t> row_of;
  for (Row row = 0; row < device.size(); ++row) {
    const CopyKinds kinds = model.copy_kinds(row);
    if (kinds.direction != CopyDirection::kHtoD) continue;
    const auto [found, is_new] = row_of.try_emplace(static_cast<uint32_t>(device.name[row]), out.transfers.size());
    if (is_new) {
      out.transfers.push_back({.name = device.name[row], .pinned = kinds.touches(MemoryKind::kPinned)});
    }
    TransferRow& transfer = out.transfers[found->second];
    const Row detail = device.detail[row];
    const int64_t bytes =
        detail == kNoRow || model.copy_details.bytes[detail] == kNoNumber ? 0 : model.copy_details.bytes[detail];
    ++transfer.calls;
    transfer.bytes += bytes;
    transfer.total_ns += device.duration_ns[row];
    transfer.overlapped_ns += computing.covered_ns(device.start_ns[row], device.end_ns(row));
    StepInput& step = input_of(step_of_work(model, steps, row), out);
    step.transfer_ns += device.duration_ns[row];
    step.transfer_bytes += bytes;
  }
  std::sort(out.transfers.begin(), out.transfers.end(), [&](const TransferRow& a, const TransferRow& b) {
    return a.total_ns != b.total_ns ? a.total_ns > b.total_ns : model.text(a.name) < model.text(b.name);
  });
}

}  // namespace

std::string_view name_of(LoaderKind kind) {
  constexpr std::array<std::string_view, 4> kNames = {"none", "in the training process", "worker processes", "other"};
  return kNames[static_cast<size_t>(kind)];
}

InputPipeline input_pipeline(const Model& model) {
  InputPipeline out;
  const StepList found = find_steps(model, host_time(model));
  const bool has_steps = found.source != StepSource::kWholeTrace;
  for (const FoundStep& step : found.steps) {
    if (has_steps) out.steps.push_back({.step = step.number, .duration_ns = step.duration_ns()});
  }
  add_loader(model, found.steps, out);
  add_transfers(model, found.steps, out);
  std::vector<int64_t> waits;
  for (const StepInput& step : out.steps) waits.push_back(step.wait_ns);
  out.median_wait_ns = median(std::move(waits));
  out.median_step_ns = has_steps ? found.median_ns : kNoNumber;
  return out;
}

}  // namespace firelane::analyze
