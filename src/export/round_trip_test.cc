// A Chrome export read again gives the same model.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/test_depth.h"
#include "export/chrome.h"
#include "export/gzip_sink.h"
#include "import/load.h"
#include "model/same.h"
#include "model/trace_builder.h"

namespace firelane::exporter {
namespace {

std::string exported(const Model& model) {
  StringSink sink;
  const Result<void> result = export_chrome(model, sink);
  EXPECT_TRUE(result.ok()) << result.error().message;
  return sink.text;
}

// The first difference between a model and its export, read again.
std::string difference_after_round_trip(const Model& model) {
  Result<Model> again = importer::load_trace_bytes(exported(model), "again.json");
  if (!again.ok()) return again.error().message;
  return first_difference(model, again.value()).value_or("same");
}

TEST(RoundTrip, of_everything_a_builder_can_make) {
  TraceBuilder builder;
  builder.metadata("with_stack", "1")
      .metadata("user key", "{\"a\": [1, 2]}")
      .device({.id = 0, .name = "NVIDIA \"H200\"", .total_memory_bytes = 1000, .multiprocessors = 132})
      .step(3, {.start_us = 1, .end_us = 90})
      .python("train.py(3): main", {.start_us = 2, .end_us = 80})
      .op("aten::linear", {.start_us = 10.001,
                           .end_us = 60,
                           .external_id = 1,
                           .sequence_number = 5,
                           .forward_thread = 0,
                           .flops = 123,
                           .dims = "[[2, 3], []]",
                           .types = "[\"float\", \"\"]",
                           .strides = "[[3, 1], []]",
                           .concrete = "[\"\", \"True\"]",
                           .stack = "a.py(1): f;b.py(2): \"g\""})
      .op("aten::mm", {.start_us = 20, .end_us = 50, .external_id = 2})
      .call("cudaLaunchKernel", {.start_us = 30, .end_us = 35, .correlation = 7, .external_id = 2})
      .call("cuLaunchKernelEx", {.start_us = 36, .end_us = 37, .correlation = 8, .driver = true})
      .op("LinearBackward0", {.start_us = 70, .end_us = 75, .thread = 2, .external_id = 3, .sequence_number = 5})
      .flow("fwdbwd", 1, {.start_us = 10.001}, {.start_us = 70, .thread = 2})
      .flow("sent", 4, {.start_us = 20}, {.start_us = 70, .thread = 2})
      .kernel("gemm<float>", {.start_us = 40,
                              .end_us = 90,
                              .correlation = 7,
                              .external_id = 2,
                              .grid = 4,
                              .block = 64,
                              .registers = 32,
                              .occupancy_percent = 12.3f,
                              .graph_id = 9})
      .kernel("overlapping", {.start_us = 80, .end_us = 100, .correlation = 8})
      .copy("Memcpy HtoD", {.start_us = 101, .end_us = 105, .stream = 20, .bytes = 4096, .bandwidth_gb_s = 1.024f})
      .copy("Memcpy PtoP", {.start_us = 108, .end_us = 109, .bytes = 9, .source_device = 0, .target_device = 3})
      .copy("Memcpy DtoD", {.start_us = 110, .end_us = 111, .bytes = 9, .graph_id = 5})
      .set("Memset", {.start_us = 106, .end_us = 107, .bytes = 8})
      .device_annotation("ProfilerStep#3", {.start_us = 39.999, .end_us = 100.001})
      .overhead("Buffer Flush", {.start_us = 81, .end_us = 82, .thread = 5})
      .memory({.at_us = 21, .bytes = 512, .device_type = 1, .device = 0, .total_allocated = 1, .total_reserved = 2})
      .memory({.at_us = 22, .bytes = -512})
      .instant("mark", 33)
      .counter("power", 34, 350.25)
      .counter("power", 35, 1e-9);
  EXPECT_EQ(difference_after_round_trip(builder.build()), "same");
}

TEST(RoundTrip, of_hostile_names) {
  EXPECT_EQ(difference_after_round_trip(
                TraceBuilder()
                    .op("\"\\ \x01\n\t</script>, \xC3\xA9 \xF0\x9F\x94\xA5", {.start_us = 1, .end_us = 2})
                    .instant("[\"x\"]", 2)
                    .counter("{\"a\\", 2, 1)
                    .build()),
            "same");
}

TEST(RoundTrip, of_times_before_the_clock_started_and_of_zero_length) {
  EXPECT_EQ(difference_after_round_trip(TraceBuilder()
                                            .op("early", {.start_us = -5.25, .end_us = -1})
                                            .op("empty", {.start_us = 3, .end_us = 3})
                                            .instant("earlier", -9.5)
                                            .build()),
            "same");
}

TEST(RoundTrip, of_chrome_traces_with_begins_ends_and_async_events) {
  const Result<Model> model = importer::load_trace_bytes(R"({"baseTimeNanoseconds": 1000, "traceEvents": [
{"ph": "B", "name": "outer", "pid": 1, "tid": 2, "ts": 10, "args": {"x": 1}},
{"ph": "B", "name": "inner", "pid": 1, "tid": 2, "ts": 11},
{"ph": "E", "pid": 1, "tid": 2, "ts": 12},
{"ph": "E", "pid": 1, "tid": 2, "ts": 20},
{"ph": "b", "cat": "net", "name": "request", "id": "0x5", "pid": 1, "tid": 2, "ts": 11, "args": {"url": "a  b"}},
{"ph": "b", "cat": "net", "name": "parse", "id": "0x5", "pid": 1, "tid": 3, "ts": 12},
{"ph": "n", "cat": "net", "name": "first byte", "id": "0x5", "pid": 1, "tid": 2, "ts": 12.5},
{"ph": "e", "cat": "net", "name": "parse", "id": "0x5", "pid": 1, "tid": 3, "ts": 14},
{"ph": "b", "cat": "net", "name": "parse", "id": "0x5", "pid": 1, "tid": 3, "ts": 14},
{"ph": "e", "cat": "net", "name": "parse", "id": "0x5", "pid": 1, "tid": 3, "ts": 15},
{"ph": "e", "cat": "net", "name": "request", "id": "0x5", "pid": 1, "tid": 2, "ts": 18},
{"ph": "C", "name": "ctr", "pid": 1, "ts": 13, "args": {"cats": 1, "dogs": 2.5}},
{"ph": "i", "s": "g", "name": "global", "pid": "", "tid": "", "ts": 19},
{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "p"}},
{"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "t"}}
]})",
                                                         "first.json");
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(difference_after_round_trip(model.value()), "same");
  const std::string text = exported(model.value());
  EXPECT_NE(text.find(R"("args": {"url": "a  b"})"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("args": {"x": 1})"), std::string::npos) << text;
}

TEST(RoundTrip, of_arrows_with_steps_and_with_several_ends) {
  const Result<Model> model = importer::load_trace_bytes(R"([
{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 10, "dur": 5},
{"ph": "X", "name": "b", "pid": 1, "tid": 2, "ts": 20, "dur": 5},
{"ph": "X", "name": "c", "pid": 1, "tid": 3, "ts": 30, "dur": 5},
{"ph": "s", "name": "chain", "cat": "x", "id": 1, "pid": 1, "tid": 1, "ts": 10},
{"ph": "t", "name": "chain", "cat": "x", "id": 1, "pid": 1, "tid": 2, "ts": 22},
{"ph": "f", "name": "chain", "cat": "x", "id": 1, "pid": 1, "tid": 3, "ts": 30, "bp": "e"},
{"ph": "s", "name": "fan", "cat": "x", "id": 2, "pid": 1, "tid": 1, "ts": 10},
{"ph": "f", "name": "fan", "cat": "x", "id": 2, "pid": 1, "tid": 2, "ts": 20, "bp": "e"},
{"ph": "f", "name": "fan", "cat": "x", "id": 2, "pid": 1, "tid": 3, "ts": 30, "bp": "e"}
])",
                                                         "first.json");
  ASSERT_TRUE(model.ok()) << model.error().message;
  ASSERT_EQ(model.value().flows.size(), 4u);
  EXPECT_EQ(difference_after_round_trip(model.value()), "same");
}

