// What rules share: device work by its launches.
#include "advise/host_evidence.h"

#include <gtest/gtest.h>

#include <vector>

#include "advise/testing.h"

namespace firelane::advise {
namespace {

// Each rule that looked at one operator after another went through all device work for each: 12,000 steps took minutes.
TEST(LaunchedWork, is_what_going_through_all_work_finds) {
  TraceBuilder builder;
  for (int i = 0; i < 20; ++i) {
    const double at = 100.0 * i;
    builder.op("aten::mm", {.start_us = at, .end_us = at + 40})
        .call("cudaLaunchKernel", {.start_us = at + 5, .end_us = at + 9, .correlation = 2 * i + 1})
        .call("cudaLaunchKernel", {.start_us = at + 50, .end_us = at + 54, .correlation = 2 * i + 2})
        .kernel("a", {.start_us = 3000.0 - at, .end_us = 3010.0 - at, .stream = i, .correlation = 2 * i + 1})
        .kernel("b", {.start_us = at + 60, .end_us = at + 70, .stream = i, .correlation = 2 * i + 2});
  }
  const Model model = builder.build();
  const LaunchedWork launched = launched_work(model);
  size_t found = 0;
  for (Row row = 0; row < model.host_slices.size(); ++row) {
    if (model.host_slices.kind[row] != HostKind::kOp) continue;
    EXPECT_EQ(launched.during(row), launched_during(model, {row}));
    found += launched.during(row).size();
  }
  EXPECT_EQ(found, 20u);
}

}  // namespace
}  // namespace firelane::advise
