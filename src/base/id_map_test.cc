#include "base/id_map.h"

#include <gtest/gtest.h>

namespace firelane {
namespace {

TEST(IdMap, finds_what_was_put_in_and_the_first_row_wins) {
  IdMap map(3);
  map.insert(7, 1);
  map.insert(7, 2);
  map.insert(-5, 3);
  EXPECT_EQ(map.find(7), 1u);
  EXPECT_EQ(map.find(-5), 3u);
  EXPECT_EQ(map.find(8), IdMap::kNone);
}

TEST(IdMap, ids_that_share_their_low_bits_are_all_found) {
  constexpr int64_t kCount = 20000;
  IdMap map(kCount);
  for (int64_t i = 0; i < kCount; ++i) map.insert(i << 20, static_cast<uint32_t>(i));
  for (int64_t i = 0; i < kCount; ++i) ASSERT_EQ(map.find(i << 20), static_cast<uint32_t>(i));
}

}  // namespace
}  // namespace firelane
