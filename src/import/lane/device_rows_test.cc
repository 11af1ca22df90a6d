// Device chunks read into the model: clocks, links to ops, names, the user's ranges on the device, occupancy.
#include <gtest/gtest.h>

#include <bit>

#include "format/chunk.h"
#include "format/device.h"
#include "format/events.h"
#include "format/notes.h"
#include "format/testing.h"
#include "import/lane/read_lane.h"

namespace firelane::importer {
namespace {

using format::test::StringSink;

constexpr uint64_t kDeviceStart = 1'000'000;  // ticks; 2 of them a nanosecond
constexpr int64_t kDeviceUnix = 1'790'000'000'000'000'000;
constexpr int64_t kDevice = 5'000'000'000;  // the device's clock at the start

uint64_t ticks(int64_t ns) { return kDeviceStart + 2 * static_cast<uint64_t>(ns); }
int64_t device(int64_t ns) { return kDevice + ns; }

// Texts 1..5: an op, a user's range, a step, a kernel, a call.
class DeviceLane {
 public:
  explicit DeviceLane(int64_t device_start = kDevice) : writer_(sink_, 1) {
    EXPECT_EQ(writer_.write_header(1), "");
    std::string items;
    format::NotesWriter notes(items);
    notes.process(77, TickSource::kTsc, 2e9, "box", "/usr/bin/python3 train.py");
    notes.clock_pair(format::PairRole::kStart, {.ticks = kDeviceStart, .monotonic_ns = 500, .unix_ns = kDeviceUnix});
    notes.device_clock(format::PairRole::kStart, kDeviceStart, device_start, 100);
    notes.metadata("deviceProperties",
                   R"([{"id": 0, "name": "H200", "computeMajor": 9, "computeMinor": 0, "numSms": 132, "warpSize": 32,
                        "maxThreadsPerMultiprocessor": 2048, "regsPerMultiprocessor": 65536,
                        "sharedMemPerMultiprocessor": 233472}])");
    chunk(format::ChunkKind::kNotes, items);
    std::string payload;
    format::append_definitions(payload, 1, {"aten::mm", "load", "ProfilerStep#3", "_Z4gemmPf", "cudaLaunchKernel"});
    format::SectionWriter main;
    main.begin(0, 42, kDeviceStart, kDeviceStart);
    main.add({.kind = format::Record::kAsyncBegin,
              .scope = format::Scope::kUser,
              .text = 3,
              .ticks = ticks(0),
              .number = 1});
    main.add({.kind = format::Record::kAsyncBegin,
              .scope = format::Scope::kUser,
              .text = 2,
              .ticks = ticks(100),
              .number = 3});
    main.add({.kind = format::Record::kBegin, .scope = format::Scope::kFunction, .text = 1, .ticks = ticks(200)});
    main.add({.kind = format::Record::kEnd, .ticks = ticks(400)});
    main.add({.kind = format::Record::kAsyncEnd, .ticks = ticks(500), .number = 3});
    main.add({.kind = format::Record::kAsyncEnd, .ticks = ticks(900), .number = 1});
    main.append_to(payload);
    chunk(format::ChunkKind::kEvents, payload);
  }
  // A launch as the recorder's own callback sees it: in the thread's stream, on the recorder's clock.
  void host_launch(int64_t at, int64_t correlation) {
    std::string payload;
    format::append_definitions(payload, 6, {});
    format::SectionWriter section;
    section.begin(0, 42, kDeviceStart, ticks(at));
    section.add({.kind = format::Record::kSlice,
                 .scope = format::Scope::kRuntime,
                 .text = 5,
                 .ticks = ticks(at),
                 .number = 20});
    section.add(
        {.kind = format::Record::kAttribute, .attribute = format::Attribute::kCorrelation, .number = correlation});
    section.append_to(payload);
    chunk(format::ChunkKind::kEvents, payload);
  }
  void chunk(format::ChunkKind kind, std::string_view payload) { EXPECT_EQ(writer_.write_chunk(kind, payload), ""); }
  void rows() {
    std::string payload;
    format::append_definitions(payload, 6, {});
    device_rows.append_to(payload);
    chunk(format::ChunkKind::kDevice, payload);
  }
  void stop(int64_t device_ns, int64_t at_ns) {
    std::string items;
    format::NotesWriter notes(items);
    notes.device_clock(format::PairRole::kStop, ticks(at_ns), device_ns, 60);
    notes.clock_pair(format::PairRole::kStop,
                     {.ticks = ticks(at_ns), .monotonic_ns = 500 + at_ns, .unix_ns = kDeviceUnix + at_ns});
    chunk(format::ChunkKind::kNotes, items);
  }
  Model model() {
    EXPECT_EQ(writer_.finish(0), "");
    auto raw = read_lane(sink_.content, "test.lane", 1 << 30);
    EXPECT_TRUE(raw.ok());
    return assemble(std::move(raw).value());
  }
  format::DeviceWriter device_rows;

