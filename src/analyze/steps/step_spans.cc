#include "analyze/steps/step_spans.h"

#include <algorithm>

#include "analyze/common/median.h"
#include "analyze/device/device_work.h"
#include "analyze/steps/find_steps.h"

namespace firelane::analyze {

namespace {

constexpr double kHeldUp = 1.5;

// When the device had done what was launched before the first step, as far as a stream goes on with work of these
// steps.
int64_t earlier_work_end(const Model& model, int64_t begin_ns, int64_t end_ns) {
  int64_t last_ns = begin_ns;
  each_stream_start(model, begin_ns, end_ns, [&](Row row, Row before) {
    const int64_t start_ns = model.device_slices.start_ns[row];
    if (before != kNoRow) {
      last_ns = std::max(last_ns, model.device_slices.end_ns(before));
    } else if (start_ns - launch_start(model, row) > kBacklogNs) {
      last_ns = std::max(last_ns, start_ns);
    }
  });
  return last_ns;
}

}  // namespace

bool is_followed(const std::vector<FoundStep>& steps, size_t i) {
  if (i + 1 >= steps.size()) return false;
  const FoundStep& step = steps[i];
  const FoundStep& next = steps[i + 1];
  const bool skipped = step.number != kNoNumber && next.number > step.number && next.number - 1 != step.number;
  return !skipped || next.start_ns - step.end_ns < (step.end_ns - step.start_ns) / 2;
}

size_t step_at(const std::vector<FoundStep>& steps, int64_t time_ns) {
  const auto after =
      std::partition_point(steps.begin(), steps.end(), [&](const FoundStep& step) { return step.start_ns <= time_ns; });
  if (after == steps.begin()) return SIZE_MAX;
  const auto at = static_cast<size_t>(after - steps.begin()) - 1;
  return time_ns < steps[at].end_ns || is_followed(steps, at) ? at : SIZE_MAX;
}

size_t step_of_work(const Model& model, const std::vector<FoundStep>& steps, Row device_row) {
  const int64_t launched = launch_start(model, device_row);
  return step_at(steps, launched == kNoNumber ? model.device_slices.start_ns[device_row] : launched);
}

std::vector<Interval> lay_spans(const std::vector<StepMoments>& moments, int64_t start_ns) {
  std::vector<Interval> spans;
  int64_t from = start_ns;
  for (size_t i = 0; i < moments.size(); ++i) {
    const bool followed = i + 1 < moments.size() && moments[i].followed;
    from = std::max(from, i > 0 && !moments[i - 1].followed ? moments[i].begin_ns : from);
    const int64_t host_ns = followed ? moments[i + 1].begin_ns : moments[i].end_ns;
    const int64_t end = std::max({from, host_ns, moments[i].device_end_ns});
    spans.push_back({from, end});
    from = end;
  }
  return spans;
}

std::vector<Interval> recorded_spans(const Model& model, const std::vector<FoundStep>& steps) {
  if (steps.empty()) return {};
  std::vector<StepMoments> moments;
  for (size_t i = 0; i < steps.size(); ++i) {
    moments.push_back({.begin_ns = steps[i].start_ns, .end_ns = steps[i].end_ns, .followed = is_followed(steps, i)});
  }
  for (Row row = 0; row < model.device_slices.size(); ++row) {
    if (!is_device_work(model.device_slices.kind[row]) || !is_counted(model, row)) continue;
    const size_t step = step_of_work(model, steps, row);
    if (step == SIZE_MAX) continue;
    moments[step].device_end_ns = std::max(moments[step].device_end_ns, model.device_slices.end_ns(row));
  }
  return lay_spans(moments, earlier_work_end(model, steps.front().start_ns, steps.back().end_ns));
}

int64_t usual_length(const std::vector<Interval>& spans) {
  if (spans.empty()) return 0;
  std::vector<int64_t> lengths;
  for (const Interval& span : spans) lengths.push_back(span.end_ns - span.start_ns);
  std::sort(lengths.begin(), lengths.end());
  const size_t half = lengths.size() / 2;
  if (lengths.size() % 2 == 1) return lengths[half];
  const bool held_up = static_cast<double>(lengths[half]) > kHeldUp * static_cast<double>(lengths[half - 1]);
  return held_up || lengths.size() == 2 ? lengths[half - 1] : median(std::move(lengths));
}

}  // namespace firelane::analyze
