#include "import/execution/data_flow.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace firelane::importer {
namespace {

ExecutionNode node(int64_t id, std::string name, std::vector<int64_t> reads, std::vector<int64_t> gives,
                   int64_t parent = 0) {
  ExecutionNode made{.id = id, .parent = parent, .name = std::move(name), .schema = "op(Tensor x) -> Tensor"};
  for (const int64_t storage : reads) made.inputs.push_back({.storage = storage, .bytes = 4});
  for (const int64_t storage : gives) made.outputs.push_back({.storage = storage, .bytes = 4});
  return made;
}

ExecutionNode in_place(int64_t id, std::string name, int64_t changes, std::vector<int64_t> reads = {}) {
  ExecutionNode made = node(id, std::move(name), {}, {changes});
  made.inputs.push_back({.storage = changes, .bytes = 4, .is_written = true});
  for (const int64_t storage : reads) made.inputs.push_back({.storage = storage, .bytes = 4});
  std::sort(made.inputs.begin(), made.inputs.end(), [](auto& a, auto& b) { return a.storage < b.storage; });
  return made;
}

// "add reads mm, add reads -": who waits for whom, - for what was there before.
std::string told(std::vector<ExecutionNode> nodes) {
  ExecutionTrace trace{.nodes = std::move(nodes)};
  std::string out;
  for (const NodeDependency& each : find_dependencies(trace)) {
    out += (out.empty() ? "" : ", ") + trace.nodes[each.node].name + " " + std::string(name_of(each.use)) + " " +
           (each.producer == kNoNode ? "-" : trace.nodes[each.producer].name);
  }
  return out;
}

TEST(DataFlow, a_reader_waits_for_the_last_writer) {
  EXPECT_EQ(told({node(1, "mm", {10, 11}, {12}), node(2, "relu", {12}, {13}), node(3, "add", {12, 13}, {14})}),
            "mm read -, relu read mm, add read mm, add read relu");
}

TEST(DataFlow, ops_that_share_nothing_do_not_wait) {
  EXPECT_EQ(told({node(1, "a", {}, {10}), node(2, "b", {}, {11})}), "");
}

TEST(DataFlow, a_change_in_place_waits_for_all_who_still_read_it) {
  EXPECT_EQ(told({node(1, "a", {}, {10}), node(2, "b", {10}, {11}), node(3, "c", {10}, {12}), in_place(4, "add_", 10),
                  node(5, "d", {10}, {13})}),
            "b read a, c read a, add_ read a, add_ overwrite b, add_ overwrite c, d read add_");
}

TEST(DataFlow, an_id_that_is_used_again_after_a_free_is_new_data) {
  EXPECT_EQ(
      told({node(1, "a", {}, {10}), node(2, "b", {10}, {11}), node(3, "again", {}, {10}), node(4, "c", {10}, {})}),
      "b read a, c read again");
}

TEST(DataFlow, a_view_is_not_written) {
  EXPECT_EQ(told({node(1, "a", {}, {10}), node(2, "t", {10}, {10}), node(3, "b", {10}, {11})}), "t read a, b read a");
}

TEST(DataFlow, whoever_fills_room_that_a_callee_made_is_the_writer) {
  EXPECT_EQ(told({node(1, "addmm", {10}, {12}), node(2, "aten::empty", {}, {12}, 1), node(3, "relu", {12}, {13})}),
            "addmm read -, relu read addmm");
}

TEST(DataFlow, what_a_callee_computed_is_waited_for_alone) {
  EXPECT_EQ(told({node(1, "linear", {10}, {12}), node(2, "addmm", {10}, {12}, 1), node(3, "relu", {12}, {13})}),
            "linear read -, addmm read -, relu read addmm");
}

TEST(DataFlow, a_reader_on_another_thread_waits_though_the_writer_is_the_last_of_its_own) {
  std::vector<ExecutionNode> nodes = {node(1, "loss", {}, {10}), node(2, "backward", {10}, {11})};
  nodes[1].thread = 2;
  EXPECT_EQ(told(nodes), "backward read loss");
}

TEST(DataFlow, a_leaf_without_a_schema_may_change_what_it_is_given) {
  std::vector<ExecutionNode> nodes = {node(1, "a", {}, {10}), node(2, "triton_kernel", {10}, {}),
                                      node(3, "b", {10}, {})};
  nodes[1].schema.clear();
  EXPECT_EQ(told(nodes), "triton_kernel read a, b read triton_kernel");
}

TEST(DataFlow, a_leaf_without_a_schema_changes_what_its_caller_says) {
  std::vector<ExecutionNode> nodes = {node(1, "a", {}, {10}), node(2, "aten::detach", {10}, {10}),
                                      node(3, "detach", {10}, {10}, 2), node(4, "b", {10}, {})};
  nodes[2].schema.clear();
  EXPECT_EQ(told(nodes), "aten::detach read a, detach read a, b read a");
}

TEST(DataFlow, of_a_caller_without_a_schema_nothing_is_known_but_its_callees) {
  std::vector<ExecutionNode> nodes = {node(1, "a", {}, {10}), node(2, "MmBackward0", {10}, {11}),
                                      node(3, "mm", {10}, {11}, 2)};
  nodes[1].schema.clear();
  EXPECT_EQ(told(nodes), "MmBackward0 unknown -, mm read a");
}

TEST(DataFlow, a_chain_of_a_hundred_thousand_callers_is_no_trouble) {
  std::vector<ExecutionNode> nodes;
  for (int64_t id = 1; id <= 100'000; ++id) nodes.push_back(node(id, "a", {10}, {10}, id - 1));
  ExecutionTrace trace{.nodes = std::move(nodes)};
  EXPECT_EQ(find_parents(trace)[1024], 1023u);
  EXPECT_EQ(find_dependencies(trace).size(), 100'000u);
}

}  // namespace
}  // namespace firelane::importer
