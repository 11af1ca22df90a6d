#include "compare/flame/flame.h"

#include <gtest/gtest.h>

#include <memory>

#include "model/trace_builder.h"

namespace firelane::compare {
namespace {

struct Frame {
  std::string name;
  double us = 10;
};

// Steps of 100 us: a Python function train(), below it the given functions one after another.
std::unique_ptr<StudiedTrace> trace_of(const std::vector<Frame>& frames, int steps = 4) {
  TraceBuilder builder;
  for (int step = 0; step < steps; ++step) {
    double now = 100.0 * step;
    builder.step(step + 1, {.start_us = now, .end_us = now + 100});
    builder.python("train.py(1): train", {.start_us = now + 1, .end_us = now + 99});
    now += 2;
    for (const Frame& frame : frames) {
      builder.python(frame.name, {.start_us = now, .end_us = now + frame.us});
      now += frame.us;
    }
  }
  return std::make_unique<StudiedTrace>(builder.build());
}

FlameDifference difference(const std::vector<const StudiedTrace*>& before,
                           const std::vector<const StudiedTrace*>& after,
                           const FlameOptions& options = {.by = FlameBy::kStack}) {
  return flame_difference(before, after, options);
}

std::string text_of(const FlameDifference& flame) {
  std::string out;
  for (const FlameChange& node : flame.nodes) {
    out += std::string(node.depth, ' ') + (node.merged > 0 ? "+" + std::to_string(node.merged) : node.name) + " " +
           std::to_string(node.before_ns) + " " + std::to_string(node.after_ns) + "\n";
  }
  return out;
}

TEST(FlameDifference, a_frame_that_is_new_or_gone_stays_visible) {
  const auto before = trace_of({{"a.py(1): same"}, {"a.py(2): gone", 20}});
  const auto after = trace_of({{"a.py(1): same"}, {"a.py(3): new", 30}});
  EXPECT_EQ(text_of(difference({before.get()}, {after.get()})),
            "train.py(1): train 98000 98000\n"
            " a.py(3): new 0 30000\n"
            " a.py(1): same 10000 10000\n"
            " a.py(2): gone 20000 0\n");
}

TEST(FlameDifference, times_are_per_step_and_the_mean_of_the_runs) {
  const auto before = trace_of({{"a.py(1): f", 10}}, 4);
  const auto longer = trace_of({{"a.py(1): f", 10}}, 8);
  const auto slower = trace_of({{"a.py(1): f", 30}}, 4);
  EXPECT_EQ(text_of(difference({before.get()}, {longer.get()})),
            "train.py(1): train 98000 98000\n a.py(1): f 10000 10000\n");
  EXPECT_EQ(text_of(difference({before.get()}, {longer.get(), slower.get()})),
            "train.py(1): train 98000 98000\n a.py(1): f 10000 20000\n");
}

TEST(FlameDifference, another_batch_size_is_taken_out) {
  const auto before = trace_of({{"a.py(1): f", 10}});
  const auto after = trace_of({{"a.py(1): f", 30}});
  const FlameDifference flame = difference({before.get()}, {after.get()}, {.by = FlameBy::kStack, .batch_ratio = 2});
  EXPECT_EQ(flame.before_ns, 98000);
  EXPECT_EQ(flame.after_ns, 49000);
  EXPECT_EQ(flame.nodes[1].after_ns, 15000);
}

TEST(FlameDifference, narrow_frames_are_merged_and_nothing_is_lost) {
  const auto before = trace_of({{"a.py(1): wide", 80}, {"a.py(2): x", 1}, {"a.py(3): y", 1}});
  const auto after = trace_of({{"a.py(1): wide", 80}, {"a.py(4): z", 1}});
  EXPECT_EQ(text_of(difference({before.get()}, {after.get()}, {.by = FlameBy::kStack, .bins = 20})),
            "train.py(1): train 98000 98000\n a.py(1): wide 80000 80000\n +3 2000 1000\n");
}

TEST(FlameDifference, without_python_frames_on_both_sides_ops_are_shown) {
  const auto with = trace_of({{"a.py(1): f"}});
  TraceBuilder builder;
  for (int step = 0; step < 4; ++step) {
    builder.step(step + 1, {.start_us = 100.0 * step, .end_us = 100.0 * step + 100});
    builder.op("aten::mm", {.start_us = 100.0 * step + 1, .end_us = 100.0 * step + 21});
  }
  const StudiedTrace without(builder.build());
  const FlameDifference flame = difference({with.get()}, {&without});
  EXPECT_NE(flame.note, "");
  EXPECT_NE(text_of(flame).find("aten::mm 0 20000"), std::string::npos) << text_of(flame);
}

TEST(FlameDifference, modules_that_one_side_did_not_record_do_not_make_its_work_new) {
  const auto program = [](bool with_module) {
    TraceBuilder builder;
    for (int64_t step = 1; step <= 4; ++step) {
      const double now = 100.0 * static_cast<double>(step);
      builder.step(step, {.start_us = now, .end_us = now + 100});
      if (with_module) builder.python("nn.Module: Linear_0", {.start_us = now + 1, .end_us = now + 30});
      builder.op("aten::mm", {.start_us = now + 2, .end_us = now + 20, .external_id = step})
          .call("cudaLaunchKernel", {.start_us = now + 5, .end_us = now + 9, .correlation = step, .external_id = step})
          .kernel("gemm", {.start_us = now + 30, .end_us = now + 70, .correlation = step, .external_id = step});
    }
    return std::make_unique<StudiedTrace>(builder.build());
  };
  const auto with = program(true);
  const auto without = program(false);
  EXPECT_EQ(text_of(difference({with.get()}, {with.get()}, {})),
            "Linear_0 40000 40000\n aten::mm 40000 40000\n  gemm 40000 40000\n");
  EXPECT_EQ(text_of(difference({without.get()}, {with.get()}, {})), "aten::mm 40000 40000\n gemm 40000 40000\n");
}

TEST(FlameDifference, two_empty_traces_have_no_frames) {
  const StudiedTrace nothing(TraceBuilder().build());
  const FlameDifference flame = difference({&nothing}, {&nothing}, {.by = FlameBy::kOp});
  EXPECT_TRUE(flame.nodes.empty());
  EXPECT_EQ(flame.before_ns, 0);
}

}  // namespace
}  // namespace firelane::compare
