#include "model/assemble.h"

#include <algorithm>

#include "model/occupancy.h"
#include "model/unknown_lanes.h"

namespace firelane {

namespace {

void sum_up(RawTrace& raw, Model& model) {
  model.losses = raw.losses;
  for (const RawPart& part : raw.parts) {
    model.losses.add(part.losses);
    model.info.event_count += part.event_count;
  }
}

// From the first start to the last end of what the program did; spans and the
// profiler's own overhead do not count, unless there is nothing else.
void measure_duration(Model& model) {
  int64_t first = INT64_MAX;
  int64_t last = INT64_MIN;
  const auto cover = [&](int64_t start, int64_t end) {
    first = std::min(first, start);
    last = std::max(last, end);
  };
  const HostSlices& host = model.host_slices;
  for (Row row = 0; row < host.size(); ++row) {
    if (host.kind[row] == HostKind::kSpan || host.kind[row] == HostKind::kOverhead) continue;
    cover(host.start_ns[row], host.end_ns(row));
  }
  const DeviceSlices& device = model.device_slices;
  for (Row row = 0; row < device.size(); ++row) cover(device.start_ns[row], device.end_ns(row));
  // Annotations of a memory snapshot are few, and its events begin before and end after them.
  if (first > last || is_dump(model.info.origin)) {
    for (Row row = 0; row < host.size(); ++row) cover(host.start_ns[row], host.end_ns(row));
    for (const int64_t time : model.memory_events.time_ns) cover(time, time);
    for (const int64_t time : model.instants.time_ns) cover(time, time);
    for (const int64_t time : model.counter_samples.time_ns) cover(time, time);
  }
  model.info.duration_ns = first > last ? 0 : last - first;
}

}  // namespace

namespace {

void count_unknown_lanes(Model& model) {
  for (const LaneId lane : unknown_device_lanes(model)) {
    const auto l = static_cast<size_t>(lane);
    const Row slices =
        model.lanes.host_end[l] - model.lanes.host_begin[l] + model.lanes.device_end[l] - model.lanes.device_begin[l];
    model.losses[Stat::kDeviceNotUnderstood] += slices;
  }
}

}  // namespace

Model assemble(RawTrace&& raw, unsigned threads) {
  Model model;
  model.info = std::move(raw.info);
  model.args = raw.args;
  sum_up(raw, model);
  merge_pools(raw, model, threads);
  pair_edges(raw, model);
  bound_sizes(raw, model, threads);
  rebase_times(raw, model, threads);
  const std::vector<LaneId> lane_map = order_lanes(raw, model);
  build_other_tables(raw, model, lane_map, threads);
  build_host_slices(raw, model, lane_map, threads);
  mark_roles(model);
  build_device_slices(raw, model, lane_map, threads);
  fill_occupancy(model);
  mark_window(model);
  nest_slices(model);
  type_collectives(model);
  link_slices(model);
  link_data(model);
  link_flows(raw, model, lane_map);
  collect_marked_steps(model);
  measure_duration(model);
  count_unknown_lanes(model);
  return model;
}

}  // namespace firelane
