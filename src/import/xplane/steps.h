// Steps of an XPlane file: those that the program marked, those that the device has a line for, or else the runs of the
// program that takes the most time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace firelane::importer::xplane {

struct Span {
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
  int64_t number = 0;
};

class StepFinder {
 public:
  // jax.profiler.StepTraceAnnotation, on a thread of the host.
  void add_marked(const Span& step) { marked_.push_back(step); }
  // The device's own line of steps, and runs of a program, of the first device that has any.
  void add_device_step(int32_t device, const Span& step);
  void add_module(int32_t device, std::string_view program, const Span& run);
  // What was found in a later part of the file.
  void add(StepFinder&& later);

  // In order of time, numbered; `is_derived` when nobody marked them. None where nothing repeats.
  std::vector<Span> steps(bool& is_derived) const;

 private:
  std::vector<Span> marked_;
  std::map<int32_t, std::vector<Span>> device_steps_;
  std::map<int32_t, std::map<std::string, std::vector<Span>, std::less<>>> modules_;
};

}  // namespace firelane::importer::xplane
