#include "analyze/verdict/recording.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "analyze/common/median.h"
#include "analyze/steps/step_spans.h"
#include "analyze/steps/true_steps.h"
#include "analyze/trace/info.h"
#include "analyze/verdict/bound.h"
#include "analyze/verdict/torch_costs.h"
#include "analyze/verdict/torch_stretches.h"

namespace firelane::analyze {

namespace {

// Our own recorder cannot measure what CUPTI costs a launch: 1,280 of them add 2.1 to 3.6 ms to a GPT step on an H200,
// or about 7 where calls come by records of CUPTI and not by callbacks (bench/README.md, "Recording the GPU").
constexpr double kOurLaunch = 2'000;
constexpr double kOurLaunchByRecords = 5'500;
constexpr double kOurCall = 300;
// With the noise below, the truth lies in this range in 96% of the traces that the costs were fitted on
// (docs/accuracy.md).
constexpr double kEstimateOff = 0.3;
constexpr double kEstimateOffOnCpu = 0.4;
// For a step on a CPU that is derived from several steps (torch_stretches.h): by how much the profiler's part is off,
// and the step itself. It is shorter more often than longer: with the profiler's buffers on the heap, malloc gives
// memory back that the program keeps without them, and its operators have to wait for new pages (a gelu of 256 KiB
// takes 58 us for 19).
struct StepOff {
  double removed;
  double step;
};
constexpr StepOff kShorter = {.removed = 0.5, .step = 0.15};
constexpr StepOff kLonger = {.removed = 0.3, .step = 0.1};
constexpr double kLeastLeft = 0.25;
// From run to run: kernels by a few percent, hosts by more. Of steps that were timed without recording, minutes apart
// in one process, a fifth differs by more than 0.1 where the host decides, on CPUs and with GPUs (docs/accuracy.md).
constexpr double kDeviceNoise = 0.03;
constexpr double kHostNoise = 0.1;
constexpr double kMeasuredLow = 0.8;
constexpr double kMeasuredHigh = 1.3;
constexpr int64_t kFewSteps = 16;  // whose queue fills up and runs empty in a noticeable part of them
constexpr double kMaxFactor = 4;   // a baseline that needs more than this has another reason

// Whether the recorder watched the device's runtime and driver.
bool has_calls(const Model& model) {
  const auto& kinds = model.host_slices.kind;
  return std::any_of(kinds.begin(), kinds.end(), is_call);
}

int64_t per_step(const Graph& graph, const ReplayOptions& options, int64_t steps) {
  return replay_total_ns(graph, {}, options) / std::max<int64_t>(1, steps);
}

// The factor at which `length_ns`, which shrinks as the factor grows, is the goal.
template <typename Length>
double fit(int64_t goal_ns, double most, const Length& length_ns) {
  double low = 0;
  double high = most;
  for (int i = 0; i < 12; ++i) {
    const double middle = (low + high) / 2;
    (length_ns(middle) > goal_ns ? low : high) = middle;
  }
  return (low + high) / 2;
}

// The factor at which the replay gives the true step.
double fit_step(const Graph& graph, bool repeated, int64_t steps, int64_t goal_ns) {
  return fit(goal_ns, kMaxFactor, [&](double factor) { return per_step(graph, {factor, repeated}, steps); });
}

// The host's own step without recording, where it runs ahead of a device that decides how long a step takes; kNoNumber:
// it does not, or the device's steps were not timed. Steps in which it waits for room in the queue do not count.
int64_t host_ahead_ns(const TimedSteps& timed) {
  constexpr double kMostOfUsual = 0.95;  // of a step of the device, the usual one of the host
  constexpr double kMostOfFree = 0.9;    // one that waits for nothing
  constexpr size_t kLeastSteps = 3;
  std::vector<int64_t> on_host;
  std::vector<int64_t> on_device;
  for (const Row row : true_steps(timed)) {
    on_host.push_back(timed.duration_ns[row]);
    if (row < timed.device_ns.size() && timed.device_ns[row] != kNoNumber) on_device.push_back(timed.device_ns[row]);
  }
  if (on_device.size() < kLeastSteps) return kNoNumber;
  const auto device_ns = static_cast<double>(median(std::move(on_device)));
  if (static_cast<double>(median(on_host)) > kMostOfUsual * device_ns) return kNoNumber;
  std::erase_if(on_host, [&](int64_t ns) { return static_cast<double>(ns) > kMostOfFree * device_ns; });
  return on_host.size() < kLeastSteps ? kNoNumber : median(std::move(on_host));
}

// The factor for a program whose true step is known. A device that is behind hides what recording costs the host, so
// that many factors give that step: the measured costs are then as good as any, and nearer to the truth than none or
// the most.
double factor_for(const Graph& graph, bool repeated, int64_t steps, int64_t goal_ns) {
  const auto goal = static_cast<double>(std::max(goal_ns, per_step(graph, {kMaxFactor, repeated}, steps)));
  const auto measured = static_cast<double>(per_step(graph, {1, repeated}, steps));
  constexpr double kNear = 0.02;
  return std::abs(measured - goal) <= kNear * goal ? 1 : fit_step(graph, repeated, steps, static_cast<int64_t>(goal));
}

// The factor at which the host takes as long for its steps as it did unrecorded, running ahead of the device. What is
// left of a recorder's cost else stands in the way of every change that makes the device faster.
double factor_for_host(const Graph& graph, int64_t steps, int64_t goal_ns) {
  constexpr double kMost = 8;  // behind the device, even a host that takes twice as long is not seen
  const auto host_ns = [&](double factor) {
    return replay_host_ns(graph, {.recording_removed = factor}) / std::max<int64_t>(1, steps);
  };
  return fit(goal_ns, kMost, host_ns);
}

// The replay lets streams run side by side that share one device; but the device's work does not shrink because the
// host is faster. The factor at which a step is as long as the device works in it (`least_ns`), at most `factor`, at
// which it takes `step_ns`.
double at_most(double factor, int64_t step_ns, const Graph& graph, int64_t least_ns, bool repeated,
               const StepList& steps) {
  return step_ns >= least_ns ? factor : std::min(factor, fit_step(graph, repeated, steps.judged, least_ns));
}

// A standard deviation, from the median distance to the median: slow steps do not count.
double deviation(std::vector<int64_t> lengths) {
  const int64_t middle = median(lengths);
  for (int64_t& length : lengths) length = std::abs(length - middle);
  return 1.48 * static_cast<double>(median(std::move(lengths)));
}

// What medians are off by chance: two standard errors.
struct Chance {
  int64_t baseline_ns = 0;    // of steps that were timed without recording
  int64_t difference_ns = 0;  // between those and the recorded ones
};

// Waits for a core count: the machine is as it is.
Chance chance_of(const TimedSteps& timed, int64_t baseline_ns, const StepList& steps) {
  std::vector<int64_t> others;
  for (const Row row : true_steps(timed)) others.push_back(timed.duration_ns[row]);
  // A host that runs ahead of the device varies as it pleases: that says nothing about steps of the device.
  if (median(others) < baseline_ns) return {};
  std::vector<int64_t> recorded;
  for (const Interval& span : steps.judged_spans()) recorded.push_back(span.end_ns - span.start_ns);
  const auto error_of_median = [](double sigma, size_t count) {
    return 1.25 * sigma / std::sqrt(static_cast<double>(count));
  };
  const double sigma = deviation(others);
  const double recorded_sigma = recorded.size() < 3 ? sigma : std::max(sigma, deviation(recorded));
  const double error = error_of_median(sigma, others.size());
  const double recorded_error = error_of_median(recorded_sigma, recorded.size());
  const double both = std::sqrt(error * error + recorded_error * recorded_error);  // std::hypot would need glibc 2.35
  return {.baseline_ns = std::llround(2 * error), .difference_ns = std::llround(2 * both)};
}

// By what a step differs from one run to the next: the more, the less of it the device works.
double noise_of(int64_t step_ns, int64_t busy_ns) {
  const auto step = static_cast<double>(step_ns);
  const double device = step_ns <= 0 ? 0 : std::clamp(static_cast<double>(busy_ns) / step, 0.0, 1.0);
  return step * (kDeviceNoise * device + kHostNoise * (1 - device));
}

// Two errors that have nothing to do with each other. Negative ones count as none.
int64_t both_ns(int64_t a_ns, double b_ns) {
  const auto a = static_cast<double>(std::max<int64_t>(0, a_ns));
  return std::llround(std::sqrt(a * a + b_ns * b_ns));  // std::hypot would need glibc 2.35
}

// The usual step without what it lost to other programs.
int64_t usual_own_ns(const StepList& steps) {
  std::vector<int64_t> own;
  bool lost = false;
  for (const FoundStep& step : steps.steps) {
    if (step.warm_up) continue;
    own.push_back(step.own_ns());
    lost = lost || step.lost_ns > 0;
  }
  return lost ? std::min(steps.median_ns, median(std::move(own))) : steps.median_ns;
}

// What a few slow steps add to the mean of all.
int64_t mean_above_median(const StepList& steps) {
  int64_t total_ns = 0;
  for (const FoundStep& step : steps.steps) total_ns += step.warm_up ? 0 : step.own_ns();
  return std::max<int64_t>(0, total_ns / std::max<int64_t>(1, steps.judged) - usual_own_ns(steps));
}

// What steps that stand out by far add to the mean of all.
int64_t outliers_ns(const StepList& steps) {
  int64_t excess_ns = 0;
  for (const FoundStep& step : steps.steps) {
    if (step.outlier && !step.warm_up) excess_ns += std::max<int64_t>(0, step.own_ns() - steps.median_ns);
  }
  return excess_ns / std::max<int64_t>(1, steps.judged);
}

}  // namespace

std::string_view name_of(CostSource source) {
  static constexpr std::array<std::string_view, 3> kNames = {"timed without recording", "measured while recording",
                                                             "estimated"};
  return kNames[static_cast<size_t>(source)];
}

std::string_view words_for(CostSource source) {
  static constexpr std::array<std::string_view, 3> kWords = {"timed on steps without recording",
                                                             "from the profiling overhead measured in that run",
                                                             "estimated by subtracting the typical profiling overhead"};
  return kWords[static_cast<size_t>(source)];
}

RecordingCosts recording_costs(const Model& model, const HostTime& host, const StepList& steps) {
  if (model.info.recorder.costs.empty()) {
    const double off = has_calls(model) ? kEstimateOff : kEstimateOffOnCpu;
    if (!has_calls(model) && is_by_torch(model)) {
      TorchStretches torch = torch_stretches(model, host, steps);
      const bool is_known = torch.step_ns != kNoNumber && steps.source != StepSource::kWholeTrace;
      if (!torch.charges.empty()) {
        return {.charges = std::move(torch.charges),
                .step_ns = is_known ? torch.step_ns : kNoNumber,
                .removed_ns = torch.removed_ns,
                .low = 1 - off,
                .high = 1 + off};
      }
    }
    TorchCosts torch = torch_costs(model, host, steps);
    return {.costs = torch.costs, .pace = std::move(torch.pace), .low = 1 - off, .high = 1 + off};
  }
  RecordingCosts result{.source = CostSource::kMeasured, .low = kMeasuredLow, .high = kMeasuredHigh};
  if (has_calls(model)) {
    const MetadataEntry* by = model.find_metadata("cuda_calls_by");
    const bool by_callbacks = by != nullptr && by->json == "\"callbacks\"";
    result.costs.launch = by_callbacks ? kOurLaunch : kOurLaunchByRecords;
    result.costs.call = kOurCall;
  }
  const bool shapes = has_shapes(model);
  for (const RecorderInfo::Cost& cost : model.info.recorder.costs) {
    if (cost.event == (shapes ? "op+inputs" : "op")) result.costs.op = cost.ns;
    if (cost.event == "line") result.costs.line = cost.ns;
    if (cost.event == "python") result.costs.python = cost.ns;
    if (cost.event == "memory") result.costs.memory = cost.ns;
  }
  result.costs.annotation = result.costs.op;
  return result;
}

std::pair<RecordingUndone, Replay> undo_recording(const Model& model, const Graph& graph, const Replay& recorded,
                                                  const RecordingCosts& costs, const StepList& steps,
                                                  const std::function<void(const Replay&)>& at_ends) {
  RecordingUndone out{.source = costs.source};
  if (graph.window_start == kNoNode) return {out, replay(graph, {}, out.at(out.factor))};
  const auto mean_of = [&](const Replay& played) { return played.total_ns() / std::max<int64_t>(1, steps.judged); };
  const auto usual_of = [&](const Replay& played) { return usual_length(step_spans(model, graph, played, steps)); };
  Replay played;
  out.recorded_ns = mean_of(recorded);
  out.usual_recorded_ns = usual_own_ns(steps);
  out.baseline_ns = steps.source == StepSource::kMarked ? find_step_times(model).true_step_ns : kNoNumber;
  int64_t undone_ns = 0;  // the usual step
  // Where the device caught up while it was recorded, these steps are no picture of all.
  out.repeated = steps.judged <= kFewSteps && per_step(graph, {0, true}, steps.judged) <= out.recorded_ns;
  if (out.baseline_ns != kNoNumber) {
    out.source = CostSource::kBaseline;
    int64_t own_ns = out.recorded_ns;  // without the wait for a core, which any replay below leaves out
    for (const FoundStep& step : steps.steps) own_ns -= step.warm_up ? 0 : step.lost_ns / steps.judged;
    // A slow step among the recorded ones is not the recorder's doing: it stays in their mean.
    const int64_t slower_ns = own_ns - out.baseline_ns - mean_above_median(steps);
    const Chance chance = chance_of(model.timed_steps, out.baseline_ns, steps);
    out.within_noise = std::abs(slower_ns) < chance.difference_ns;
    const int64_t ahead_ns = host_ahead_ns(model.timed_steps);
    out.factor = ahead_ns != kNoNumber ? factor_for_host(graph, steps.judged, ahead_ns + outliers_ns(steps))
                 : out.within_noise
                     ? 1
                     : factor_for(graph, out.repeated, steps.judged, own_ns - std::max<int64_t>(0, slower_ns));
    out.most = out.factor;
    played = replay(graph, {}, out.at(out.factor));
    undone_ns = usual_of(played);
    out.usual_ns = out.baseline_ns;
    out.low_ns = out.baseline_ns - chance.baseline_ns;
    out.high_ns = out.baseline_ns + chance.baseline_ns;
  } else if (costs.step_ns != kNoNumber) {
    const auto off_ns = [&](const StepOff& off) {
      return both_ns(std::llround(off.removed * static_cast<double>(costs.removed_ns)),
                     off.step * static_cast<double>(costs.step_ns));
    };
    out.usual_ns = costs.step_ns;
    // Where most of a step was the profiler's part, half of that is more than is left.
    out.low_ns = std::max<int64_t>(out.usual_ns - off_ns(kShorter),
                                   std::llround(kLeastLeft * static_cast<double>(out.usual_ns)));
    out.high_ns = out.usual_ns + off_ns(kLonger);
    const auto factor_of = [&](int64_t usual_ns) {
      return fit(usual_ns, kMaxFactor, [&](double factor) { return usual_of(replay(graph, {}, out.at(factor))); });
    };
    at_ends(replay(graph, {}, out.at(factor_of(out.high_ns))));
    out.most = factor_of(out.low_ns);
    at_ends(replay(graph, {}, out.at(out.most)));
    out.factor = factor_of(out.usual_ns);
    played = replay(graph, {}, out.at(out.factor));
    undone_ns = usual_of(played);
  } else {
    struct Steps {
      int64_t mean_ns;
      int64_t usual_ns;
    };
    const auto steps_at_end = [&](double factor) -> Steps {
      const Replay at_end = replay(graph, {}, out.at(factor));
      at_ends(at_end);
      return {mean_of(at_end), usual_of(at_end)};
    };
    const Steps low = steps_at_end(costs.low);
    const Steps high = steps_at_end(costs.high);
    const int64_t busy_ns = device_busy(graph, recorded).covered_ns(recorded.start_ns, recorded.end_ns) /
                            std::max<int64_t>(1, steps.judged);
    out.most = at_most(costs.high, high.mean_ns, graph, busy_ns, out.repeated, steps);
    const int64_t most_ns = out.most == costs.high ? high.usual_ns : usual_of(replay(graph, {}, out.at(out.most)));
    out.factor = std::min(out.factor, out.most);
    played = replay(graph, {}, out.at(out.factor));
    undone_ns = out.usual_ns = usual_of(played);
    const double noise_ns = noise_of(out.usual_ns, busy_ns);
    out.low_ns = out.usual_ns - both_ns(out.usual_ns - most_ns, noise_ns);
    out.high_ns = out.usual_ns + both_ns(low.usual_ns - out.usual_ns, noise_ns);
  }
  out.step_ns = mean_of(played);
  out.cost_ns = std::max<int64_t>(0, out.usual_recorded_ns - undone_ns);
  const auto usual_ns = static_cast<double>(out.usual_ns);
  out.low_ns = std::min<int64_t>(out.low_ns, std::llround(usual_ns * (1 - kDeviceNoise)));
  out.high_ns = std::max<int64_t>(out.high_ns, std::llround(usual_ns * (1 + kDeviceNoise)));
  return {out, std::move(played)};
}

}  // namespace firelane::analyze
