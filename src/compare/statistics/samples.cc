#include "compare/statistics/samples.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace firelane::compare {

double mean(std::span<const double> values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double median(std::span<const double> values) {
  if (values.empty()) return 0;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

double standard_deviation(std::span<const double> values) {
  if (values.size() < 2) return 0;
  const double middle = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - middle) * (value - middle);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

double autocorrelation(std::span<const double> values) {
  if (values.size() < 3) return 0;
  const double middle = mean(values);
  double squares = 0;
  double products = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    squares += (values[i] - middle) * (values[i] - middle);
    if (i > 0) products += (values[i] - middle) * (values[i - 1] - middle);
  }
  return squares == 0 ? 0 : products / squares;
}

namespace {

// Single slow steps must not decide where warm-up ends.
std::vector<double> without_outliers(std::span<const double> values) {
  const double middle = median(values);
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - middle));
  const double most = 5 * median(distances);
  std::vector<double> out;
  for (const double value : values) out.push_back(std::clamp(value, middle - most, middle + most));
  return out;
}

}  // namespace

size_t warm_up_steps(std::span<const double> values) {
  constexpr size_t kFewest = 4;
  if (values.size() < kFewest) return values.size() > 1 ? 1 : 0;
  const std::vector<double> clipped = without_outliers(values);
  size_t best = 0;
  double least = INFINITY;
  double sum = 0;
  double squares = 0;
  // From the end: sum and squares of what is left when `first` steps are dropped.
  for (size_t first = clipped.size(); first-- > 0;) {
    sum += clipped[first];
    squares += clipped[first] * clipped[first];
    const auto left = static_cast<double>(clipped.size() - first);
    if (first > clipped.size() / 2) continue;
    const double variance = std::max(0.0, squares / left - (sum / left) * (sum / left));
    const double error = variance / left;
    if (error <= least) {
      least = error;
      best = first;
    }
  }
  return best;
}

std::span<const double> steady(std::span<const double> values) { return values.subspan(warm_up_steps(values)); }

Range median_range(std::span<const double> values) {
  if (values.size() < 2) return {median(values), median(values)};
  constexpr size_t kResamples = 1000;
  const auto wanted = static_cast<size_t>(std::ceil(std::cbrt(static_cast<double>(values.size()))) * 2);
  const size_t block = std::min(wanted, std::max<size_t>(1, values.size() / 3));
  const size_t starts = values.size() > block ? values.size() - block + 1 : 1;
  Random random(1);
  std::vector<double> medians;
  std::vector<double> drawn;
  for (size_t i = 0; i < kResamples; ++i) {
    drawn.clear();
    while (drawn.size() < values.size()) {
      const size_t start = random.index(starts);
      for (size_t j = start; j < std::min(start + block, values.size()) && drawn.size() < values.size(); ++j) {
        drawn.push_back(values[j]);
      }
    }
    medians.push_back(median(drawn));
  }
  std::sort(medians.begin(), medians.end());
  return {medians[kResamples / 40], medians[kResamples - 1 - kResamples / 40]};
}

uint64_t Random::next() {  // SplitMix64
  state_ += 0x9e3779b97f4a7c15U;
  uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
  return mixed ^ (mixed >> 31);
}

}  // namespace firelane::compare
