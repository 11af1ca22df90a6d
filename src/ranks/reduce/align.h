// Lays the rows of one rank along those of another without sequence numbers. Private to ranks/reduce.
#pragma once

#include <cstdint>
#include <vector>

#include "ranks/reduce/rows.h"

namespace firelane::ranks {

using RowList = std::vector<uint32_t>;  // rows of a rank, in order

struct Lane {
  const std::vector<CollectiveRow>* rows = nullptr;
  const RowList* list = nullptr;
  const CollectiveRow& at(size_t i) const { return (*rows)[(*list)[i]]; }
  size_t size() const { return list->size(); }
};

// What is known of the difference of two clocks before looking.
struct ClockGuess {
  double difference_ns = 0;  // other - reference
  double within_ns = 0;      // the truth lies this near
  // How near each other the ends of a collective lie: at least, whatever the distance to the next, and at most.
  double least_spread_ns = 30'000;
  double most_spread_ns = 5'000'000;
  size_t ranks = 1;  // that are laid along others in this job: among many, something unlikely happens
};

struct Alignment {
  bool certain = false;
  bool several = false;            // more than one shift fits
  std::vector<int32_t> reference;  // by row of the other: row of the reference, or -1
};

Alignment align(const Lane& reference, const Lane& other, const std::vector<Signature>& signatures,
                const ClockGuess& guess);

}  // namespace firelane::ranks
