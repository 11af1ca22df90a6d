// An execution trace joined to the trace of the same run.
#include <gtest/gtest.h>

#include <fstream>

#include "import/execution/read_execution.h"
#include "import/samples_for_tests.h"
#include "import/testing.h"

namespace firelane::importer {
namespace {

ExecutionNode node(int64_t id, int64_t rf_id, std::string name, std::vector<int64_t> reads,
                   std::vector<int64_t> gives) {
  ExecutionNode made{.id = id, .rf_id = rf_id, .name = std::move(name), .schema = "op(Tensor x) -> Tensor"};
  for (const int64_t storage : reads) made.inputs.push_back({.storage = storage, .bytes = 4});
  for (const int64_t storage : gives) made.outputs.push_back({.storage = storage, .bytes = 4});
  return made;
}

// Two ops, mm and relu, with the ids that torch gives its calls.
Model two_ops(std::string_view first_id = "\"Record function id\": 1,",
              std::string_view second_id = "\"Record function id\": 2,") {
  return load_text(R"({"schemaVersion": 1, "traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10, "dur": 5, "args": {)" +
                   std::string(first_id) + R"("External id": 1}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::relu", "pid": 1, "tid": 1, "ts": 20, "dur": 5, "args": {)" +
                   std::string(second_id) + R"("External id": 2}}]})");
}

ExecutionTrace two_nodes() { return {.nodes = {node(8, 1, "aten::mm", {3}, {4}), node(9, 2, "aten::relu", {4}, {5})}}; }

TEST(JoinExecutionTrace, ops_get_the_dependencies_of_the_nodes_with_their_id) {
  Model m = two_ops();
  ASSERT_TRUE(join_execution_trace(two_nodes(), "et.json", m).ok());
  ASSERT_EQ(m.data_dependencies.size(), 2u);
  EXPECT_EQ(m.data_dependencies.producer[0], kNoRow);
  EXPECT_EQ(m.data_dependencies.op[1], 1u);
  EXPECT_EQ(m.data_dependencies.producer[1], 0u);
  EXPECT_EQ(m.data_dependencies.bytes[1], 4);
  EXPECT_EQ(m.op_details.data_node, (std::vector<int64_t>{8, 9}));
  ASSERT_EQ(m.info.joined.size(), 1u);
  EXPECT_EQ(m.info.joined[0].used, 2);
}

TEST(JoinExecutionTrace, a_trace_without_ids_of_calls_is_refused_and_says_how_to_record_them) {
  for (const std::string_view id : {"", "\"Record function id\": 0,"}) {
    Model m = two_ops(id, id);
    const Result<void> joined = join_execution_trace(two_nodes(), "et.json", m);
    ASSERT_FALSE(joined.ok());
    EXPECT_NE(joined.error().message.find("Record function id"), std::string::npos) << joined.error().message;
  }
}

TEST(JoinExecutionTrace, another_run_is_refused_although_its_ids_are_the_same) {
  Model m = two_ops();
  const ExecutionTrace other{.nodes = {node(8, 1, "aten::add", {3}, {4}), node(9, 2, "aten::relu", {4}, {5})}};
  const Result<void> joined = join_execution_trace(other, "et.json", m);
  ASSERT_FALSE(joined.ok());
  EXPECT_NE(joined.error().message.find("not of the same run"), std::string::npos) << joined.error().message;
}

TEST(JoinExecutionTrace, nodes_outside_of_the_trace_are_counted) {
  Model m = two_ops();
  ExecutionTrace longer = two_nodes();
  longer.nodes.push_back(node(12, 77, "aten::sum", {5}, {6}));
  ASSERT_TRUE(join_execution_trace(longer, "et.json", m).ok());
  EXPECT_EQ(m.losses[Stat::kNodeWithoutOp], 1u);
}

TEST(JoinExecutionTrace, a_pair_from_before_torch_numbered_its_calls_is_not_joined_by_chance) {
  FL_NEED_SAMPLE(trace, "execution_trace_linear_kineto.json.gz");
  FL_NEED_SAMPLE(execution, "execution_trace_linear.json.gz");
  const Result<Model> joined = load_trace(trace, {.execution_trace = execution});
  ASSERT_FALSE(joined.ok());
  EXPECT_NE(joined.error().message.find("Record function id"), std::string::npos) << joined.error().message;
}

TEST(JoinExecutionTrace, only_an_execution_trace_is_one) {
  FL_NEED_SAMPLE(trace, "execution_trace_linear_kineto.json.gz");
  const Result<Model> joined = load_trace(trace, {.execution_trace = trace});
  ASSERT_FALSE(joined.ok());
  EXPECT_NE(joined.error().message.find("not an execution trace"), std::string::npos) << joined.error().message;
}

}  // namespace
}  // namespace firelane::importer
