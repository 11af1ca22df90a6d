#include "model/unknown_lanes.h"

#include <gtest/gtest.h>

#include "model/raw.h"

namespace firelane {
namespace {

// A process with a label, and one slice on it.
Model one_slice(std::string_view labels, HostKind kind) {
  RawTrace raw;
  RawPool& pool = raw.pools.emplace_back();
  RawPart& part = raw.parts.emplace_back();
  const LaneId lane = pool.lane({.number = 7}, {.number = 1});
  part.lane_names.push_back({.lane = lane, .what = LaneNameKind::kProcessLabels, .text = pool.strings.intern(labels)});
  part.host_slices.push_back(
      {.start_ns = 0, .duration_ns = 10, .lane = lane, .name = pool.strings.intern("busy"), .kind = kind});
  return assemble(std::move(raw));
}

TEST(UnknownLanes, a_slice_of_no_known_kind_on_a_device_is_counted) {
  const Model model = one_slice("NPU 3", HostKind::kOther);
  EXPECT_EQ(unknown_device_lanes(model).size(), 1u);
  EXPECT_EQ(model.losses[Stat::kDeviceNotUnderstood], 1u);
}

TEST(UnknownLanes, the_program_and_what_is_known_are_none) {
  EXPECT_TRUE(unknown_device_lanes(one_slice("CPU", HostKind::kOther)).empty());
  EXPECT_TRUE(unknown_device_lanes(one_slice("GPU 3", HostKind::kPython)).empty());  // process 3 of a container
  EXPECT_TRUE(unknown_device_lanes(one_slice("NPU", HostKind::kSpan)).empty());      // derived from others
}

TEST(UnknownLanes, words_are_whole) {
  EXPECT_TRUE(names_device("GPU 0"));
  EXPECT_TRUE(names_device("/device:TPU:0"));
  EXPECT_FALSE(names_device("INPUT"));
  EXPECT_FALSE(names_device("service"));
}

}  // namespace
}  // namespace firelane
