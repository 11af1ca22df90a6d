// What a host's plane says beside its ranges: which lines are one thread, and what memory the device had.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "import/samples_for_tests.h"
#include "import/testing.h"
#include "import/xplane/read_xplane.h"
#include "import/xplane/testing.h"

namespace firelane::importer {
namespace {

using namespace xplane_testing;  // NOLINT(google-build-using-namespace): the words of these tests

constexpr int64_t kUs = 1'000'000;  // ps

std::string file_of(const std::vector<std::string>& planes) {
  std::string out;
  Writer space(out);
  for (const std::string& plane : planes) space.add_message(1, plane);
  return out;
}

// A GPU with three kernels, which two threads launch: each has a line of ranges and one of calls.
std::string gpu_file() {
  std::string device;
  Writer gpu(device);
  gpu.add_string(2, "/device:GPU:0");
  gpu.add_message(3, line(7, "Stream #7(Kernel)",
                          {event(1, 20 * kUs, 5 * kUs, {stat(1, 1)}), event(1, 60 * kUs, 5 * kUs, {stat(1, 2)}),
                           event(1, 90 * kUs, 5 * kUs, {stat(1, 3)})}));
  gpu.add_message(4, named(1, "loop_fusion.kd"));
  gpu.add_message(5, named(1, "correlation_id"));
  std::string out;
  Writer host(out);
  host.add_string(2, "/host:CPU");
  const auto call = [](int64_t at, int64_t correlation) {
    return event(3, at * kUs, 2 * kUs, {stat(1, correlation), stat(2, std::string("loop_fusion.1"))});
  };
  host.add_message(3, line(100, "execute/100",
                           {event(1, 5 * kUs, 50 * kUs), event(2, 10 * kUs, 10 * kUs), event(2, 40 * kUs, 10 * kUs)}));
  host.add_message(3, line(200, "execute/200", {event(1, 0, 99 * kUs), event(2, 80 * kUs, 10 * kUs)}));
  host.add_message(3, line(583, "Host Threads/583", {call(11, 1), call(41, 2)}));
  host.add_message(3, line(586, "Host Threads/586", {call(81, 3)}));
  host.add_message(3, line(300, "python/300", {event(4, 0, 200 * kUs)}));
  host.add_message(4, named(1, "Executable::Execute"));
  host.add_message(4, named(2, "loop_fusion.1"));
  host.add_message(4, named(3, "cuLaunchKernel"));
  host.add_message(4, named(4, "$train.py:3 main"));
  host.add_message(5, named(1, "correlation_id"));
  host.add_message(5, named(2, "hlo_op"));
  return file_of({device, out});
}

TEST(XPlaneHost, calls_are_put_into_the_thread_whose_ranges_they_lie_in) {
  const Model m = load_bytes(gpu_file());
  std::map<std::string, int> calls;  // by the thread of the range around them
  for (Row row = 0; row < m.host_slices.size(); ++row) {
    if (!is_call(m.host_slices.kind[row])) continue;
    const auto lane = static_cast<size_t>(m.host_slices.lane[row]);
    ++calls[std::string(m.text(m.lanes.name[lane])) + " " + std::to_string(m.lanes.tid[lane].number)];
    ASSERT_NE(m.host_slices.parent[row], kNoRow);
    EXPECT_EQ(m.text(m.host_slices.name[m.host_slices.parent[row]]), "loop_fusion.1");
  }
  EXPECT_EQ(calls, (std::map<std::string, int>{{"execute 100", 2}, {"execute 200", 1}}));
}

TEST(XPlaneHost, kernels_belong_to_the_hlo_op_that_launched_them) {
  const Model m = load_bytes(gpu_file());
  ASSERT_EQ(m.device_slices.size(), 3u);
  for (Row row = 0; row < m.device_slices.size(); ++row) {
    ASSERT_NE(m.device_slices.op[row], kNoRow);
    EXPECT_EQ(m.text(m.host_slices.name[m.device_slices.op[row]]), "loop_fusion.1");
  }
}

TEST(XPlaneHost, calls_that_lie_in_no_range_stay_where_they_are) {
  std::string out;
  Writer host(out);
  host.add_string(2, "/host:CPU");
  host.add_message(3, line(100, "execute/100", {event(1, 0, 10 * kUs)}));
  host.add_message(3, line(583, "Host Threads/583", {event(2, 50 * kUs, 2 * kUs), event(2, 5 * kUs, 2 * kUs)}));
  host.add_message(4, named(1, "Executable::Execute"));
  host.add_message(4, named(2, "cuLaunchKernel"));
  const Model m = load_bytes(file_of({out}));
  EXPECT_EQ(m.lanes.size(), 2u);
}

TEST(XPlaneHost, allocations_are_memory_events_and_no_ranges) {
  std::string out;
  Writer host(out);
  host.add_string(2, "/host:CPU");
  const auto mark = [](int64_t name, int64_t at, std::vector<std::string> stats) {
    return event(name, at * kUs, 0, stats);
  };
  const auto on_gpu = [](int64_t in_use, int64_t bytes, int64_t address) {
    return std::vector<std::string>{stat(1, std::string("GPU_1_bfc")), stat(3, in_use), stat(4, bytes),
                                    stat(5, address)};
  };
  // Of a TPU what is freed has no size: it is that of the allocation, or what is in use less than before.
  host.add_message(3, line(1, "a/1",
                           {mark(1, 10, on_gpu(4096, 4096, 64)), mark(2, 40, on_gpu(0, 4096, 64)),
                            mark(1, 11, {stat(2, 0), stat(3, 900), stat(4, 512), stat(5, 7)}),
                            mark(2, 12, {stat(2, 0), stat(3, 388), stat(5, 7)}),
                            mark(2, 13, {stat(2, 0), stat(3, 88), stat(5, 9)})}));
  host.add_message(3, line(2, "b/2", {mark(2, 1, {stat(2, 3), stat(5, 9)}), event(3, 0, 50 * kUs)}));
  host.add_message(4, named(1, "MemoryAllocation"));
  host.add_message(4, named(2, "MemoryDeallocation"));
  host.add_message(4, named(3, "Client::Execute"));
  const char* const keys[] = {"allocator_name", "index_on_host", "bytes_allocated", "allocation_bytes", "addr"};
  for (int64_t i = 0; i < 5; ++i) host.add_message(5, named(i + 1, keys[i]));
  const Model m = load_bytes(file_of({out}));
  EXPECT_EQ(m.memory_events.bytes, (std::vector<int64_t>{4096, 512, -512, -300, -4096}));
  EXPECT_EQ(m.memory_events.device, (std::vector<int32_t>{1, 0, 0, 0, 1}));
  EXPECT_EQ(m.memory_events.total_allocated_bytes, (std::vector<int64_t>{4096, 900, 388, 88, 0}));
  EXPECT_EQ(m.losses[Stat::kMemoryEventIncomplete], 1u);
  EXPECT_EQ(m.host_slices.size(), 1u);
}

// The op that begins a copy takes nanoseconds: with the bytes of the copy it moved 900 TB/s.
TEST(XPlaneHost, bytes_belong_to_the_copy_and_not_to_what_begins_it) {
  std::string out;
  Writer plane(out);
  plane.add_string(2, "/device:TPU:0");
  plane.add_message(3, line(3, "XLA Ops", {event(1, 0, 6000)}));
  plane.add_message(3, line(4, "Async XLA Ops", {event(1, 0, 90 * kUs), event(2, 0, 90 * kUs)}));
  const auto copy = [](int64_t id, const std::string& shapes) {
    std::string meta_bytes;
    Writer meta(meta_bytes);
    meta.add_string(2, "%copy-start = (" + shapes + ", u32[]{:S(2)}) copy-start(f32[8]{0} %param)");
    meta.add_string(4, "copy-start");
    meta.add_message(5, stat(1, std::string("copy-start")));
    meta.add_message(5, stat(2, 4096));
    return entry(id, meta_bytes);
  };
  plane.add_message(4, copy(1, "f32[8]{0:T(8,128)}, f32[8]{0:T(8,128)S(5)}"));
  plane.add_message(4, copy(2, "f32[8]{0:T(8,128)S(5)}, f32[8]{0:T(8,128)}"));
  plane.add_message(5, named(1, "hlo_category"));
  plane.add_message(5, named(2, "bytes_accessed"));
  const Model m = load_bytes(file_of({out}));
  EXPECT_EQ(m.kernel_details.bytes_accessed, (std::vector<int64_t>{kNoNumber}));
  EXPECT_EQ(m.copy_details.bytes, (std::vector<int64_t>{4096, 4096}));
  EXPECT_EQ(m.copy_details.direction, (std::vector<CopyDirection>{CopyDirection::kHtoD, CopyDirection::kDtoH}));
}

// Eight threads execute, seven copy; of one, which only copied twice, the ranges are in another thread's.
TEST(XPlaneHost, lines_of_calls_of_the_jax_sample_find_their_threads) {
  FL_NEED_SAMPLE(path, "jax_mi300_conv.xplane.pb");
  Result<Model> loaded = load_trace(path);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const Model& m = loaded.value();
  int executing = 0;
  int alone = 0;
  for (size_t lane = 0; lane < m.lanes.size(); ++lane) {
    const std::string_view name = m.text(m.lanes.name[lane]);
    if (m.lanes.host_end[lane] == m.lanes.host_begin[lane]) continue;
    alone += name == "Host Threads";
    if (name != "py_xla_execute") continue;
    for (Row row = m.lanes.host_begin[lane]; row < m.lanes.host_end[lane]; ++row) {
      if (!is_call(m.host_slices.kind[row])) continue;
      ++executing;
      break;
    }
  }
  EXPECT_EQ(executing, 8);
  EXPECT_LE(alone, 1);
}

}  // namespace
}  // namespace firelane::importer
