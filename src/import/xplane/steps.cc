#include "import/xplane/steps.h"

#include <algorithm>

#include "model/raw.h"

namespace firelane::importer::xplane {

namespace {

constexpr size_t kFewestRuns = 3;  // fewer do not repeat

std::vector<Span> in_order(std::vector<Span> spans) {
  std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.start_ns < b.start_ns; });
  return spans;
}

}  // namespace

void StepFinder::add_device_step(int32_t device, const Span& step) { device_steps_[device].push_back(step); }

void StepFinder::add_module(int32_t device, std::string_view program, const Span& run) {
  auto& of_device = modules_[device];
  const auto found = of_device.find(program);
  (found != of_device.end() ? found->second : of_device[std::string(program)]).push_back(run);
}

void StepFinder::add(StepFinder&& later) {
  const auto append = [](std::vector<Span>& to, const std::vector<Span>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(marked_, later.marked_);
  for (const auto& [device, steps] : later.device_steps_) append(device_steps_[device], steps);
  for (const auto& [device, programs] : later.modules_) {
    for (const auto& [program, runs] : programs) append(modules_[device][program], runs);
  }
}

std::vector<Span> StepFinder::steps(bool& is_derived) const {
  is_derived = false;
  if (!marked_.empty()) return in_order(marked_);
  if (!device_steps_.empty()) return in_order(device_steps_.begin()->second);
  is_derived = true;
  const std::vector<Span>* most = nullptr;
  int64_t most_ns = 0;
  if (!modules_.empty()) {
    for (const auto& [program, runs] : modules_.begin()->second) {
      int64_t ns = 0;
      for (const Span& run : runs) ns += std::min(run.duration_ns, kMaxDurationNs / static_cast<int64_t>(runs.size()));
      if (runs.size() >= kFewestRuns && ns > most_ns) {
        most = &runs;
        most_ns = ns;
      }
    }
  }
  if (most == nullptr) return {};
  // A step lasts until the next one begins: what runs between two runs of the program belongs to the first.
  std::vector<Span> steps = in_order(*most);
  for (size_t i = 0; i < steps.size(); ++i) {
    steps[i].number = static_cast<int64_t>(i);
    if (i + 1 < steps.size()) steps[i].duration_ns = steps[i + 1].start_ns - steps[i].start_ns;
  }
  return steps;
}

}  // namespace firelane::importer::xplane
