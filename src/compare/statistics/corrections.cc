#include "compare/statistics/corrections.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace firelane::compare {

namespace {

std::vector<size_t> ascending(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  return order;
}

}  // namespace

std::vector<double> holm(std::span<const double> p_values) {
  std::vector<double> out(p_values.size());
  const std::vector<size_t> order = ascending(p_values);
  double most = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    most = std::max(most, std::min(1.0, p_values[order[i]] * static_cast<double>(order.size() - i)));
    out[order[i]] = most;
  }
  return out;
}

std::vector<double> benjamini_hochberg(std::span<const double> p_values) {
  std::vector<double> out(p_values.size());
  const std::vector<size_t> order = ascending(p_values);
  double least = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const double rank = static_cast<double>(i + 1);
    least = std::min(least, p_values[order[i]] * static_cast<double>(order.size()) / rank);
    out[order[i]] = least;
  }
  return out;
}

}  // namespace firelane::compare
