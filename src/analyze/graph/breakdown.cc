#include "analyze/graph/breakdown.h"

#include <algorithm>
#include <numeric>

#include "analyze/common/intervals.h"
#include "analyze/device/device_class.h"
#include "analyze/device/device_work.h"
#include "base/check.h"

namespace firelane::analyze {

namespace {

struct DeviceSets {
  IntervalSet compute;
  IntervalSet compute_or_communication;
  IntervalSet all;
};

DeviceSets device_sets(const Model& model) {
  std::vector<Interval> compute;
  std::vector<Interval> both;
  std::vector<Interval> all;
  DeviceClasses classes(model);
  const DeviceSlices& slices = model.device_slices;
  for (Row row = 0; row < slices.size(); ++row) {
    if (!is_device_work(slices.kind[row]) || !is_counted(model, row)) continue;
    const Interval interval = counted_part(model, row);
    const DeviceClass device_class = classes.of(row);
    all.push_back(interval);
    if (device_class != DeviceClass::kCopy) both.push_back(interval);
    if (device_class == DeviceClass::kCompute) compute.push_back(interval);
  }
  return {IntervalSet(std::move(compute)), IntervalSet(std::move(both)), IntervalSet(std::move(all))};
}

BreakdownRow row_of(const DeviceSets& sets, const HostTime& host, const IdleTable& idle, bool has_device,
                    const Interval& span) {
  BreakdownRow row{.start_ns = span.start_ns, .duration_ns = span.end_ns - span.start_ns};
  const int64_t both = sets.compute_or_communication.covered_ns(span.start_ns, span.end_ns);
  row.compute_ns = sets.compute.covered_ns(span.start_ns, span.end_ns);
  row.communication_ns = both - row.compute_ns;
  row.copy_ns = sets.all.covered_ns(span.start_ns, span.end_ns) - both;
  row.idle = idle.times_in(span.start_ns, span.end_ns);
  const int64_t idle_ns = std::accumulate(row.idle.begin(), row.idle.end(), int64_t{0});
  FL_CHECK(!has_device || row.busy_ns() + idle_ns == row.duration_ns,
           "break_down: device parts must add up to the step");
  if (!host.chains.empty()) row.host = host.chains[0].times_in(span.start_ns, span.end_ns);
  return row;
}

}  // namespace

Breakdown break_down(const Model& model, const HostTime& host, const Graph& graph, const Replay& recorded,
                     const StepList& steps, const IdleTable& idle) {
  Breakdown out;
  const DeviceSets sets = device_sets(model);
  out.has_device_work = sets.all.total_ns() > 0;
  const std::vector<Interval> spans = step_spans(model, graph, recorded, steps);
  size_t next = 0;
  for (const FoundStep& step : steps.steps) {
    if (step.warm_up || next >= spans.size()) continue;
    out.steps.push_back(row_of(sets, host, idle, out.has_device_work, spans[next++]));
    out.steps.back().number = step.number;
  }
  out.total = row_of(sets, host, idle, out.has_device_work, {recorded.start_ns, recorded.end_ns});
  int64_t sum = 0;
  for (const BreakdownRow& row : out.steps) sum += row.duration_ns;
  FL_CHECK(out.steps.empty() || sum == out.total.duration_ns, "break_down: steps must add up to the window");
  return out;
}

}  // namespace firelane::analyze
