#include "export/chrome.h"

#include <gtest/gtest.h>

#include <map>

#include "export/json_args.h"
#include "model/trace_builder.h"

namespace firelane::exporter {
namespace {

std::string chrome(const Model& model) {
  StringSink sink;
  const Result<void> result = export_chrome(model, sink);
  return result.ok() ? sink.text : "error: " + result.error().message;
}

TEST(Chrome, an_op_its_launch_and_its_kernel_are_joined_by_arrows) {
  EXPECT_EQ(chrome(TraceBuilder()
                       .op("aten::mm", {.start_us = 0.001, .end_us = 20, .external_id = 1, .dims = "[[2, 3]]"})
                       .call("cudaLaunchKernel", {.start_us = 5, .end_us = 9, .correlation = 7, .external_id = 1})
                       .kernel("gemm", {.start_us = 12,
                                        .end_us = 30.5,
                                        .correlation = 7,
                                        .external_id = 1,
                                        .grid = 4,
                                        .block = 64,
                                        .registers = 32,
                                        .occupancy_percent = 12.5})
                       .build()),
            R"({"schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": [
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 100, "tid": 1, "ts": 0.001, "dur": 19.999, "args": {"External id": 1, "Input Dims": [[2, 3]]}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 100, "tid": 1, "ts": 5.000, "dur": 4.000, "args": {"External id": 1, "correlation": 7}},
{"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 7, "pid": 100, "tid": 1, "ts": 5.000},
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 12.000, "dur": 18.500, "args": {"External id": 1, "device": 0, "stream": 7, "correlation": 7, "registers per thread": 32, "grid": [4, 1, 1], "block": [64, 1, 1], "est. achieved occupancy %": 12.5}},
{"ph": "f", "cat": "ac2g", "name": "ac2g", "id": 7, "pid": 0, "tid": 7, "ts": 12.000, "bp": "e"}
]
}
)");
}

TEST(Chrome, memory_instants_counters_arrows_and_metadata_are_written) {
  EXPECT_EQ(
      chrome(TraceBuilder()
                 .metadata("with_stack", "1")
                 .device({.id = 0, .name = "GPU \"x\"", .multiprocessors = 132})
                 .op("a", {.start_us = 1, .end_us = 2})
                 .op("b", {.start_us = 3, .end_us = 4, .thread = 2})
                 .memory({.at_us = 1.5, .bytes = -512, .total_allocated = 100})
                 .instant("mark", 2)
                 .counter("power", 2.5, 350.25)
                 .flow("sent", 9, {.start_us = 1}, {.start_us = 3, .thread = 2})
                 .build()),
      R"({"schemaVersion": 1, "with_stack": 1, "deviceProperties": [{"id": 0, "name": "GPU \"x\"", "numSms": 132}], "displayTimeUnit": "ms", "traceEvents": [
{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 100, "tid": 1, "ts": 1.000, "dur": 1.000},
{"ph": "X", "cat": "cpu_op", "name": "b", "pid": 100, "tid": 2, "ts": 3.000, "dur": 1.000},
{"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "s": "t", "pid": 100, "tid": 1, "ts": 1.500, "args": {"Total Allocated": 100, "Bytes": -512, "Device Id": -1, "Device Type": 0, "Addr": 4096}},
{"ph": "i", "name": "mark", "s": "t", "pid": 100, "tid": 1, "ts": 2.000},
{"ph": "C", "name": "power", "pid": 100, "tid": 0, "ts": 2.500, "args": {"": 350.25}},
{"ph": "s", "cat": "sent", "name": "sent", "id": 9, "pid": 100, "tid": 1, "ts": 1.000},
{"ph": "f", "cat": "sent", "name": "sent", "id": 9, "pid": 100, "tid": 2, "ts": 3.000, "bp": "e"}
]
}
)");
}

TEST(Chrome, hardware_counters_are_written_as_kineto_does) {
  const std::string text = chrome(TraceBuilder().gpu_counter(1, "dram__throughput.avg", 2.5, 61.5).build());
  EXPECT_NE(text.find(R"({"ph": "C", "cat": "hardware_counters", "name": "dram__throughput.avg", )"
                      R"("pid": "GPU 1 Counters", "tid": 0, "ts": 2.500, "args": {"": 61.5}})"),
            std::string::npos)
      << text;
}

TEST(Chrome, hostile_names_are_escaped) {
  const std::string text = chrome(TraceBuilder().op("\"\\\n\x01\xFF</script>", {.start_us = 0, .end_us = 1}).build());
  EXPECT_NE(text.find("\"name\": \"\\\"\\\\\\n\\u0001\xEF\xBF\xBD</script>\""), std::string::npos) << text;
}

std::string chrome_as_torch(const Model& model, bool has_collections) {
  StringSink sink;
  const TorchRules rules{.plain_texts = true, .has_collections = has_collections};
  const Result<void> result = export_chrome(model, sink, {.torch = rules});
  return result.ok() ? sink.text : "error: " + result.error().message;
}

Model with_a_collection() {
  Model model = TraceBuilder()
                    .python("{\"a\\b\nc\"}.py(1): f", {.start_us = 0, .end_us = 9})
                    .python("gc: generation 2", {.start_us = 1, .end_us = 8})
                    .python("callback", {.start_us = 2, .end_us = 3})
                    .build();
  model.info.origin = Origin::kFirelane;
  return model;
}

