// Many tests at once: of a hundred kernels that did not change, five look changed at 0.05.
#pragma once

#include <span>
#include <vector>

namespace firelane::compare {

// p values after Holm's correction, in the given order: one below alpha is a difference, and the chance of any false
// one among all is at most alpha. For a gate, where a false alarm costs the most.
std::vector<double> holm(std::span<const double> p_values);

// After Benjamini and Hochberg's: of those below alpha, at most that share is false. For a list to look through.
std::vector<double> benjamini_hochberg(std::span<const double> p_values);

}  // namespace firelane::compare
