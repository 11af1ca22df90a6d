#include "import/json/other_devices.h"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <map>

#include "import/gzip_source.h"
#include "import/samples_for_tests.h"
#include "import/testing.h"

namespace firelane::importer {
namespace {

int64_t count(const Model& m, DeviceKind kind) {
  return std::count(m.device_slices.kind.begin(), m.device_slices.kind.end(), kind);
}

TEST(OtherDevices, ascend_has_launches_kernels_and_no_derived_work) {
  const Model m = load_text(R"([
    {"ph": "M", "name": "process_name", "pid": 8, "tid": 0, "args": {"name": "Ascend Hardware"}},
    {"ph": "M", "name": "process_labels", "pid": 8, "tid": 0, "args": {"labels": "NPU"}},
    {"ph": "M", "name": "process_name", "pid": 9, "tid": 0, "args": {"name": "Overlap Analysis"}},
    {"ph": "M", "name": "process_labels", "pid": 9, "tid": 0, "args": {"labels": "NPU"}},
    {"ph": "X", "cat": "cpu_op", "name": "ProfilerStep#4", "pid": 1, "tid": 1, "ts": "99.000", "dur": 90},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": "100.000", "dur": 20},
    {"ph": "s", "cat": "async_npu", "name": "torch_to_npu", "id": 1, "pid": 1, "tid": 1, "ts": "100.000"},
    {"ph": "f", "bp": "e", "cat": "async_npu", "name": "torch_to_npu", "id": 1, "pid": 8, "tid": 3, "ts": "130.000"},
    {"ph": "X", "name": "AscendCL@aclnnMm", "pid": 2, "tid": 1, "ts": "105.000", "dur": 5, "args": {"level": "acl", "connection_id": 7}},
    {"ph": "X", "name": "aclnnMm_MatMul", "pid": 8, "tid": 3, "ts": "130.000", "dur": 12.5, "args": {"Task Type": "AI_CORE", "Stream Id": 3, "connection_id": 7}},
    {"ph": "X", "name": "Computing", "pid": 9, "tid": 0, "ts": "130.000", "dur": 12.5}])");
  ASSERT_EQ(m.device_slices.size(), 1u);
  EXPECT_EQ(m.device_slices.kind[0], DeviceKind::kKernel);
  EXPECT_EQ(m.device_slices.stream[0], 3);
  EXPECT_EQ(m.device_slices.device[0], 0);
  EXPECT_EQ(m.device_slices.duration_ns[0], 12'500);
  EXPECT_EQ(m.text(m.host_slices.name[m.device_slices.launch[0]]), "AscendCL@aclnnMm");
  EXPECT_EQ(m.text(m.host_slices.name[m.device_slices.op[0]]), "aten::mm");
  EXPECT_EQ(m.steps.number, std::vector<int64_t>{4});
  EXPECT_EQ(m.info.accelerator, Accelerator::kNpu);
  EXPECT_EQ(m.info.format, "Ascend JSON");
  EXPECT_EQ(m.losses[Stat::kDeviceNotUnderstood], 0u);
}

TEST(OtherDevices, mtia_names_tell_kernels_copies_and_waits) {
  EXPECT_EQ(mtia_kind("pe_exe"), DeviceKind::kKernel);
  EXPECT_EQ(mtia_kind("dma_request"), DeviceKind::kCopy);
  EXPECT_EQ(mtia_kind("event_wait"), DeviceKind::kSync);
  EXPECT_EQ(mtia_kind("event_record"), DeviceKind::kEvent);
  const Model m = load_text(R"({"schemaVersion": 1, "traceEvents": [
    {"ph": "M", "name": "process_labels", "pid": 17, "tid": 0, "args": {"labels": "MTIA 17"}},
    {"ph": "X", "cat": "mtia_runtime", "name": "synchronizeStream", "pid": 1, "tid": 1, "ts": 10, "dur": 5, "args": {"correlation": 3}},
    {"ph": "X", "cat": "mtia_runtime", "name": "synchronize", "pid": 17, "tid": 90, "ts": 11, "dur": 3, "args": {"correlation": 3, "stream_id": 101}},
    {"ph": "X", "cat": "mtia_ccp_events", "name": "dma_request", "pid": 17, "tid": 91, "ts": 12, "dur": 2, "args": {"stream": 101, "direction": "HOST_TO_DEVICE", "size": 4096}}]})");
  EXPECT_EQ(count(m, DeviceKind::kSync), 1);
  EXPECT_EQ(count(m, DeviceKind::kCopy), 1);
  EXPECT_EQ(m.copy_details.bytes[0], 4096);
  EXPECT_EQ(m.copy_details.direction[0], CopyDirection::kHtoD);
  EXPECT_EQ(m.host_slices.size(), 1u) << "the queue repeats the host's call";
  EXPECT_EQ(m.info.accelerator, Accelerator::kMtia);
}

