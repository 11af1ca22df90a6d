// Which settings make a program faster: few trials, each chosen by what the last ones showed.
//
// The measuring is the caller's: this only decides what to try next. What keeps the computation the same comes first
// (loading, cuDNN's choice of algorithms, the allocator), then the variables that the user named, one after another.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace firelane::compare {

// A knob or a variable, and its value. Knobs: "workers", "prefetch_factor", "pin_memory", "cudnn_benchmark",
// "expandable_segments".
using Settings = std::vector<std::pair<std::string, std::string>>;

// Steps of a program that were timed and not recorded.
struct TimedSteps {
  int64_t step_ns = 0;
  int64_t steps = 0;
  int64_t wait_ns = 0;               // per step, of the program for its DataLoader
  int64_t workers = -1;              // of that loader; -1: the program has none
  int64_t batch = 0;                 // samples that the loader gives a step; 0 not known
  int64_t peak_bytes = 0;            // of the GPU that holds most; 0 without one
  int64_t memory_bytes = 0;          // that this GPU has
  bool has_gpu = false;              // the program uses one
  bool convolutions = false;         // on it
  bool allocates = false;            // the CUDA allocator asked the driver for memory in these steps
  std::vector<std::string> changes;  // what the settings changed, as code

  double wait_share() const { return step_ns > 0 ? static_cast<double>(wait_ns) / static_cast<double>(step_ns) : 0; }
};

struct TimedRun {
  TimedSteps timed;
  std::string failure;  // "" none
};

struct TuneVariable {
  std::string name;
  std::vector<std::string> values;
  bool counts_samples = false;  // a batch size: time per sample counts, not per step
};

struct TuneOptions {
  std::vector<TuneVariable> variables;
  int max_workers = 8;
  size_t max_trials = 30;
};

struct TuneTrial {
  Settings settings;
  TimedRun run;
  std::string why;    // this was tried
  bool kept = false;  // as the best so far
};

struct TuneResult {
  Settings best;                        // empty: the program as it is
  std::vector<TuneTrial> trials;        // the first is the program as it is
  std::vector<std::string> left_alone;  // what was not tried, and why
};

// Time that counts: of a step, or of a sample when a batch size is tuned. 0 when that is not known.
double cost_ns(const TimedSteps& timed, const Settings& settings, const std::vector<TuneVariable>& variables);

// An Error of `measure` ends it; a run that failed is a trial like others. The program as it is has to run.
Result<TuneResult> tune(const std::function<Result<TimedRun>(const Settings&)>& measure, const TuneOptions& options);

}  // namespace firelane::compare
