#include "analyze/memory/memory_at.h"

#include <gtest/gtest.h>

#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

constexpr int64_t kMebibyte = 1 << 20;

// 1 MiB from before; 2 MiB at 10..40, 3 MiB from 20 on.
Model three_blocks() {
  return TraceBuilder()
      .op("aten::mm", {.start_us = 5, .end_us = 15})
      .op("aten::add", {.start_us = 18, .end_us = 25})
      .memory({.at_us = 10,
               .bytes = 2 * kMebibyte,
               .device_type = 1,
               .device = 0,
               .address = 0x7f0000000000,
               .total_allocated = 3 * kMebibyte,
               .total_reserved = 20 * kMebibyte})
      .memory({.at_us = 20,
               .bytes = 3 * kMebibyte,
               .device_type = 1,
               .device = 0,
               .address = 0x7f0000200000,
               .total_allocated = 6 * kMebibyte,
               .total_reserved = 20 * kMebibyte})
      .memory({.at_us = 40,
               .bytes = -2 * kMebibyte,
               .device_type = 1,
               .device = 0,
               .address = 0x7f0000000000,
               .total_allocated = 4 * kMebibyte,
               .total_reserved = 20 * kMebibyte})
      .op("aten::sum", {.start_us = 0, .end_us = 1})
      .build();
}

TEST(MemoryAt, bins_hold_their_highest_moment_and_categories_add_up_to_it) {
  const Model model = three_blocks();
  const MemoryReport report = memory_report(model);
  ASSERT_EQ(report.devices.size(), 1u);
  EXPECT_EQ(device_label(report.devices[0]), "cuda:0");
  const MemoryBins bins = memory_bins(report.devices[0], 0, 60'000, 6);
  EXPECT_EQ(bins.bin_ns, 10'000);
  EXPECT_EQ(bins.allocated_bytes, (std::vector<int64_t>{kMebibyte, 3 * kMebibyte, 6 * kMebibyte, 6 * kMebibyte,
                                                        4 * kMebibyte, 4 * kMebibyte}));
  EXPECT_EQ(bins.reserved_bytes[0], kNoNumber);
  EXPECT_EQ(bins.reserved_bytes[1], 20 * kMebibyte);
  for (size_t bin = 0; bin < 6; ++bin) {
    int64_t sum = 0;
    for (const std::vector<int64_t>& category : bins.categories) sum += category[bin];
    EXPECT_EQ(sum, bins.allocated_bytes[bin]);
  }
  EXPECT_EQ(bins.categories[static_cast<size_t>(MemoryCategory::kBeforeRecording)],
            (std::vector<int64_t>(6, kMebibyte)));
}

TEST(MemoryAt, bins_finer_than_the_changes_carry_the_last_value) {
  const MemoryReport report = memory_report(three_blocks());
  const MemoryBins bins = memory_bins(report.devices[0], 21'000, 25'000, 4);
  EXPECT_EQ(bins.allocated_bytes, (std::vector<int64_t>(4, 6 * kMebibyte)));
}

TEST(MemoryAt, what_is_alive_is_named_by_its_op_and_the_rest_was_there_before) {
  const Model model = three_blocks();
  const MemoryReport report = memory_report(model);
  const MemoryMoment moment = memory_at(model, report.devices[0], 30'000);
  EXPECT_EQ(moment.point.allocated_bytes, 6 * kMebibyte);
  EXPECT_EQ(moment.before_recording_bytes, kMebibyte);
  ASSERT_EQ(moment.owners.size(), 2u);
  EXPECT_EQ(moment.owners[0].op, "aten::add");
  EXPECT_EQ(moment.owners[0].bytes, 3 * kMebibyte);
  EXPECT_EQ(moment.owners[1].op, "aten::mm");
  EXPECT_EQ(memory_at(model, report.devices[0], 40'000).alive.size(), 1u);
  EXPECT_EQ(memory_at(model, report.devices[0], 0).alive.size(), 0u);
}

TEST(MemoryAt, segments_cover_what_was_ever_touched_and_show_the_holes) {
  const Model model = three_blocks();
  const MemoryReport report = memory_report(model);
  EXPECT_FALSE(has_recorded_segments(model, report.devices[0]));
  const std::vector<MemorySegment> at_end = memory_segments(model, report.devices[0], 50'000);
  ASSERT_EQ(at_end.size(), 1u);
  EXPECT_EQ(at_end[0].address, 0x7f0000000000u);
  EXPECT_EQ(at_end[0].bytes, static_cast<uint64_t>(6 * kMebibyte));
  ASSERT_EQ(at_end[0].pieces.size(), 3u);
  EXPECT_EQ(at_end[0].pieces[0].block, nullptr);
  EXPECT_EQ(at_end[0].pieces[0].bytes, static_cast<uint64_t>(2 * kMebibyte));
  EXPECT_EQ(at_end[0].pieces[1].block->bytes, 3 * kMebibyte);
  EXPECT_EQ(at_end[0].pieces[2].bytes, static_cast<uint64_t>(kMebibyte));
}

TEST(MemoryAt, segments_that_were_recorded_show_what_was_allocated_before) {
  const Model model =
      TraceBuilder()
          .op("aten::mm", {.start_us = 0, .end_us = 100})
          .allocator_state({.address = 0x7f0000000000,
                            .blocks = {{kMebibyte / 2, AllocatorBlockState::kAllocated},
                                       {kMebibyte, AllocatorBlockState::kFree},
                                       {kMebibyte / 2, AllocatorBlockState::kWaiting}}})
          .memory({.at_us = 10, .bytes = kMebibyte / 2, .device_type = 1, .device = 0, .address = 0x7f0000080000})
          .build();
  const MemoryReport report = memory_report(model);
  EXPECT_EQ(report.devices[0].start_bytes, kMebibyte / 2) << "no event says it, the allocator's state does";
  EXPECT_EQ(report.devices[0].end_bytes, kMebibyte);
  const std::vector<MemorySegment> segments = memory_segments(model, report.devices[0], 50'000);
  ASSERT_EQ(segments.size(), 1u);
  ASSERT_EQ(segments[0].pieces.size(), 4u);
  EXPECT_EQ(segments[0].pieces[0].state, AllocatorBlockState::kAllocated);
  EXPECT_EQ(segments[0].pieces[0].block, nullptr);
  EXPECT_EQ(segments[0].pieces[1].block, &report.devices[0].blocks[0]);
  EXPECT_EQ(segments[0].pieces[2].state, AllocatorBlockState::kFree);
  EXPECT_EQ(segments[0].pieces[3].state, AllocatorBlockState::kWaiting);
}

}  // namespace
}  // namespace firelane::analyze
