// Samples the Python stacks of this process while it is recorded: by a thread of its own that never asks for the GIL,
// on the recorder's clock, so that samples and events of a trace have one axis.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "live/sampler.h"

namespace firelane::live {

class StackRecorder {
 public:
  // Runs on a thread of its own, and returns soon after the flag is set.
  using Sampler = std::function<Samples(const std::atomic<bool>& stop)>;

  // An Error where this process's Python cannot be read.
  static Result<std::unique_ptr<StackRecorder>> start(double rate);
  static Result<std::unique_ptr<StackRecorder>> start(Sampler sampler);
  StackRecorder(const StackRecorder&) = delete;
  StackRecorder& operator=(const StackRecorder&) = delete;
  ~StackRecorder();

  // Ends it and waits for the thread, which is done with its look in a moment. What was seen, as texts for metadata
  // `stack_samples` of a trace (docs/format.md); none in a forked child, and when called again.
  std::vector<std::string> stop();

 private:
  struct Shared;
  explicit StackRecorder(std::shared_ptr<Shared> shared);

  std::shared_ptr<Shared> shared_;
  int process_;
};

// As JSON texts, each complete in itself and not much longer than `piece_bytes`.
std::vector<std::string> samples_json(const Samples& samples, size_t piece_bytes);

}  // namespace firelane::live
