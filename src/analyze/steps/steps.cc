#include "analyze/steps/steps.h"

#include <algorithm>

#include "analyze/common/median.h"
#include "analyze/device/device_work.h"
#include "analyze/steps/step_spans.h"
#include "base/check.h"

namespace firelane::analyze {

namespace {

// Marked steps of several threads: of overlapping ones the latest that began.
class WindowFinder {
 public:
  explicit WindowFinder(const Steps& steps) : steps_(steps) {}

  size_t at(int64_t time_ns) const {
    const auto after = std::upper_bound(steps_.start_ns.begin(), steps_.start_ns.end(), time_ns);
    for (auto index = after - steps_.start_ns.begin(); index-- > 0;) {
      const auto step = static_cast<size_t>(index);
      if (time_ns < steps_.start_ns[step] + steps_.duration_ns[step]) return step;
    }
    return SIZE_MAX;
  }

 private:
  const Steps& steps_;
};

// Adds what starts in each step: `at` says in which a moment of the host lies, `of_work` to which device work belongs.
template <typename At, typename OfWork>
void count_starts(const Model& model, const At& at, const OfWork& of_work, StepTable& table) {
  const auto row_of = [&](size_t step) -> StepRow& { return step == SIZE_MAX ? table.outside : table.rows[step]; };
  for (Row row = 0; row < model.host_slices.size(); ++row) {
    if (model.host_slices.kind[row] == HostKind::kOp) ++row_of(at(model.host_slices.start_ns[row])).ops;
  }
  const DeviceSlices& slices = model.device_slices;
  for (Row row = 0; row < slices.size(); ++row) {
    if (!is_counted(model, row)) continue;
    if (slices.kind[row] == DeviceKind::kKernel) ++row_of(of_work(row)).kernels;
    const bool moves = slices.kind[row] == DeviceKind::kCopy || slices.kind[row] == DeviceKind::kSet;
    if (moves) ++row_of(of_work(row)).copies_and_sets;
  }
}

bool overlap(const Steps& steps) {
  for (size_t i = 1; i < steps.size(); ++i) {
    if (steps.start_ns[i] < steps.start_ns[i - 1] + steps.duration_ns[i - 1]) return true;
  }
  return false;
}

void mark(const StepList& found, StepTable& table) {
  table.source = found.source;
  if (table.rows.empty()) return;
  table.usual_ns = found.median_ns;
  table.spread_ns = found.spread_ns;
  size_t at = 0;  // both in order of time; of overlapping steps the list has the first
  for (const FoundStep& step : found.steps) {
    while (at < table.rows.size() && table.rows[at].start_ns < (table.overlapping ? step.start_ns : step.span.start_ns))
      ++at;
    if (at == table.rows.size()) return;
    table.rows[at].warm_up = step.warm_up;
    table.rows[at].outlier = step.outlier;
  }
}

}  // namespace

StepTable step_table(const Model& model) {
  const StepList found = find_steps(model, host_time(model));
  StepTable table;
  table.overlapping = found.source == StepSource::kMarked && overlap(model.steps);
  const Steps steps = table.overlapping                         ? model.steps
                      : found.source == StepSource::kWholeTrace ? Steps{}
                                                                : to_steps(found.steps, StepUse::kMeasure);
  const IntervalSet busy = device_busy(model);
  table.has_device_work = busy.total_ns() > 0;
  std::vector<Interval> windows;
  int64_t window_busy_ns = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const int64_t end_ns = steps.start_ns[i] + steps.duration_ns[i];
    const int64_t busy_ns = busy.covered_ns(steps.start_ns[i], end_ns);
    table.rows.push_back({.number = steps.number[i],
                          .start_ns = steps.start_ns[i],
                          .duration_ns = steps.duration_ns[i],
                          .device_busy_ns = busy_ns,
                          .device_idle_ns = steps.duration_ns[i] - busy_ns});
    windows.push_back({steps.start_ns[i], std::max(end_ns, windows.empty() ? end_ns : windows.back().end_ns)});
    window_busy_ns += busy_ns;
  }
  const IntervalSet all_windows(std::move(windows));
  table.outside.device_busy_ns = busy.total_ns() - busy.overlap_ns(all_windows);
  FL_CHECK(table.overlapping || window_busy_ns + table.outside.device_busy_ns == busy.total_ns(),
           "step_table: busy time inside and outside of steps must add up to all of it");
  if (table.overlapping) {
    const WindowFinder finder(steps);
    count_starts(
        model, [&](int64_t time_ns) { return finder.at(time_ns); },
        [&](Row row) { return finder.at(model.device_slices.start_ns[row]); }, table);
  } else if (steps.size() > 0) {
    count_starts(
        model, [&](int64_t time_ns) { return step_at(found.steps, time_ns); },
        [&](Row row) { return step_of_work(model, found.steps, row); }, table);
  } else {
    const auto outside = [](int64_t) { return SIZE_MAX; };
    count_starts(model, outside, outside, table);
  }
  mark(found, table);
  if (steps.size() == 0) return table;
  table.median_ns = median(steps.duration_ns);
  table.min_ns = *std::min_element(steps.duration_ns.begin(), steps.duration_ns.end());
  table.max_ns = *std::max_element(steps.duration_ns.begin(), steps.duration_ns.end());
  return table;
}

}  // namespace firelane::analyze
