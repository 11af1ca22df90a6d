// What lines cost, by hand.
#include "analyze/verdict/lines.h"

#include <gtest/gtest.h>

#include "analyze/testing.h"
#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

// Two steps of 100 us: forward, backward, update, with Python before each.
TraceBuilder training() {
  TraceBuilder builder;
  for (int step = 0; step < 2; ++step) {
    const double at = 100 * step;
    const int64_t sequence = 7 + step;
    builder.step(step, {.start_us = at, .end_us = at + 100})
        .op("aten::linear",
            {.start_us = at + 10, .end_us = at + 30, .sequence_number = sequence, .stack = "model.py(41): forward"})
        .op("autograd::engine::evaluate_function: AddmmBackward0",
            {.start_us = at + 35, .end_us = at + 75, .stack = "train.py(9): step"})
        .op("AddmmBackward0",
            {.start_us = at + 36, .end_us = at + 74, .sequence_number = sequence, .forward_thread = 1})
        .op("aten::add_", {.start_us = at + 80, .end_us = at + 85, .stack = "train.py(10): step"})
        .flow("fwdbwd", step + 1, {.start_us = at + 10}, {.start_us = at + 36});
  }
  return builder;
}

std::string text(const LineTable& table) {
  std::string out;
  for (const LineRow& row : table.rows) {
    out += row.place.line + ": " + std::to_string(row.calls) + " calls, " + std::to_string(row.host_ns / 1000) +
           " in ops, " + std::to_string(row.before_ns / 1000) + " before, " +
           std::to_string(row.backward_host_ns / 1000) + " backward";
    if (row.all_device_ns() > 0) {
      out +=
          "; device " + std::to_string(row.device_ns / 1000) + " and " + std::to_string(row.backward_device_ns / 1000);
    }
    for (const LineOp& op : row.most_in) out += "; " + std::string(op.name) + " " + std::to_string(op.ns / 1000);
    out += "\n";
  }
  return out + "other " + std::to_string(table.other_host_ns / 1000) + " of " + std::to_string(table.window_ns / 1000);
}

TEST(Lines, each_moment_of_a_step_belongs_to_one_line) {
  const Model model = training().build();
  const StudiedTrace trace(borrowed(model));
  // From the 15 us after the last op of a step, the next step's first line has those up to its op.
  EXPECT_EQ(text(trace.get<line_table>()),
            "model.py(41): forward: 2 calls, 40 in ops, 35 before, 90 backward; AddmmBackward0 80; aten::linear 40\n"
            "train.py(10): step: 2 calls, 10 in ops, 10 before, 0 backward; aten::add_ 10\n"
            "other 15 of 200");
}

TEST(Lines, device_work_belongs_to_the_line_that_launched_it_or_its_forward_op) {
  TraceBuilder builder = training();
  for (int step = 0; step < 2; ++step) {
    const double at = 100 * step;
    builder.call("cudaLaunchKernel", {.start_us = at + 12, .end_us = at + 14, .correlation = 1 + 10 * step})
        .kernel("gemm", {.start_us = at + 20, .end_us = at + 60, .correlation = 1 + 10 * step})
        .call("cudaLaunchKernel", {.start_us = at + 40, .end_us = at + 41, .correlation = 2 + 10 * step})
        .kernel("gemm_backward", {.start_us = at + 60, .end_us = at + 90, .correlation = 2 + 10 * step})
        .call("cudaLaunchKernel", {.start_us = at + 82, .end_us = at + 83, .correlation = 3 + 10 * step})
        .kernel("add", {.start_us = at + 90, .end_us = at + 92, .correlation = 3 + 10 * step});
  }
  const Model model = builder.build();
  const StudiedTrace trace(borrowed(model));
  EXPECT_EQ(text(trace.get<line_table>()),
            "model.py(41): forward: 2 calls, 40 in ops, 35 before, 90 backward; device 80 and 60; aten::linear 80; "
            "AddmmBackward0 60\n"
            "train.py(10): step: 2 calls, 10 in ops, 10 before, 0 backward; device 4 and 0; aten::add_ 4\n"
            "other 15 of 200");
  EXPECT_EQ(trace.get<line_table>().work_ns, 144'000);
  EXPECT_EQ(trace.get<line_table>().other_device_ns, 0);
}

TEST(Lines, a_trace_that_does_not_tell_them_says_so) {
  const Model model = TraceBuilder().op("aten::mm", {.start_us = 0, .end_us = 5}).build();
  const StudiedTrace trace(borrowed(model));
  EXPECT_FALSE(trace.get<line_table>().is_known);
  EXPECT_TRUE(trace.get<line_table>().rows.empty());
}

}  // namespace
}  // namespace firelane::analyze
