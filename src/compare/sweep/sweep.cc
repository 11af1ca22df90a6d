#include "compare/sweep/sweep.h"

#include <algorithm>
#include <cmath>

namespace firelane::compare {

Throughput throughput_kind(const Sweep& sweep) {
  bool tokens = true;
  bool samples = true;
  for (const SweepPoint& point : sweep.points) {
    if (!point.run) continue;
    tokens &= point.run->tokens > 0;
    samples &= point.run->samples > 0;
  }
  return tokens ? Throughput::kTokens : samples ? Throughput::kSamples : Throughput::kSteps;
}

double throughput_of(const Run& run, Throughput kind) {
  if (run.step_ns <= 0) return 0;
  const int64_t amount = kind == Throughput::kTokens ? run.tokens : kind == Throughput::kSamples ? run.samples : 1;
  return static_cast<double>(amount) * 1e9 / static_cast<double>(run.step_ns);
}

SweepBest find_best(const Sweep& sweep) {
  constexpr double kNearly = 0.95;
  const Throughput kind = throughput_kind(sweep);
  SweepBest out;
  double most = 0;
  for (size_t i = 0; i < sweep.points.size(); ++i) {
    if (!sweep.points[i].run) continue;
    const double throughput = throughput_of(*sweep.points[i].run, kind);
    if (throughput > most) {
      most = throughput;
      out.best = i;
    }
  }
  if (!out.best) return out;
  const bool has_memory = std::all_of(sweep.points.begin(), sweep.points.end(),
                                      [](const SweepPoint& point) { return !point.run || point.run->has_memory; });
  for (size_t i = 0; i < sweep.points.size(); ++i) {
    const std::optional<Run>& run = sweep.points[i].run;
    if (!run || throughput_of(*run, kind) < kNearly * most) continue;
    if (!out.knee || (has_memory && run->peak_bytes < sweep.points[*out.knee].run->peak_bytes)) out.knee = i;
  }
  return out;
}

std::optional<double> predict_memory(std::vector<MemoryPoint> measured, double value) {
  std::sort(measured.begin(), measured.end(), [](const auto& a, const auto& b) { return a.value < b.value; });
  if (measured.size() < 2) return std::nullopt;
  const MemoryPoint& low = measured[measured.size() - 2];
  const MemoryPoint& high = measured.back();
  if (high.value <= low.value || high.bytes <= low.bytes) return std::nullopt;
  return high.bytes + (high.bytes - low.bytes) / (high.value - low.value) * (value - high.value);
}

int workers_needed(double step_ns, double wait_ns, int workers, int most) {
  const double own_ns =
      std::max(step_ns - wait_ns, step_ns * 0.01);  // a program that only waits has no time of its own
  const double batch_ns = workers == 0 ? wait_ns : step_ns * workers;
  return std::clamp(static_cast<int>(std::ceil(batch_ns / own_ns - 1e-6)), 1, std::max(1, most));
}

}  // namespace firelane::compare
