#include "import/rocprof/read_rocprof.h"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <map>

#include "import/gzip_source.h"
#include "import/samples_for_tests.h"
#include "import/sqlite/testing.h"
#include "import/testing.h"

namespace firelane::importer {
namespace {

constexpr std::string_view kSmallJson = R"({"rocprofiler-sdk-tool": [{"metadata": {"pid": 42},
  "agents": [{"id": {"handle": 1}, "type": 1}, {"id": {"handle": 9}, "type": 2, "cu_count": 304, "wave_front_size": 64,
    "max_waves_per_simd": 8, "simd_per_cu": 4, "lds_size_in_kb": 64, "gfx_target_version": 90402, "name": "gfx942",
    "product_name": "AMD Instinct MI300X"}],
  "strings": {"buffer_records": [{"kind": "NONE", "operations": []}, {"kind": "HIP", "operations": ["?", "hipLaunchKernel"]},
    {"kind": "COPY", "operations": ["NONE", "MEMORY_COPY_HOST_TO_DEVICE"]}], "marker_api": [{"key": 7, "value": "step 3"}]},
  "kernel_symbols": [{"kernel_id": 5, "kernel_name": "gemm.kd", "formatted_kernel_name": "gemm", "arch_vgpr_count": 32}],
  "buffer_records": {
    "kernel_dispatch": [{"thread_id": 1, "correlation_id": {"internal": 4, "external": 0}, "start_timestamp": 1000,
      "end_timestamp": 3000, "dispatch_info": {"agent_id": {"handle": 9}, "queue_id": {"handle": 16}, "kernel_id": 5,
      "group_segment_size": 128, "workgroup_size": {"x": 256, "y": 1, "z": 1}, "grid_size": {"x": 1000, "y": 2, "z": 1}},
      "stream_id": {"handle": 3}}],
    "hip_api": [{"kind": 1, "operation": 1, "thread_id": 1, "correlation_id": {"internal": 4}, "start_timestamp": 500,
      "end_timestamp": 600}],
    "marker_api": [{"kind": 0, "operation": 0, "thread_id": 1, "correlation_id": {"internal": 7}, "start_timestamp": 400,
      "end_timestamp": 5000}],
    "memory_copy": [{"kind": 2, "operation": 1, "correlation_id": {"internal": 8}, "start_timestamp": 100,
      "end_timestamp": 200, "dst_agent_id": {"handle": 9}, "src_agent_id": {"handle": 1}, "bytes": 4096}]}}]})";

void expect_small(const Model& m) {
  ASSERT_EQ(m.kernel_details.size(), 1u);
  const Row kernel = m.kernel_details.slice[0];
  EXPECT_EQ(m.text(m.device_slices.name[kernel]), "gemm");
  EXPECT_EQ(m.device_slices.duration_ns[kernel], 2000);
  EXPECT_EQ(m.kernel_details.grid_x[0], 4) << "1,000 work-items in groups of 256";
  EXPECT_EQ(m.kernel_details.block_x[0], 256);
  ASSERT_NE(m.device_slices.launch[kernel], kNoRow);
  EXPECT_EQ(m.text(m.host_slices.name[m.device_slices.launch[kernel]]), "hipLaunchKernel");
  ASSERT_EQ(m.copy_details.size(), 1u);
  EXPECT_EQ(m.copy_details.bytes[0], 4096);
  EXPECT_EQ(m.copy_details.direction[0], CopyDirection::kHtoD);
  EXPECT_EQ(m.steps.number, std::vector<int64_t>{3}) << "the marker says so";
  EXPECT_EQ(m.info.accelerator, Accelerator::kHip);
}

TEST(Rocprof, json_has_dispatches_calls_copies_and_markers) {
  const Model m = load_bytes(std::string(kSmallJson));
  expect_small(m);
  ASSERT_EQ(m.info.devices.size(), 1u);
  EXPECT_EQ(m.info.devices[0].name, "AMD Instinct MI300X");
  EXPECT_EQ(m.info.devices[0].max_threads_per_multiprocessor, 2048);
  EXPECT_GT(m.kernel_details.occupancy_percent[0], 0);
}

TEST(Rocprof, what_was_written_before_a_cut_of_json_is_kept) {
  const size_t hip_end = kSmallJson.find("\"marker_api\": [{\"kind\"");
  const Model m = load_bytes(std::string(kSmallJson.substr(0, hip_end + 40)));
  EXPECT_EQ(m.device_slices.size(), 1u);
  EXPECT_EQ(m.host_slices.size(), 1u) << "the call; the marker that the text ends in is dropped";
  EXPECT_EQ(m.losses[Stat::kTruncated], 1u);
}

