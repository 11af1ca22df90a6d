#include "compare/statistics/change_points.h"

#include <algorithm>
#include <cmath>

#include "compare/statistics/samples.h"

namespace firelane::compare {

namespace {

constexpr size_t kMostValues = 400;
constexpr size_t kShortestLevel = 3;
constexpr size_t kShuffles = 199;

struct Cut {
  size_t at = 0;
  double distance = 0;
};

// The cut of `values` with the largest energy distance of its sides, scaled by their lengths.
Cut best_cut(const std::vector<double>& values) {
  const size_t count = values.size();
  // Sums of distances within [0, at), within [at, count) and between both, moved along with `at`.
  double left = 0;
  double right = 0;
  double between = 0;
  for (size_t i = 0; i < count; ++i)
    for (size_t j = i + 1; j < count; ++j) right += std::abs(values[i] - values[j]);
  Cut best;
  for (size_t at = 1; at < count; ++at) {
    const size_t moved = at - 1;
    double to_left = 0;
    double to_right = 0;
    for (size_t i = 0; i < moved; ++i) to_left += std::abs(values[i] - values[moved]);
    for (size_t i = at; i < count; ++i) to_right += std::abs(values[i] - values[moved]);
    left += to_left;
    right -= to_right;
    between += to_right - to_left;
    const size_t rest = count - at;
    if (at < kShortestLevel || rest < kShortestLevel) continue;
    const auto n = static_cast<double>(at);
    const auto m = static_cast<double>(rest);
    const double energy = 2 * between / (n * m) - 2 * left / (n * (n - 1)) - 2 * right / (m * (m - 1));
    const double distance = energy * n * m / (n + m);
    if (distance > best.distance) best = {at, distance};
  }
  return best;
}

void find_in(std::span<const double> history, size_t begin, size_t end, double alpha, Random& random,
             std::vector<ChangePoint>& out) {
  if (end - begin < 2 * kShortestLevel) return;
  std::vector<double> values(history.begin() + static_cast<std::ptrdiff_t>(begin),
                             history.begin() + static_cast<std::ptrdiff_t>(end));
  const Cut cut = best_cut(values);
  if (cut.at == 0) return;
  size_t as_far = 1;
  for (size_t i = 0; i < kShuffles; ++i) {
    random.shuffle(values);
    if (best_cut(values).distance >= cut.distance) ++as_far;
    if (static_cast<double>(as_far) > alpha * static_cast<double>(kShuffles + 1)) return;
  }
  const double p = static_cast<double>(as_far) / static_cast<double>(kShuffles + 1);
  find_in(history, begin, begin + cut.at, alpha, random, out);
  out.push_back({.index = begin + cut.at, .p = p});
  find_in(history, begin + cut.at, end, alpha, random, out);
}

}  // namespace

std::vector<ChangePoint> change_points(std::span<const double> history, double alpha) {
  const size_t skipped = history.size() > kMostValues ? history.size() - kMostValues : 0;
  Random random(3);
  std::vector<ChangePoint> out;
  find_in(history, skipped, history.size(), alpha, random, out);
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t begin = i == 0 ? skipped : out[i - 1].index;
    const size_t end = i + 1 == out.size() ? history.size() : out[i + 1].index;
    out[i].before = median(history.subspan(begin, out[i].index - begin));
    out[i].after = median(history.subspan(out[i].index, end - out[i].index));
  }
  return out;
}

}  // namespace firelane::compare