std::string_view launch_of(const Model& m, Row work) {
  return m.device_slices.launch[work] == kNoRow ? "" : m.text(m.host_slices.name[m.device_slices.launch[work]]);
}
std::string_view op_of(const Model& m, Row work) {
  return m.device_slices.op[work] == kNoRow ? "" : m.text(m.host_slices.name[m.device_slices.op[work]]);
}

TEST(OtherDevices, intel_kernels_have_launches_queues_and_operators) {
  const Model m = load_text(R"({"schemaVersion": 1, "deviceProperties": [], "traceEvents": [
    {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "args": {"labels": "XPU 0"}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10, "dur": 9, "args": {"External id": 4}},
    {"ph": "X", "cat": "xpu_runtime", "name": "urEnqueueKernelLaunch", "pid": 1, "tid": 1, "ts": 11, "dur": 2, "args": {"correlation": 9, "External id": 4}},
    {"ph": "X", "cat": "xpu_driver", "name": "zeCommandListAppendLaunchKernel", "pid": 1, "tid": 1, "ts": 11.5, "dur": 1, "args": {"correlation": 10}},
    {"ph": "X", "cat": "kernel", "name": "gemm_kernel", "pid": 0, "tid": 3, "ts": 15, "dur": 4, "args": {"sycl queue": 2, "l0 queue": 7, "correlation": 9, "External id": 4}},
    {"ph": "X", "cat": "xpu_runtime", "name": "urEnqueueUSMMemcpy", "pid": 1, "tid": 1, "ts": 14, "dur": 1, "args": {"correlation": 11}},
    {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy M2D", "pid": 0, "tid": 3, "ts": 20, "dur": 1, "args": {"correlation": 11, "bytes": 64}},
    {"ph": "X", "cat": "collective_comm", "name": "allreduce", "pid": 0, "tid": 4, "ts": 22, "dur": 3, "args": {}},
    {"ph": "X", "cat": "xpu_scope_profiler", "name": "counters", "pid": 1, "tid": 8, "ts": 12, "dur": 5}]})");
  EXPECT_EQ(m.info.accelerator, Accelerator::kXpu);
  ASSERT_EQ(m.device_slices.size(), 3u);
  EXPECT_EQ(count(m, DeviceKind::kKernel), 1);
  EXPECT_EQ(count(m, DeviceKind::kCopy), 1);
  EXPECT_EQ(count(m, DeviceKind::kCollective), 1);
  for (Row row = 0; row < m.device_slices.size(); ++row) {
    if (m.device_slices.kind[row] == DeviceKind::kCollective) continue;
    const bool is_kernel = m.device_slices.kind[row] == DeviceKind::kKernel;
    EXPECT_EQ(launch_of(m, row), is_kernel ? "urEnqueueKernelLaunch" : "urEnqueueUSMMemcpy");
    if (is_kernel) EXPECT_EQ(op_of(m, row), "aten::mm");
  }
  EXPECT_EQ(m.losses[Stat::kDeviceNotUnderstood], 0u);
}

TEST(OtherDevices, gaudi_ops_are_calls_on_threads_and_work_on_the_device) {
  const Model m = load_text(R"({"schemaVersion": 1, "traceEvents": [
    {"ph": "M", "name": "process_labels", "pid": 5, "tid": 0, "args": {"labels": "HPU 0"}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10, "dur": 9, "args": {"External id": 4}},
    {"ph": "X", "cat": "hpu_op", "name": "synLaunchWithExternalEvents", "pid": 1, "tid": 1, "ts": 12, "dur": 2, "args": {"correlation": 3}},
    {"ph": "X", "cat": "hpu_op", "name": "gemm_node", "pid": 5, "tid": 2, "ts": 16, "dur": 6, "args": {"correlation": 3}}]})");
  EXPECT_EQ(m.info.accelerator, Accelerator::kHpu);
  ASSERT_EQ(m.device_slices.size(), 1u);
  EXPECT_EQ(m.device_slices.kind[0], DeviceKind::kKernel);
  EXPECT_EQ(m.device_slices.stream[0], 2);
  EXPECT_EQ(launch_of(m, 0), "synLaunchWithExternalEvents");
  EXPECT_EQ(op_of(m, 0), "aten::mm");
}

