#include "analyze/device/launches.h"

#include <gtest/gtest.h>

#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

TEST(QueueDepth, grows_with_launches_and_shrinks_when_work_starts) {
  const Model model = TraceBuilder()
                          .call("cudaLaunchKernel", {.start_us = 0, .end_us = 1, .correlation = 1})
                          .call("cudaLaunchKernel", {.start_us = 2, .end_us = 3, .correlation = 2})
                          .kernel("a", {.start_us = 5, .end_us = 9, .correlation = 1})
                          .kernel("b", {.start_us = 9, .end_us = 12, .correlation = 2})
                          .build();
  std::vector<std::pair<int64_t, int64_t>> samples;
  for (const QueueSample& sample : queue_depth(model)) samples.emplace_back(sample.time_ns, sample.depth);
  EXPECT_EQ(samples, (std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {2000, 2}, {5000, 1}, {9000, 0}}));
}

}  // namespace
}  // namespace firelane::analyze
