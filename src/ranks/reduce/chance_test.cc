#include "ranks/reduce/chance.h"

#include <gtest/gtest.h>

#include <cmath>

namespace firelane::ranks {
namespace {

// Expected values are sums of binomials: for even degrees of freedom the tail of F is one.
TEST(Chance, of_a_ratio_is_the_tail_of_the_f_distribution) {
  EXPECT_NEAR(log_chance_of_ratio(3.478, 4, 10), std::log(0.05), 1e-4);
  EXPECT_NEAR(log_chance_of_ratio(1, 40, 40), std::log(0.5), 1e-9);
  EXPECT_NEAR(log_chance_of_ratio(0.5, 6, 8), -0.23187502, 1e-7);
}

TEST(Chance, far_out_in_the_tail_is_still_told_apart) {
  EXPECT_NEAR(log_chance_of_ratio(100, 10, 10), -18.27244901, 1e-7);
  EXPECT_NEAR(log_chance_of_ratio(30, 40, 40), -44.31596000, 1e-7);
}

TEST(Chance, without_a_degree_of_freedom_anything_is_likely) {
  EXPECT_EQ(log_chance_of_ratio(1e9, 0, 10), 0);
  EXPECT_EQ(log_chance_of_ratio(1e9, 10, -1), 0);
  EXPECT_EQ(log_chance_of_ratio(NAN, 10, 10), 0);
}

TEST(Chance, of_hits_is_the_tail_of_the_binomial_distribution) {
  EXPECT_NEAR(log_chance_of_hits(3, 10, 0.1), -2.65653765, 1e-7);
  EXPECT_NEAR(log_chance_of_hits(20, 40, 0.02), -52.97551616, 1e-7);
  EXPECT_EQ(log_chance_of_hits(0, 10, 0.1), 0);
}

}  // namespace
}  // namespace firelane::ranks
