// Where a history of runs changed, and stayed changed: E-divisive (Matteson and James).
//
// The history is cut where the two sides are furthest apart in energy distance, if shuffled histories are seldom as far
// apart; then each side is cut again. That finds shifts of the middle and of the spread, and several of them, without
// being told how many there are.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace firelane::compare {

struct ChangePoint {
  size_t index = 0;   // the first value of the new level
  double before = 0;  // median from the change before this one
  double after = 0;   // median up to the next change
  double p = 1;
};

// In order. The last 400 values are looked at; a level has at least three values.
std::vector<ChangePoint> change_points(std::span<const double> history, double alpha = 0.05);

}  // namespace firelane::compare