 private:
  StringSink sink_;
  format::ChunkWriter writer_;
};

format::DeviceCallRow launch(int64_t at, int64_t correlation, int64_t thread_id = 42) {
  return {.start_ns = device(at), .duration_ns = 10, .thread_id = thread_id, .correlation = correlation, .name = 5};
}
format::DeviceKernelRow kernel(int64_t at, int64_t correlation, int64_t stream = 7) {
  return {.start_ns = device(at),
          .duration_ns = 50,
          .context = 1,
          .stream = stream,
          .correlation = correlation,
          .name = 4,
          .grid_x = 264,
          .grid_y = 1,
          .grid_z = 1,
          .block_x = 256,
          .block_y = 1,
          .block_z = 1,
          .registers = 32};
}

Row find(const Model& m, DeviceKind kind, size_t nth = 0) {
  for (Row row = 0; row < m.device_slices.size(); ++row) {
    if (m.device_slices.kind[row] == kind && nth-- == 0) return row;
  }
  return kNoRow;
}

TEST(DeviceRows, a_kernel_finds_its_launch_and_its_op_by_thread_and_time) {
  DeviceLane file;
  file.device_rows.add(kernel(600, 9));
  file.device_rows.add(launch(300, 9));
  file.rows();
  const Model m = file.model();
  const Row k = find(m, DeviceKind::kKernel);
  ASSERT_NE(k, kNoRow);
  const DeviceSlices& d = m.device_slices;
  EXPECT_EQ(m.text(d.name[k]), "gemm(float*)");
  EXPECT_EQ(d.start_ns[k], 600);
  EXPECT_EQ(d.duration_ns[k], 50);
  ASSERT_NE(d.launch[k], kNoRow);
  EXPECT_EQ(m.text(m.host_slices.name[d.launch[k]]), "cudaLaunchKernel");
  EXPECT_EQ(m.host_slices.start_ns[d.launch[k]], 300);
  ASSERT_NE(d.op[k], kNoRow);
  EXPECT_EQ(m.text(m.host_slices.name[d.op[k]]), "aten::mm");
  const auto lane = static_cast<uint32_t>(d.lane[k]);
  EXPECT_EQ(m.lanes.kind[lane], LaneKind::kStream);
  EXPECT_EQ(m.text(m.lanes.name[lane]), "stream 7");
  EXPECT_EQ(m.text(m.lanes.process_labels[lane]), "GPU 0");
  EXPECT_EQ(m.text(m.lanes.process_name[lane]), "python3");
  EXPECT_EQ(m.losses[Stat::kKernelBeforeLaunch], 0u);
}

TEST(DeviceRows, a_launch_seen_by_a_callback_links_as_one_from_an_activity_record) {
  DeviceLane file;
  file.device_rows.add(kernel(600, 9));
  file.host_launch(300, 9);
  file.rows();
  const Model m = file.model();
  const Row k = find(m, DeviceKind::kKernel);
  const DeviceSlices& d = m.device_slices;
  ASSERT_NE(d.launch[k], kNoRow);
  EXPECT_EQ(m.text(m.host_slices.name[d.launch[k]]), "cudaLaunchKernel");
  EXPECT_EQ(m.host_slices.start_ns[d.launch[k]], 300);
  EXPECT_EQ(m.host_slices.duration_ns[d.launch[k]], 10);
  ASSERT_NE(d.op[k], kNoRow);
  EXPECT_EQ(m.text(m.host_slices.name[d.op[k]]), "aten::mm");
  EXPECT_NE(find(m, DeviceKind::kAnnotation), kNoRow) << "the user's range and the step are on the device, too";
}

