#include "format/table_chunk.h"

#include <gtest/gtest.h>

namespace firelane::format {
namespace {

TableChunk small() {
  return {.table = "memory_events",
          .rows = 3,
          .columns = {{.name = "bytes", .numbers = {INT64_MIN, 5, INT64_MAX}, .texts = {}},
                      {.name = "pool", .numbers = {0, 1, 0}, .texts = {"common", ""}}}};
}

TEST(TableChunk, is_the_same_when_it_is_read) {
  const Result<TableChunk> again = decode_table(encode_table(small()));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again.value().table, "memory_events");
  ASSERT_EQ(again.value().columns.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(again.value().columns[i].name, small().columns[i].name);
    EXPECT_EQ(again.value().columns[i].numbers, small().columns[i].numbers);
    EXPECT_EQ(again.value().columns[i].texts, small().columns[i].texts);
  }
}

TEST(TableChunk, any_cut_is_refused) {
  const std::string bytes = encode_table(small());
  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(decode_table(bytes.substr(0, size)).ok()) << size;
}

TEST(TableChunk, a_text_that_is_not_there_and_rows_that_are_only_claimed_are_refused) {
  TableChunk chunk = small();
  chunk.columns[1].numbers[2] = 2;
  EXPECT_FALSE(decode_table(encode_table(chunk)).ok());
  chunk = small();
  chunk.rows = uint64_t{1} << 60;
  EXPECT_FALSE(decode_table(encode_table(chunk)).ok());
}

}  // namespace
}  // namespace firelane::format