TEST(RoundTrip, of_real_traces) {
  size_t traces = 0;
  for (const auto& entry : std::filesystem::directory_iterator(FIRELANE_TEST_DATA)) {
    const std::string path = entry.path().string();
    if (!path.ends_with(".json.gz") || path.find(".expected.") != std::string::npos) continue;
    if (entry.file_size() > 300'000 && !is_deep_test()) continue;
    ++traces;
    const Result<Model> model = importer::load_trace(path);
    ASSERT_TRUE(model.ok()) << model.error().message;
    EXPECT_EQ(difference_after_round_trip(model.value()), "same") << path;
  }
  EXPECT_GT(traces, 0u);
}

TEST(RoundTrip, through_gzip) {
  const Model model = TraceBuilder().op("a", {.start_us = 1, .end_us = 2}).build();
  StringSink sink;
  GzipSink gzip(sink);
  ASSERT_TRUE(export_chrome(model, gzip).ok());
  gzip.finish();
  const Result<Model> again = importer::load_trace_bytes(sink.text, "again.json.gz");
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(first_difference(model, again.value()), std::nullopt);
}

// CUPTI 13.0 gives fractions of 1: the reader makes them percents, once.
TEST(RoundTrip, a_throughput_that_was_made_a_percent_is_not_scaled_again) {
  Model model = importer::load_trace_bytes(R"({"cupti_version": 130001, "schemaVersion": 1, "traceEvents": [
    {"ph":"C","name":"dram__throughput.avg.pct_of_peak_sustained_elapsed","pid":"GPU 0 Counters","ts":1,"args":{"value":0.75}},
    {"ph":"C","name":"sm__cycles_active.avg.pct_of_peak_sustained_elapsed","pid":"GPU 0 Counters","ts":2,"args":{"value":50}}]})",
                                           "kineto.json")
                    .value();
  for (int times = 0; times < 3; ++times) {
    EXPECT_EQ(model.counter_samples.value, (std::vector<double>{75, 50})) << "after exports: " << times;
    model = importer::load_trace_bytes(exported(model), "again.json").value();
  }
}

}  // namespace
}  // namespace firelane::exporter
