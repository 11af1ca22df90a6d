// The caching allocator's state, worked out by hand, and from recordings of an H200 against what torch itself said at
// their end.
#include "analyze/memory/allocator.h"

#include <gtest/gtest.h>

#include <string>

#include "import/load.h"
#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

using Event = AllocatorEventKind;
using State = AllocatorBlockState;

constexpr int64_t kKiB = 1024;
constexpr int64_t kMiB = 1024 * kKiB;
constexpr uint64_t kSegment = 0x10000000;

TraceBuilder::MemoryArgs cuda(double at_us, uint64_t address, int64_t bytes) {
  return {.at_us = at_us, .bytes = bytes, .device_type = 1, .device = 0, .address = address};
}

// "reserved 2048 allocated 512 waiting 0 largest free 1024 of 1536" in KiB.
std::string text(const AllocatorMoment& at) {
  return "reserved " + std::to_string(at.reserved_bytes / kKiB) + " allocated " +
         std::to_string(at.allocated_bytes / kKiB) + " waiting " + std::to_string(at.waiting_bytes / kKiB) +
         " largest free " + std::to_string(at.largest_free_bytes / kKiB) + " of " +
         std::to_string(at.free_bytes() / kKiB);
}

// A segment of 2 MiB: 512 KiB allocated before the recording, 512 KiB free, 512 KiB allocated, 512 KiB free.
TraceBuilder with_segment() {
  TraceBuilder builder;
  builder.op("aten::empty", {.start_us = 0, .end_us = 100})
      .allocator_state({.at_us = 0,
                        .address = kSegment,
                        .blocks = {{512 * kKiB, State::kAllocated},
                                   {512 * kKiB, State::kFree},
                                   {512 * kKiB, State::kAllocated},
                                   {512 * kKiB, State::kFree}}});
  return builder;
}

TEST(Allocator, memory_from_before_the_recording_counts_and_free_neighbours_join) {
  const Model m = with_segment()
                      .memory(cuda(10, kSegment + 1024 * kKiB, -512 * kKiB))
                      .allocator_event(Event::kFreeCompleted, {.at_us = 11, .address = kSegment + 1024 * kKiB})
                      .build();
  const auto report = allocator_report(m);
  ASSERT_EQ(report.size(), 1u);
  const auto& curve = report[0].curve;
  ASSERT_EQ(curve.size(), 3u);
  EXPECT_EQ(text(curve[0]), "reserved 2048 allocated 1024 waiting 0 largest free 512 of 1024");
  EXPECT_EQ(text(curve[1]), "reserved 2048 allocated 512 waiting 512 largest free 512 of 1024");
  EXPECT_EQ(text(curve[2]), "reserved 2048 allocated 512 waiting 0 largest free 1536 of 1536");
  EXPECT_EQ(report[0].most_allocated, 0u);
  EXPECT_EQ(report[0].most_scattered, 0u);
  EXPECT_EQ(curve[0].scattered_bytes(), 512 * kKiB);
  EXPECT_EQ(report[0].misplaced, 0);
}

TEST(Allocator, a_small_block_is_split_off_and_a_rest_below_512_bytes_is_not) {
  const Model m = with_segment()
                      .memory(cuda(10, kSegment + 512 * kKiB, 128 * kKiB))
                      .memory(cuda(20, kSegment + 640 * kKiB, 384 * kKiB - 256))
                      .build();
  const auto curve = allocator_report(m).at(0).curve;
  EXPECT_EQ(text(curve.at(1)), "reserved 2048 allocated 1152 waiting 0 largest free 512 of 896");
  EXPECT_EQ(text(curve.at(2)), "reserved 2048 allocated 1536 waiting 0 largest free 512 of 512");
}

