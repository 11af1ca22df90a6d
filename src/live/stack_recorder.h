// Samples the Python stacks of this process while it is recorded: by a thread of its own that never asks for the GIL,
// on the recorder's clock, so that samples and events of a trace have one axis.
//
//   auto recorder = StackRecorder::prepare(200);     // an Error where this process's Python cannot be read
//   recorder.value()->start();
//   const RecordedStacks seen = recorder.value()->stop();
//
// Whatever goes wrong in the thread ends the sampling, not the program, and is a loss.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "live/sampler.h"

namespace firelane::live {

struct LostSamples {
  std::string reason;
  uint64_t count = 0;  // 0: not known

  bool operator==(const LostSamples&) const = default;
};

struct RecordedStacks {
  std::vector<std::string> texts;  // for metadata `stack_samples` of a trace (docs/format.md)
  std::vector<LostSamples> losses;
};

class StackRecorder {
 public:
  // Runs on a thread of its own, and returns soon after the flag is set.
  using Sampler = std::function<Result<Samples>(const std::atomic<bool>& stop)>;

  // Finds Python, which takes some milliseconds. An Error for a rate that is none, too.
  static Result<std::unique_ptr<StackRecorder>> prepare(double rate);
  static std::unique_ptr<StackRecorder> prepare(Sampler sampler);
  StackRecorder(const StackRecorder&) = delete;
  StackRecorder& operator=(const StackRecorder&) = delete;
  ~StackRecorder();

  // Starts the thread. Where the system gives none, that is a loss.
  void start() noexcept;

  // Ends it and waits for the thread, which is done with its look in a moment. Nothing in a forked child, whose
  // parent's the samples are, and when called again.
  RecordedStacks stop() noexcept;

 private:
  struct Shared;
  explicit StackRecorder(std::unique_ptr<Shared> shared);
  std::unique_ptr<Shared> end_thread() noexcept;

  std::unique_ptr<Shared> shared_;
  int process_;
};

struct TextLimits {
  size_t piece_bytes = 128 << 10;  // a text is not much longer
  size_t all_bytes = 32 << 20;     // of all texts: what follows is left out
};

// As JSON texts, each complete in itself. `left_out`: how many samples are not in them.
std::vector<std::string> samples_json(const Samples& samples, const TextLimits& limits, uint64_t& left_out);

}  // namespace firelane::live
