#include "import/lane/table_rows.h"

#include <gtest/gtest.h>

#include "format/table_chunk.h"

namespace firelane::importer {
namespace {

format::TableChunk two_blocks() {
  return {.table = "allocator_blocks",
          .rows = 2,
          .columns = {{.name = "time_ns", .numbers = {5, 6}, .texts = {}},
                      {.name = "device_type", .numbers = {1, 1}, .texts = {}},
                      {.name = "device", .numbers = {0, 3}, .texts = {}},
                      {.name = "address", .numbers = {-1, 512}, .texts = {}},
                      {.name = "bytes", .numbers = {64, 128}, .texts = {}},
                      {.name = "state", .numbers = {1, 0}, .texts = {"of a later version", "allocated"}}}};
}

TEST(TableRows, columns_are_known_by_name_and_kinds_by_their_words) {
  format::TableChunk chunk = two_blocks();
  chunk.columns.push_back({.name = "of a later version", .numbers = {1, 2}, .texts = {}});
  RawPool pool;
  RawPart part;
  add_table_rows(encode_table(chunk), pool, part);
  ASSERT_EQ(part.allocator_blocks.size(), 2u);
  EXPECT_EQ(part.allocator_blocks[0].address, UINT64_MAX);
  EXPECT_EQ(part.allocator_blocks[0].state, AllocatorBlockState::kAllocated);
  EXPECT_EQ(part.allocator_blocks[1].device, 3);
  EXPECT_EQ(part.allocator_blocks[1].state, AllocatorBlockState{}) << "a word that is not known";
}

// Rows of one column take a byte each in the file, and a hundred in memory.
TEST(TableRows, rows_without_the_columns_that_all_tables_have_are_damage) {
  format::TableChunk chunk = two_blocks();
  chunk.columns.resize(1);
  RawPool pool;
  RawPart part;
  add_table_rows(encode_table(chunk), pool, part);
  EXPECT_EQ(part.allocator_blocks.size(), 0u);
  EXPECT_EQ(part.losses[Stat::kLaneChunkDamaged], 1u);
}

TEST(TableRows, tables_of_later_versions_are_counted) {
  format::TableChunk chunk = two_blocks();
  chunk.table = "of a later version";
  RawPool pool;
  RawPart part;
  add_table_rows(encode_table(chunk), pool, part);
  EXPECT_EQ(part.losses[Stat::kLaneUnknownChunk], 1u);
}

}  // namespace
}  // namespace firelane::importer
