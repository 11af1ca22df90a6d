// Pairs of equal elements in two sequences: the longest common subsequence where it can be had, anchors elsewhere.
#include "import/lane/align.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string_view>

namespace firelane::importer {
namespace {

std::vector<uint64_t> letters(std::string_view text) { return {text.begin(), text.end()}; }

size_t pairs(const std::vector<uint32_t>& partner) {
  return partner.size() - static_cast<size_t>(std::count(partner.begin(), partner.end(), kUnpaired));
}

void expect_sound(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b,
                  const std::vector<uint32_t>& partner) {
  ASSERT_EQ(partner.size(), a.size());
  int64_t last = -1;
  for (size_t i = 0; i < a.size(); ++i) {
    if (partner[i] == kUnpaired) continue;
    ASSERT_LT(partner[i], b.size());
    EXPECT_EQ(a[i], b[partner[i]]);
    EXPECT_GT(int64_t{partner[i]}, last);
    last = partner[i];
  }
}

size_t common_length(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
  std::vector<std::vector<size_t>> best(a.size() + 1, std::vector<size_t>(b.size() + 1, 0));
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      best[i][j] = a[i - 1] == b[j - 1] ? best[i - 1][j - 1] + 1 : std::max(best[i - 1][j], best[i][j - 1]);
    }
  }
  return best[a.size()][b.size()];
}

TEST(Align, equal_sequences_are_paired_one_by_one) {
  EXPECT_EQ(align(letters("abcab"), letters("abcab")), (std::vector<uint32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(align(letters("ab"), letters("")), (std::vector<uint32_t>{kUnpaired, kUnpaired}));
  EXPECT_TRUE(align(letters(""), letters("ab")).empty());
}

TEST(Align, an_inserted_launch_shifts_the_rest) {
  EXPECT_EQ(align(letters("abXcd"), letters("abcd")), (std::vector<uint32_t>{0, 1, kUnpaired, 2, 3}));
  EXPECT_EQ(align(letters("acd"), letters("abbcd")), (std::vector<uint32_t>{0, 3, 4}));
}

TEST(Align, no_pairing_has_more_pairs) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<uint64_t> a(random() % 30);
    std::vector<uint64_t> b(random() % 30);
    for (uint64_t& token : a) token = random() % 4;
    for (uint64_t& token : b) token = random() % 4;
    const std::vector<uint32_t> partner = align(a, b);
    expect_sound(a, b, partner);
    EXPECT_EQ(pairs(partner), common_length(a, b));
  }
}

// Every third element differs, 4,000 in all: far more edits than are tried.
TEST(Align, sequences_that_differ_much_are_paired_at_what_is_unique) {
  std::vector<uint64_t> a;
  std::vector<uint64_t> b;
  for (uint64_t i = 0; i < 4000; ++i) {
    a.push_back(i % 3 == 0 ? 1'000'000 + i : i);
    b.push_back(i % 3 == 0 ? 2'000'000 + i : i);
  }
  const std::vector<uint32_t> partner = align(a, b);
  expect_sound(a, b, partner);
  EXPECT_EQ(pairs(partner), 2666u);
}

TEST(Align, sequences_with_nothing_in_common_have_no_pairs) {
  EXPECT_EQ(pairs(align(std::vector<uint64_t>(3000, 1), std::vector<uint64_t>(3000, 2))), 0u);
}

}  // namespace
}  // namespace firelane::importer
