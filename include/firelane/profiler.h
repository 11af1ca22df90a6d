// Firelane's recorder for C++ programs that use libtorch.
//
//   firelane::ProfilerOptions options;
//   options.shapes = true;
//   options.schedule = firelane::schedule({.wait = 2, .warmup = 1, .active = 3});
//   options.on_trace_ready = [](firelane::Profiler& p) { p.save("step.lane"); };
//   firelane::Profiler profiler(std::move(options));      // begins with step 0
//   for (...) {
//     { firelane::ProfilerScope scope("load batch"); ... }
//     train_step();
//     profiler.step();
//   }
//   profiler.stop();
//
// Every op on every thread is recorded, into a .lane file that the firelane command opens: firelane diagnose step.lane.
// Steps that are not recorded are timed: the baseline in the trace. Nothing here throws; losses() says what could not
// be recorded. One recording at a time per process. A Profiler is used by one thread; ProfilerScopes by any.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace firelane {

enum class ProfilerAction : uint8_t {
  kNone,           // the step is only timed
  kWarmup,         // hooks on, nothing kept
  kRecord,         // the step is recorded
  kRecordAndSave,  // the same, and the trace is ready at its end
};

using ProfilerSchedule = std::function<ProfilerAction(int64_t step)>;

// Skips, then waits, warms up and records in cycles; repeat = 0: until the program ends. The same numbers as
// torch.profiler.schedule.
struct ScheduleOptions {
  int64_t skip_first = 0;
  int64_t wait = 0;
  int64_t warmup = 0;
  int64_t active = 1;  // at least 1
  int64_t repeat = 0;
};
ProfilerSchedule schedule(const ScheduleOptions& options);

class Profiler;

// Names, meanings and defaults are the same in Python and for `firelane record` (docs/profiler.md, "Options").
struct ProfilerOptions {
  bool shapes = false;     // sizes, dtypes, strides and plain values of every op's inputs
  bool memory = false;     // allocations and frees, on the CPU and on the GPU
  bool cuda = true;        // the GPU's kernels, copies, CUDA calls and power (where there is a GPU)
  bool cuda_sync = false;  // what each CUDA synchronization waited for (costs as much as recording CUDA itself)
  bool metrics = false;    // the GPU's hardware metrics: SMs, tensor cores, DRAM, PCIe, NVLink

  std::string metric_names;                       // with metrics: CUPTI's names, by commas; empty: a default set
  double metric_interval_ms = 1;                  // between their samples: 0.02 to 1000
  ProfilerSchedule schedule;                      // empty: everything from the constructor to stop()
  std::function<void(Profiler&)> on_trace_ready;  // the trace is complete: save() it here
  std::string output;  // the file while it is written, or its folder; empty: FIRELANE_DIR, else the temporary folder
};

class Profiler {
 public:
  explicit Profiler(ProfilerOptions options);
  ~Profiler();  // stops
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  // The step ends; the next one begins, as the schedule says.
  void step();
  // Ends the recording; the current trace is ready then. Idempotent.
  void stop();

  // In on_trace_ready or after stop(): saves the newest trace. Returns "" or an error message.
  std::string save(const std::string& path);
  // Adds metadata to the current trace; `json` is JSON text.
  void add_metadata(const std::string& key, const std::string& json);

  int64_t step_number() const noexcept;
  bool is_recording() const noexcept;
  // What is not in the newest trace, and why: "disk full: ...".
  std::vector<std::string> losses() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A named range on the calling thread, from here to the end of the block.
class ProfilerScope {
 public:
  explicit ProfilerScope(const char* name) noexcept;
  ~ProfilerScope();
  ProfilerScope(const ProfilerScope&) = delete;
  ProfilerScope& operator=(const ProfilerScope&) = delete;

 private:
  uint64_t id_;
};

}  // namespace firelane
