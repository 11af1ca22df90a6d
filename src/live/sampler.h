// Samples the stacks of a program at a rate, and counts them: by thread, by whether it was on a core, by who had the
// GIL.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "live/process.h"
#include "live/stack_reader.h"

namespace firelane::live {

// Looks a second.
inline constexpr double kLowestRate = 0.1;
inline constexpr double kHighestRate = 10'000;
// "2e+09 is not a rate between 0.1 and 10000 samples per second"; "": it is one.
std::string wrong_rate(double rate);

struct SampleCounts {
  uint64_t all = 0;
  uint64_t on_cpu = 0;
  uint64_t with_gil = 0;
};

struct SampledThread {
  pid_t native_id = 0;  // 0: not known
  std::string name;     // "" where it has none of its own
};

struct SampledStack {
  uint32_t thread = 0;  // in Samples::threads
  uint32_t stack = 0;   // in Samples::stacks
  SampleCounts counts;
};

// One look at one thread; of a thread that waits in one place, all looks in a row.
struct TimedSample {
  uint64_t ticks = 0;     // base/clock.h
  int64_t weight_ns = 0;  // since the look before
  uint32_t thread = 0;    // in Samples::threads
  uint32_t stack = 0;     // in Samples::stacks
  bool on_cpu = false;
  bool has_gil = false;
};

struct Samples {
  double rate = 0;  // that was asked for, in Hz
  double duration_s = 0;
  uint64_t tick_count = 0;    // looks at the program
  uint64_t missed_count = 0;  // that were not made because this machine had no time for them
  uint64_t torn_count = 0;    // stacks that changed while they were read
  double own_cpu_s = 0;
  bool knows_cpu = false;  // whether threads were on a core
  // With native frames:
  bool has_native = false;
  uint64_t unfit_count = 0;           // stacks that could not be walked to their end, or fit Python's in part only
  uint64_t without_native_count = 0;  // looks at a running thread of which the kernel had no sample
  std::string sampling_note;          // which running threads were not sampled, and why; "": all were
  std::vector<Function> functions;
  std::vector<std::vector<Frame>> stacks;  // innermost frame first
  std::vector<SampledThread> threads;
  std::vector<SampledStack> counted;  // by thread, then as first seen
  std::vector<TimedSample> timed;     // in order of time, as many as were asked for
  uint64_t untimed_count = 0;         // that were too many
  std::string failure;                // why it ended before it was told to; "": it did not, or the program ended
};

struct SampleOptions {
  double rate = 100;
  double duration_s = 0;  // 0: until the program ends, or `stop`
  bool native = false;    // native frames, too, and threads without Python; needs libdw
  size_t most_timed = 0;  // samples that are kept with their time
  const std::atomic<bool>* stop = nullptr;
};

// Returns when it is over, at once after `stop`. An Error only if nothing could be read at all, or for a wrong rate.
Result<Samples> sample(const Process& process, const Python& python, const SampleOptions& options);

}  // namespace firelane::live
