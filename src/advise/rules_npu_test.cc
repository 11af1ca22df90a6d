// Traces of torch_npu: a queue between the program and CANN, operators that CANN compiles, and no good news while the
// device idles.
#include <gtest/gtest.h>

#include <string>

#include "advise/testing.h"
#include "import/load.h"
#include "import/samples_for_tests.h"

namespace firelane::advise {
namespace {

// Three steps of 3 ms. In each the program gives two operators to the queue, and the thread behind it calls CANN: one
// call of `first_us`, one of 20 us. The device is done with either in 10 us, and the program reads a number then.
std::string npu_trace(const std::string& first_call, int first_us) {
  std::string events = R"([
    {"ph": "M", "name": "process_name", "pid": 7, "tid": 0, "args": {"name": "Python"}},
    {"ph": "M", "name": "process_name", "pid": 702, "tid": 0, "args": {"name": "CANN"}},
    {"ph": "M", "name": "process_labels", "pid": 702, "tid": 0, "args": {"labels": "CPU"}},
    {"ph": "M", "name": "process_name", "pid": 8, "tid": 0, "args": {"name": "Ascend Hardware"}},
    {"ph": "M", "name": "process_labels", "pid": 8, "tid": 0, "args": {"labels": "NPU"}})";
  int id = 0;
  const auto slice = [&](const std::string& name, const char* cat, int pid, int tid, int ts, int dur,
                         const std::string& args) {
    events += R"(, {"ph": "X", "name": ")" + name + "\", " +
              (*cat == 0 ? "" : R"("cat": ")" + std::string(cat) + "\", ") + R"("pid": )" + std::to_string(pid) +
              R"(, "tid": )" + std::to_string(tid) + R"(, "ts": ")" + std::to_string(ts) + R"(.000", "dur": )" +
              std::to_string(dur) + R"(, "args": {)" + args + "}}";
  };
  const auto arrow = [&](const char* cat, int from_tid, int from, int to_pid, int to_tid, int to) {
    const std::string rest = R"(, "cat": ")" + std::string(cat) + R"(", "name": "a", "id": )" + std::to_string(id);
    events += R"(, {"ph": "s", "bp": "e", "pid": 7, "tid": )" + std::to_string(from_tid) + R"(, "ts": ")" +
              std::to_string(from) + ".000\"" + rest + "}";
    events += R"(, {"ph": "f", "bp": "e", "pid": )" + std::to_string(to_pid) + R"(, "tid": )" + std::to_string(to_tid) +
              R"(, "ts": ")" + std::to_string(to) + ".000\"" + rest + "}";
  };
  for (int step = 0; step < 3; ++step) {
    const int at = 10'000 + step * 3'000;
    slice("ProfilerStep#" + std::to_string(step), "cpu_op", 7, 1, at, 3'000, "");
    slice("aten::empty", "cpu_op", 7, 1, at + 500, 5, "");  // the program goes on meanwhile
    int call_at = at + 30;
    for (int op = 0; op < 2; ++op) {
      const bool is_first = op == 0;
      const int asked = at + 10 + 10 * op;
      ++id;
      slice(is_first ? "aten::conv2d" : "aten::relu", "cpu_op", 7, 1, asked, 8, "");
      slice("Enqueue", "enqueue", 7, 1, asked + 2, 2, R"("correlation_id": )" + std::to_string(id));
      arrow("async_task_queue", 1, asked + 2, 7, 2, call_at);
      const int took = is_first ? first_us : 20;
      slice("Dequeue@x", "dequeue", 7, 2, call_at, took + 2, "");
      slice("AscendCL@" + (is_first ? first_call : "aclnnRelu"), "", 702, 2, call_at + 1, took,
            R"("level": "acl", "connection_id": )" + std::to_string(id));
      const int done = call_at + took + 3;
      slice(is_first ? "Conv2D" : "Relu", "", 8, 3, done, 10,
            R"("Task Type": "AI_CORE", "Stream Id": 3, "connection_id": )" + std::to_string(id));
      arrow("async_npu", 1, asked, 8, 3, done);
      call_at += took + 5;
    }
    // Reading a number waits for the queue first, and then for the device.
    slice("aten::item", "cpu_op", 7, 1, at + 600, call_at + 40 - (at + 600), "");
    slice("AscendCL@aclrtSynchronizeStream", "", 702, 1, call_at + 5, 15, R"("level": "acl")");
  }
  return events + "]";
}

Model loaded(const std::string& text) {
  Result<Model> model = importer::load_trace_bytes(text, "trace_view.json");
  EXPECT_TRUE(model.ok());
  return std::move(model).value();
}