TEST(OtherDevices, another_backend_of_pytorch_is_linked_by_its_correlation_ids) {
  const Model m = load_text(R"({"schemaVersion": 1, "traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10, "dur": 9, "args": {"External id": 4}},
    {"ph": "X", "cat": "privateuse1_runtime", "name": "fooLaunch", "pid": 1, "tid": 1, "ts": 12, "dur": 2, "args": {"correlation": 3}},
    {"ph": "X", "cat": "privateuse1_kernel", "name": "k", "pid": 0, "tid": 2, "ts": 16, "dur": 6, "args": {"device": 0, "stream": 2, "correlation": 3}},
    {"ph": "X", "cat": "privateuse1_memset", "name": "s", "pid": 0, "tid": 2, "ts": 30, "dur": 6, "args": {"device": 0, "stream": 2, "bytes": 8}}]})");
  EXPECT_EQ(m.info.accelerator, Accelerator::kPrivateUse1);
  ASSERT_EQ(m.device_slices.size(), 2u);
  EXPECT_EQ(launch_of(m, 0), "fooLaunch");
  EXPECT_EQ(op_of(m, 0), "aten::mm");
  EXPECT_EQ(m.device_slices.kind[1], DeviceKind::kSet);
  EXPECT_EQ(m.device_slices.stream[1], 2);
}

TEST(OtherDevices, categories_of_other_backends_say_what_they_are) {
  EXPECT_EQ(category_of("privateuse1_kernel").device, DeviceKind::kKernel);
  EXPECT_EQ(category_of("privateuse1_kernel").accelerator, Accelerator::kPrivateUse1);
  EXPECT_EQ(category_of("npu_memcpy").device, DeviceKind::kCopy);
  EXPECT_EQ(category_of("xpu_driver").host, HostKind::kDriver);
  EXPECT_EQ(category_of("hpu_op").host, HostKind::kRuntime);
  EXPECT_FALSE(category_of("my_category").known);
}

TEST(OtherDevices, an_unknown_device_is_counted_and_not_taken_for_the_program) {
  const Model m = load_text(R"([
    {"ph": "M", "name": "process_labels", "pid": 5, "tid": 0, "args": {"labels": "XYZ GPU 0"}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10, "dur": 5},
    {"ph": "X", "cat": "gadget_work", "name": "matmul", "pid": 5, "tid": 3, "ts": 12, "dur": 9}])");
  EXPECT_EQ(m.losses[Stat::kDeviceNotUnderstood], 1u);
}

TEST(OtherDevices, lists_of_pretty_printed_files_are_those_of_compact_ones) {
  const Model m = load_text(
      "[{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm\", \"pid\": 1, \"tid\": 1, \"ts\": 1, "
      "\"dur\": 1, \"args\": {\"Input Dims\": [\n  [\n    2,\n    3\n  ],\n  []\n]}},\n"
      "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\", \"pid\": 0, \"tid\": 7, \"ts\": 1, \"dur\": 1, "
      "\"args\": {\"grid\": [\n  4,\n  5,\n  6\n]}}]");
  EXPECT_EQ(m.text(m.op_details.input_dims[0]), "[[2, 3], []]");
  EXPECT_EQ(m.kernel_details.grid_x[0], 4);
  EXPECT_EQ(m.kernel_details.grid_z[0], 6);
}

// ---- real files, against another reader

struct Sums {
  std::map<std::string, int64_t> count;  // by category and process
  std::map<std::string, double> duration_us;
};

