// Settings and environment: more threads than cores, other processes, lowered clocks, deterministic algorithms, cuDNN's
// choice of algorithms.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "advise/host_evidence.h"
#include "advise/notes.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/compute/roofline.h"
#include "analyze/host/core_waits.h"
#include "base/text.h"

namespace firelane::advise {

namespace {

std::vector<Finding> find_oversubscription(const Context& context) {
  const Model& model = context.model;
  const int64_t cores = model.info.environment.cores_allowed;
  const int64_t threads = model.info.environment.torch_threads;
  const auto ranks = std::max<int64_t>(1, std::llround(noted_number(model, "local_world_size").value_or(1)));
  if (cores <= 0 || threads == kNoNumber || threads * ranks <= cores) return {};
  const std::string threads_text =
      ranks > 1 ? std::to_string(ranks) + " ranks with " + counted(threads, "thread", "threads") + " each"
                : counted(threads, "thread", "threads");
  // Every operator of a program on the CPU waits for all of its threads: nothing else can be judged before.
  const bool first = !context.has_device_work && 2 * threads * ranks >= 3 * cores;
  return {{.id = "cpu-oversubscription",
           .title = "torch computes with " + threads_text + " on " + counted(cores, "core", "cores") +
                    (model.info.environment.cpu_quota > 0 ? " (the container's CPU limit)" : "") +
                    ": operators wait for threads that have no core",
           .events = threads * ranks,
           .try_text = "use no more threads than there are cores for this process",
           .try_code = "torch.set_num_threads(" + std::to_string(std::max<int64_t>(1, cores / ranks)) +
                       ")  # or OMP_NUM_THREADS, before the program starts",
           .confidence = Confidence::kHigh,
           .precedence = first ? Precedence::kNeedless : Precedence::kByGain}};
}

std::vector<Finding> find_busy_machine(const Context& context) {
  constexpr double kFull = 0.9;    // of the machine's cores
  constexpr double kOthers = 0.2;  // of them
  const Model& model = context.model;
  const auto own = noted_number(model, "cores_used");
  const auto others = noted_number(model, "cores_used_by_others");
  if (model.info.environment.cores <= 0 || !own || !others) return {};
  const auto cores = static_cast<double>(model.info.environment.cores);
  if (*others + *own < kFull * cores || *others < kOthers * cores) return {};
  Finding finding{.id = "busy-machine", .events = 1};
  const analyze::CoreWaits waits(model);
  // Cores that others use and these steps never waited for are no trouble.
  constexpr double kWaits = 0.03;
  if (waits.is_known() && waits.waited_share() < kWaits) return {};
  finding.title = "other processes used " + short_percent(std::min(1.0, *others / cores)) +
                  " of the machine's cores meanwhile, and none was free: steps are slower, and vary";
  if (waits.is_known()) {
    finding.share_of_step = waits.waited_share();
    finding.title = "other processes used " + short_percent(std::min(1.0, *others / cores)) +
                    " of the machine's cores meanwhile, and steps waited " + short_percent(finding.share_of_step) +
                    " of their time for one: they are slower, and vary";
  }
  finding.try_text = "measure again when nothing else runs here, or on another machine";
  finding.try_code = "top -o %CPU  # which processes these are";
  finding.confidence = Confidence::kHigh;
  // Operators on the CPU wait for all threads of torch, and one without a core holds up each of them: a step then takes
  // many times as long, and what is slow in it is chance. Nothing else can be judged before.
  constexpr double kStalled = 0.3;
  const int64_t threads = model.info.environment.torch_threads;
  if (!context.has_device_work && threads != kNoNumber && threads > 1 && finding.share_of_step >= kStalled) {
    const auto left = std::max<int64_t>(1, std::llround(std::floor(cores - *others)));
    finding.title += "; operators wait for all of torch's " + std::to_string(threads) + " threads";
    finding.try_text = "measure again when nothing else runs here, or use no more threads than there are free cores";
    finding.try_code = "torch.set_num_threads(" + std::to_string(std::min(left, threads - 1)) +
                       ")  # or OMP_NUM_THREADS, before the program starts";
    finding.precedence = Precedence::kNeedless;
  }
  return {finding};
}

// The counter's samples while the judged steps ran, and the highest of all.
struct Clock {
  std::vector<double> in_steps;
  double highest = 0;
};
Clock sm_clock(const Context& context) {
  const Model& model = context.model;
  Clock clock;
  for (size_t i = 0; i < model.counter_samples.size(); ++i) {
    const std::string_view name = model.text(model.counter_tracks.name[model.counter_samples.track[i]]);
    if (!name.ends_with("SM clock (MHz)")) continue;
    const double mhz = model.counter_samples.value[i];
    clock.highest = std::max(clock.highest, mhz);
    if (context.in_window(model.counter_samples.time_ns[i])) clock.in_steps.push_back(mhz);
  }
  return clock;
}

// What the last sample of such a counter in the judged steps says; "" without one.
std::string last_of(const Context& context, std::string_view counter, std::string_view unit) {
  const Model& model = context.model;
  double value = -1;
  for (size_t i = 0; i < model.counter_samples.size(); ++i) {
    const std::string_view name = model.text(model.counter_tracks.name[model.counter_samples.track[i]]);
    if (name.ends_with(counter) && context.in_window(model.counter_samples.time_ns[i])) {
      value = model.counter_samples.value[i];
    }
  }
  return value < 0 ? "" : std::to_string(std::llround(value)) + std::string(unit);
}

std::vector<Finding> find_throttling(const Context& context) {
  constexpr size_t kLeastSamples = 4;
  constexpr double kLower = 0.9;       // of the highest clock seen
  constexpr double kBusyPart = 0.5;    // of a step: an idle device lowers its clock by itself
  constexpr double kLowKernels = 0.3;  // of the kernels' time follows the clock at least; memory has one of its own
  if (context.share_of_step(context.device_busy_ns) < kBusyPart) return {};
  Clock clock = sm_clock(context);
  if (clock.in_steps.size() < kLeastSamples || clock.highest <= 0) return {};
  std::nth_element(clock.in_steps.begin(),
                   clock.in_steps.begin() + static_cast<std::ptrdiff_t>(clock.in_steps.size() / 2),
                   clock.in_steps.end());
  const double usual = clock.in_steps[clock.in_steps.size() / 2];
  if (usual > kLower * clock.highest) return {};
  Finding finding{.id = "clocks-throttled", .events = static_cast<int64_t>(clock.in_steps.size())};
  finding.cost_ns = std::llround((1 - usual / clock.highest) * static_cast<double>(context.device_busy_ns));
  finding.share_of_step = context.share_of_step(finding.cost_ns);
  finding.gain = {.low_ns = std::llround(kLowKernels * static_cast<double>(finding.cost_ns)),
                  .high_ns = finding.cost_ns};
  const std::string power = last_of(context, "power (W)", " W");
  const std::string heat = last_of(context, "temperature (C)", " C");
  finding.title = "the device runs at " + std::to_string(std::llround(usual)) + " MHz, and has run at " +
                  std::to_string(std::llround(clock.highest)) + " MHz in this trace" +
                  (power.empty() ? "" : "; it takes " + power) +
                  (heat.empty() ? "" : (power.empty() ? "; at " : " at ") + heat);
  finding.try_text = "see what holds the clock down: a power limit, heat, or a clock that was set by hand";
  finding.try_code = "nvidia-smi -q -d PERFORMANCE,CLOCK,POWER";
  finding.confidence = Confidence::kMedium;
  finding.confirm_by = "record again when the device is cool, or without the limit";
  return {finding};
}

std::vector<Finding> find_deterministic(const Context& context) {
  const bool algorithms = context.model.info.environment.deterministic_algorithms == 1;
  const bool cudnn = context.model.info.environment.cudnn_deterministic == 1;
  if (!context.has_device_work) return {};
  if (!algorithms && !cudnn) return {};
  return {
      {.id = "deterministic-algorithms",
       .title = std::string(algorithms ? "torch.use_deterministic_algorithms(True)" : "cudnn.deterministic = True") +
                " is on: operators use slower kernels, and cuDNN has fewer algorithms to choose from",
       .events = 1,
       .try_text = "leave it on for tests only",
       .try_code =
           algorithms ? "torch.use_deterministic_algorithms(False)" : "torch.backends.cudnn.deterministic = False",
       .confidence = Confidence::kMedium,
       .confirm_by = "time some steps without it: what it costs depends on the operators"}};
}

std::vector<Finding> find_unbenchmarked(const Context& context) {
  constexpr double kFarBelow = 25;  // percent of the roof
  const Environment& set = context.model.info.environment;
  if (!context.has_device_work || set.cudnn_benchmark != 0) return {};
  // Benchmarking with deterministic algorithms only is another choice: deterministic-algorithms speaks of it.
  if (set.cudnn_deterministic == 1 || set.deterministic_algorithms == 1) return {};
  Finding finding{.id = "cudnn-benchmark"};
  int64_t spent_ns = 0;
  for (const analyze::RooflineRow& row : context.trace.get<analyze::roofline>().rows) {
    if (row.kernel_class != analyze::KernelClass::kConvolution || row.roof_percent() < 0) continue;
    // Sizes that change cost a search each time they come.
    if (row.roof_percent() >= kFarBelow || row.calls < context.step_count) continue;
    spent_ns += row.device_ns;
    finding.events += row.kernels;
    if (row.example != kNoRow && finding.slices.size() < kEvidenceSlices)
      finding.slices.push_back({row.example, false});
  }
  if (finding.events == 0) return {};
  finding.cost_ns = spent_ns / std::max<int64_t>(1, context.step_count);
  finding.share_of_step = context.share_of_step(finding.cost_ns);
  finding.title = "convolutions that stay far below the device's peak take " + short_percent(finding.share_of_step) +
                  " of a step, and cuDNN picks an algorithm for each by a heuristic";
  finding.try_text = "let cuDNN try its algorithms once for each size, and keep the fastest";
  finding.try_code = "torch.backends.cudnn.benchmark = True";
  finding.confidence = Confidence::kLow;
  finding.confirm_by =
      "firelane verify cudnn-benchmark -- python train.py: often the heuristic's choice is already the fastest";
  return {finding};
}

}  // namespace

std::vector<Rule> settings_rules() {
  return {
      {"cpu-oversubscription", "host", 0, false,
       "torch splits an operator over its threads and waits for all of them. With more threads than cores that the\n"
       "process may use, some have to wait for a core, and every operator takes as long as its slowest thread. The\n"
       "ranks on one machine are counted together. A container's CPU limit counts as well (docker --cpus,\n"
       "Kubernetes): torch does not see it, and starts a "
       "thread for each core of the machine.\n\n"
       "What to do: OMP_NUM_THREADS or torch.set_num_threads(cores per rank). DataLoader workers set theirs to 1 "
       "themselves.\n\n"
       "When not: the threads are never used, because all work is on the GPU.",
       find_oversubscription},
      {"busy-machine", "host", 0, false,
       "While this was recorded, processes other than this one (and its children) kept most of the other cores\n"
       "busy. Measurements then include their effect. Recordings of firelane say how long each step waited for a\n"
       "core; waits above the typical one are left out of slow steps, host code and gains.\n\n"
       "It is listed first where torch computes on the CPU with several threads and steps waited 30% of their time\n"
       "or more: an operator ends when its last thread does, so one busy core can make a program of small operators\n"
       "a hundred times slower. Other findings then have low confidence.\n\n"
       "What to do: measure again when the machine is free, or pin the program to cores that no other process uses.\n\n"
       "When not: the program always shares its machine, and its speed there is what counts.",
       find_busy_machine},
      {"clocks-throttled", "kernels", 0.03, true,
       "The device computes at a lower clock than it had earlier in the same recording: it has reached its power\n"
       "limit, is too hot, or its clock was set by hand. Compute-bound kernels take longer in proportion,\n"
       "memory-bound ones less so.\n\n"
       "Detected where the median SM clock in the analyzed steps is below 90% of the highest sample, on a device\n"
       "that is busy for half of a step or more. Needs the counters that firelane records where NVML is available.\n\n"
       "What to do: nvidia-smi -q -d PERFORMANCE names the reason; cooling, another slot, a higher power limit.\n\n"
       "When not: the limit is intended. Large matmuls reach it on most devices, whatever their clock.",
       find_throttling},
      {"deterministic-algorithms", "kernels", 0, false,
       "Deterministic modes make some operators (index_add, scatter, the backward pass of embeddings and\n"
       "interpolation) use slower algorithms, fill memory that operators leave uninitialized, and limit what cuDNN\n"
       "may choose.\n\n"
       "What to do: switch them on for debugging and tests, not for long runs.\n\n"
       "When not: runs have to be reproducible bit for bit.",
       find_deterministic},
      {"cudnn-benchmark", "kernels", 0.2, false,
       "cuDNN has several algorithms for a convolution. By default a heuristic picks one; with cudnn.benchmark each\n"
       "new size is timed once with all of them. That matters for sizes that the heuristic does not handle well:\n"
       "volumes, few channels, odd strides. Often it changes nothing: in the test program for this rule, on an\n"
       "H200, not a microsecond.\n\n"
       "Detected where the setting is off, no deterministic mode is on, and convolutions that reach less than a\n"
       "quarter of the device's roofline take a fifth of a step, with the same sizes in every step. Needs a\n"
       "recording of firelane, which contains the setting.\n\n"
       "What to do: firelane verify cudnn-benchmark -- python train.py, before you keep it.\n\n"
       "When not: sizes change from step to step, or runs have to be reproducible.",
       find_unbenchmarked},
  };
}

}  // namespace firelane::advise
