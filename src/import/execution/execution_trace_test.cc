#include "import/execution/execution_trace.h"

#include <gtest/gtest.h>

#include "import/execution/read_execution.h"
#include "import/samples_for_tests.h"
#include "import/testing.h"

namespace firelane::importer {
namespace {

// What torch 2.11 writes of leaky_relu_(x @ w): a thread, an op that calls another.
// clang-format off: JSON is no code
constexpr std::string_view kNested = R"json({"schema": "1.1.1-chakra.0.0.4", "pid": 7, "time": "2026-11-16 12:29:00", "start_ts": 5, "nodes": [
    {"id": 2, "name": "[pytorch|profiler|execution_trace|thread]", "ctrl_deps": 1,
      "inputs": {"values": [], "shapes": [], "types": [], "strides": []}, "outputs": {"values": [],
      "shapes": [], "types": [], "strides": []}, "attrs": [{"name": "rf_id", "type": "uint64",
      "value": 0}, {"name": "scope", "type": "uint64", "value": 7}, {"name": "tid",
      "type": "uint64", "value": 1}, {"name": "op_schema", "type": "string", "value": ""}]},
    {"id": 9, "name": "aten::mm", "ctrl_deps": 8, "inputs": {"values": [[3, 4, 0, 64, 4, "cpu"],
      [5, 6, 0, 64, 4, "cpu"]], "shapes": [[8, 8], [8, 8]], "types": ["Tensor(float)",
      "Tensor(float)"], "strides": [[8, 1], [8, 1]]}, "outputs": {"values": [[10, 11, 0, 64, 4,
      "cpu"]], "shapes": [[8, 8]], "types": ["Tensor(float)"], "strides": [[8, 1]]},
      "attrs": [{"name": "rf_id", "type": "uint64", "value": 2}, {"name": "scope", "type": "uint64",
      "value": 0}, {"name": "seq_id", "type": "int64", "value": 40}, {"name": "tid",
      "type": "uint64", "value": 1}, {"name": "op_schema", "type": "string",
      "value": "aten::mm(Tensor self, Tensor mat2) -> Tensor"}]},
    {"id": 8, "name": "aten::matmul", "ctrl_deps": 2, "inputs": {"values": [[3, 4, 0, 64, 4,
      "cpu"], [5, 6, 0, 64, 4, "cpu"]], "shapes": [[8, 8], [8, 8]], "types": ["Tensor(float)",
      "Tensor(float)"], "strides": [[8, 1], [8, 1]]}, "outputs": {"values": [[10, 11, 0, 64, 4,
      "cpu"]], "shapes": [[8, 8]], "types": ["Tensor(float)"], "strides": [[8, 1]]},
      "attrs": [{"name": "rf_id", "type": "uint64", "value": 1}, {"name": "scope", "type": "uint64",
      "value": 0}, {"name": "tid", "type": "uint64", "value": 1}, {"name": "op_schema",
      "type": "string", "value": "aten::matmul(Tensor self, Tensor other) -> Tensor"}]},
    {"id": 12, "name": "aten::leaky_relu_", "ctrl_deps": 2, "inputs": {"values": [[10, 11, 0, 64,
      4, "cpu"], 0.01, "<None>", [1, 2]], "shapes": [[8, 8], [], [], [[], []]],
      "types": ["Tensor(float)", "Double", "None", "GenericList[Int,Int]"], "strides": [[8, 1], [],
      [], [[], []]]}, "outputs": {"values": [[10, 11, 0, 64, 4, "cpu"]], "shapes": [[8, 8]],
      "types": ["Tensor(float)"], "strides": [[8, 1]]}, "attrs": [{"name": "rf_id",
      "type": "uint64", "value": 3}, {"name": "scope", "type": "uint64", "value": 0},
      {"name": "tid", "type": "uint64", "value": 1}, {"name": "op_schema", "type": "string",
      "value": "aten::leaky_relu_(Tensor(a!) self, Scalar s) -> Tensor(a!)"}]}],
  "finish_ts": 9})json";
// clang-format on

