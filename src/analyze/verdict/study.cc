#include "analyze/verdict/study.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <tuple>
#include <utility>

#include "analyze/common/median.h"
#include "analyze/compute/roofline.h"
#include "analyze/device/device_work.h"
#include "analyze/host/core_waits.h"
#include "analyze/host/dispatch.h"
#include "analyze/steps/growth.h"
#include "analyze/steps/true_steps.h"
#include "base/parallel.h"

namespace firelane::analyze {

int64_t Study::gain_ns(const PreparedChange& change) const {
  return per_step(played.total_ns() - replay_total_ns(graph, change, undone.at(undone.factor), &played));
}

int64_t Study::sure_gain_ns(const WhatIf& change) const {
  const ReplayOptions options = undone.at(undone.most);
  return per_step(replay_total_ns(graph, {}, options) - replay_total_ns(graph, change, options));
}

namespace {

// A program that has just begun, or slept, runs its first steps slower: two operators of 17 us take 60 (an H200's host,
// torch 2.11, without a profiler). Steps that last less than this in all may be such; then the limit must hold also for
// a warm host.
constexpr int64_t kColdNs = 1'000'000;
// What a warm host takes at least for an operator that launches one kernel (there 8.6 us).
constexpr int64_t kWarmLaunchNs = 8'000;

// Analyses of fewer rows take less time than starting a thread for them is worth.
constexpr size_t kManyRows = 100'000;
bool is_large(const Graph& graph) { return graph.nodes.size() > kManyRows; }

// From then on: steps of the warm-up are left out, and the device may lag behind the last one.
UnitUse unit_use(const Model& model, int64_t from_ns) {
  std::vector<Interval> busy = device_busy(model).intervals();
  std::erase_if(busy, [from_ns](const Interval& each) { return each.end_ns <= from_ns; });
  if (!busy.empty()) busy[0].start_ns = std::max(busy[0].start_ns, from_ns);
  return HardwareMetrics(model).use_while(IntervalSet(std::move(busy)));
}

Limit limit_of(const Study& s, const BoundJudge& judge, const Replay& played) {
  const CriticalPath path = critical_path(*s.host, s.graph, played);
  return judge.of(path, device_busy(s.graph, played), played.start_ns, played.end_ns).limit;
}

// The limit of an overhead-bound program if its host took only what a warm one does: as BoundJudge decides.
Limit limit_if_warm(const Study& s) {
  const int64_t busy_ns = s.breakdown.total.busy_ns();
  const int64_t warm_ns = s.launches.calls * kWarmLaunchNs;
  if (busy_ns <= warm_ns / 2) return Limit::kOverhead;
  if (busy_ns <= warm_ns) return Limit::kMixed;
  return s.bound.shares[static_cast<size_t>(Limit::kCompute)] >= s.bound.shares[static_cast<size_t>(Limit::kMemory)]
             ? Limit::kCompute
             : Limit::kMemory;
}

// Whether the limit is another one where the truth may lie, too. `at_ends`: of the costs' range.
void note_uncertainty(Study& s, const std::vector<Limit>& at_ends) {
  for (const Limit limit : at_ends) {
    if (limit == s.bound.limit) continue;
    s.undone.undecided = true;
    s.other_limit = limit;
  }
  if (s.undone.undecided || s.bound.limit != Limit::kOverhead || !s.has_device_work) return;
  if (s.played.total_ns() >= kColdNs) return;
  s.other_limit = limit_if_warm(s);
  s.cold = s.undone.undecided = s.other_limit != Limit::kOverhead;
}

constexpr double kSlowFactor = 1.5;
constexpr int64_t kSlowForSure = 3;
constexpr size_t kLeastSlow = 2;  // one may be chance
constexpr size_t kLeastTimed = 5;

}  // namespace

SlowSteps find_slow_steps(const Model& model) {
  const TimedSteps& steps = model.timed_steps;
  const CoreWaits waits(model);
  const auto own_ns = [&](Row row) { return steps.duration_ns[row] - waits.lost_ns(row); };
  SlowSteps out;
  std::vector<Row> rows;
  std::vector<int64_t> lengths;
  std::vector<int64_t> on_device;
  int64_t sum_ns = 0;
  const auto is_true = [](StepDisturbance disturbance) { return disturbance == StepDisturbance::kNone; };
  auto warm_up = std::count_if(steps.disturbance.begin(), steps.disturbance.end(), is_true);
  for (const Row row : true_steps(steps)) {
    --warm_up;
    if (row < kWarmUp) continue;
    rows.push_back(row);
    lengths.push_back(own_ns(row));
    sum_ns += own_ns(row);
    if (row < steps.device_ns.size() && steps.device_ns[row] != kNoNumber) on_device.push_back(steps.device_ns[row]);
  }
  if (rows.size() < kLeastTimed) return out;
  // A host that runs ahead of the device waits for it now and then: no step is slow that makes up for quick ones.
  const int64_t usual = std::max(median(lengths), on_device.empty() ? 0 : median(on_device));
  std::vector<int64_t> distances;
  for (const int64_t length : lengths) distances.push_back(std::abs(length - usual));
  const int64_t limit = std::max<int64_t>(std::llround(kSlowFactor * static_cast<double>(usual)),
                                          usual + 5 * median(std::move(distances)));
  std::vector<int64_t> slow;
  int64_t excess_ns = 0;
  for (const Row row : rows) {
    if (own_ns(row) <= limit) continue;
    slow.push_back(own_ns(row));
    excess_ns += own_ns(row) - usual;
    out.numbers.push_back(steps.number[row]);
  }
  // Steps while recording count in how many there are: those that are slow are the recorder's doing.
  out.timed = static_cast<int64_t>(steps.size()) - std::max<int64_t>(warm_up, kWarmUp);
  out.usual_ns = usual;
  out.usual_slow_ns = slow.empty() ? 0 : median(slow);
  const bool makes_up = sum_ns - static_cast<int64_t>(rows.size()) * usual < excess_ns / 2;
  if (slow.size() < kLeastSlow || out.usual_slow_ns < kSlowForSure * usual || makes_up) {
    out.numbers.clear();
    return out;
  }
  out.excess_ns = excess_ns / out.timed;
  return out;
}

std::string_view name_of(RecordedSteps steps) {
  static constexpr std::array<std::string_view, 3> kNames = {"all", "light", "full"};
  return kNames[static_cast<size_t>(steps)];
}

std::string_view Study::while_recording() const {
  static constexpr std::array<std::string_view, 3> kWords = {"while recording", "in light steps", "in full steps"};
  return kWords[static_cast<size_t>(recorded_steps)];
}

Study study(const StudiedTrace& trace) {
  const Model& model = trace.model();
  Study s;
  const auto& kinds = model.device_slices.kind;
  s.has_device_work = std::any_of(kinds.begin(), kinds.end(), is_device_work);
  const auto& [host, steps] = trace.get<host_steps>();
  s.host = host;
  s.steps = steps;
  if (!s.has_device_work && !s.host->chains.empty()) {
    s.dispatch = dispatch_shares(model, s.host->chains[0], s.steps.window);
    s.computing_share = computing_share(s.host->chains[0], s.steps.window, s.dispatch);
  }
  RecordingCosts costs;
  run_both(
      model.host_slices.size() > kManyRows,
      [&] {
        s.work_limits = work_limits(model, trace.get<roofline>());
        s.launches = launch_table(model, s.steps.window);
      },
      [&] {
        costs = recording_costs(model, *s.host, s.steps);
        s.graph = build_graph(model, *s.host, s.steps, costs.costs, costs.pace, costs.charges);
        s.recorded = replay(s.graph, {}, {.recording_removed = 0});
      });
  s.host_unknown = s.has_device_work && model.op_details.size() == 0 && model.call_details.size() == 0;
  const BoundJudge judge(s.work_limits, s.computing_share);
  std::vector<Limit> limits_at_ends;
  run_both(
      is_large(s.graph),
      [&] {
        s.idle = idle_table(model, *s.host, s.graph, s.recorded);
        s.breakdown = break_down(model, *s.host, s.graph, s.recorded, s.steps, s.idle);
        s.syncs = sync_table(model, s.graph, s.steps.window);
      },
      [&] {
        std::tie(s.undone, s.played) =
            undo_recording(model, s.graph, s.recorded, costs, s.steps, [&](const Replay& played) {
              if (!s.host_unknown) limits_at_ends.push_back(limit_of(s, judge, played));
            });
        s.path = critical_path(*s.host, s.graph, s.played);
      });
  if (model.counter_samples.size() > 0) s.unit_use = unit_use(model, s.steps.window.start_ns);
  const IntervalSet busy = device_busy(s.graph, s.played);
  s.bound = judge.of(s.path, busy, s.played.start_ns, s.played.end_ns);
  // What nobody understood may be what the program waits for.
  s.not_understood = !s.has_device_work && model.losses[Stat::kDeviceNotUnderstood] > 0;
  if (s.not_understood) s.bound = {.limit = Limit::kUnknown};
  s.accelerator = model.info.accelerator;
  s.origin = model.info.origin;
  const bool blames_host = s.bound.limit == Limit::kOverhead || s.bound.limit == Limit::kMixed;
  if (s.host_unknown && blames_host) s.bound.limit = Limit::kUnknown;
  s.step_spans = step_spans(model, s.graph, s.played, s.steps);
  s.usual_step_ns = s.undone.usual_ns;
  s.usual_recorded_ns = s.undone.usual_recorded_ns;
  if (model.info.light.is_light) s.recorded_steps = RecordedSteps::kLight;
  if (model.light != nullptr) s.recorded_steps = RecordedSteps::kFull;
  int64_t recorded_excess_ns = 0;
  for (const FoundStep& step : s.steps.steps) {
    if (step.outlier && !step.warm_up) recorded_excess_ns += step.own_ns() - s.steps.median_ns;
  }
  s.slow_steps = find_slow_steps(model);
  // Slow steps that were recorded speak for themselves, unless those that were only timed cost more.
  if (s.per_step(recorded_excess_ns) > s.slow_steps.excess_ns) s.slow_steps = {};
  for (const Interval& span : s.step_spans) {
    s.step_bounds.push_back(judge.of(s.path, busy, span.start_ns, span.end_ns));
  }
  if (s.undone.source != CostSource::kBaseline && !s.host_unknown) note_uncertainty(s, limits_at_ends);
  return s;
}

}  // namespace firelane::analyze
