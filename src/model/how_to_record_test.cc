#include "model/how_to_record.h"

#include <gtest/gtest.h>

namespace firelane {
namespace {

TEST(HowToRecord, is_in_the_words_of_the_tool_that_wrote_the_trace) {
  EXPECT_EQ(how_to_record({.origin = Origin::kKineto}, RecordOption::kMemory), "record with profile_memory=True");
  EXPECT_EQ(
      how_to_record({.origin = Origin::kFirelane, .environment = {.front = Front::kCommand}}, RecordOption::kShapes),
      "record with --shapes");
  EXPECT_EQ(how_to_record({.origin = Origin::kNsight}, RecordOption::kShapes),
            "record with nsys profile --pytorch=autograd-shapes-nvtx");
  EXPECT_EQ(how_to_record({.origin = Origin::kAscend}, RecordOption::kStacks),
            "record with torch_npu.profiler.profile(with_stack=True)");
}

TEST(HowToRecord, of_what_a_tool_cannot_record_nothing_is_asked_of_it) {
  for (const Origin origin : {Origin::kXPlane, Origin::kNsight, Origin::kRocprof, Origin::kAscend, Origin::kPerfetto,
                              Origin::kStacks, Origin::kMemorySnapshot, Origin::kFlightRecorder}) {
    for (const RecordOption option :
         {RecordOption::kShapes, RecordOption::kMemory, RecordOption::kStacks, RecordOption::kModules,
          RecordOption::kLines, RecordOption::kFlops, RecordOption::kCudaSync}) {
      const std::string words = how_to_record({.origin = origin}, option);
      EXPECT_FALSE(words.starts_with("record with record_shapes") || words.starts_with("record with profile_memory") ||
                   words.starts_with("record with with_"))
          << name_of(origin) << ": " << words;
    }
  }
}

TEST(HowToRecord, synchronization_is_recorded_on_nvidias_gpus_alone) {
  EXPECT_EQ(how_to_record({.origin = Origin::kKineto, .accelerator = Accelerator::kHip}, RecordOption::kCudaSync),
            "torch.profiler does not record it on this device");
}

TEST(HowToRecord, a_loss_that_is_normal_for_a_tool_is_said_to_be) {
  EXPECT_NE(remedy_for({.origin = Origin::kXPlane}, Stat::kDeviceSliceWithoutLaunch).find("TPU"), std::string::npos);
  EXPECT_EQ(remedy_for({.origin = Origin::kKineto}, Stat::kTruncated), info_of(Stat::kTruncated).remedy);
}

}  // namespace
}  // namespace firelane