// As c10d does it: the op with the details, in it a range, in that the launch.
TEST(DeviceRows, the_kernel_of_a_collective_says_which_one) {
  DeviceLane file;
  std::string payload;
  format::append_definitions(
      payload, 6, {"record_param_comms", R"({"Collective name": "allreduce", "Group size": 8})", "nccl:all_reduce"});
  format::SectionWriter section;
  section.begin(0, 42, kDeviceStart, ticks(1000));
  section.add({.kind = format::Record::kBegin, .scope = format::Scope::kFunction, .text = 6, .ticks = ticks(1000)});
  section.add({.kind = format::Record::kAttribute, .attribute = format::Attribute::kExtraArgs, .text = 7});
  section.add({.kind = format::Record::kAsyncBegin,
               .scope = format::Scope::kUser,
               .text = 8,
               .ticks = ticks(1010),
               .number = 9});
  section.add({.kind = format::Record::kAsyncEnd, .ticks = ticks(1090), .number = 9});
  section.add({.kind = format::Record::kEnd, .ticks = ticks(1100)});
  section.append_to(payload);
  file.chunk(format::ChunkKind::kEvents, payload);
  file.host_launch(1050, 9);
  file.host_launch(1200, 10);
  file.device_rows.add(kernel(1300, 9));
  file.device_rows.add(kernel(1400, 10));
  file.rows();
  const Model m = file.model();
  const DeviceSlices& d = m.device_slices;
  const Row reduces = find(m, DeviceKind::kKernel);
  ASSERT_NE(d.comm[reduces], kNoRow);
  EXPECT_EQ(m.text(m.comm_details.collective[d.comm[reduces]]), "allreduce");
  EXPECT_EQ(m.comm_details.group_size[d.comm[reduces]], 8);
  EXPECT_EQ(d.comm[find(m, DeviceKind::kKernel, 1)], kNoRow);
}

TEST(DeviceRows, clocks_are_laid_on_the_line_through_both_readings_and_the_error_is_known) {
  DeviceLane file;
  file.device_rows.add(kernel(2'000'200, 9));  // on a device clock that runs 100 ppm fast
  file.rows();
  file.stop(device(4'000'400), 4'000'000);
  const Model m = file.model();
  EXPECT_EQ(m.device_slices.start_ns[find(m, DeviceKind::kKernel)], 2'000'000);
  const RecorderInfo::DeviceClock& clock = m.info.recorder.device_clock;
  EXPECT_EQ(clock.readings, 2u);
  EXPECT_NEAR(clock.drift_ppm, -100, 0.1);
  EXPECT_EQ(clock.error_ns, 25);  // half of 100 ticks of half a nanosecond
}

TEST(DeviceRows, a_device_clock_that_counts_the_processors_ticks_is_read_as_ticks) {
  DeviceLane file(kDeviceStart);
  format::DeviceKernelRow k = kernel(0, 9);
  k.start_ns = static_cast<int64_t>(ticks(600));
  k.duration_ns = 100;  // ticks
  file.device_rows.add(k);
  file.rows();
  const Model m = file.model();
  const Row row = find(m, DeviceKind::kKernel);
  EXPECT_EQ(m.device_slices.start_ns[row], 600);
  EXPECT_EQ(m.device_slices.duration_ns[row], 50);
  EXPECT_EQ(m.info.recorder.device_clock.drift_ppm, 0);
}

