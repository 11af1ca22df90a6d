#include "analyze/steps/find_steps.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "analyze/common/median.h"
#include "analyze/device/device_work.h"
#include "analyze/host/core_waits.h"
#include "analyze/steps/step_spans.h"

namespace firelane::analyze {

namespace {

// A first step this much above the median of the others is warm-up.
constexpr double kWarmUpFactor = 1.5;
// Beyond the median by this factor and by this many spreads.
constexpr double kOutlierFactor = 1.25;
constexpr int64_t kOutlierSpreads = 5;
constexpr size_t kMinRepeats = 3;

std::vector<FoundStep> marked_steps(const Model& model) {
  std::vector<FoundStep> steps;
  for (size_t i = 0; i < model.steps.size(); ++i) {
    const int64_t start = model.steps.start_ns[i];
    if (!steps.empty() && start < steps.back().end_ns) continue;  // of another thread
    steps.push_back({model.steps.number[i], start, start + model.steps.duration_ns[i]});
  }
  return steps;
}

// From the end of one optimizer step to the end of the next.
std::vector<FoundStep> optimizer_steps(const Model& model) {
  std::vector<int64_t> ends;
  const HostSlices& slices = model.host_slices;
  for (Row row = 0; row < slices.size(); ++row) {
    if (slices.kind[row] != HostKind::kAnnotation && slices.kind[row] != HostKind::kOp) continue;
    if (slices.role[row] == HostRole::kOptimizerStep) ends.push_back(slices.end_ns(row));
  }
  std::sort(ends.begin(), ends.end());
  std::vector<FoundStep> steps;
  for (size_t i = 1; i < ends.size(); ++i) steps.push_back({static_cast<int64_t>(i), ends[i - 1], ends[i]});
  return steps;
}

struct OuterOp {
  int64_t start_ns;
  int64_t end_ns;
  StringId name;
};

// Ops of the leading chain that lie in no other op, in order of time.
std::vector<OuterOp> outer_ops(const Model& model, const HostChain& chain) {
  std::vector<OuterOp> ops;
  const HostSlices& slices = model.host_slices;
  each_outermost(
      model, chain, [&](Row row) { return slices.kind[row] == HostKind::kOp; },
      [&](Row row) { ops.push_back({slices.start_ns[row], slices.end_ns(row), slices.name[row]}); });
  std::stable_sort(ops.begin(), ops.end(), [](const OuterOp& a, const OuterOp& b) { return a.start_ns < b.start_ns; });
  return ops;
}

// How many ops from `first` on repeat what came `period` before.
size_t repeats_from(const std::vector<OuterOp>& ops, size_t first, size_t period) {
  size_t same = 0;
  for (size_t i = first + period; i < ops.size() && ops[i].name == ops[i - period].name; ++i) ++same;
  return same;
}

// The longest stretch that repeats with one period: candidates are the distances at which rare names come back.
std::vector<FoundStep> repeated_steps(const Model& model, const HostTime& host) {
  if (host.chains.empty()) return {};
  const std::vector<OuterOp> ops = outer_ops(model, host.chains[0]);
  std::unordered_map<uint32_t, std::vector<uint32_t>> places;
  for (size_t i = 0; i < ops.size(); ++i) {
    places[static_cast<uint32_t>(ops[i].name)].push_back(static_cast<uint32_t>(i));
  }
  std::vector<const std::vector<uint32_t>*> rare;
  for (const auto& [name, at] : places) {
    if (at.size() >= kMinRepeats) rare.push_back(&at);
  }
  std::sort(rare.begin(), rare.end(), [](const auto* a, const auto* b) {
    return a->size() != b->size() ? a->size() < b->size() : a->front() < b->front();
  });
  struct Best {
    size_t first = 0, period = 0, covered = 0;
  } best;
  constexpr size_t kMaxNames = 12;
  for (size_t n = 0; n < std::min(rare.size(), kMaxNames); ++n) {
    const std::vector<uint32_t>& at = *rare[n];
    std::array<size_t, 2> tried{};
    for (const size_t i : {at.size() / 2, at.size() - 1}) {  // the middle is past any prefill
      const size_t period = at[i] - at[i - 1];
      if (period == tried[0] || period == tried[1]) continue;
      tried[i == at.size() - 1] = period;
      size_t first = at[i - 1];
      while (first > 0 && first - 1 + period < ops.size() && ops[first - 1].name == ops[first - 1 + period].name)
        --first;
      const size_t covered = repeats_from(ops, first, period) + period;
      if (covered / period >= kMinRepeats && covered > best.covered) best = {first, period, covered};
    }
  }
  // A repetition that covers little of the program is not its step.
  if (best.period == 0 || best.covered * 2 < ops.size()) return {};
  std::vector<FoundStep> steps;
  const size_t count = best.covered / best.period;
  for (size_t s = 0; s < count; ++s) {
    const size_t begin = best.first + s * best.period;
    const size_t next = begin + best.period;
    const int64_t end = next < ops.size() ? ops[next].start_ns : ops.back().end_ns;
    steps.push_back({static_cast<int64_t>(s), ops[begin].start_ns, end});
  }
  return steps;
}

FoundStep whole_trace(const Model& model) {
  const Interval span = counted_span(model);
  return {.number = 0, .start_ns = span.start_ns, .end_ns = std::max(span.start_ns + 1, span.end_ns)};
}

void judge(StepList& list) {
  std::vector<FoundStep>& steps = list.steps;
  size_t first = 0;
  while (steps.size() - first >= 3) {  // two must remain to compare with
    std::vector<int64_t> rest;
    for (size_t i = first + 1; i < steps.size(); ++i) rest.push_back(steps[i].duration_ns());
    const auto usual = static_cast<double>(median_or_zero(std::move(rest)));
    if (static_cast<double>(steps[first].duration_ns()) <= kWarmUpFactor * usual) break;
    steps[first++].warm_up = true;
  }
  std::vector<int64_t> durations;
  for (size_t i = first; i < steps.size(); ++i) durations.push_back(steps[i].duration_ns());
  list.judged = static_cast<int64_t>(durations.size());
  list.median_ns = usual_length(list.judged_spans());
  for (int64_t& duration : durations) duration = std::abs(duration - list.median_ns);
  list.spread_ns = median_or_zero(std::move(durations));
  list.window = {steps[first].start_ns, steps.back().end_ns};
  if (list.judged < 4) return;
  for (size_t i = first; i < steps.size(); ++i) {
    const int64_t over = steps[i].own_ns() - list.median_ns;
    steps[i].outlier = over > kOutlierSpreads * list.spread_ns &&
                       static_cast<double>(steps[i].own_ns()) > kOutlierFactor * static_cast<double>(list.median_ns);
  }
}

}  // namespace

std::string_view name_of(StepSource source) {
  static constexpr std::array<std::string_view, 4> kNames = {"marked", "optimizer", "repetition", "whole trace"};
  return kNames[static_cast<size_t>(source)];
}

StepList find_steps(const Model& model, const HostTime& host) {
  StepList list{.source = StepSource::kMarked, .steps = marked_steps(model)};
  if (list.steps.empty()) {
    list.source = StepSource::kOptimizer;
    list.steps = optimizer_steps(model);
  }
  if (list.steps.empty()) {
    list.source = StepSource::kRepetition;
    list.steps = repeated_steps(model, host);
  }
  if (list.steps.empty()) {
    list.source = StepSource::kWholeTrace;
    list.steps = {whole_trace(model)};
  }
  const std::vector<Interval> spans = recorded_spans(model, list.steps);
  const CoreWaits waits(model);
  for (size_t i = 0; i < spans.size(); ++i) {
    list.steps[i].span = spans[i];
    if (list.source != StepSource::kMarked) continue;  // those were not timed
    const int64_t lost_ns = waits.lost_in(list.steps[i].start_ns, list.steps[i].end_ns);
    list.steps[i].lost_ns = std::min(spans[i].end_ns - spans[i].start_ns, lost_ns);
  }
  judge(list);
  return list;
}

std::vector<Interval> StepList::judged_spans() const {
  std::vector<Interval> spans;
  for (const FoundStep& step : steps) {
    if (!step.warm_up) spans.push_back(step.span);
  }
  return spans;
}

Steps to_steps(const std::vector<FoundStep>& found, StepUse use) {
  Steps steps;
  for (const FoundStep& step : found) {
    steps.number.push_back(step.number);
    steps.slice.push_back(kNoRow);
    const bool measure = use == StepUse::kMeasure;
    steps.start_ns.push_back(measure ? step.span.start_ns : step.start_ns);
    steps.duration_ns.push_back(measure ? step.duration_ns() : step.end_ns - step.start_ns);
  }
  return steps;
}

HostSteps host_steps(const Model& model) {
  auto host = std::make_shared<const HostTime>(host_time(model));
  StepList steps = find_steps(model, *host);
  return {std::move(host), std::move(steps)};
}

namespace {

Steps wanted_steps(const StepList& found, StepUse use) {
  const bool is_wanted =
      found.source != StepSource::kWholeTrace && (use != StepUse::kHost || found.source != StepSource::kRepetition);
  return is_wanted ? to_steps(found.steps, use) : Steps{};
}

}  // namespace

Steps steps_of(const Model& model, StepUse use) {
  if (use != StepUse::kMeasure && model.steps.size() > 0) return model.steps;
  return wanted_steps(find_steps(model, host_time(model)), use);
}

Steps trace_steps(const StudiedTrace& trace, StepUse use) {
  if (use != StepUse::kMeasure && trace.model().steps.size() > 0) return trace.model().steps;
  return wanted_steps(trace.get<host_steps>().steps, use);
}

}  // namespace firelane::analyze
