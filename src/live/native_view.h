// Stacks of Python and native frames of all threads of a program, look by look, beside a StackReader.
//
// A thread that waits has one stack until it runs again, so that most looks cost nothing. A thread that runs is
// sampled by the kernel; its Python frames are read as soon as a sample is there, and the next look counts it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "live/native_reader.h"
#include "live/stack_reader.h"
#include "live/thread_samples.h"

namespace firelane::live {

class NativeView {
 public:
  // `interval_ns`: between two samples of a thread that runs.
  static Result<NativeView> open(const Process& process, const Python& python, int64_t interval_ns);

  // Threads of the process that are not in `python`, as stacks without frames; asked for again every tenth time.
  void add_other_threads(std::vector<ThreadStack>& python);

  // The id in stacks() of what a thread is doing. `run_ns`: how long it has been on a core until now; -1: not known.
  uint32_t stack_at_look(StackReader& reader, const ThreadStack& seen, bool is_on_cpu, int64_t run_ns);

  // Whether the last look at the thread found it waiting; whether there is a sample of it that was not counted yet.
  bool is_waiting(pid_t thread) const;
  bool has_sample(pid_t thread) const;

  // Sleeps, and takes the samples of running threads meanwhile.
  void wait_until(int64_t due_ns, StackReader& reader);

  // Frames' functions with kNative are those of native_functions(), others are the reader's.
  static constexpr uint32_t kNative = uint32_t{1} << 31;
  const std::vector<std::vector<Frame>>& stacks() const { return stacks_; }
  const std::vector<NativeFunction>& native_functions() const { return native_.functions(); }
  uint64_t unfit_count() const { return unfit_count_; }      // stacks that are Python's, but for the innermost part
  uint64_t missing_count() const { return missing_count_; }  // looks at a running thread without a sample of it
  std::string sampling_note() const;  // which running threads are not sampled, and why; "": all are

 private:
  struct Thread {
    pid_t id = 0;
    std::optional<WaitPlace> place;  // that `stack` is of
    uint32_t python_stack = 0;
    int64_t run_ns = -2;
    uint32_t stack = 0;
    std::optional<ThreadSamples> samples;
    bool is_refused = false;          // it was tried
    std::optional<uint32_t> sampled;  // and not counted yet
    uint64_t python_thread = 0;       // 0: none
    uint64_t last_look = 0;
  };

  NativeView(NativeReader native, int64_t interval_ns) : native_(std::move(native)), interval_ns_(interval_ns) {}

  uint32_t python_only(StackReader& reader, uint32_t python_stack);
  bool read_waiting(StackReader& reader, const ThreadStack& seen, Thread& thread);
  void take_sample(StackReader& reader, Thread& thread);
  uint32_t merged(const std::vector<Frame>& python, const NamedStack& native);
  uint32_t stack_id(std::vector<Frame> frames);
  void forget_ended();
  void open_samples(Thread& thread);

  NativeReader native_;
  int64_t interval_ns_;
  std::map<pid_t, Thread> threads_;
  std::vector<pid_t> ids_;
  uint64_t look_count_ = 0;
  std::map<std::vector<uint64_t>, uint32_t> stack_ids_;
  std::vector<std::vector<Frame>> stacks_;
  uint64_t unfit_count_ = 0;
  uint64_t missing_count_ = 0;
  size_t sampled_threads_ = 0;
  bool is_forbidden_ = false;  // to sample any thread
  size_t refused_threads_ = 0;
  std::string why_refused_;  // the last one
};

}  // namespace firelane::live
