#include "analyze/ops/function_events.h"

#include <gtest/gtest.h>

#include <string>

#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

// "name<parent" of every event, in order.
std::string tree(const Model& m, PythonFunctions python = PythonFunctions::kLeftOut) {
  const FunctionEvents events = function_events(m, python);
  const auto name = [&](uint32_t e) -> std::string {
    if (events.side[e] == EventSide::kMemory) return "[memory]";
    const bool on_device = events.side[e] == EventSide::kDevice;
    return std::string(m.text(on_device ? m.device_slices.name[events.row[e]] : m.host_slices.name[events.row[e]]));
  };
  std::string out;
  for (uint32_t e = 0; e < events.size(); ++e) {
    out += name(e);
    if (events.parent[e] != kNoRow) out += "<" + name(events.parent[e]);
    out += ' ';
  }
  return out;
}

TEST(FunctionEvents, are_ordered_by_start_over_all_lanes_and_know_their_parents) {
  const Model m = TraceBuilder()
                      .op("outer", {.start_us = 0, .end_us = 100})
                      .op("inner", {.start_us = 10, .end_us = 20})
                      .op("other", {.start_us = 5, .end_us = 50, .thread = 2})
                      .kernel("k", {.start_us = 15, .end_us = 16})
                      .build();
  EXPECT_EQ(tree(m), "outer other inner<outer k ");
}

TEST(FunctionEvents, python_functions_and_utility_ops_are_none_and_children_pass_through_them) {
  const Model m = TraceBuilder()
                      .op("outer", {.start_us = 0, .end_us = 100})
                      .python("f.py(1): f", {.start_us = 10, .end_us = 90})
                      .op("aten::is_leaf", {.start_us = 15, .end_us = 80})
                      .op("inner", {.start_us = 20, .end_us = 30})
                      .build();
  EXPECT_EQ(tree(m), "outer inner<outer ");
}

TEST(FunctionEvents, python_functions_are_parents_when_asked_for_but_collections_are_not) {
  const Model m = TraceBuilder()
                      .python("f.py(1): f", {.start_us = 0, .end_us = 100})
                      .python("gc: generation 0", {.start_us = 1, .end_us = 2})
                      .op("outer", {.start_us = 10, .end_us = 90})
                      .python("nn.Module: Linear_0", {.start_us = 20, .end_us = 30})
                      .build();
  EXPECT_EQ(tree(m, PythonFunctions::kIncluded), "f.py(1): f outer<f.py(1): f nn.Module: Linear_0<outer ");
}

TEST(FunctionEvents, a_chain_of_only_children_of_one_name_becomes_one_event) {
  const Model m = TraceBuilder()
                      .op("to", {.start_us = 0, .end_us = 100})
                      .op("to", {.start_us = 10, .end_us = 90})
                      .op("to", {.start_us = 20, .end_us = 80})
                      .op("copy", {.start_us = 30, .end_us = 40})
                      .op("copy", {.start_us = 50, .end_us = 60})
                      .build();
  EXPECT_EQ(tree(m), "to copy<to copy<to ");
}

TEST(FunctionEvents, children_of_one_name_stay_when_there_are_two) {
  const Model m = TraceBuilder()
                      .op("to", {.start_us = 0, .end_us = 100})
                      .op("to", {.start_us = 10, .end_us = 20})
                      .op("to", {.start_us = 30, .end_us = 40})
                      .build();
  const FunctionEvents events = function_events(m);
  EXPECT_EQ(tree(m), "to to<to to<to ");
  EXPECT_EQ(events.child, (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(events.child_begin, (std::vector<uint32_t>{0, 2, 2, 2}));
}

TEST(FunctionEvents, memory_belongs_to_the_events_open_then_else_to_an_event_of_its_own) {
  const Model m = TraceBuilder()
                      .op("alloc", {.start_us = 0, .end_us = 10})
                      .memory({.at_us = 5, .bytes = 64})
                      .memory({.at_us = 50, .bytes = -64})
                      .build();
  const FunctionEvents events = function_events(m);
  EXPECT_EQ(tree(m), "alloc [memory] ");
  EXPECT_EQ(events.memory[0].cpu_bytes, 64);
  EXPECT_EQ(events.memory[1].cpu_bytes, -64);
}

TEST(FunctionEvents, what_runs_inside_a_backward_function_knows_it) {
  const Model m = TraceBuilder()
                      .op("MmBackward0", {.start_us = 0, .end_us = 50, .sequence_number = 3, .forward_thread = 1})
                      .op("aten::mm", {.start_us = 10, .end_us = 20})
                      .op("aten::add", {.start_us = 60, .end_us = 70})
                      .build();
  const FunctionEvents events = function_events(m);
  EXPECT_EQ(events.backward, (std::vector<uint32_t>{0, 0, kNoRow}));
}

}  // namespace
}  // namespace firelane::analyze
