#include "base/gallop.h"

#include <gtest/gtest.h>

#include <vector>

namespace firelane {
namespace {

TEST(Gallop, finds_what_a_binary_search_finds_from_wherever_it_starts) {
  for (const size_t size : {0u, 1u, 2u, 7u, 64u, 100u}) {
    std::vector<int> values;
    for (size_t i = 0; i < size; ++i) values.push_back(static_cast<int>(i / 3));  // with equal ones
    for (int wanted = -1; wanted <= static_cast<int>(size / 3) + 1; ++wanted) {
      const auto before = [&](int value) { return value < wanted; };
      const auto expected = std::partition_point(values.begin(), values.end(), before);
      for (auto near = values.begin();; ++near) {
        EXPECT_EQ(gallop_from(near, values.begin(), values.end(), before), expected) << wanted;
        if (near <= expected) EXPECT_EQ(gallop(near, values.end(), before), expected) << wanted;
        if (near == values.end()) break;
      }
    }
  }
}

}  // namespace
}  // namespace firelane
