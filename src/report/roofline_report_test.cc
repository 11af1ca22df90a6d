#include <gtest/gtest.h>

#include "model/trace_builder.h"
#include "report/registry.h"

namespace firelane::report {
namespace {

constexpr std::string_view kCached = "more than 100% of the memory roof: the data came from the cache, not from memory";
constexpr std::string_view kMovedLess =
    "more than 100% of the memory roof, with memory as the measured limit: it moved less data than its shapes suggest";

// An addition on an H200 whose 805 MB take 168 us at 4800 GB/s, in 150 us; DRAM's use sampled every 10 us.
std::string notes_of_fast_addition(double dram_percent) {
  TraceBuilder trace;
  trace.device({.id = 0, .name = "NVIDIA H200"})
      .op("aten::add", {.start_us = 0,
                        .end_us = 5,
                        .external_id = 1,
                        .dims = "[[16384, 8192], [16384, 8192], []]",
                        .types = R"(["c10::BFloat16", "c10::BFloat16", "Scalar"])"})
      .call("cudaLaunchKernel", {.start_us = 1, .end_us = 2, .correlation = 1, .external_id = 1})
      .kernel("void at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add<c10::BFloat16>>",
              {.start_us = 10, .end_us = 160, .correlation = 1, .external_id = 1});
  for (int i = 0; dram_percent >= 0 && i < 20; ++i) {
    trace.gpu_counter(0, "dram__throughput.avg.pct_of_peak_sustained_elapsed", 10.0 * i, dram_percent);
  }
  const ReportSpec& spec = *find_report("roofline");
  const Report report = spec.make(StudiedTrace(trace.build()), spec.arguments()).value();
  std::string out;
  for (const Note& note : report.notes) out += note.text + "\n";
  return out;
}

TEST(RooflineReport, what_is_above_the_memory_roof_came_from_the_cache) {
  EXPECT_EQ(notes_of_fast_addition(-1), std::string(kCached) + "\n");
  EXPECT_EQ(notes_of_fast_addition(12), std::string(kCached) + "\n");
}

TEST(RooflineReport, an_op_that_is_measured_to_be_bound_by_memory_is_not_said_to_read_the_cache) {
  EXPECT_EQ(notes_of_fast_addition(90), std::string(kMovedLess) + "\n");
}

TEST(RooflineReport, flops_of_a_recording_without_shapes_are_empty_and_a_note_says_what_to_record) {
  TraceBuilder trace;
  trace.device({.id = 0, .name = "NVIDIA H200"})
      .step(1, {.start_us = 0, .end_us = 100})
      .op("aten::mm", {.start_us = 0, .end_us = 5, .external_id = 1})
      .call("cudaLaunchKernel", {.start_us = 1, .end_us = 2, .correlation = 1, .external_id = 1})
      .kernel("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT",
              {.start_us = 10, .end_us = 60, .correlation = 1, .external_id = 1});
  const ReportSpec& spec = *find_report("roofline");
  const Report report = spec.make(StudiedTrace(trace.build()), spec.arguments()).value();
  for (const Table& table : report.tables) {
    ASSERT_EQ(table.rows.size(), 1u) << table.name;
    for (size_t i = 0; i < table.columns.size(); ++i) {
      const std::string_view name = table.columns[i].name;
      if (name != "flops" && name != "tflop" && name != "mfu_percent" && name != "aligned") continue;
      EXPECT_TRUE(std::holds_alternative<std::monostate>(table.rows[0][i])) << name;
    }
  }
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_TRUE(report.notes[0].text.starts_with("FLOPs, and bytes of kernels, are unknown: no input shapes"))
      << report.notes[0].text;
}

}  // namespace
}  // namespace firelane::report