TEST(RulesNpu, operators_that_cann_compiles_are_found_with_what_torch_npu_calls_it) {
  const Model m = loaded(npu_trace("aclopCompileAndExecute", 2'500));
  const Judged judged = diagnose(m);
  EXPECT_EQ(judged.verdict.bound.limit, analyze::Limit::kOverhead);
  const Finding* finding = find(judged, "npu-compiled-operators");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->cost_ns, 2'500'000);
  EXPECT_EQ(finding->events, 3);
  EXPECT_GT(finding->gain.middle_ns(), 1'000'000);
  EXPECT_NE(finding->try_code.find("torch_npu.npu.set_compile_mode(jit_compile=False)"), std::string::npos);
  EXPECT_EQ(finding->title.find("CUDA"), std::string::npos);
}

TEST(RulesNpu, operators_of_the_operator_package_are_no_finding) {
  const Model m = loaded(npu_trace("aclnnConvolution", 2'500));
  EXPECT_EQ(find(diagnose(m), "npu-compiled-operators"), nullptr);
}

TEST(RulesNpu, calls_of_cann_are_those_of_the_programs_threads) {
  const Model m = loaded(npu_trace("aclopCompileAndExecute", 2'500));
  for (Row row = 0; row < m.host_slices.size(); ++row) {
    if (m.host_slices.kind[row] != HostKind::kRuntime) continue;
    ASSERT_NE(m.host_slices.parent[row], kNoRow);
    const bool waits = m.text(m.host_slices.name[row]).ends_with("SynchronizeStream");
    EXPECT_EQ(m.text(m.host_slices.name[m.host_slices.parent[row]]), waits ? "aten::item" : "Dequeue@x");
  }
  for (size_t lane = 0; lane < m.lanes.size(); ++lane) EXPECT_NE(m.text(m.lanes.process_name[lane]), "CANN");
}

TEST(RulesNpu, the_path_goes_through_the_queue) {
  const Model m = loaded(npu_trace("aclopCompileAndExecute", 2'500));
  const Judged judged = diagnose(m);
  EXPECT_TRUE(judged.study.graph.has_handoffs);
  EXPECT_TRUE(judged.study.host->leads);
  const analyze::CriticalPath& path = judged.study.path;
  EXPECT_EQ(path.by_class[static_cast<size_t>(analyze::PathClass::kUnknown)], 0);
  EXPECT_GT(path.by_class[static_cast<size_t>(analyze::PathClass::kHost)], path.total_ns * 8 / 10);
  const auto loading = static_cast<size_t>(analyze::cause_of(analyze::Activity::kLoading));
  EXPECT_GT(judged.study.idle.by_cause[loading], judged.study.idle.idle_ns * 7 / 10);
}

TEST(Diagnose, a_device_that_idles_most_of_the_time_was_called_nothing_worth_fixing) {
  // Nothing that a rule knows: the second step waits in something that no call or operator shows.
  TraceBuilder builder;
  for (int step = 0; step < 4; ++step) {
    const double at = step * 1000;
    builder.step(step, {.start_us = at, .end_us = at + 1000});
    builder.op("aten::mm", {.start_us = at + 900, .end_us = at + 920});
    builder.call("cudaLaunchKernel", {.start_us = at + 905, .end_us = at + 915, .correlation = step + 1});
    builder.kernel("gemm", {.start_us = at + 920, .end_us = at + 990, .correlation = step + 1});
  }
  const Model m = builder.build();
  const Judged judged = diagnose(m);
  EXPECT_FALSE(judged.healthy);
  if (judged.findings.empty()) {
    EXPECT_NE(judged.why.find("the device is idle 93% of a step"), std::string::npos) << judged.why;
  }
}

TEST(RulesNpu, the_sample_waits_for_compiled_operators) {
  FL_NEED_SAMPLE(path, "ascend_trace_view.json.gz");
  Result<Model> model = importer::load_trace(path);
  ASSERT_TRUE(model.ok()) << model.error().message;
  const Judged judged = diagnose(model.value());
  EXPECT_EQ(judged.verdict.bound.limit, analyze::Limit::kOverhead);
  EXPECT_FALSE(judged.healthy);
  const Finding* finding = find(judged, "npu-compiled-operators");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->events, 11) << "calls of aclopCompileAndExecute in the file";
  EXPECT_NEAR(static_cast<double>(finding->cost_ns), 6'637e3, 2e3) << "the sum of their dur";
  EXPECT_GT(finding->gain.middle_ns(), 2'000'000);
}

}  // namespace
}  // namespace firelane::advise
