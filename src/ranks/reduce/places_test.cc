#include "ranks/reduce/places.h"

#include <gtest/gtest.h>

namespace firelane::ranks {
namespace {

constexpr uint32_t kSmall = 0;
constexpr uint32_t kLarge = 1;
constexpr EndNoise kNoise{.places_ns = 3'000, .ranks_ns = 3'000};
constexpr Spacing kFarApart{.same_ns = 1e6, .any_ns = 1e6};

const Intake& two_sizes() {
  static const Intake* const made = [] {
    auto* out = new Intake;
    out->signatures = {{.op = Collective::kAllReduce, .size_key = 10}, {.op = Collective::kAllReduce, .size_key = 20}};
    return out;
  }();
  return *made;
}

Place place(double end_ns, uint32_t found, uint32_t signature = kSmall, double length_ns = 10'000) {
  return {end_ns, end_ns, end_ns - length_ns, end_ns - length_ns, found, signature, 1};
}

std::vector<uint32_t> merged(Places places, const Places& others, const Spacing& spacing = kFarApart) {
  uint32_t next_found = 100;
  return merge_places(two_sizes(), places, others, spacing, kNoise, &next_found);
}

using Numbers = std::vector<uint32_t>;

TEST(Places, a_row_goes_to_the_one_of_its_kind_that_ends_where_it_does) {
  const Places places = {place(0, 0), place(1'000'000, 1, kLarge), place(1'005'000, 2), place(2'000'000, 3)};
  EXPECT_EQ(merged(places, {place(3'000, 0), place(1'004'000, 1), place(1'998'000, 2)}), (Numbers{0, 2, 3}));
}

TEST(Places, a_row_whose_partner_is_missing_stands_beside_the_others) {
  EXPECT_EQ(merged({place(0, 0), place(2'000'000, 1)}, {place(1'000'000, 0)}), (Numbers{100}));
}

TEST(Places, a_row_between_two_of_its_kind_goes_to_neither) {
  EXPECT_EQ(merged({place(0, 0), place(20'000, 1)}, {place(10'000, 0)}, {.same_ns = 20'000}), (Numbers{100}));
}

TEST(Places, of_two_rows_that_would_go_to_one_neither_does) {
  EXPECT_EQ(merged({place(0, 0)}, {place(-8'000, 0), place(9'000, 1)}), (Numbers{100, 101}));
}

TEST(Places, a_row_that_began_before_the_collective_before_had_ended_is_not_the_next_one) {
  const Places places = {place(0, 0, kLarge), place(500'000, 1)};
  EXPECT_EQ(merged(places, {place(500'000, 0)}), (Numbers{1}));
  EXPECT_EQ(merged(places, {place(500'000, 0, kSmall, 900'000)}), (Numbers{100}));
}

TEST(Places, the_nearest_one_is_of_the_same_kind) {
  const Places places = {place(0, 0), place(90'000, 1, kLarge), place(200'000, 2)};
  EXPECT_EQ(nearest_place(two_sizes(), places, kSmall, 95'000, 1e6, 0), 0u);
  EXPECT_EQ(nearest_place(two_sizes(), places, kSmall, 105'000, 1e6, 2), 2u);
  EXPECT_EQ(nearest_place(two_sizes(), places, kSmall, 95'000, 50'000, 1), places.size());
}

}  // namespace
}  // namespace firelane::ranks