TEST(DeviceRows, ranges_and_steps_lie_on_the_device_lanes) {
  DeviceLane file;
  file.device_rows.add(launch(150, 1));
  file.device_rows.add(launch(250, 2));
  file.device_rows.add(launch(700, 3, 43));  // another thread, inside of the step
  file.device_rows.add(launch(950, 4));      // after all
  for (int64_t i = 1; i <= 4; ++i) file.device_rows.add(kernel(1000 * i, i));
  file.rows();
  const Model m = file.model();
  const DeviceSlices& d = m.device_slices;
  std::string text;
  for (Row row = 0; row < d.size(); ++row) {
    if (d.kind[row] != DeviceKind::kAnnotation) continue;
    text += std::string(m.text(d.name[row])) + " " + std::to_string(d.start_ns[row]) + " +" +
            std::to_string(d.duration_ns[row]) + "\n";
  }
  EXPECT_EQ(text, "ProfilerStep#3 1000 +2050\nload 1000 +1050\n");
}

TEST(DeviceRows, copies_sets_and_waits_have_kinetos_names) {
  DeviceLane file;
  file.device_rows.add(format::DeviceCopyRow{.start_ns = device(10),
                                             .duration_ns = 4,
                                             .context = 3,
                                             .stream = 7,
                                             .correlation = 1,
                                             .bytes = 400,
                                             .direction = 1,
                                             .source_memory = 2,
                                             .target_memory = 3});
  file.device_rows.add(
      format::DeviceSetRow{.start_ns = device(20), .duration_ns = 2, .stream = 7, .bytes = 64, .memory = 3});
  file.device_rows.add(format::DeviceEventRow{.stream = 13, .correlation = 55, .event = 5, .event_sync = 8});
  file.device_rows.add(format::DeviceSyncRow{
      .start_ns = device(30), .duration_ns = 9, .stream = 7, .type = 2, .event = 5, .event_sync = 8});
  file.device_rows.add(
      format::DeviceSyncRow{.start_ns = device(40), .duration_ns = 9, .stream = 7, .type = 3, .event = -1});
  file.device_rows.add(
      format::DeviceSyncRow{.start_ns = device(50), .duration_ns = 9, .stream = -1, .type = 4, .event = -1});
  file.rows();
  const Model m = file.model();
  const DeviceSlices& d = m.device_slices;
  const Row copy = find(m, DeviceKind::kCopy);
  EXPECT_EQ(m.text(d.name[copy]), "Memcpy HtoD (Pinned -> Device)");
  EXPECT_EQ(m.copy_details.bytes[d.detail[copy]], 400);
  EXPECT_EQ(m.copy_details.context[d.detail[copy]], 3);
  EXPECT_FLOAT_EQ(m.copy_details.bandwidth_gb_s[d.detail[copy]], 100);
  EXPECT_EQ(m.text(d.name[find(m, DeviceKind::kSet)]), "Memset (Device)");
  std::string waits;
  for (size_t i = 0; find(m, DeviceKind::kSync, i) != kNoRow; ++i) {
    const Row row = find(m, DeviceKind::kSync, i);
    waits +=
        std::string(m.text(d.name[row])) + " on " + m.id_text(m.lanes.tid[static_cast<uint32_t>(d.lane[row])]) + "; ";
    if (m.text(d.name[row]) == "Stream Wait Event") {
      EXPECT_EQ(m.sync_details.wait_on_stream[d.detail[row]], 13);
      EXPECT_EQ(m.sync_details.wait_on_correlation[d.detail[row]], 55);
    }
  }
  EXPECT_EQ(waits, "Context Sync on 1; Stream Wait Event on 7; Stream Sync on 1000007; ");
}