TEST(Allocator, a_large_block_keeps_a_rest_of_up_to_a_mib_unless_the_segment_is_expandable) {
  for (const bool is_expandable : {false, true}) {
    const Model m = TraceBuilder()
                        .op("aten::empty", {.start_us = 0, .end_us = 100})
                        .allocator_state(
                            {.address = kSegment, .blocks = {{4 * kMiB, State::kFree}}, .is_expandable = is_expandable})
                        .memory(cuda(10, kSegment, 3 * kMiB))
                        .build();
    EXPECT_EQ(text(allocator_report(m).at(0).curve.at(1)),
              is_expandable ? "reserved 4096 allocated 3072 waiting 0 largest free 1024 of 1024"
                            : "reserved 4096 allocated 4096 waiting 0 largest free 0 of 0");
  }
}

TEST(Allocator, segments_come_and_go_and_those_that_touch_are_not_one) {
  const Model m =
      with_segment()
          .allocator_event(Event::kSegmentAlloc, {.at_us = 10, .address = kSegment + 2048 * kKiB, .bytes = 2 * kMiB})
          .allocator_event(Event::kSegmentFree, {.at_us = 20, .address = kSegment + 2048 * kKiB, .bytes = 2 * kMiB})
          .build();
  const auto curve = allocator_report(m).at(0).curve;
  EXPECT_EQ(text(curve.at(1)), "reserved 4096 allocated 1024 waiting 0 largest free 2048 of 3072");
  EXPECT_EQ(curve.at(1).segments, 2);
  EXPECT_EQ(text(curve.at(2)), text(curve.at(0)));
}

TEST(Allocator, an_expandable_segment_grows_in_one_piece_and_shrinks_from_any_end) {
  const Model m =
      TraceBuilder()
          .op("aten::empty", {.start_us = 0, .end_us = 100})
          .allocator_state({})  // nothing was held
          .allocator_event(Event::kSegmentMap, {.at_us = 10, .address = kSegment, .bytes = 2 * kMiB})
          .allocator_event(Event::kSegmentMap, {.at_us = 20, .address = kSegment + 2 * kMiB, .bytes = 2 * kMiB})
          .memory(cuda(30, kSegment, 3 * kMiB))
          .memory(cuda(40, kSegment, -3 * kMiB))
          .allocator_event(Event::kFreeCompleted, {.at_us = 41, .address = kSegment})
          .allocator_event(Event::kSegmentUnmap, {.at_us = 50, .address = kSegment, .bytes = 2 * kMiB})
          .build();
  const DeviceAllocator device = allocator_report(m).at(0);
  EXPECT_EQ(text(device.curve.at(0)), "reserved 0 allocated 0 waiting 0 largest free 0 of 0");
  EXPECT_EQ(text(device.curve.at(2)), "reserved 4096 allocated 0 waiting 0 largest free 4096 of 4096");
  EXPECT_EQ(device.curve.at(2).segments, 1);
  EXPECT_EQ(text(device.curve.at(3)), "reserved 4096 allocated 3072 waiting 0 largest free 1024 of 1024");
  EXPECT_EQ(text(device.curve.back()), "reserved 2048 allocated 0 waiting 0 largest free 2048 of 2048");
  EXPECT_EQ(device.misplaced, 0);
}

TEST(Allocator, streams_and_pools_are_told_apart) {
  const Model m =
      with_segment()
          .allocator_event(Event::kSegmentAlloc,
                           {.at_us = 10, .address = 0x40000000, .bytes = 20 * kMiB, .stream = 77, .pool = "graph 3"})
          .memory(cuda(20, 0x40000000, 5 * kMiB))
          .build();
  const DeviceAllocator device = allocator_report(m).at(0);
  ASSERT_EQ(device.shares.size(), 2u);
  EXPECT_EQ(device.shares[0].stream, 77);
  EXPECT_EQ(m.text(device.shares[0].pool), "graph 3");
  EXPECT_EQ(text(device.shares[0].at), "reserved 20480 allocated 5120 waiting 0 largest free 15360 of 15360");
  EXPECT_EQ(text(device.shares[1].at), "reserved 2048 allocated 1024 waiting 0 largest free 512 of 1024");
}