TEST(Rocprof, any_cut_of_json_is_one_line_or_a_part) {
  const size_t first_record = kSmallJson.find("\"hip_api\"");
  for (size_t size = 1; size < kSmallJson.size(); ++size) {
    const Result<Model> loaded = load_trace_bytes(std::string(kSmallJson.substr(0, size)), "cut.json");
    if (loaded.ok()) {
      EXPECT_EQ(loaded.value().losses[Stat::kTruncated], 1u) << size;
      continue;
    }
    EXPECT_LT(size, first_record) << loaded.error().message;
    EXPECT_EQ(loaded.error().message.find("--sys-trace"), std::string::npos) << "recorded it was";
    EXPECT_EQ(loaded.error().message.find('\n'), std::string::npos) << size;
  }
}

TEST(Rocprof, wrong_types_do_no_harm) {
  const Result<Model> loaded = load_trace_bytes(
      R"({"rocprofiler-sdk-tool": [{"agents": 5, "strings": [], "kernel_symbols": {}, "buffer_records": {"kernel_dispatch":
      [{"start_timestamp": "soon", "end_timestamp": -9223372036854775808, "dispatch_info": {"grid_size": {"x": "a"}}},
       {"start_timestamp": 10, "end_timestamp": 5, "dispatch_info": {"kernel_id": 99, "grid_size": {"x": 9223372036854775807},
        "workgroup_size": {"x": -1}}}]}}]})",
      "odd.json");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(loaded.value().losses[Stat::kEventWithoutTime], 1u);
  EXPECT_EQ(loaded.value().losses[Stat::kDurationOutOfRange], 1u);
  EXPECT_EQ(loaded.value().losses[Stat::kNameMissing], 1u);
}

TEST(Rocprof, csv_of_kernels) {
  const Model m = load_bytes(
      "\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Stream_Id\",\"Kernel_Name\",\"Correlation_Id\",\"Start_Timestamp\",\"End_"
      "Timestamp\","
      "\"LDS_Block_Size\",\"VGPR_Count\",\"Workgroup_Size_X\",\"Workgroup_Size_Y\",\"Workgroup_Size_Z\",\"Grid_Size_"
      "X\","
      "\"Grid_Size_Y\",\"Grid_Size_Z\"\n"
      "\"KERNEL_DISPATCH\",\"Agent 2\",1,0,\"void f<int, \"\"x\"\">(a, b)\",5,1000,2500,0,32,64,1,1,128,1,1\n"
      "\"KERNEL_DISPATCH\",\"Agent 2\",1\n");
  ASSERT_EQ(m.device_slices.size(), 1u);
  EXPECT_EQ(m.text(m.device_slices.name[0]), "void f<int, \"x\">(a, b)");
  EXPECT_EQ(m.device_slices.duration_ns[0], 1500);
  EXPECT_EQ(m.device_slices.device[0], 2);
  EXPECT_EQ(m.kernel_details.grid_x[0], 2);
  EXPECT_EQ(m.losses[Stat::kLineMalformed], 1u);
}

TEST(Rocprof, csv_of_calls) {
  const Model m = load_bytes(
      "\"Domain\",\"Function\",\"Process_Id\",\"Thread_Id\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n"
      "\"HIP_RUNTIME_API\",\"hipMalloc\",7,8,1,10,20\n\"MARKER_CORE_API\",\"warm up\",7,8,2,5,30\n");
  ASSERT_EQ(m.host_slices.size(), 2u);
  EXPECT_EQ(m.call_details.size(), 1u);
  EXPECT_EQ(m.op_details.size(), 1u);
}

