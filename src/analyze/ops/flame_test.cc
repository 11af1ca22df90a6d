#include "analyze/ops/flame.h"

#include <gtest/gtest.h>

#include "analyze/testing.h"
#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

// main [0,100): a [0,40) with b [10,20); a [50,80) with b [50,70); c [80,90)
Model two_calls() {
  return TraceBuilder()
      .python("main", {.start_us = 0, .end_us = 100})
      .python("a", {.start_us = 0, .end_us = 40})
      .python("b", {.start_us = 10, .end_us = 20})
      .op("aten::mm", {.start_us = 12, .end_us = 18})
      .python("a", {.start_us = 50, .end_us = 80})
      .python("b", {.start_us = 50, .end_us = 70})
      .python("c", {.start_us = 80, .end_us = 90})
      .build();
}

std::string text_of(const Model& model, const FlameGraph& graph) {
  std::string out;
  for (const FlameNode& node : graph.nodes) {
    const std::string name =
        node.merged > 0 ? "(" + std::to_string(node.merged) + " more)" : std::string(model.text(node.name));
    out += std::string(node.depth, ' ') + name + " " + std::to_string(node.start_ns / 1000) + "+" +
           std::to_string(node.width_ns / 1000) + " self " + std::to_string(node.self_ns / 1000) + " x" +
           std::to_string(node.count) + "\n";
  }
  return out;
}

constexpr Interval kAll{0, 100'000};

TEST(Flame, in_order_of_time_every_call_stands_where_it_happened) {
  const Model model = two_calls();
  const FlameGraph graph = flame_graph(model, {.order = FlameOrder::kTime, .range = kAll});
  EXPECT_EQ(graph.total_ns, 100'000);
  EXPECT_EQ(text_of(model, graph),
            "main 0+100 self 20 x1\n"
            " a 0+40 self 30 x1\n"
            "  b 10+10 self 10 x1\n"
            " a 50+30 self 10 x1\n"
            "  b 50+20 self 20 x1\n"
            " c 80+10 self 10 x1\n");
}

TEST(Flame, left_heavy_merges_equal_stacks_and_puts_the_widest_first) {
  const Model model = two_calls();
  const FlameGraph graph = flame_graph(model, {.order = FlameOrder::kLeftHeavy, .range = kAll});
  EXPECT_EQ(text_of(model, graph),
            "main 0+100 self 20 x1\n"
            " a 0+70 self 40 x2\n"
            " c 70+10 self 10 x1\n"
            "  b 0+30 self 30 x2\n");
}

TEST(Flame, inverted_begins_with_the_leaves_and_adds_up_to_all_self_time) {
  const Model model = two_calls();
  const FlameGraph graph = flame_graph(model, {.order = FlameOrder::kInverted, .range = kAll});
  EXPECT_EQ(graph.total_ns, 100'000);
  int64_t leaves = 0;
  for (const FlameNode& node : graph.nodes) leaves += node.depth == 0 ? node.width_ns : 0;
  EXPECT_EQ(leaves, graph.total_ns);
  EXPECT_EQ(text_of(model, graph).substr(0, 22), "a 0+40 self 0 x2\nb 40+");
}

TEST(Flame, by_op_skips_python_and_by_stack_skips_ops) {
  const Model model = two_calls();
  const FlameGraph graph = flame_graph(model, {.by = FlameBy::kOp, .range = kAll});
  EXPECT_EQ(text_of(model, graph), "aten::mm 0+6 self 6 x1\n");
}

TEST(Flame, narrow_calls_become_one_and_their_time_is_kept) {
  const Model model = two_calls();
  const FlameGraph heavy = flame_graph(model, {.range = kAll, .bins = 5});
  EXPECT_EQ(text_of(model, heavy),
            "main 0+100 self 20 x1\n"
            " a 0+70 self 40 x2\n"
            " (1 more) 70+10 self 10 x1\n"
            "  b 0+30 self 30 x2\n");
  const FlameGraph timed = flame_graph(model, {.order = FlameOrder::kTime, .range = kAll, .bins = 3});
  EXPECT_EQ(text_of(model, timed),
            "main 0+100 self 20 x1\n"
            " a 0+40 self 30 x1\n"
            "  (1 more) 10+10 self 10 x1\n"
            " (2 more) 50+40 self 40 x2\n");
}

TEST(Flame, a_range_clips_what_reaches_over_its_edges) {
  const Model model = two_calls();
  const FlameGraph graph = flame_graph(model, {.order = FlameOrder::kTime, .range = {15'000, 55'000}});
  EXPECT_EQ(text_of(model, graph),
            "main 15+40 self 10 x1\n"
            " a 15+25 self 20 x1\n"
            "  b 15+5 self 5 x1\n"
            " a 50+5 self 0 x1\n"
            "  b 50+5 self 5 x1\n");
}

TEST(Flame, a_trace_without_python_says_that_it_has_no_frames) {
  const Model model = TraceBuilder().op("aten::mm", {.start_us = 0, .end_us = 10}).build();
  EXPECT_FALSE(flame_graph(model, {.range = kAll}).has_frames);
  EXPECT_TRUE(flame_graph(model, {.by = FlameBy::kOp, .range = kAll}).has_frames);
}

TEST(Flame, widths_of_random_traces_add_up) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    const Model model = random_trace(seed);
    for (const FlameOrder order : {FlameOrder::kLeftHeavy, FlameOrder::kInverted}) {
      const FlameGraph graph =
          flame_graph(model, {.order = order, .by = FlameBy::kOp, .range = {0, 1'000'000'000}, .bins = 7});
      int64_t roots = 0;
      int64_t self = 0;
      for (const FlameNode& node : graph.nodes) {
        roots += node.depth == 0 ? node.width_ns : 0;
        self += node.self_ns;
      }
      EXPECT_EQ(roots, graph.total_ns);
      EXPECT_EQ(self, graph.total_ns);
    }
  }
}

}  // namespace
}  // namespace firelane::analyze