TEST(DeviceRows, copies_and_sets_have_their_context_graph_and_devices) {
  DeviceLane file;
  file.device_rows.add(format::DeviceCopyRow{.start_ns = device(10),
                                             .context = 2,
                                             .bytes = 1,
                                             .direction = 10,
                                             .source_memory = 3,
                                             .target_memory = 3,
                                             .source_device = 1,
                                             .target_device = 0});
  file.device_rows.add(format::DeviceCopyRow{
      .start_ns = device(20), .context = 2, .bytes = 2, .direction = 8, .graph_id = 4, .graph_node_id = 7});
  file.device_rows.add(format::DeviceSetRow{.start_ns = device(30), .context = 3, .bytes = 3, .graph_id = 4});
  file.rows();
  const Model m = file.model();
  EXPECT_EQ(m.text(m.device_slices.name[find(m, DeviceKind::kCopy)]), "Memcpy PtoP (Device -> Device)");
  const CopyDetails& c = m.copy_details;
  EXPECT_EQ(c.context, (std::vector<int64_t>{2, 2, 3}));
  EXPECT_EQ(c.source_device, (std::vector<int64_t>{1, kNoNumber, kNoNumber}));
  EXPECT_EQ(c.target_device, (std::vector<int64_t>{0, kNoNumber, kNoNumber}));
  EXPECT_EQ(c.graph_id, (std::vector<int64_t>{kNoNumber, 4, 4}));
  EXPECT_EQ(c.graph_node_id, (std::vector<int64_t>{kNoNumber, 7, kNoNumber}));
}

TEST(DeviceRows, work_across_the_edges_of_the_recording_is_kept_marked_and_counted) {
  DeviceLane file;
  for (const int64_t at : {560, 600, 640, 700, 760}) file.device_rows.add(kernel(at, at));  // 50 ns each
  format::DeviceKernelRow all = kernel(590, 1, 8);
  all.duration_ns = 300;
  file.device_rows.add(all);
  file.rows();
  std::string items;
  format::NotesWriter(items).device_window(false, device(600));
  format::NotesWriter(items).device_window(true, device(750));
  file.chunk(format::ChunkKind::kNotes, items);
  const Model m = file.model();
  std::string marks;
  for (Row row = 0; row < m.device_slices.size(); ++row) {
    if (m.device_slices.kind[row] == DeviceKind::kKernel)
      marks += "[" + std::string(name_of(m.device_slices.window[row])) + "]";
  }
  EXPECT_EQ(marks, "[began before][][][][ends after][began before, ends after]");
  EXPECT_EQ(m.losses[Stat::kDeviceSliceAcrossWindow], 3u);
}

TEST(DeviceRows, occupancy_is_estimated_from_launch_and_device) {
  DeviceLane file;
  file.device_rows.add(kernel(600, 9));  // 2 blocks of 256 threads on each of 132 multiprocessors
  file.rows();
  const Model m = file.model();
  EXPECT_FLOAT_EQ(m.kernel_details.blocks_per_sm[0], 2);
  EXPECT_FLOAT_EQ(m.kernel_details.warps_per_sm[0], 16);
  EXPECT_FLOAT_EQ(m.kernel_details.occupancy_percent[0], 25);
  EXPECT_EQ(m.kernel_details.occupancy_limit[0], OccupancyLimit::kGrid);
}

