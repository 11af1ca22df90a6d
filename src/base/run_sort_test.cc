#include "base/run_sort.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>

namespace firelane {
namespace {

using Item = std::pair<int, int>;  // key, place in the input
const auto kByKey = [](const Item& a, const Item& b) { return a.first < b.first; };

TEST(RunSort, equals_a_stable_sort_on_random_data_made_of_runs) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<Item> items;
    const int runs = static_cast<int>(random() % 9);
    for (int run = 0; run < runs; ++run) {
      int key = static_cast<int>(random() % 50);
      for (int i = static_cast<int>(random() % 40); i > 0; --i) {
        items.emplace_back(key, static_cast<int>(items.size()));
        key += static_cast<int>(random() % 3);
      }
    }
    std::vector<Item> expected = items;
    std::stable_sort(expected.begin(), expected.end(), kByKey);
    run_sort(items.data(), items.size(), kByKey);
    ASSERT_EQ(items, expected) << "round " << round;
  }
}

}  // namespace
}  // namespace firelane
