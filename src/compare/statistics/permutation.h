// Could the two sides be one? Every way to deal the runs out to the two sides is tried, and those count that differ at
// least as much as the sides do.
//
// Nothing is assumed about how runs are distributed, only that equal programs could have had each other's runs. With
// few runs there are few ways: 3 and 3 give 20, so that no difference can be rarer than 2 of 20. Up to 20,000 ways all
// are tried; beyond, as many drawn ones, the same in every call.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compare/statistics/samples.h"

namespace firelane::compare {

class PermutationTest {
 public:
  // REQUIRES: at least one value a side.
  PermutationTest(std::span<const double> before, std::span<const double> after);

  // Share of the ways whose means differ at least as much, when `after` is divided by `ratio` first: that the second
  // program takes `ratio` times as long is then what is tested.
  double p(double ratio = 1) const;
  // The smallest p that these numbers of runs can give.
  double smallest_p() const;
  bool exact() const { return exact_; }
  size_t ways() const { return ways_.size(); }

  // The ratios that are not refuted at that level; infinite ends where the runs cannot tell.
  Range ratios(double alpha) const;

 private:
  using Way = std::vector<uint32_t>;  // which of all values are on the first side

  void all_ways();
  void drawn_ways();

  std::vector<double> before_;
  std::vector<double> after_;
  std::vector<Way> ways_;
  bool exact_ = true;
};

}  // namespace firelane::compare