TEST(DeviceRows, memory_has_its_stream_and_pool_and_the_allocators_state) {
  DeviceLane file;
  std::string items;
  const format::SegmentBlock blocks[] = {
      {512, format::BlockState::kAllocated}, {512, format::BlockState::kWaiting}, {1024, format::BlockState::kFree}};
  format::NotesWriter(items).segment(
      ticks(50), {.device_type = 1, .device = 0, .address = 4096, .bytes = 2048, .stream = 77, .pool = 5}, blocks);
  format::NotesWriter(items).segment(ticks(50), {.device_type = 1, .device = 1, .address = 0, .bytes = 4096},
                                     blocks);  // too short
  file.chunk(format::ChunkKind::kNotes, items);
  std::string payload;
  format::append_definitions(payload, 6, {});
  format::SectionWriter section;
  section.begin(0, 42, kDeviceStart, ticks(60));
  const auto memory = [&](int64_t at, format::MemoryAction action, int64_t bytes,
                          std::optional<format::MemoryPlace> place) {
    section.add({.kind = format::Record::kMemory,
                 .action = action,
                 .ticks = ticks(at),
                 .memory = {.address = 5120, .bytes = bytes, .device_type = 1, .device = 0, .place = place}});
  };
  memory(60, format::MemoryAction::kAlloc, 512, std::nullopt);  // of an older recorder
  memory(70, format::MemoryAction::kFree, -512, format::MemoryPlace{.stream = 77, .pool = uint64_t{3} << 32});
  memory(80, format::MemoryAction::kFreeCompleted, -512, format::MemoryPlace{.stream = 77, .pool = uint64_t{3} << 32});
  memory(90, format::MemoryAction::kSegment, 2048, format::MemoryPlace{.is_mapped = true});
  memory(100, format::MemoryAction::kSegment, -2048, format::MemoryPlace{});
  section.append_to(payload);
  file.chunk(format::ChunkKind::kEvents, payload);
  const Model m = file.model();
  EXPECT_EQ(m.losses[Stat::kLaneChunkDamaged], 1u);
  EXPECT_EQ(m.memory_events.stream, (std::vector<int64_t>{kNoNumber, 77}));
  EXPECT_EQ(m.text(m.memory_events.pool[0]), "");
  EXPECT_EQ(m.text(m.memory_events.pool[1]), "graph 3");
  EXPECT_EQ(m.allocator_events.kind,
            (std::vector<AllocatorEventKind>{AllocatorEventKind::kFreeCompleted, AllocatorEventKind::kSegmentMap,
                                             AllocatorEventKind::kSegmentFree}));
  EXPECT_EQ(m.allocator_events.bytes, (std::vector<int64_t>{512, 2048, 2048}));
  EXPECT_EQ(m.allocator_events.time_ns[0] - m.memory_events.time_ns[1], 10);
  EXPECT_EQ(m.text(m.allocator_events.pool[1]), "common");
  ASSERT_GE(m.allocator_segments.size(), 1u);
  EXPECT_EQ(m.allocator_segments.stream[0], 77);
  EXPECT_EQ(m.text(m.allocator_segments.pool[0]), "pool 5");
  EXPECT_EQ(m.memory_events.time_ns[0] - m.allocator_segments.time_ns[0], 10);
  EXPECT_EQ(m.allocator_blocks.address[2], 5120u);
  EXPECT_EQ(m.allocator_blocks.state[1], AllocatorBlockState::kWaiting);
}

TEST(DeviceRows, hardware_metrics_are_counters_of_their_gpu_at_the_begin_of_each_sample) {
  DeviceLane file;
  file.device_rows.add(kernel(600, 9));
  for (const int64_t at : {600, 700}) {
    file.device_rows.add(format::DeviceMetricRow{.start_ns = device(at),
                                                 .duration_ns = 100,
                                                 .device = 3,
                                                 .name = 4,
                                                 .value = std::bit_cast<int64_t>(static_cast<double>(at) / 8)});
  }
  file.rows();
  const Model m = file.model();
  ASSERT_EQ(m.counter_tracks.size(), 1u);
  EXPECT_EQ(m.text(m.counter_tracks.pid[0].text), "GPU 3 Counters");
  EXPECT_EQ(m.text(m.counter_tracks.name[0]), "_Z4gemmPf");
  EXPECT_EQ(m.counter_samples.value, (std::vector<double>{75, 87.5}));
  EXPECT_EQ(m.counter_samples.time_ns[1] - m.counter_samples.time_ns[0], 100);
  EXPECT_EQ(m.counter_samples.time_ns[0], m.device_slices.start_ns[0]);
}

TEST(DeviceRows, cut_and_flipped_device_chunks_are_losses_not_crashes) {
  format::DeviceWriter writer;
  writer.add(kernel(1, 2));
  writer.add(launch(1, 2));
  writer.add(format::DeviceSyncRow{.type = 99, .event_sync = 1});
  writer.add(format::DeviceOverheadRow{.type = -1});
  writer.add(format::DeviceMetricRow{.start_ns = 5, .device = -1, .name = 4, .value = -1});
  std::string payload;
  format::append_definitions(payload, 6, {});
  writer.append_to(payload);
  for (size_t at = 0; at < payload.size(); ++at) {
    std::string bytes = payload;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x5A);
    DeviceLane file;
    file.chunk(format::ChunkKind::kDevice, bytes);
    file.chunk(format::ChunkKind::kDevice, std::string_view(payload).substr(0, at));
    file.model();
  }
}

}  // namespace
}  // namespace firelane::importer
