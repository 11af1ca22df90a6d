// Which stretches of a sequence of operators come again and again, by their names alone: sizes may differ.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/string_pool.h"

namespace firelane::analyze {

struct Repeat {
  std::vector<size_t> starts;  // of each round, and the end of the last: one more than there are rounds
  bool even = true;            // all rounds are the same

  size_t rounds() const { return starts.size() - 1; }
  size_t first() const { return starts.front(); }
  size_t end() const { return starts.back(); }
  size_t covers() const { return end() - first(); }
  size_t longest_round() const;
};

inline constexpr size_t kLeastRounds = 8;

// The same names in the same order, at least kLeastRounds times; the one that covers most first, of two that cover the
// same the one with the shorter rounds. They overlap.
std::vector<Repeat> even_repeats(std::span<const StringId> names);

// Rounds that differ: some call an operator more, or one twice. A name that comes once in each round parts them, and
// most of what is called stands in nearly all rounds. Those with the most rounds over the longest stretch first; they
// overlap.
std::vector<Repeat> uneven_repeats(std::span<const StringId> names);

}  // namespace firelane::analyze
