#include "import/execution/chakra_protobuf.h"

#include <gtest/gtest.h>

#include <protozero/pbf_writer.hpp>

#include "import/execution/node_parser.h"
#include "import/execution/read_execution.h"
#include "import/testing.h"

namespace firelane::importer {
namespace {

using Writer = protozero::pbf_writer;

std::string framed(const std::string& message) {
  std::string out;
  protozero::write_varint(std::back_inserter(out), message.size());
  return out + message;
}

std::string side(const std::string& values, const std::string& shapes, const std::string& types) {
  std::string out;
  Writer writer(out);
  writer.add_string(1, values);
  writer.add_string(2, shapes);
  writer.add_string(3, types);
  return out;
}

std::string number(const std::string& name, int64_t value) {
  std::string out;
  Writer writer(out);
  writer.add_string(1, name);
  writer.add_int64(9, value);
  return out;
}
std::string text(const std::string& name, const std::string& value) {
  std::string out;
  Writer writer(out);
  writer.add_string(1, name);
  writer.add_string(29, value);
  return out;
}

struct Made {
  uint64_t id = 0;
  std::string name;
  std::vector<uint64_t> control, data;
  std::string inputs, outputs;
  std::vector<std::string> attributes;
};

// As Chakra's own writer does it: repeated numbers packed, what is 0 left out.
std::string node(const Made& made) {
  std::string out;
  Writer writer(out);
  if (made.id != 0) writer.add_uint64(1, made.id);
  writer.add_string(2, made.name);
  writer.add_enum(3, 4);
  writer.add_packed_uint64(4, made.control.begin(), made.control.end());
  writer.add_packed_uint64(5, made.data.begin(), made.data.end());
  if (!made.inputs.empty()) writer.add_message(8, made.inputs);
  if (!made.outputs.empty()) writer.add_message(9, made.outputs);
  for (const std::string& each : made.attributes) writer.add_message(10, each);
  return framed(out);
}

std::string metadata() {
  std::string out;
  Writer writer(out);
  writer.add_string(1, "0.0.4");
  std::string pid;
  Writer attribute(pid);
  attribute.add_string(1, "pid");
  attribute.add_uint64(13, 77);
  writer.add_message(2, pid);
  return framed(out);
}

std::string linear() {
  return metadata() +
         node({.id = 2, .name = "[pytorch|profiler|execution_trace|thread]", .attributes = {number("tid", 1)}}) +
         node({.id = 5,
               .name = "aten::mm",
               .control = {2},
               .inputs = side("[[3, 4, 0, 64, 4, 'cuda:0'], [5, 6, 0, 64, 4, 'cuda:0']]", "[[8, 8], [8, 8]]",
                              "['Tensor(float)', 'Tensor(float)']"),
               .outputs = side("[[10, 11, 0, 64, 4, 'cuda:0']]", "[[8, 8]]", "['Tensor(float)']"),
               .attributes = {number("rf_id", 21), number("tid", 1), number("seq_id", 40),
                              text("op_schema", "aten::mm(Tensor self, Tensor mat2) -> Tensor")}}) +
         node(
             {.id = 7,
              .name = "aten::relu_",
              .control = {2},
              .data = {5},
              .inputs = side("[[10, 11, 0, 64, 4, 'cuda:0'], True, None, '<None>', (1,)]", "[[8, 8], [], [], [], [[]]]",
                             "['Tensor(float)', 'Bool', 'None', 'None', 'GenericList[Int]']"),
              .outputs = side("[[10, 11, 0, 64, 4, 'cuda:0']]", "[[8, 8]]", "['Tensor(float)']"),
              .attributes = {number("rf_id", 22), number("tid", 1),
                             text("op_schema", "aten::relu_(Tensor(a!) self) -> Tensor(a!)")}});
}

ExecutionTrace parsed(const std::string& bytes) {
  Result<ExecutionTrace> trace = parse_chakra_protobuf(bytes, "run.et");
  EXPECT_TRUE(trace.ok()) << trace.error().message;
  return trace.ok() ? std::move(trace).value() : ExecutionTrace();
}

TEST(ChakraProtobuf, nodes_have_what_the_file_says) {
  const ExecutionTrace trace = parsed(linear());
  EXPECT_EQ(trace.schema, "0.0.4");
  EXPECT_EQ(trace.pid, 77);
  ASSERT_EQ(trace.nodes.size(), 3U);
  const ExecutionNode& mm = trace.nodes[1];
  EXPECT_EQ(mm.id, 5);
  EXPECT_EQ(mm.parent, 2);
  EXPECT_EQ(mm.rf_id, 21);
  EXPECT_EQ(mm.sequence, 40);
  EXPECT_EQ(mm.dims, "[[8,8], [8,8]]");
  EXPECT_EQ(mm.types, "[\"float\", \"float\"]");
  ASSERT_EQ(mm.inputs.size(), 2U);
  EXPECT_EQ(mm.inputs[0].storage, 4);
  EXPECT_EQ(mm.inputs[0].bytes, 256);
  const ExecutionNode& relu = trace.nodes[2];
  EXPECT_EQ(relu.data_deps, std::vector<int64_t>{5});
  ASSERT_EQ(relu.inputs.size(), 1U);
  EXPECT_TRUE(relu.inputs[0].is_written);
  EXPECT_EQ(relu.concrete, "[\"\", \"true\", \"\", \"\", \"[1]\"]");
}

TEST(ChakraProtobuf, a_file_opens_by_its_content_as_ops_with_data_dependencies) {
  EXPECT_TRUE(is_chakra_protobuf(linear()));
  const Model model = load_bytes(linear());
  EXPECT_EQ(model.info.format, "Chakra execution trace 0.0.4");
  EXPECT_TRUE(model.info.has_order_only);
  EXPECT_EQ(model.op_details.size(), 2U);
  ASSERT_EQ(model.data_dependencies.size(), 2U);  // one from before the recording, one of mm
  EXPECT_EQ(model.data_dependencies.producer[1], 0U);
}

// chakra.et.gz was encoded by protobuf's own library, with the texts that Chakra's converter makes of these nodes.
TEST(ChakraProtobuf, another_encoders_file_has_the_nodes_of_the_json_it_was_made_from) {
  const std::string folder = std::string(FIRELANE_TEST_DATA) + "/execution_trace/";
  const Result<ExecutionTrace> json = load_execution_trace(folder + "et.json.gz");
  const Result<ExecutionTrace> protobuf = load_execution_trace(folder + "chakra.et.gz");
  ASSERT_TRUE(json.ok() && protobuf.ok());
  ASSERT_EQ(protobuf.value().nodes.size(), json.value().nodes.size());
  ASSERT_EQ(json.value().nodes.size(), 209U);
  const auto storages = [](const std::vector<NodeTensor>& tensors) {
    std::string out;
    for (const NodeTensor& each : tensors) {
      out += std::to_string(each.storage) + ":" + std::to_string(each.bytes) + (each.is_written ? "! " : " ");
    }
    return out;
  };
  for (size_t i = 0; i < json.value().nodes.size(); ++i) {
    const ExecutionNode& a = json.value().nodes[i];
    const ExecutionNode& b = protobuf.value().nodes[i];
    EXPECT_EQ(a.id, b.id);
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.parent, b.parent);
    EXPECT_EQ(a.rf_id, b.rf_id);
    EXPECT_EQ(a.thread, b.thread);
    EXPECT_EQ(a.sequence, b.sequence);
    EXPECT_EQ(a.scope, b.scope);
    EXPECT_EQ(a.dims, b.dims);
    EXPECT_EQ(a.types, b.types);
    EXPECT_EQ(a.concrete, b.concrete) << a.name;
    EXPECT_EQ(storages(a.inputs), storages(b.inputs)) << a.name;
    EXPECT_EQ(storages(a.outputs), storages(b.outputs)) << a.name;
  }
  EXPECT_EQ(protobuf.value().pid, json.value().pid);
  for (size_t i = 0; i < kStatCount; ++i) EXPECT_EQ(protobuf.value().losses.counts[i], 0U) << kStats[i].name;
}

TEST(ChakraProtobuf, the_first_node_of_a_generated_trace_has_no_id_because_it_is_0) {
  const ExecutionTrace trace =
      parsed(framed("") + node({.name = "load"}) + node({.id = 1, .name = "compute", .control = {0}, .data = {0}}));
  ASSERT_EQ(trace.nodes.size(), 2U);
  EXPECT_EQ(trace.nodes[0].id, 0);
  EXPECT_EQ(trace.nodes[0].parent, kNoNumber);
  EXPECT_EQ(trace.nodes[1].parent, 0);
  EXPECT_EQ(trace.nodes[1].data_deps, std::vector<int64_t>{0});
}

TEST(ChakraProtobuf, any_cut_gives_the_nodes_before_it) {
  const std::string whole = linear();
  for (size_t cut = metadata().size() + 60; cut < whole.size(); ++cut) {
    const ExecutionTrace trace = parsed(whole.substr(0, cut));
    EXPECT_LE(trace.nodes.size(), 2U) << cut;
    EXPECT_TRUE(trace.losses[Stat::kTruncated] == 1 || trace.losses[Stat::kMessageMalformed] == 0) << cut;
  }
}

TEST(ChakraProtobuf, of_a_file_that_ends_in_its_first_node_it_is_not_said_that_nothing_was_called) {
  const Result<ExecutionTrace> cut = parse_chakra_protobuf(linear().substr(0, metadata().size() + 5), "cut.et");
  ASSERT_FALSE(cut.ok());
  EXPECT_NE(cut.error().message.find("copy the file again"), std::string::npos) << cut.error().message;
}

TEST(ChakraProtobuf, a_node_that_is_no_message_is_counted_and_passed_over) {
  const std::string broken = framed("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff");
  const ExecutionTrace trace = parsed(linear() + broken + node({.id = 9, .name = "after"}));
  EXPECT_EQ(trace.nodes.size(), 4U);
  EXPECT_EQ(trace.losses[Stat::kMessageMalformed], 1U);
}

TEST(ChakraProtobuf, other_files_are_not_taken_for_it) {
  for (const std::string_view other : {"", "\x0a", "{\"nodes\": []}", "\x80\x02}q", "LANE", "\x0a\x05hello\x05hello"}) {
    EXPECT_FALSE(is_chakra_protobuf(other)) << other;
  }
}

TEST(PythonList, is_read_as_json) {
  EXPECT_EQ(json_of_python_list("[1, 'a\"b', (2,), True, None, -inf, 1e-05]"),
            "[1, \"a\\\"b\", [2], true, null, null, 1e-05]");
  EXPECT_EQ(json_of_python_list("[\"it's\", '\\x41\\n']"), "[\"it's\", \"\\u0041\\n\"]");
  EXPECT_EQ(json_of_python_list("<None>"), std::nullopt);
  EXPECT_EQ(json_of_python_list("['open"), std::nullopt);
}

}  // namespace
}  // namespace firelane::importer
