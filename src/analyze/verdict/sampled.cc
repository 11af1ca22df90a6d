#include "analyze/verdict/sampled.h"

#include <algorithm>
#include <unordered_map>

#include "analyze/verdict/study.h"
#include "base/text.h"
#include "model/sampled_time.h"

namespace firelane::analyze {

namespace {

bool is_library(std::string_view frame) {
  const bool is_file = frame.starts_with('/') || contains(frame, ".py(");
  return !is_file || contains(frame, "/site-packages/") || contains(frame, "/dist-packages/") ||
         contains(frame, "/lib/python3") || contains(frame, "<frozen ") || contains(frame, "/firelane/_") ||
         contains(frame, "/firelane/profiler/");  // what wraps an optimizer's step
}

// The thread that makes the steps; without marked ones that with the most samples on a core.
LaneId training_lane(const Model& model) {
  for (const Row slice : model.steps.slice) {
    if (slice != kNoRow) return model.host_slices.lane[slice];
  }
  std::unordered_map<LaneId, int64_t> busy;
  LaneId most{};
  for (Row row = 0; row < model.stack_samples.size(); ++row) {
    const LaneId lane = model.stack_samples.lane[row];
    busy[lane] += model.stack_samples.on_cpu[row] == 0 ? 0 : model.stack_samples.weight_ns[row];
    if (busy[lane] > busy[most]) most = lane;
  }
  return most;
}

class Lines {
 public:
  void add(std::string_view frame, int64_t ns, bool on_cpu) {
    SampledLine& line = lines_[frame];
    line.frame = frame;
    line.ns += ns;
    line.on_cpu_ns += on_cpu ? ns : 0;
  }
  std::vector<SampledLine> sorted() const {
    std::vector<SampledLine> out;
    for (const auto& [frame, line] : lines_) out.push_back(line);
    std::sort(out.begin(), out.end(), [](const SampledLine& a, const SampledLine& b) {
      return a.ns != b.ns ? a.ns > b.ns : a.frame < b.frame;
    });
    return out;
  }

 private:
  std::unordered_map<std::string_view, SampledLine> lines_;
};

Interval time_of(const StackSamples& samples, Row row) {
  const SampledTime time = sampled_time(samples.time_ns[row], samples.weight_ns[row], samples.on_cpu[row]);
  return {time.start_ns, time.end_ns};
}

int64_t overlap_ns(const Interval& a, const Interval& b) {
  return std::max<int64_t>(0, std::min(a.end_ns, b.end_ns) - std::max(a.start_ns, b.start_ns));
}

}  // namespace

std::string_view own_frame(std::string_view stack) {
  const std::string_view innermost = stack.substr(0, stack.find(';'));
  while (!stack.empty()) {
    const size_t end = std::min(stack.find(';'), stack.size());
    if (!is_library(stack.substr(0, end))) return stack.substr(0, end);
    stack.remove_prefix(std::min(end + 1, stack.size()));
  }
  return innermost;
}

SampledPlaces sampled_places(const StudiedTrace& trace) {
  const Model& model = trace.model();
  const StackSamples& samples = model.stack_samples;
  SampledPlaces out;
  if (samples.size() == 0) return out;
  const auto& study = trace.get<analyze::study>();
  const std::vector<IdleGap>& gaps = study.idle.gaps;
  out.lane = training_lane(model);
  out.of_gaps.resize(gaps.size());
  std::vector<Lines> by_gap(gaps.size());
  Lines in_steps;
  Lines in_gaps;
  for (Row row = 0; row < samples.size(); ++row) {
    if (samples.lane[row] != out.lane) continue;
    out.knows_cpu &= samples.on_cpu[row] >= 0;
    const Interval time = time_of(samples, row);
    const std::string_view frame = own_frame(model.text(samples.stack[row]));
    const bool on_cpu = samples.on_cpu[row] > 0;
    if (const int64_t ns = overlap_ns(time, study.steps.window); ns > 0) {
      out.steps_ns += ns;
      in_steps.add(frame, ns, on_cpu);
    }
    auto gap = std::partition_point(gaps.begin(), gaps.end(),
                                    [&](const IdleGap& each) { return each.end_ns <= time.start_ns; });
    for (; gap != gaps.end() && gap->start_ns < time.end_ns; ++gap) {
      const int64_t ns = overlap_ns(time, {gap->start_ns, gap->end_ns});
      if (ns == 0) continue;
      out.gaps_ns += ns;
      in_gaps.add(frame, ns, on_cpu);
      by_gap[static_cast<size_t>(gap - gaps.begin())].add(frame, ns, on_cpu);
    }
  }
  for (size_t i = 0; i < by_gap.size(); ++i) {
    if (const std::vector<SampledLine> lines = by_gap[i].sorted(); !lines.empty()) out.of_gaps[i] = lines[0].frame;
  }
  out.in_steps = in_steps.sorted();
  out.in_gaps = in_gaps.sorted();
  return out;
}

}  // namespace firelane::analyze
