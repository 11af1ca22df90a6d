// Repeats among names: rounds that are the same, rounds that differ, and sequences that only look like either.
#include "analyze/verdict/repeats.h"

#include <gtest/gtest.h>

#include <string_view>

namespace firelane::analyze {
namespace {

// One letter, one operator.
std::vector<StringId> names(std::string_view text) {
  std::vector<StringId> out;
  for (const char letter : text) out.push_back(static_cast<StringId>(letter));
  return out;
}

TEST(Repeats, rounds_that_are_the_same_are_found_with_their_starts) {
  const std::vector<Repeat> found = even_repeats(names("xyabcabcabcabcabcabcabcabcz"));
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].rounds(), 8U);
  EXPECT_EQ(found[0].first(), 2U);
  EXPECT_EQ(found[0].end(), 26U);
  EXPECT_EQ(found[0].longest_round(), 3U);
  EXPECT_TRUE(even_repeats(names("abcabcabcabcabcabcabc")).empty()) << "seven rounds";
}

TEST(Repeats, rounds_may_have_an_operator_more_or_less) {
  const std::string_view flips = "pqmsdfmsdmsdfmsdfmsdmsdmsdfmsdmsdfmsdx";  // f in some of the rounds of m, s, d
  EXPECT_TRUE(even_repeats(names(flips)).empty());
  const std::vector<Repeat> found = uneven_repeats(names(flips));
  ASSERT_FALSE(found.empty());
  EXPECT_FALSE(found[0].even);
  EXPECT_EQ(found[0].rounds(), 10U);
  EXPECT_EQ(found[0].first(), 2U);
}

TEST(Repeats, a_name_that_also_stands_beside_the_loop_adds_no_round) {
  const std::vector<Repeat> found = uneven_repeats(names("mxyzuvwamsdfmsdmsdfmsdfmsdmsdmsdfmsdmsdf"));
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].first(), 8U) << "the first m is none of the loop's";
}

TEST(Repeats, stretches_with_little_in_common_are_no_rounds) {
  EXPECT_TRUE(uneven_repeats(names("abcdaefgahijaklmanopaqrsatuvawxya123a456")).empty());
}

}  // namespace
}  // namespace firelane::analyze
