// Device rows come back as they were written; damage is seen and never read beyond the payload.
#include "format/device.h"

#include <gtest/gtest.h>

namespace firelane::format {
namespace {

struct OldRow {
  static constexpr DeviceTable kTable = DeviceTable::kKernel;
  int64_t start_ns = 0, duration_ns = 0;
};

std::string two_kernels_and_a_call() {
  DeviceWriter writer;
  writer.add(
      DeviceKernelRow{.start_ns = 1000, .duration_ns = 50, .stream = 7, .correlation = 3, .name = 1, .grid_x = 132});
  writer.add(DeviceCallRow{.start_ns = 900, .duration_ns = 20, .thread_id = 77, .correlation = 3, .name = 2});
  writer.add(DeviceKernelRow{.start_ns = INT64_MIN, .duration_ns = INT64_MAX, .correlation = -1, .name = 1});
  std::string payload;
  writer.append_to(payload);
  return payload;
}

TEST(Device, rows_come_back_table_by_table) {
  const std::string payload = two_kernels_and_a_call();
  DeviceReader reader{ByteReader(payload)};
  ASSERT_TRUE(reader.next_table());
  EXPECT_EQ(reader.table(), DeviceTable::kKernel);
  DeviceKernelRow kernel;
  ASSERT_TRUE(reader.next(kernel));
  EXPECT_EQ(kernel.start_ns, 1000);
  EXPECT_EQ(kernel.grid_x, 132);
  ASSERT_TRUE(reader.next(kernel));
  EXPECT_EQ(kernel.start_ns, INT64_MIN);
  EXPECT_EQ(kernel.duration_ns, INT64_MAX);
  EXPECT_EQ(kernel.grid_x, 0);
  EXPECT_FALSE(reader.next(kernel));
  ASSERT_TRUE(reader.next_table());
  DeviceCallRow call;
  ASSERT_TRUE(reader.next(call));
  EXPECT_EQ(call.thread_id, 77);
  EXPECT_FALSE(reader.next_table());
  EXPECT_FALSE(reader.damaged());
}

TEST(Device, a_file_with_fewer_columns_reads_as_zeros_and_more_are_ignored) {
  DeviceWriter writer;
  writer.add(OldRow{5, 6});
  std::string payload;
  writer.append_to(payload);
  DeviceReader old_file{ByteReader(payload)};
  ASSERT_TRUE(old_file.next_table());
  DeviceKernelRow kernel{.stream = 9};
  ASSERT_TRUE(old_file.next(kernel));
  EXPECT_EQ(kernel.duration_ns, 6);
  EXPECT_EQ(kernel.stream, 0);

  const std::string newer = two_kernels_and_a_call();
  DeviceReader new_file{ByteReader(newer)};
  ASSERT_TRUE(new_file.next_table());
  OldRow row;
  ASSERT_TRUE(new_file.next(row));
  EXPECT_EQ(row.start_ns, 1000);
}

TEST(Device, every_cut_is_damage_or_an_end_and_never_a_crash) {
  const std::string payload = two_kernels_and_a_call();
  for (size_t cut = 0; cut < payload.size(); ++cut) {
    DeviceReader reader{ByteReader(std::string_view(payload).substr(0, cut))};
    size_t rows = 0;
    DeviceKernelRow kernel;
    while (reader.next_table()) {
      while (reader.next(kernel)) ++rows;
    }
    EXPECT_LT(rows, 4u) << cut;
  }
  for (size_t at = 0; at < payload.size(); ++at) {
    std::string bytes = payload;
    bytes[at] = static_cast<char>(bytes[at] ^ 0xFF);
    DeviceReader reader{ByteReader(bytes)};
    DeviceKernelRow kernel;
    for (int tables = 0; tables < 100 && reader.next_table(); ++tables) {
      while (reader.next(kernel)) {
      }
    }
  }
}

TEST(Device, cleared_the_writer_begins_anew) {
  DeviceWriter writer;
  writer.add(DeviceSetRow{.start_ns = 5, .bytes = 8});
  writer.clear();
  EXPECT_EQ(writer.row_count(), 0u);
  std::string payload;
  writer.append_to(payload);
  EXPECT_TRUE(payload.empty());
  writer.add(DeviceSetRow{.start_ns = 7});
  writer.append_to(payload);
  DeviceReader reader{ByteReader(payload)};
  ASSERT_TRUE(reader.next_table());
  DeviceSetRow row;
  ASSERT_TRUE(reader.next(row));
  EXPECT_EQ(row.start_ns, 7);
}

}  // namespace
}  // namespace firelane::format
