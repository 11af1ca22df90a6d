#include "analyze/lanes.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "analyze/intervals.h"

namespace firelane {

namespace {

void extend(LaneRow& row, int64_t start_ns, int64_t end_ns) {
  row.first_ns = row.slices == 0 ? start_ns : std::min(row.first_ns, start_ns);
  row.last_ns = row.slices == 0 ? end_ns : std::max(row.last_ns, end_ns);
  ++row.slices;
}

void add_host(const Model& model, size_t lane, LaneRow& row, std::vector<Interval>& work) {
  const HostSlices& slices = model.host_slices;
  for (Row slice = model.lanes.host_begin[lane]; slice < model.lanes.host_end[lane]; ++slice) {
    extend(row, slices.start_ns[slice], slices.end_ns(slice));
    row.depth = std::max<int64_t>(row.depth, slices.depth[slice] + 1);
    if (slices.kind[slice] != HostKind::kSpan) work.push_back({slices.start_ns[slice], slices.end_ns(slice)});
  }
}

void add_device(const Model& model, size_t lane, LaneRow& row, std::vector<Interval>& work) {
  const DeviceSlices& slices = model.device_slices;
  std::priority_queue<int64_t, std::vector<int64_t>, std::greater<>> open_ends;
  for (Row slice = model.lanes.device_begin[lane]; slice < model.lanes.device_end[lane]; ++slice) {
    extend(row, slices.start_ns[slice], slices.end_ns(slice));
    if (!is_device_work(slices.kind[slice])) continue;
    work.push_back({slices.start_ns[slice], slices.end_ns(slice)});
    while (!open_ends.empty() && open_ends.top() <= slices.start_ns[slice]) open_ends.pop();
    open_ends.push(slices.end_ns(slice));
    row.depth = std::max(row.depth, static_cast<int64_t>(open_ends.size()));
  }
}

}  // namespace

std::vector<LaneRow> lane_table(const Model& model) {
  std::vector<LaneRow> rows;
  for (size_t lane = 0; lane < model.lanes.size(); ++lane) {
    LaneRow row{.lane = static_cast<LaneId>(lane)};
    std::vector<Interval> work;
    add_host(model, lane, row, work);
    add_device(model, lane, row, work);
    row.busy_ns = IntervalSet(std::move(work)).total_ns();
    rows.push_back(row);
  }
  return rows;
}

}  // namespace firelane