TEST(Allocator, a_state_after_a_pause_replaces_what_was_known) {
  const Model m = with_segment()
                      .memory(cuda(10, kSegment + 512 * kKiB, 512 * kKiB))
                      .allocator_state({.at_us = 50, .address = kSegment, .blocks = {{2 * kMiB, State::kFree}}})
                      .memory(cuda(60, kSegment, 1 * kMiB))
                      .build();
  const DeviceAllocator device = allocator_report(m).at(0);
  EXPECT_EQ(text(device.curve.back()), "reserved 2048 allocated 1024 waiting 0 largest free 1024 of 1024");
  EXPECT_EQ(device.misplaced, 0);
}

TEST(Allocator, events_that_do_not_fit_are_counted_and_change_nothing) {
  constexpr int64_t kMany = int64_t{1} << 60;  // more would be bounded on import
  const Model m =
      with_segment()
          .memory(cuda(10, kSegment, 512 * kKiB))  // taken already
          .memory(cuda(20, 0x7000, 512))           // nowhere
          .memory(cuda(30, kSegment + 512, -512))  // no block begins here
          .allocator_event(Event::kSegmentFree, {.at_us = 40, .address = kSegment, .bytes = 2 * kMiB})
          .allocator_event(Event::kSegmentAlloc, {.at_us = 50, .address = kSegment + kMiB, .bytes = 2 * kMiB})
          .allocator_event(Event::kSegmentAlloc, {.at_us = 60, .address = UINT64_MAX - 5, .bytes = kMany})
          .build();
  const DeviceAllocator device = allocator_report(m).at(0);
  EXPECT_EQ(device.misplaced, 6);
  EXPECT_EQ(text(device.curve.back()), text(device.curve.front()));
}

TEST(Allocator, a_state_at_a_moment_has_every_piece) {
  const Model m = with_segment()
                      .memory(cuda(10, kSegment + 512 * kKiB, 512 * kKiB))
                      .memory(cuda(20, kSegment, -512 * kKiB))
                      .build();
  const auto pieces = [&](int64_t at_ns) {
    std::string out;
    for (const AllocatorSegment& segment : allocator_at(m, 1, 0, at_ns)) {
      for (const AllocatorPiece& piece : segment.pieces) {
        out +=
            std::string(name_of(piece.state)) + " " + std::to_string(piece.bytes / static_cast<uint64_t>(kKiB)) + "; ";
      }
    }
    return out;
  };
  EXPECT_EQ(pieces(-1000), "allocated 512; free 512; allocated 512; free 512; ");
  EXPECT_EQ(pieces(15'000), "allocated 512; allocated 512; allocated 512; free 512; ");
  EXPECT_EQ(pieces(25'000), "waiting 512; allocated 512; allocated 512; free 512; ");
  EXPECT_TRUE(allocator_at(m, 1, 3, 0).empty());
}

// Recorded on an H200: what torch's own counters said at the end is in the trace.
TEST(Allocator, replayed_recordings_end_where_torch_says_they_did) {
  std::vector<std::string> names;
  for (const char* name : {"h200_gpt_all", "h200_train", "h200_streams"}) names.push_back(std::string(name) + ".lane");
  for (const char* name :
       {"compiled", "copies", "decode", "graph", "out_of_memory", "streams", "threads", "train", "workers"})
    names.push_back("../gpu/pairs/" + std::string(name) + ".lane");
  for (const std::string& name : names) {
    const Result<Model> loaded = importer::load_trace(std::string(FIRELANE_TEST_DATA) + "/" + name);
    ASSERT_TRUE(loaded.ok()) << name;
    const Model& m = loaded.value();
    const auto report = allocator_report(m);
    ASSERT_EQ(report.size(), 1u) << name;
    EXPECT_EQ(report[0].misplaced, 0) << name;
    const AllocatorMoment& end = report[0].curve.back();
    const std::string said = m.find_metadata("cuda_memory_at_stop")->json;
    EXPECT_NE(said.find("\"allocated\": " + std::to_string(end.allocated_bytes) + ","), std::string::npos) << said;
    EXPECT_NE(said.find("\"reserved\": " + std::to_string(end.reserved_bytes) + ","), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace firelane::analyze