// A table of rocpd with the id of a run, in both forms: times in the row, and times by way of timestamps and tracks.
std::string rocpd(bool with_tracks) {
  const std::string where =
      with_tracks ? "track_id, start_id, end_id" : "pid, tid, agent_id, queue_id, stream_id, start, end";
  const auto place = [&](const std::string& track, const std::string& own, const std::string& start,
                         const std::string& end) {
    return with_tracks ? track + ", " + start + ", " + end : own + ", " + start + ", " + end;
  };
  const std::string region_where = with_tracks ? "track_id, start_id, end_id" : "pid, tid, start, end";
  return make_database(
      "CREATE TABLE rocpd_string_u1(id INTEGER PRIMARY KEY, string TEXT);"
      "INSERT INTO rocpd_string_u1 VALUES(1,'hipLaunchKernel'),(2,'MEMORY_COPY_HOST_TO_DEVICE'),(3,'step 3'),"
      "(4,'HIP_RUNTIME_API_EXT'),(5,'MARKER_CORE_RANGE_API');"
      "CREATE TABLE rocpd_info_kernel_symbol_u1(id INTEGER, kernel_name TEXT, display_name TEXT, arch_vgpr_count "
      "INTEGER);"
      "INSERT INTO rocpd_info_kernel_symbol_u1 VALUES(5,'gemm.kd','gemm',32);"
      "CREATE TABLE rocpd_info_agent_u1(id INTEGER, type TEXT, type_index INTEGER, name TEXT, product_name TEXT);"
      "INSERT INTO rocpd_info_agent_u1 VALUES(9,'GPU',0,'gfx942','AMD Instinct MI300X'),(1,'CPU',0,'x','y');"
      "CREATE TABLE rocpd_info_process_u1(id INTEGER, pid INTEGER); INSERT INTO rocpd_info_process_u1 VALUES(1, 42);"
      "CREATE TABLE rocpd_info_thread_u1(id INTEGER, tid INTEGER); INSERT INTO rocpd_info_thread_u1 VALUES(1, 43);"
      "CREATE TABLE rocpd_event_u1(id INTEGER, category_id INTEGER, stack_id INTEGER, correlation_id INTEGER);"
      "INSERT INTO rocpd_event_u1 VALUES(1,4,4,4),(2,5,7,7),(3,4,8,8);" +
      std::string(with_tracks
                      ? "CREATE TABLE rocpd_track_u1(id INTEGER, pid INTEGER, tid INTEGER, agent_id INTEGER, queue_id "
                        "INTEGER, stream_id INTEGER);"
                        "INSERT INTO rocpd_track_u1 VALUES(1,1,1,9,16,3);"
                        "CREATE TABLE rocpd_timestamp_u1(id INTEGER, value INTEGER);"
                        "INSERT INTO rocpd_timestamp_u1 VALUES(1000,1000),(3000,3000),(500,500),(600,600),(400,400),"
                        "(5000,5000),(100,100),(200,200);"
                      : "") +
      "CREATE TABLE rocpd_kernel_dispatch_u1(id INTEGER PRIMARY KEY, " + where +
      ", event_id, kernel_id, grid_size_x, grid_size_y, grid_size_z, workgroup_size_x, workgroup_size_y, "
      "workgroup_size_z,"
      " group_segment_size);"
      "INSERT INTO rocpd_kernel_dispatch_u1 VALUES(1, " +
      place("1", "1, 1, 9, 16, 3", "1000", "3000") + ", 1, 5, 1000, 2, 1, 256, 1, 1, 128);" +
      "CREATE TABLE rocpd_memory_copy_u1(id INTEGER PRIMARY KEY, " +
      (with_tracks ? where : std::string("pid, tid, queue_id, stream_id, start, end")) +
      ", event_id, name_id, size, dst_agent_id, src_agent_id);"
      "INSERT INTO rocpd_memory_copy_u1 VALUES(1, " +
      place("1", "1, 1, 16, 3", "100", "200") + ", 3, 2, 4096, 9, 1);" +
      "CREATE TABLE rocpd_region_u1(id INTEGER PRIMARY KEY, " + region_where +
      ", event_id, name_id);"
      "INSERT INTO rocpd_region_u1 VALUES(1, " +
      place("1", "1, 1", "500", "600") + ", 1, 1), (2, " + place("1", "1, 1", "400", "5000") + ", 2, 3);");
}

TEST(Rocpd, both_schemas_give_the_same) {
  for (const bool with_tracks : {false, true}) {
    const Model m = load_bytes(rocpd(with_tracks));
    SCOPED_TRACE(with_tracks ? "with tracks" : "times in the row");
    expect_small(m);
    EXPECT_EQ(m.info.format, "rocprofv3 rocpd");
  }
}

// ---- the real file, against another reader

TEST(Rocprof, the_sample_gives_every_dispatch) {
  FL_NEED_SAMPLE(path, "rocprofv3_mi350.json.gz");
  auto file = open_file(path);
  ASSERT_TRUE(file.ok());
  const std::unique_ptr<ByteSource> content = open_gzip(std::move(file).value(), uint64_t{1} << 32);
  const std::string text = read_all(*content, 1 << 20);
  simdjson::dom::parser parser;
  const simdjson::dom::element tool = parser.parse(text)["rocprofiler-sdk-tool"].at(0);
  std::map<int64_t, std::string> names;
  for (const simdjson::dom::element symbol : tool["kernel_symbols"].get_array())
    names[int64_t(symbol["kernel_id"])] = std::string(std::string_view(symbol["formatted_kernel_name"]));
  int64_t count = 0;
  int64_t sum_ns = 0;
  std::map<std::string, int64_t> by_name;
  for (const simdjson::dom::element record : tool["buffer_records"]["kernel_dispatch"].get_array()) {
    ++count;
    sum_ns += int64_t(record["end_timestamp"]) - int64_t(record["start_timestamp"]);
    ++by_name[names[int64_t(record["dispatch_info"]["kernel_id"])]];
  }

  Result<Model> loaded = load_trace(path);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const Model& m = loaded.value();
  EXPECT_EQ(count, 43915);
  EXPECT_EQ(static_cast<int64_t>(m.device_slices.size()), count);
  int64_t mine_ns = 0;
  std::map<std::string, int64_t> mine;
  for (Row row = 0; row < m.device_slices.size(); ++row) {
    mine_ns += m.device_slices.duration_ns[row];
    ++mine[std::string(m.text(m.device_slices.name[row]))];
  }
  EXPECT_EQ(mine_ns, sum_ns);
  EXPECT_EQ(mine, by_name);
  EXPECT_EQ(m.info.devices.size(), 8u);
}

}  // namespace
}  // namespace firelane::importer
