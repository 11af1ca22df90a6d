#include "record/torch/size_table.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace firelane::torch_hooks {
namespace {

TEST(SizeTable, gives_the_size_once) {
  SizeTable table;
  ASSERT_TRUE(table.map());
  EXPECT_TRUE(table.insert(0x1000, 64));
  EXPECT_EQ(table.take(0x2000), -1);
  EXPECT_EQ(table.take(0x1000), 64);
  EXPECT_EQ(table.take(0x1000), -1);
}

TEST(SizeTable, an_address_can_come_back_with_another_size) {
  SizeTable table;
  ASSERT_TRUE(table.map());
  EXPECT_TRUE(table.insert(0x1000, 64));
  EXPECT_EQ(table.take(0x1000), 64);
  EXPECT_TRUE(table.insert(0x1000, 128));
  EXPECT_EQ(table.take(0x1000), 128);
}

TEST(SizeTable, blocks_beyond_the_near_part_are_found_among_unknown_ones) {
  SizeTable table;
  ASSERT_TRUE(table.map());
  for (uint64_t i = 1; i <= 20'000; ++i) ASSERT_TRUE(table.insert(i * 64, static_cast<int64_t>(i)));
  for (uint64_t i = 1; i <= 20'000; ++i) {
    ASSERT_EQ(table.take(i * 64 + 1), -1);
    ASSERT_EQ(table.take(i * 64), static_cast<int64_t>(i));
    ASSERT_EQ(table.take(i * 64), -1);
  }
}

TEST(SizeTable, a_full_table_refuses_and_keeps_what_it_has) {
  SizeTable table;
  ASSERT_TRUE(table.map());
  std::vector<uint64_t> kept;
  for (uint64_t i = 1; i <= 200'000; ++i) {
    if (table.insert(i * 64, static_cast<int64_t>(i))) kept.push_back(i);
  }
  EXPECT_LT(kept.size(), 131'073u);
  EXPECT_GT(kept.size(), 100'000u);
  for (const uint64_t i : kept) ASSERT_EQ(table.take(i * 64), static_cast<int64_t>(i));
}

TEST(SizeTable, blocks_of_one_thread_are_freed_by_another) {
  SizeTable table;
  ASSERT_TRUE(table.map());
  constexpr uint64_t kBlocks = 4000;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&table, t] {
      for (uint64_t i = 1; i <= kBlocks; ++i) ASSERT_TRUE(table.insert((t * kBlocks + i) * 64, 7));
      // The next thread's blocks may not be there yet; its own always are.
      for (uint64_t i = 1; i <= kBlocks; i += 2) ASSERT_EQ(table.take((t * kBlocks + i) * 64), 7);
    });
  }
  for (std::thread& thread : threads) thread.join();
  int64_t left = 0;
  for (uint64_t i = 1; i <= 4 * kBlocks; ++i) left += table.take(i * 64) == 7;
  EXPECT_EQ(left, 4 * int64_t{kBlocks} / 2);
}

}  // namespace
}  // namespace firelane::torch_hooks
