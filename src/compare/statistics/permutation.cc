#include "compare/statistics/permutation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace firelane::compare {

namespace {

constexpr double kMostWays = 20'000;

double ways_to_choose(size_t of_all, size_t chosen) {
  double ways = 1;
  for (size_t i = 0; i < chosen; ++i) ways *= static_cast<double>(of_all - i) / static_cast<double>(i + 1);
  return ways;
}

}  // namespace

PermutationTest::PermutationTest(std::span<const double> before, std::span<const double> after)
    : before_(before.begin(), before.end()), after_(after.begin(), after.end()) {
  FL_CHECK(!before.empty() && !after.empty(), "a permutation test needs a run a side");
  exact_ = ways_to_choose(before_.size() + after_.size(), before_.size()) <= kMostWays;
  exact_ ? all_ways() : drawn_ways();
}

void PermutationTest::all_ways() {
  const auto all = static_cast<uint32_t>(before_.size() + after_.size());
  const auto chosen = static_cast<uint32_t>(before_.size());
  Way way(chosen);
  std::iota(way.begin(), way.end(), 0U);
  while (true) {
    ways_.push_back(way);
    uint32_t at = chosen;
    while (at > 0 && way[at - 1] == all - chosen + at - 1) --at;
    if (at == 0) return;
    ++way[at - 1];
    for (uint32_t i = at; i < chosen; ++i) way[i] = way[i - 1] + 1;
  }
}

void PermutationTest::drawn_ways() {
  Random random(2);
  std::vector<uint32_t> order(before_.size() + after_.size());
  std::iota(order.begin(), order.end(), 0U);
  ways_.emplace_back(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(before_.size()));
  while (static_cast<double>(ways_.size()) < kMostWays) {
    random.shuffle(order);
    ways_.emplace_back(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(before_.size()));
  }
}

double PermutationTest::p(double ratio) const {
  std::vector<double> all = before_;
  for (const double value : after_) all.push_back(value / ratio);
  const double sum = std::accumulate(all.begin(), all.end(), 0.0);
  const auto first = static_cast<double>(before_.size());
  const auto second = static_cast<double>(after_.size());
  const auto distance = [&](double of_first) { return std::abs(of_first / first - (sum - of_first) / second); };
  const double seen = distance(std::accumulate(before_.begin(), before_.end(), 0.0));
  const double almost = seen * (1 - 1e-9);  // equal sums differ in their last digits
  size_t as_far = 0;
  for (const Way& way : ways_) {
    double of_first = 0;
    for (const uint32_t index : way) of_first += all[index];
    if (distance(of_first) >= almost) ++as_far;
  }
  return static_cast<double>(as_far) / static_cast<double>(ways_.size());
}

double PermutationTest::smallest_p() const {
  const double ways = ways_to_choose(before_.size() + after_.size(), before_.size());
  const double extreme = before_.size() == after_.size() ? 2 : 1;  // equal sides can change places
  return std::max(extreme / ways, 1 / static_cast<double>(ways_.size()));
}

Range PermutationTest::ratios(double alpha) const {
  const double middle = mean(before_) > 0 && mean(after_) > 0 ? mean(after_) / mean(before_) : 1;
  if (smallest_p() > alpha) return {0, INFINITY};
  const auto bound = [&](bool upwards) {
    double inside = 0;  // logarithms of ratios beside the middle
    double outside = 0.001;
    const auto at = [&](double distance) { return middle * std::exp(upwards ? distance : -distance); };
    while (p(at(outside)) > alpha) {
      inside = outside;
      outside *= 2;
      if (outside > 16) return upwards ? INFINITY : 0.0;
    }
    for (int i = 0; i < 20; ++i) {
      const double half = (inside + outside) / 2;
      (p(at(half)) > alpha ? inside : outside) = half;
    }
    return at(outside);
  };
  return {bound(false), bound(true)};
}

}  // namespace firelane::compare
