#include "ranks/reduce/shift.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace firelane::ranks {
namespace {

constexpr double kStepNs = 20e6;
constexpr double kAheadNs = 3e6;

// Two machines that meet once a step, each with one rank; the clock of the second one is ahead.
class Machines {
 public:
  explicit Machines(double uneven_ns, size_t steps = 30, double noise_ns = 3'000) {
    intake_.signatures = {{.op = Collective::kAllReduce, .size_key = 10}};
    double end = 0;
    for (uint32_t i = 0; i < steps; ++i) {
      end += kStepNs + uneven_ns * uniform_(random_);
      add(a_, end + noise_ns * uniform_(random_), i);
      add(b_, end + noise_ns * uniform_(random_) + kAheadNs, i);
    }
  }

  FoundShift found() const { return find_shift(intake_, a_, b_); }
  FoundShift found_backwards() const { return find_shift(intake_, b_, a_); }
  // Ends of collectives that the second one has no part in, all over the recording of the first.
  void add_strays(size_t count) {
    Places& places = a_.groups[0].places;
    const double last = places.back().end_ns;
    for (size_t i = 0; i < count; ++i) add(a_, last * (uniform_(random_) + 1) / 2, 1'000 + static_cast<uint32_t>(i));
    std::ranges::sort(places, {}, &Place::end_ns);
  }
  SameClock same_clock(double second_is_ahead_ns) const {
    Island moved = b_;
    move_island(moved, {.ahead_ns = kAheadNs - second_is_ahead_ns});
    return try_same_clock(intake_, a_, moved, 3'000);
  }
  // The first one lost the rows of these steps, the second one those.
  void keep(size_t a_first, size_t a_end, size_t b_first, size_t b_end) {
    keep(a_, a_first, a_end);
    keep(b_, b_first, b_end);
  }

 private:
  static void add(Island& island, double end_ns, uint32_t found) {
    if (island.groups.empty()) island.groups.push_back({.laid = 0, .ranks = 2, .places = {}});
    island.groups[0].places.push_back({end_ns, end_ns, end_ns - 50'000, end_ns - 50'000, found, 0, 1});
    ++island.size;
  }
  static void keep(Island& island, size_t first, size_t end) {
    Places& places = island.groups[0].places;
    places =
        Places(places.begin() + static_cast<std::ptrdiff_t>(first), places.begin() + static_cast<std::ptrdiff_t>(end));
  }

  Intake intake_;
  Island a_;
  Island b_;
  std::mt19937_64 random_{7};
  std::uniform_real_distribution<double> uniform_{-1, 1};
};

TEST(Shift, steps_that_differ_in_length_by_more_than_ends_do_leave_one) {
  const FoundShift found = Machines(400'000).found();
  EXPECT_EQ(found.found, ShiftFound::kOne);
  EXPECT_NEAR(found.line.ahead_ns, kAheadNs, 2'000);
}

TEST(Shift, steps_of_one_length_leave_several) { EXPECT_EQ(Machines(0).found().found, ShiftFound::kSeveral); }

TEST(Shift, steps_that_differ_no_more_than_ends_do_leave_several) {
  EXPECT_EQ(Machines(100'000, 30, 100'000).found().found, ShiftFound::kSeveral);
}

TEST(Shift, few_collectives_prove_nothing) { EXPECT_NE(Machines(400'000, 5).found().found, ShiftFound::kOne); }

TEST(Shift, windows_that_do_not_meet_are_not_laid_onto_each_other) {
  Machines machines(400'000, 40);
  machines.keep(0, 18, 19, 40);
  EXPECT_NE(machines.found().found, ShiftFound::kOne);
}

TEST(Shift, one_rank_and_thousands_find_the_same_whoever_looks) {
  // In a job of 16,384 ranks, four with ten rows each took the others to be off by steps: the others' rows, laid onto
  // theirs, did not lead to the true shift.
  Machines machines(400'000, 40);
  machines.keep(0, 40, 15, 25);
  machines.add_strays(2'000);
  const FoundShift found = machines.found();
  const FoundShift backwards = machines.found_backwards();
  EXPECT_EQ(found.found, backwards.found);
  EXPECT_EQ(found.log_chance, backwards.log_chance);
  EXPECT_DOUBLE_EQ(found.line.ahead_ns, -backwards.line.ahead_ns);
}

TEST(SameClock, is_possible_where_ends_lie_together_and_not_where_another_shift_fits) {
  const Machines machines(400'000);
  EXPECT_TRUE(machines.same_clock(0).may_be);
  EXPECT_LT(machines.same_clock(0).log_chance, kLogUnlikely);
  EXPECT_FALSE(machines.same_clock(kAheadNs).may_be);
  EXPECT_FALSE(machines.same_clock(kStepNs).may_be);
}

}  // namespace
}  // namespace firelane::ranks
