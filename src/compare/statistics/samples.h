// Figures of a row of step times: the middle, the spread, what of it is warm-up, and how far the median may be off.
//
// Steps of one run depend on each other (on an H200 neighbors correlate by up to 0.7), so a run gives one number, its
// median, and only several runs say how much that varies: judge.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace firelane::compare {

double mean(std::span<const double> values);                // 0 of none
double median(std::span<const double> values);              // 0 of none; the mean of the middle two when even
double standard_deviation(std::span<const double> values);  // by n - 1; 0 of fewer than two
// Correlation of neighbors, -1 to 1; 0 for fewer than three values or equal ones.
double autocorrelation(std::span<const double> values);

// How many steps at the start are warm-up: those without which the mean of the rest is known best (MSER), at most half.
// The start may be slower (compiling, filling caches) or faster (a device that is still cool).
size_t warm_up_steps(std::span<const double> values);

// The steps after warm-up.
std::span<const double> steady(std::span<const double> values);

struct Range {
  double low = 0;
  double high = 0;
};

// Where the median of another row of steps of the same run may lie, 95%: a bootstrap of blocks, which keeps neighbors
// together. Says nothing about other runs.
Range median_range(std::span<const double> values);

// Pseudo-random numbers that are the same on every machine: a comparison must give the same answer twice.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  // In [0, below). REQUIRES: below > 0.
  size_t index(size_t below) { return static_cast<size_t>(next() % below); }
  template <typename T>
  void shuffle(std::vector<T>& values) {
    for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[index(i)]);
  }

 private:
  uint64_t state_;
};

}  // namespace firelane::compare
