#include "import/load.h"

#include <gtest/gtest.h>

namespace firelane {
namespace {

TEST(Load, a_real_trace_gives_every_event) {
  const Result<Model> loaded = load_trace(FIRELANE_TEST_DATA "/gpt_full.json.gz");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const Model& m = loaded.value();
  // Counted by another JSON reader: 12,064 ops, 18 annotations, 11,335 Python functions, 2,127 calls, 1 span.
  EXPECT_EQ(m.info.event_count, 37650u);
  EXPECT_EQ(m.host_slices.size(), 25545u);
  EXPECT_EQ(m.device_slices.size(), 1835u);
  EXPECT_EQ(m.memory_events.size(), 4392u);
  EXPECT_EQ(m.steps.number, (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(m.losses[Stat::kFlowEndWithoutStart], 301u);
  EXPECT_EQ(m.losses[Stat::kFlowStartWithoutEnd], 3u);
}

}  // namespace
}  // namespace firelane
