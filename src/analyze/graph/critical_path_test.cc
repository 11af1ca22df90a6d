// What the critical path says where a trace shows only a part: of other devices, other threads, or no host at all.
#include "analyze/graph/critical_path.h"

#include <gtest/gtest.h>

#include "analyze/testing.h"
#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

int64_t us_of(const Study& s, PathClass path_class) { return s.path.by_class[static_cast<size_t>(path_class)] / 1000; }

// Kernels alone, as rocprofv3 --kernel-trace has them: the path was said to be the host's.
TEST(CriticalPath, a_host_that_was_not_recorded_is_unknown) {
  const Study s = study(
      TraceBuilder().kernel("a", {.start_us = 0, .end_us = 100}).kernel("b", {.start_us = 500, .end_us = 600}).build());
  EXPECT_FALSE(s.host->leads);
  EXPECT_EQ(us_of(s, PathClass::kHost), 0);
  EXPECT_EQ(s.bound.limit, Limit::kUnknown);
}

// Threads that serve requests: that one of them had nothing to do was said to keep the device waiting.
TEST(CriticalPath, an_idle_thread_among_many_that_launch_is_unknown) {
  TraceBuilder builder;
  for (int64_t i = 0; i < 12; ++i) {
    const double at = 100.0 * static_cast<double>(i);
    builder.op("serve", {.start_us = at, .end_us = at + 590, .thread = 1 + i % 6});
    builder.call("runFunction", {.start_us = at + 1, .end_us = at + 3, .thread = 1 + i % 6, .correlation = i + 1});
    builder.kernel("merge", {.start_us = at + 4, .end_us = at + 98, .correlation = i + 1});
  }
  const Study s = study(builder.build());
  EXPECT_FALSE(s.host->leads);
  EXPECT_GT(us_of(s, PathClass::kUnknown), 400) << "between its two requests";
}

// A call that compiles for half a millisecond before its kernel is queued.
TEST(CriticalPath, a_slow_launch_is_the_hosts_time) {
  TraceBuilder builder;
  for (int64_t i = 0; i < 4; ++i) {
    const double at = 20.0 * static_cast<double>(i);
    builder.call("launch", {.start_us = at, .end_us = at + 3, .correlation = i + 1});
    builder.kernel("add", {.start_us = at + 5, .end_us = at + 10, .correlation = i + 1});
  }
  builder.step(1, {.start_us = 100, .end_us = 1000});
  builder.call("AscendCL@aclopCompileAndExecute", {.start_us = 110, .end_us = 610, .correlation = 9});
  builder.kernel("conv", {.start_us = 605, .end_us = 1100, .correlation = 9});
  const Study s = study(builder.build());
  EXPECT_EQ(us_of(s, PathClass::kUnknown), 0);
  EXPECT_GT(us_of(s, PathClass::kHost), 350);
  EXPECT_EQ(s.idle.by_cause[static_cast<size_t>(IdleCause::kUnknown)], 0);
}

// A copy that began while a copy of another stream ran: what passed until then is that copy's.
TEST(CriticalPath, what_passes_while_another_stream_works_is_its_work) {
  const Study s = study(TraceBuilder()
                            .step(0, {.start_us = 0, .end_us = 800})
                            .kernel("first", {.start_us = 0, .end_us = 10, .stream = 8})
                            .copy("Memcpy HtoD (Host -> Device)", {.start_us = 5, .end_us = 500, .stream = 7})
                            .copy("Memcpy HtoD (Host -> Device)", {.start_us = 300, .end_us = 900, .stream = 8})
                            .build());
  EXPECT_GT(us_of(s, PathClass::kCopy), 750);
}

// The thread that launches is given its work by the one that runs the steps.
TEST(CriticalPath, until_another_thread_is_given_work_the_time_is_the_leading_ones) {
  TraceBuilder builder;
  builder.step(1, {.start_us = 0, .end_us = 5000}).op("aten::mm", {.start_us = 10, .end_us = 4900});
  builder.call("launch", {.start_us = 4000, .end_us = 4010, .thread = 2, .correlation = 1});
  builder.kernel("mm", {.start_us = 4020, .end_us = 6000, .correlation = 1});
  const Study s = study(builder.build());
  EXPECT_EQ(us_of(s, PathClass::kUnknown), 0);
  EXPECT_GT(us_of(s, PathClass::kHost), 2500);
}

// The clock of AMD's GPUs is some microseconds ahead in traces of torch.profiler: the work that hipDeviceSynchronize
// waited for 13 ms seemed to end after it, and nothing to be waited for.
TEST(Syncs, work_that_seems_to_end_after_the_wait_for_it_was_waited_for) {
  TraceBuilder builder;
  builder.step(1, {.start_us = 0, .end_us = 1000})
      .call("hipModuleLaunchKernel", {.start_us = 10, .end_us = 15, .correlation = 1})
      .kernel("gemm", {.start_us = 30, .end_us = 508, .correlation = 1})
      .call("hipDeviceSynchronize", {.start_us = 20, .end_us = 500})
      .op("aten::item", {.start_us = 600, .end_us = 660})
      .call("hipMemcpyWithStream", {.start_us = 610, .end_us = 640, .correlation = 2})
      .copy("Memcpy DtoD (Device -> Device)", {.start_us = 641, .end_us = 642, .correlation = 2});
  Model model = builder.build();
  model.info.accelerator = Accelerator::kHip;
  const Study s = study(model);
  ASSERT_EQ(s.syncs.rows.size(), 2u);
  EXPECT_EQ(s.syncs.rows[0].waited_ns, 480'000);
  EXPECT_EQ(s.syncs.rows[1].reason, SyncReason::kItem);
}

}  // namespace
}  // namespace firelane::analyze