ExecutionTrace parsed(std::string_view text) {
  Result<ExecutionTrace> trace = parse_execution_trace(std::string(text), "et.json");
  EXPECT_TRUE(trace.ok()) << trace.error().message;
  return trace.ok() ? std::move(trace).value() : ExecutionTrace();
}

std::string text_of(const Model& m, StringId id) { return std::string(m.text(id)); }

TEST(ExecutionTrace, nodes_are_sorted_by_id_and_have_what_the_file_says) {
  const ExecutionTrace trace = parsed(kNested);
  EXPECT_EQ(trace.schema, "1.1.1-chakra.0.0.4");
  EXPECT_EQ(trace.pid, 7);
  ASSERT_EQ(trace.nodes.size(), 4u);
  const ExecutionNode& mm = trace.nodes[2];
  EXPECT_EQ(mm.name, "aten::mm");
  EXPECT_EQ(mm.parent, 8);
  EXPECT_EQ(mm.rf_id, 2);
  EXPECT_EQ(mm.sequence, 40);
  EXPECT_EQ(mm.types, R"(["float", "float"])");
  EXPECT_EQ(mm.dims, "[[8,8], [8,8]]");
  ASSERT_EQ(mm.inputs.size(), 2u);
  EXPECT_EQ(mm.inputs[1].storage, 6);
  EXPECT_EQ(mm.inputs[1].bytes, 256);
  EXPECT_FALSE(mm.inputs[0].is_written);
}

TEST(ExecutionTrace, what_the_schema_marks_is_changed_in_place_and_scalars_are_as_in_kineto) {
  const ExecutionNode relu = parsed(kNested).nodes[3];
  ASSERT_EQ(relu.inputs.size(), 1u);
  EXPECT_TRUE(relu.inputs[0].is_written);
  EXPECT_EQ(relu.types, R"(["float", "Scalar", "", "ScalarList"])");
  EXPECT_EQ(relu.dims, "[[8,8], [], [], []]");
  EXPECT_EQ(relu.concrete, R"(["", "0.01", "", "[1,2]"])");
}

// clang-format off: JSON is no code
TEST(ExecutionTrace, flat_nodes_of_1_0_read_the_same) {
  const ExecutionTrace trace = parsed(R"json({"schema": "1.0.1", "pid": 1, "nodes": [
      {"name": "aten::t", "id": 10, "rf_id": 2, "parent": 9, "fw_parent": 0, "seq_id": 660, "scope": 0, "tid": 1,
       "fw_tid": 0, "op_schema": "aten::t(Tensor(a) self) -> Tensor(a)", "inputs": [[5, 6, 0, 8, 4, "cuda:0"]],
       "input_shapes": [[8]], "input_types": ["Tensor(float)"], "outputs": [[13, 6, 0, 8, 4, "cuda:0"]],
       "output_shapes": [[8]], "output_types": ["Tensor(float)"]}]})json");
  // clang-format on
  ASSERT_EQ(trace.nodes.size(), 1u);
  EXPECT_EQ(trace.nodes[0].rf_id, 2);
  EXPECT_EQ(trace.nodes[0].parent, 9);
  EXPECT_EQ(trace.nodes[0].sequence, 660);
  ASSERT_EQ(trace.nodes[0].inputs.size(), 1u);
  EXPECT_EQ(trace.nodes[0].inputs[0].storage, trace.nodes[0].outputs[0].storage);
}

TEST(ExecutionTrace, chakra_json_has_ids_as_texts_explicit_dependencies_and_times) {
  const Model m = load_text(R"({"schema": "0.0.4", "nodes": [
      {"id": "1", "name": "a", "ctrlDeps": [], "startTimeMicros": "10", "durationMicros": "5",
       "attr": [{"name": "rf_id", "uint64Val": "4"}]},
      {"id": "2", "name": "b", "dataDeps": ["1"], "startTimeMicros": "20", "durationMicros": "7"}]})");
  EXPECT_FALSE(m.info.has_order_only);
  ASSERT_EQ(m.host_slices.size(), 2u);
  EXPECT_EQ(m.host_slices.duration_ns[1], 7000);
  EXPECT_EQ(m.op_details.call_id[0], 4);
  ASSERT_EQ(m.data_dependencies.size(), 1u);
  EXPECT_EQ(m.data_dependencies.op[0], 1u);
  EXPECT_EQ(m.data_dependencies.producer[0], 0u);
}

