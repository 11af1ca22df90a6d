#include "advise/copy_runs.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "advise/host_evidence.h"
#include "advise/host_work.h"
#include "analyze/host/cpu_ops.h"
#include "analyze/ops/op_storages.h"
#include "analyze/verdict/study.h"

namespace firelane::advise {

namespace {

constexpr size_t kLeastSmall = 16;               // copies in a row
constexpr int64_t kSmallCopyBytes = 64 << 10;    // on average: the link needs no longer than the call
constexpr size_t kLeastWeights = 8;              // tensors: fewer are results
constexpr int64_t kLongestPauseNs = 10'000'000;  // between two of a run: the host may work on what it got
constexpr int64_t kPauseOfViewsNs = 100'000;

CopyDirection direction_of(const Model& model, Row work) {
  if (model.device_slices.kind[work] != DeviceKind::kCopy) return CopyDirection::kUnknown;
  const CopyDirection direction = model.copy_kinds(work).direction;
  return direction == CopyDirection::kHtoD || direction == CopyDirection::kDtoH ? direction : CopyDirection::kUnknown;
}

// A state_dict() makes a view of each tensor first.
int64_t start_with_views(const Model& model, Row op) {
  const HostSlices& host = model.host_slices;
  const Row lane_begin = model.lanes.host_begin[static_cast<size_t>(host.lane[op])];
  int64_t start_ns = host.start_ns[op];
  for (Row row = op; row > lane_begin; --row) {
    const Row before = row - 1;
    if (!is_outermost_op(host, before)) {
      if (host.kind[before] == HostKind::kOp) continue;
      break;
    }
    const std::string_view name = model.text(host.name[before]);
    if (!analyze::is_view_op(name) && name != "aten::detach") break;
    if (start_ns - host.end_ns(before) > kPauseOfViewsNs) break;
    start_ns = host.start_ns[before];
  }
  return start_ns;
}

std::vector<DeviceCopyRun> all_runs(const StudiedTrace& trace) {
  const auto& study = trace.get<analyze::study>();
  const Model& model = trace.model();
  const HostSlices& host = model.host_slices;
  const DeviceSlices& device = model.device_slices;
  if (!study.has_device_work || study.host->chains.empty()) return {};
  const analyze::Interval window = study.steps.window;
  std::vector<Row> work;
  for (Row row = 0; row < device.size(); ++row) {
    const Row launch = device.launch[row];
    if (launch == kNoRow || !is_device_work(device.kind[row])) continue;
    if (host.start_ns[launch] >= window.start_ns && host.start_ns[launch] < window.end_ns) work.push_back(row);
  }
  std::sort(work.begin(), work.end(),
            [&](Row a, Row b) { return host.start_ns[device.launch[a]] < host.start_ns[device.launch[b]]; });
  std::vector<DeviceCopyRun> runs;
  bool is_open = false;
  for (const Row row : work) {
    const Row launch = device.launch[row];
    const CopyDirection direction = direction_of(model, row);
    Row op = host.parent[launch];
    while (op != kNoRow && host.kind[op] != HostKind::kOp) op = host.parent[op];
    if (direction == CopyDirection::kUnknown || op == kNoRow) {
      is_open = false;
      continue;
    }
    op = outermost_op(model, op);
    const bool goes_on = is_open && runs.back().direction == direction && runs.back().lane == host.lane[launch] &&
                         host.start_ns[op] - runs.back().end_ns <= kLongestPauseNs;
    if (!goes_on) {
      runs.push_back({.direction = direction, .lane = host.lane[launch], .start_ns = start_with_views(model, op)});
    }
    is_open = true;
    DeviceCopyRun& run = runs.back();
    run.copies.push_back(row);
    if (run.ops.empty() || run.ops.back() != op) run.ops.push_back(op);
    const Row detail = device.detail[row];
    if (detail != kNoRow && model.copy_details.bytes[detail] > 0) run.bytes += model.copy_details.bytes[detail];
    run.end_ns = std::max(run.end_ns, host.end_ns(op));
  }
  std::stable_sort(runs.begin(), runs.end(),
                   [](const DeviceCopyRun& a, const DeviceCopyRun& b) { return a.start_ns < b.start_ns; });
  return runs;
}

// What operators in Optimizer.step take from the device.
std::set<uint64_t> optimizer_storages(const Model& model) {
  const HostSlices& host = model.host_slices;
  std::set<uint64_t> all;
  std::vector<Row> steps;
  for (Row row = 0; row < host.size(); ++row) {
    if (host.kind[row] == HostKind::kAnnotation && host.role[row] == HostRole::kOptimizerStep) steps.push_back(row);
  }
  for (const Row step : steps) {
    const Row lane_end = model.lanes.host_end[static_cast<size_t>(host.lane[step])];
    for (Row row = step + 1; row < lane_end && host.start_ns[row] < host.end_ns(step); ++row) {
      if (host.kind[row] != HostKind::kOp) continue;
      for (const analyze::StorageInput& input : analyze::storages_of_op(model, row)) {
        if (!input.on_cpu) all.insert(input.storage);
      }
    }
  }
  return all;
}

// The run that holds that moment of a lane; runs.size(): none. Those of several lanes may overlap: a few are looked at.
size_t run_at(const std::vector<DeviceCopyRun>& runs, LaneId lane, int64_t time_ns) {
  constexpr std::ptrdiff_t kMostOpen = 64;
  const auto after =
      std::partition_point(runs.begin(), runs.end(), [&](const DeviceCopyRun& run) { return run.start_ns <= time_ns; });
  for (auto run = after; run != runs.begin() && after - run < kMostOpen;) {
    --run;
    if (run->lane == lane && run->holds(time_ns)) return static_cast<size_t>(run - runs.begin());
  }
  return runs.size();
}

uint64_t source_of(const Model& model, Row op) {
  for (const analyze::StorageInput& input : analyze::storages_of_op(model, op)) {
    if (!input.on_cpu) return input.storage;
  }
  return 0;
}

}  // namespace

std::vector<DeviceCopyRun> small_copy_runs(const StudiedTrace& trace) {
  std::vector<DeviceCopyRun> runs = all_runs(trace);
  std::erase_if(runs, [](const DeviceCopyRun& run) {
    return run.direction != CopyDirection::kHtoD || run.ops.size() < kLeastSmall || run.bytes <= 0 ||
           run.bytes > kSmallCopyBytes * static_cast<int64_t>(run.copies.size());
  });
  return runs;
}

std::vector<DeviceCopyRun> weight_copy_runs(const StudiedTrace& trace) {
  std::vector<DeviceCopyRun> runs = all_runs(trace);
  std::erase_if(runs, [](const DeviceCopyRun& run) {
    return run.direction != CopyDirection::kDtoH || run.ops.size() < kLeastWeights;
  });
  if (runs.empty()) return {};
  const Model& model = trace.model();
  const std::set<uint64_t> updated = optimizer_storages(model);
  std::erase_if(runs, [&](const DeviceCopyRun& run) {
    const auto known =
        std::count_if(run.ops.begin(), run.ops.end(), [&](Row op) { return updated.contains(source_of(model, op)); });
    return 4 * static_cast<size_t>(known) < 3 * run.ops.size();
  });
  // What the host computes with the last of them.
  for (const HostWork& work : trace.get<host_work>()) {
    const size_t at = run_at(runs, work.lane, work.start_ns);
    if (at != runs.size()) runs[at].end_ns = std::max(runs[at].end_ns, work.end_ns);
  }
  const auto& steps = trace.get<analyze::study>().steps;
  int64_t with = 0;
  for (const analyze::FoundStep& step : steps.steps) {
    const auto first = std::partition_point(runs.begin(), runs.end(),
                                            [&](const DeviceCopyRun& run) { return run.start_ns < step.start_ns; });
    with += !step.warm_up && first != runs.end() && first->start_ns < step.end_ns ? 1 : 0;
  }
  if (2 * with < steps.judged) return {};
  return runs;
}

bool is_in_run(const std::vector<DeviceCopyRun>& runs, LaneId lane, int64_t time_ns) {
  return run_at(runs, lane, time_ns) != runs.size();
}

}  // namespace firelane::advise