// Counts and durations of complete events, by category and process: every value as the JSON says it.
Sums read_with_dom(const std::string& path) {
  auto file = open_file(path);
  EXPECT_TRUE(file.ok());
  const std::unique_ptr<ByteSource> content = open_gzip(std::move(file).value(), uint64_t{1} << 32);
  const std::string text = read_all(*content, 1 << 20);
  simdjson::dom::parser parser;
  simdjson::dom::element root = parser.parse(text);
  simdjson::dom::array events;
  if (root.get(events) != simdjson::SUCCESS) events = root["traceEvents"];
  Sums sums;
  for (const simdjson::dom::element event : events) {
    std::string_view phase;
    if (event["ph"].get(phase) != simdjson::SUCCESS || phase != "X") continue;
    std::string_view category = "none";
    (void)event["cat"].get(category);
    const std::string key = std::string(category) + " " + simdjson::minify(event["pid"]);
    ++sums.count[key];
    sums.duration_us[key] += double(event["dur"]);
  }
  return sums;
}

double work_us(const Model& m, DeviceKind kind) {
  double sum = 0;
  for (Row row = 0; row < m.device_slices.size(); ++row) {
    if (m.device_slices.kind[row] == kind) sum += static_cast<double>(m.device_slices.duration_ns[row]) / 1000;
  }
  return sum;
}

TEST(OtherDevices, the_ascend_sample_gives_every_task) {
  FL_NEED_SAMPLE(path, "ascend_trace_view.json.gz");
  const Sums sums = read_with_dom(path);
  Result<Model> loaded = load_trace(path);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const Model& m = loaded.value();
  EXPECT_EQ(static_cast<int64_t>(m.device_slices.size()), sums.count.at("none 800"));
  EXPECT_NEAR(work_us(m, DeviceKind::kKernel) + work_us(m, DeviceKind::kCopy) + work_us(m, DeviceKind::kEvent) +
                  work_us(m, DeviceKind::kSync) + work_us(m, DeviceKind::kCollective),
              sums.duration_us.at("none 800"), 1);
  EXPECT_EQ(static_cast<int64_t>(m.call_details.size()), sums.count.at("none 43767502"));
  // All tasks with arrows have both ends: 274 of 276.
  EXPECT_EQ(std::count_if(m.device_slices.op.begin(), m.device_slices.op.end(), [](Row op) { return op != kNoRow; }),
            274);
  EXPECT_EQ(std::count_if(m.device_slices.launch.begin(), m.device_slices.launch.end(),
                          [](Row launch) { return launch != kNoRow; }),
            274);
  EXPECT_EQ(m.losses[Stat::kDeviceNotUnderstood], 0u);
}

TEST(OtherDevices, the_mtia_sample_gives_every_event) {
  FL_NEED_SAMPLE(path, "kineto_mtia_inference.json.gz");
  const Sums sums = read_with_dom(path);
  Result<Model> loaded = load_trace(path);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const Model& m = loaded.value();
  EXPECT_EQ(static_cast<int64_t>(m.device_slices.size()),
            sums.count.at("mtia_ccp_events 17") + sums.count.at("mtia_runtime 17"));
  EXPECT_EQ(count(m, DeviceKind::kCopy), 877);
  EXPECT_EQ(count(m, DeviceKind::kEvent), 291);
  EXPECT_EQ(count(m, DeviceKind::kKernel), 37 + 36 + 24);
  EXPECT_NEAR(work_us(m, DeviceKind::kKernel), 48529.645 + 257869.75 + 107685.728, 1);
  int64_t launched = 0;
  for (Row row = 0; row < m.device_slices.size(); ++row) {
    if (m.device_slices.kind[row] == DeviceKind::kCopy && m.device_slices.launch[row] != kNoRow) ++launched;
  }
  EXPECT_EQ(launched, 657) << "copies with a correlation id";
  EXPECT_EQ(m.info.accelerator, Accelerator::kMtia);
}

TEST(OtherDevices, the_rocm_sample_is_hip) {
  FL_NEED_SAMPLE(path, "kineto_mi300_qwen.json.gz");
  const Sums sums = read_with_dom(path);
  Result<Model> loaded = load_trace(path);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const Model& m = loaded.value();
  EXPECT_EQ(m.info.accelerator, Accelerator::kHip);
  EXPECT_EQ(count(m, DeviceKind::kKernel), sums.count.at("kernel 2"));
  EXPECT_NEAR(work_us(m, DeviceKind::kKernel), sums.duration_us.at("kernel 2"), 1);
  // The file lists device 0 only; the work is on device 2 of the same kind.
  const auto& occupancy = m.kernel_details.occupancy_percent;
  EXPECT_GT(std::count_if(occupancy.begin(), occupancy.end(), [](float percent) { return percent > 0; }), 1000);
}

}  // namespace
}  // namespace firelane::importer