TEST(ExecutionTrace, alone_it_is_an_order_of_calls_without_times) {
  const Model m = load_text(std::string(kNested));
  EXPECT_EQ(m.info.origin, Origin::kExecutionTrace);
  EXPECT_TRUE(m.info.has_order_only);
  ASSERT_EQ(m.host_slices.size(), 3u);  // the thread is no call
  EXPECT_EQ(text_of(m, m.host_slices.name[0]), "aten::matmul");
  EXPECT_EQ(text_of(m, m.host_slices.name[1]), "aten::mm");
  EXPECT_EQ(m.host_slices.parent[1], 0u);
  EXPECT_EQ(m.host_slices.parent[2], kNoRow);
  EXPECT_EQ(m.losses, LossCounts());
}

TEST(ExecutionTrace, a_compressed_file_gives_the_same_model) {
  const std::string text(kNested);
  const std::string whole = describe(load_bytes(text));
  const std::string packed = gzip(text);
  EXPECT_EQ(describe(load_bytes(packed)).size(), whole.size());
}

TEST(ExecutionTrace, a_file_cut_anywhere_gives_the_nodes_before_the_tear_or_one_line) {
  const std::string text(kNested);
  size_t before = 0;
  for (size_t cut = 1; cut < text.size(); ++cut) {
    const Result<ExecutionTrace> trace = parse_execution_trace(text.substr(0, cut), "et.json");
    if (!trace.ok()) {
      EXPECT_EQ(trace.error().message.find('\n'), std::string::npos);
      EXPECT_EQ(trace.error().message.find("nothing was called"), std::string::npos) << "cut at byte " << cut;
      EXPECT_EQ(before, 0u) << "cut at byte " << cut;
      continue;
    }
    EXPECT_GE(trace.value().nodes.size(), before) << "cut at byte " << cut;
    EXPECT_EQ(trace.value().losses[Stat::kTruncated], 1u) << "cut at byte " << cut;
    before = trace.value().nodes.size();
  }
  EXPECT_EQ(before, 4u);
}

TEST(ExecutionTrace, what_is_no_node_is_counted_and_skipped) {
  const ExecutionTrace trace = parsed(R"({"schema": "1.0.1", "nodes": [3, {"id": 1}, {"id": 2, "name": "a"},
      {"id": 2, "name": "again"}, {"id": -4, "name": "b"}, "x"]})");
  ASSERT_EQ(trace.nodes.size(), 1u);
  EXPECT_EQ(trace.nodes[0].name, "a");
  EXPECT_EQ(trace.losses[Stat::kEventMalformed], 5u);
}

TEST(ExecutionTrace, other_json_is_left_to_other_readers) {
  EXPECT_TRUE(is_execution_trace(kNested.substr(0, 200)));
  EXPECT_FALSE(is_execution_trace(R"({"schemaVersion": 1, "traceEvents": [{"name": "nodes"}]})"));
  EXPECT_FALSE(is_execution_trace(R"({"nodes": [1, 2]})"));
  EXPECT_FALSE(is_execution_trace(R"([{"nodes": [], "schema": "1"}])"));
}

TEST(ExecutionTrace, the_sample_of_param_has_all_its_nodes) {
  FL_NEED_SAMPLE(path, "execution_trace_linear.json.gz");
  Result<Model> loaded = load_trace(path);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const Model& m = loaded.value();
  // 931 nodes, of which 3 stand for threads and the process (counted with json.load).
  EXPECT_EQ(m.host_slices.size(), 928u);
  EXPECT_TRUE(m.info.has_order_only);
  size_t addmm = 0;
  for (const StringId name : m.host_slices.name) addmm += m.text(name) == "aten::addmm" ? 1 : 0;
  EXPECT_EQ(addmm, 21u);
}

}  // namespace
}  // namespace firelane::importer
