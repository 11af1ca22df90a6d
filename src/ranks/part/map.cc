#include "ranks/part/map.h"

#include <algorithm>

#include "analyze/steps/find_steps.h"
#include "ranks/part/map_pieces.h"

namespace firelane::ranks {

namespace {

bool has_device_rows(const Model& model) {
  const auto& kinds = model.device_slices.kind;
  return std::any_of(kinds.begin(), kinds.end(), [](DeviceKind kind) { return is_device_work(kind); });
}

// Kineto wrote whole microseconds until 2023.
int64_t grain_of(const PartCollectives& rows) {
  const auto whole = [](const std::vector<int64_t>& times) {
    return std::all_of(times.begin(), times.end(), [](int64_t t) { return t % 1000 == 0; });
  };
  return rows.size() > 0 && whole(rows.start_ns) && whole(rows.end_ns) ? 1000 : 1;
}

// A step begins with what the event before it left allocated.
void map_memory(const Model& model, Part& part) {
  const MemoryEvents& events = model.memory_events;
  const int32_t wanted = part.has_device_work ? 1 : 0;
  PartSteps& steps = part.steps;
  steps.peak_bytes.assign(steps.size(), -1);
  std::vector<std::pair<int64_t, int64_t>> samples;  // when, bytes
  for (Row row = 0; row < events.size(); ++row) {
    if (events.device_type[row] != wanted) continue;
    if (events.total_allocated_bytes[row] != kNoNumber) {
      part.peak_bytes = std::max(part.peak_bytes, events.total_allocated_bytes[row]);
      samples.emplace_back(events.time_ns[row], events.total_allocated_bytes[row]);
    }
    if (events.total_reserved_bytes[row] != kNoNumber) {
      part.reserved_bytes = std::max(part.reserved_bytes, events.total_reserved_bytes[row]);
    }
  }
  std::stable_sort(samples.begin(), samples.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t s = 0; s < steps.size(); ++s) {
    auto at = std::partition_point(samples.begin(), samples.end(),
                                   [&](const auto& sample) { return sample.first < steps.start_ns[s]; });
    if (at != samples.begin()) --at;
    for (; at != samples.end() && at->first < steps.end_ns[s]; ++at) {
      steps.peak_bytes[s] = std::max(steps.peak_bytes[s], at->second);
    }
  }
}

// Of the kernels from `from` to `until`, the one with the most time together.
std::pair<int64_t, int64_t> longest_kernel(const TimeLine& line, size_t from, size_t until,
                                           std::vector<int64_t>& sums) {
  std::fill(sums.begin(), sums.end(), 0);
  int64_t longest = -1;
  for (size_t i = from; i < until; ++i) {
    const int32_t kernel = line.work_kernel[i];
    if (kernel < 0) continue;
    int64_t& sum = sums[static_cast<size_t>(kernel)];
    sum += line.work_ns[i];
    if (longest < 0 || sum > sums[static_cast<size_t>(longest)]) longest = kernel;
  }
  return {longest, longest < 0 ? 0 : sums[static_cast<size_t>(longest)]};
}

}  // namespace

void map_segments(const analyze::HostTime& host, const TimeLine& line, Part& part) {
  PartCollectives& rows = part.collectives;
  int64_t before_start = 0;
  int64_t before_end = 0;
  size_t work_at = 0;
  std::vector<int64_t> sums(part.kernels.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t start = rows.start_ns[i];
    const int64_t gap_start = std::min(before_end, start);
    rows.overlapped_ns.push_back(line.compute.covered_ns(start, rows.end_ns[i]));
    rows.gap_ns.push_back(start - gap_start);
    rows.compute_ns.push_back(line.compute.covered_ns(before_start, start));
    const auto until =
        static_cast<size_t>(std::lower_bound(line.work_start_ns.begin() + static_cast<std::ptrdiff_t>(work_at),
                                             line.work_start_ns.end(), start) -
                            line.work_start_ns.begin());
    rows.kernels.push_back(static_cast<int64_t>(until - work_at));
    rows.work.push_back(line.work_before[until] - line.work_before[work_at]);
    const auto [kernel, kernel_ns] = longest_kernel(line, work_at, until, sums);
    rows.kernel.push_back(kernel);
    rows.kernel_ns.push_back(kernel_ns);
    work_at = until;
    rows.copy_ns.push_back(line.copies.covered_ns(gap_start, start));
    rows.checkpoint_ns.push_back(line.checkpoints.covered_ns(gap_start, start));
    const HostParts idle = idle_parts(host, line.busy, gap_start, start);
    rows.input_ns.push_back(idle.input_ns);
    rows.gc_ns.push_back(idle.gc_ns);
    rows.allocation_ns.push_back(idle.allocation_ns);
    rows.sync_ns.push_back(idle.sync_ns);
    rows.host_ns.push_back(idle.host_ns);
    before_start = start;
    before_end = std::max(before_end, rows.end_ns[i]);
  }
}

void map_steps(const Model& model, const analyze::HostTime& host, const TimeLine& line, Part& part) {
  const analyze::StepList found = analyze::find_steps(model, host);
  PartSteps& out = part.steps;
  part.steps_marked = found.source == analyze::StepSource::kMarked;
  if (found.source != analyze::StepSource::kWholeTrace) {
    for (const analyze::FoundStep& step : found.steps) {
      const int64_t start = step.span.start_ns;
      const int64_t end = std::max(start, step.span.end_ns);
      const int64_t compute = line.compute.covered_ns(start, end);
      const int64_t copies = line.copies.covered_ns(start, end);
      const int64_t checkpoints = line.checkpoints.covered_ns(start, end);
      const HostParts idle = idle_parts(host, line.busy, start, end);
      out.number.push_back(step.number);
      out.start_ns.push_back(start);
      out.end_ns.push_back(end);
      out.compute_ns.push_back(compute);
      out.exposed_ns.push_back(line.busy.covered_ns(start, end) - compute - copies - checkpoints);
      out.copy_ns.push_back(copies);
      out.checkpoint_ns.push_back(checkpoints);
      out.input_ns.push_back(idle.input_ns);
      out.gc_ns.push_back(idle.gc_ns);
      out.allocation_ns.push_back(idle.allocation_ns);
      out.sync_ns.push_back(idle.sync_ns);
      out.host_ns.push_back(idle.host_ns);
      out.communication_ns.push_back(line.collectives.covered_ns(start, end));
      out.warm_up.push_back(step.warm_up ? 1 : 0);
    }
  }
  for (const int64_t start : part.collectives.start_ns) {
    const auto after = std::upper_bound(out.start_ns.begin(), out.start_ns.end(), start) - out.start_ns.begin();
    const bool inside = after > 0 && start < out.end_ns[static_cast<size_t>(after) - 1];
    part.collectives.step.push_back(inside ? after - 1 : -1);
  }
}

std::vector<SliceRef> collective_slices(const StudiedTrace& trace) {
  const bool on_device = has_device_rows(trace.model());
  std::vector<SliceRef> out;
  for (const FoundCollective& each : find_collectives(trace.model(), on_device)) {
    out.push_back({.row = each.row, .on_device = on_device});
  }
  return out;
}

Part map_trace(const StudiedTrace& trace) {
  const Model& model = trace.model();
  Part part;
  map_identity(model, part);
  part.has_device_work = has_device_rows(model);
  const auto& host = trace.get<analyze::host_time>();
  const std::vector<FoundCollective> found = find_collectives(model, part.has_device_work);
  map_collectives(model, found, part);
  part.clock_grain_ns = grain_of(part.collectives);
  const TimeLine line = time_line(model, host, found, part.has_device_work, part);
  map_segments(host, line, part);
  map_steps(model, host, line, part);
  map_memory(model, part);
  map_device_state(model, part);
  return part;
}

}  // namespace firelane::ranks