TEST(Chrome, as_torch_writes_names_they_have_neither_quotation_marks_nor_backslashes) {
  const std::string text = chrome_as_torch(with_a_collection(), true);
  EXPECT_NE(text.find(R"("name": "{'a/bc'}.py(1): f")"), std::string::npos) << text;
  EXPECT_NE(text.find("Python GC"), std::string::npos) << text;
  EXPECT_NE(chrome(with_a_collection()).find(R"("name": "{\"a\\b\nc\"}.py(1): f")"), std::string::npos);
}

TEST(Chrome, a_collection_that_is_left_out_is_nobodys_parent) {
  const std::string text = chrome_as_torch(with_a_collection(), false);
  EXPECT_EQ(text.find("Python GC"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("Python id": 2, "Python parent id": 1)"), std::string::npos) << text;
}

TEST(Chrome, as_torch_writes_keywords_texts_with_quotation_marks_are_none_and_lists_are_kept) {
  EXPECT_EQ(plain_object(R"({"a, \"b": "x", "c": "say \"hi\"", "d": ["\"", "y"], "e": 1, "f": "\\", "g": "\""})"),
            R"({"a, \"b": "x", "c": "None", "d": ["\"", "y"], "e": 1, "f": "\\", "g": "None"})");
}

// A source of two events, to be asked in ascending order.
class TwoEvents : public ArgSource {
 public:
  Result<std::string> event_json(uint64_t source) const override { return events_.at(source); }
  Result<void> visit_events(const std::vector<uint64_t>& sources,
                            const std::function<void(size_t, std::string_view)>& visit) const override {
    for (size_t i = 0; i < sources.size(); ++i) {
      EXPECT_TRUE(i == 0 || sources[i - 1] <= sources[i]);
      if (!events_.contains(sources[i])) return Error{"the source is gone"};
      visit(i, events_.at(sources[i]));
    }
    return {};
  }

 private:
  std::map<uint64_t, std::string> events_ = {
      {10,
       "{\"name\": \"late\", \"args\": {\n  \"Ev Idx\":  4,    \"deep\": {\"a\": [1, \"x  y\"]}\n}, \"ph\": \"X\"}"},
      {11, R"({"name": "late", "args": {"ratio": NaN}})"},
      {50, R"({"name": "early"})"}};
};

TEST(Chrome, original_args_are_kept_and_events_follow_the_source) {
  Model model =
      TraceBuilder().python("early", {.start_us = 0, .end_us = 1}).python("late", {.start_us = 5, .end_us = 6}).build();
  model.args = std::make_shared<TwoEvents>();
  const auto set_sources = [&](uint64_t first, uint64_t second) {
    model.host_slices.source[0] = first;
    model.host_slices.source[1] = second;
  };
  set_sources(50, 10);
  EXPECT_EQ(chrome(model), R"({"schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": [
{"ph": "X", "cat": "python_function", "name": "late", "pid": 100, "tid": 1, "ts": 5.000, "dur": 1.000, "args": {"Ev Idx": 4, "deep": {"a": [1, "x  y"]}}},
{"ph": "X", "cat": "python_function", "name": "early", "pid": 100, "tid": 1, "ts": 0.000, "dur": 1.000}
]
}
)");
  set_sources(50, 11);  // args that are not JSON are left out
  EXPECT_EQ(chrome(model).find("NaN"), std::string::npos);
  set_sources(50, 12);
  EXPECT_EQ(chrome(model), "error: the source is gone");
}

TEST(Chrome, a_python_function_says_which_line_called_it) {
  Model model = TraceBuilder()
                    .python("lib/a.py(3): main", {.start_us = 0, .end_us = 9})
                    .python("<built-in function sorted>", {.start_us = 1, .end_us = 8})
                    .op("aten::mm", {.start_us = 2, .end_us = 7})
                    .python("nn.Module: Linear_0", {.start_us = 3, .end_us = 6})
                    .python("b.py(1): forward", {.start_us = 4, .end_us = 5})
                    .build();
  for (Row row = 0; row < model.host_slices.size(); ++row)
    model.host_slices.call_line[row] = 10 + static_cast<int>(row);
  model.host_slices.call_line[0] = -1;
  const std::string text = chrome(model);
  std::string found;
  for (size_t at = text.find("CallFrom"); at != std::string::npos; at = text.find("CallFrom", at + 1))
    found += text.substr(at + 12, text.find('"', at + 12) - at - 12) + " ";
  EXPECT_EQ(found, "lib/a.py:11 lib/a.py:13 torch/nn/modules/module.py:14 ");
}

TEST(Chrome, a_recording_of_ours_ends_with_its_name_as_kinetos_do) {
  Model model = TraceBuilder().op("a", {.start_us = 0, .end_us = 1}).build();
  const auto ends_with = [&](std::string_view end) {
    StringSink sink;
    EXPECT_TRUE(export_chrome(model, sink, {.file = "a \"b\".json"}).ok());
    return sink.text.ends_with(end);
  };
  EXPECT_TRUE(ends_with("]\n}\n"));  // another tool's trace says what it has to say
  model.info.origin = Origin::kFirelane;
  EXPECT_TRUE(ends_with("]\n, \"traceName\": \"a \\\"b\\\".json\"\n}\n"));
}

TEST(Chrome, forward_and_backward_are_joined_by_arrows) {
  Model model = TraceBuilder()
                    .op("aten::mm", {.start_us = 0, .end_us = 1, .sequence_number = 3})
                    .op("MmBackward0", {.start_us = 5, .end_us = 6, .thread = 2, .sequence_number = 3})
                    .flow("fwdbwd", 1, {.start_us = 0}, {.start_us = 5, .thread = 2})
                    .build();
  const std::string text = chrome(model);
  EXPECT_NE(text.find(R"("ph": "s", "cat": "fwdbwd", "name": "fwdbwd", "id": 2, "pid": 100, "tid": 1, "ts": 0.000)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(R"("ph": "f", "cat": "fwdbwd", "name": "fwdbwd", "id": 2, "pid": 100, "tid": 2, "ts": 5.000)"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace firelane::exporter
