// Nodes are what does something, and values what memory holds from one write to the next.
#include "analyze/verdict/tensor_graph.h"

#include <gtest/gtest.h>

#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

constexpr std::string_view kTwo = "[[4, 8], [8, 2]]";
constexpr std::string_view kTwoTypes = R"(["float", "float"])";

std::string_view name_of(const StudiedTrace& trace, const TensorNode& node) {
  return trace.model().text(trace.model().host_slices.name[node.op]);
}

TEST(TensorGraph, an_operator_that_only_calls_others_is_no_node_and_views_are_none) {
  TraceBuilder builder;
  builder.step(1, {.start_us = 0, .end_us = 100});
  builder.op("aten::linear", {.start_us = 10,
                              .end_us = 60,
                              .dims = kTwo,
                              .types = kTwoTypes,
                              .tensors = R"([[1, 4096, 0, -1, "float"], [2, 8192, 0, -1, "float"]])"});
  builder.op("aten::t", {.start_us = 12,
                         .end_us = 14,
                         .dims = "[[2, 8]]",
                         .types = R"(["float"])",
                         .tensors = R"([[2, 8192, 0, -1, "float"]])"});
  builder.op("aten::mm", {.start_us = 20,
                          .end_us = 50,
                          .dims = kTwo,
                          .types = kTwoTypes,
                          .tensors = R"([[1, 4096, 0, -1, "float"], [3, 8192, 0, -1, "float"]])"});
  builder.memory({.at_us = 30, .bytes = 32, .address = 16384});
  const StudiedTrace trace(builder.build());
  const auto& graph = trace.get<tensor_graph>();
  ASSERT_EQ(graph.nodes.size(), 1U);
  EXPECT_EQ(name_of(trace, graph.nodes[0]), "aten::mm");
  ASSERT_EQ(graph.nodes[0].uses.size(), 2U);
  EXPECT_EQ(graph.nodes[0].uses[1].dims, (Dims{8, 2}));
  EXPECT_EQ(graph.nodes[0].made.size(), 1U);
}

// mse_loss calls mean, which does not read what mse_loss does.
TEST(TensorGraph, an_operator_that_reads_something_itself_is_one_node) {
  TraceBuilder builder;
  builder.step(1, {.start_us = 0, .end_us = 100});
  builder.op("aten::mse_loss", {.start_us = 10,
                                .end_us = 60,
                                .dims = kTwo,
                                .types = kTwoTypes,
                                .tensors = R"([[1, 4096, 0, -1, "float"], [2, 8192, 0, -1, "float"]])"});
  builder.memory({.at_us = 12, .bytes = 32, .address = 16384});
  builder.op("aten::mean", {.start_us = 20,
                            .end_us = 50,
                            .dims = "[[4, 2]]",
                            .types = R"(["float"])",
                            .tensors = R"([[3, 16384, 0, -1, "float"]])"});
  const StudiedTrace trace(builder.build());
  const auto& graph = trace.get<tensor_graph>();
  ASSERT_EQ(graph.nodes.size(), 1U);
  EXPECT_EQ(name_of(trace, graph.nodes[0]), "aten::mse_loss");
}

// On a CPU, a sum of truth values makes whole numbers of them first.
TEST(TensorGraph, a_sum_that_casts_first_was_taken_for_the_cast) {
  TraceBuilder builder;
  builder.step(1, {.start_us = 0, .end_us = 100});
  builder.op("aten::sum", {.start_us = 10,
                           .end_us = 90,
                           .dims = "[[4, 8]]",
                           .types = R"(["bool"])",
                           .tensors = R"([[1, 4096, 0, -1, "bool"]])"});
  builder.memory({.at_us = 12, .bytes = 256, .address = 16384});
  builder.op("aten::copy_", {.start_us = 20,
                             .end_us = 50,
                             .dims = "[[4, 8], [4, 8]]",
                             .types = R"(["long int", "bool"])",
                             .tensors = R"([[2, 16384, 0, -1, "long int"], [1, 4096, 0, -1, "bool"]])"});
  const StudiedTrace trace(builder.build());
  const auto& graph = trace.get<tensor_graph>();
  ASSERT_EQ(graph.nodes.size(), 1U);
  EXPECT_EQ(name_of(trace, graph.nodes[0]), "aten::sum");
  EXPECT_EQ(graph.nodes[0].time_ns, 80'000);
}

TEST(TensorGraph, a_write_in_place_makes_another_value_of_the_same_memory) {
  TraceBuilder builder;
  builder.step(1, {.start_us = 0, .end_us = 200});
  const auto on_memory = [&](std::string_view name, double at_us) {
    builder.op(name, {.start_us = at_us,
                      .end_us = at_us + 10,
                      .dims = "[[8]]",
                      .types = R"(["float"])",
                      .tensors = R"([[1, 4096, 0, -1, "float"]])"});
  };
  builder.memory({.at_us = 5, .bytes = 32, .address = 4096});
  on_memory("aten::sum", 10);
  on_memory("aten::relu_", 30);
  on_memory("aten::sum", 50);
  builder.memory({.at_us = 90, .bytes = -32, .address = 4096});
  const StudiedTrace trace(builder.build());
  const auto& graph = trace.get<tensor_graph>();
  ASSERT_EQ(graph.nodes.size(), 3U);
  const uint32_t before = graph.nodes[0].uses[0].value;
  const uint32_t after = graph.nodes[2].uses[0].value;
  EXPECT_NE(before, after);
  EXPECT_EQ(graph.values[after].maker, 1U);
  EXPECT_EQ(graph.values[before].readers, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(graph.values[after].readers, (std::vector<uint32_t>{2}));
  EXPECT_TRUE(graph.values[after].is_freed);
}

TEST(TensorGraph, a_node_of_the_backward_pass_knows_what_it_differentiates) {
  TraceBuilder builder;
  builder.step(1, {.start_us = 0, .end_us = 200});
  const auto product = [&](double at_us) {
    builder.op("aten::mm", {.start_us = at_us,
                            .end_us = at_us + 20,
                            .dims = kTwo,
                            .types = kTwoTypes,
                            .tensors = R"([[1, 4096, 0, -1, "float"], [2, 8192, 0, -1, "float"]])"});
  };
  builder.memory({.at_us = 5, .bytes = 128, .address = 4096});
  product(10);
  builder.op("MmBackward0", {.start_us = 100, .end_us = 150});
  builder.flow("fwdbwd", 1, {.start_us = 10}, {.start_us = 100});
  product(110);
  const StudiedTrace trace(builder.build());
  const auto& graph = trace.get<tensor_graph>();
  ASSERT_EQ(graph.nodes.size(), 2U);
  EXPECT_TRUE(graph.nodes[1].in_backward);
  EXPECT_EQ(graph.nodes[1].forward, 0U);
  EXPECT_EQ(graph.backward.at(0), (std::vector<uint32_t>{1}));
}

}  // namespace
}  // namespace firelane::analyze
