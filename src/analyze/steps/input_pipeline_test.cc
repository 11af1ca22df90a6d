// Input by hand: two steps, one waits; a pinned copy of which half overlaps with a kernel.
#include "analyze/steps/input_pipeline.h"

#include <gtest/gtest.h>

#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

TEST(InputPipeline, waits_belong_to_the_step_in_which_they_start) {
  const Model model =
      TraceBuilder()
          .step(1, {.start_us = 0, .end_us = 100})
          .step(2, {.start_us = 100, .end_us = 200})
          .annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", {.start_us = 5, .end_us = 65})
          .annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", {.start_us = 105, .end_us = 115})
          .build();
  const InputPipeline input = input_pipeline(model);
  EXPECT_EQ(input.loader, LoaderKind::kSingleProcess);
  ASSERT_EQ(input.steps.size(), 2u);
  EXPECT_EQ(input.steps[0].wait_ns, 60'000);
  EXPECT_EQ(input.steps[1].wait_ns, 10'000);
  EXPECT_EQ(input.wait_ns, 70'000);
  EXPECT_EQ(input.load_ns, 70'000);
  EXPECT_EQ(input.median_wait_ns, 35'000);
}

TEST(InputPipeline, transfers_know_pinned_memory_and_overlap) {
  const Model model =
      TraceBuilder()
          .copy("Memcpy HtoD (Pinned -> Device)", {.start_us = 0, .end_us = 10, .stream = 9, .bytes = 100'000})
          .copy("Memcpy HtoD (Pageable -> Device)", {.start_us = 20, .end_us = 24, .stream = 9, .bytes = 4'000})
          .copy("Memcpy DtoH (Device -> Pinned)", {.start_us = 30, .end_us = 34, .stream = 9, .bytes = 4'000})
          .kernel("gemm", {.start_us = 5, .end_us = 15, .stream = 7})
          .build();
  const InputPipeline input = input_pipeline(model);
  ASSERT_EQ(input.transfers.size(), 2u);
  EXPECT_TRUE(input.transfers[0].pinned);
  EXPECT_EQ(input.transfers[0].overlapped_ns, 5'000);
  EXPECT_DOUBLE_EQ(input.transfers[0].bandwidth_gb_s(), 10);
  EXPECT_FALSE(input.transfers[1].pinned);
  EXPECT_EQ(input.transfers[1].overlapped_ns, 0);
  EXPECT_EQ(input.outside.transfer_bytes, 104'000);
}

}  // namespace
}  // namespace firelane::analyze
