#include "import/nsight/read_nsight.h"

#include <gtest/gtest.h>

#include "import/nsight/nvtx_text.h"
#include "import/samples_for_tests.h"
#include "import/sqlite/testing.h"
#include "import/testing.h"
#include "model/same.h"

namespace firelane::importer {
namespace {

// globalTid of a thread, globalPid of its process.
std::string thread_id(int64_t pid, int64_t tid) { return std::to_string(int64_t{1} << 48 | pid << 24 | tid); }

// Two processes with the same correlation ids, on two GPUs; the columns of an old schema.
std::string two_processes() {
  const std::string t1 = thread_id(10, 11), t2 = thread_id(20, 21), p1 = thread_id(10, 0), p2 = thread_id(20, 0);
  return make_database(
      "CREATE TABLE EXPORT_META_DATA(name TEXT, value TEXT);"
      "INSERT INTO EXPORT_META_DATA VALUES('EXPORT_SCHEMA_VERSION', '3.1.0');"
      "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);"
      "INSERT INTO StringIds VALUES(1, 'gemm'),(2, 'cudaLaunchKernel_v7000'),(3, 'cuLaunchKernel'),(4, 'relu');"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,"
      " streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER,"
      " gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(100,200,0,1,7,5," +
      p1 +
      ",1,1, 2,3,4, 32,1,1),"
      "(110,260,1,2,7,5," +
      p2 +
      ",4,4, 1,1,1, 64,1,1);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER,"
      " nameId INTEGER);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(50,60," +
      t1 + ",5,2),(55,70," + t2 +
      ",5,3);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(start INTEGER, end INTEGER, deviceId INTEGER, contextId "
      "INTEGER,"
      " streamId INTEGER, correlationId INTEGER, globalPid INTEGER, syncType INTEGER);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES(300,310,0,2,7,9," +
      p2 +
      ",3);"
      "CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, eventType INTEGER, globalTid INTEGER, text TEXT,"
      " textId INTEGER, domainId INTEGER, jsonText TEXT);"
      "INSERT INTO NVTX_EVENTS VALUES(0,0,75," +
      t1 +
      ",'NCCL',NULL,3,NULL),"
      "(10,90,59," +
      t1 +
      ",'aten::mm, seq = 3, op_id = 42, sizes = [[2, 3], [3, 4]]',NULL,0,NULL),"
      "(20,400,59," +
      t2 +
      ",'step 7',NULL,0,NULL),"
      "(56,66,59," +
      t1 +
      ",'ncclAllReduce',NULL,3,'{\"Message size [bytes]\": 4096, \"No. of ranks\": 2}'),"
      "(30,NULL,34," +
      t2 + ",'mark',NULL,0,NULL);");
}

TEST(Nsight, a_large_file_is_read_by_two_threads_and_gives_the_same) {
  const std::string numbers =
      "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 12000) INSERT INTO ";
  const std::string thread = thread_id(10, 11), other = thread_id(20, 21);
  const std::string both = "CASE WHEN i % 3 = 0 THEN " + other + " ELSE " + thread + " END";
  const std::string file = make_database(
      "CREATE TABLE META_DATA_EXPORT(name TEXT, value TEXT);"
      "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);"
      "INSERT INTO StringIds VALUES(1, 'gemm'),(2, 'cudaLaunchKernel_v7000'),(3, 'relu');"
      "CREATE TABLE PROCESSES(globalPid INTEGER, name TEXT);"
      "INSERT INTO PROCESSES VALUES(" +
      thread_id(30, 0) + ", 'nsys'),(" + thread_id(20, 0) +
      ", 'python');"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,"
      " streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, gridX INTEGER);" +
      numbers + "CUPTI_ACTIVITY_KIND_KERNEL SELECT i * 100, i * 100 + 50, 0, 1, 7, i, " + both +
      " & ~16777215, i % 2 * 2 + 1, i % 5 FROM n;"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER,"
      " nameId INTEGER);" +
      numbers + "CUPTI_ACTIVITY_KIND_RUNTIME SELECT i * 100 - 60, i * 100 - 40, " + both +
      ", i, 2 FROM n;"
      "CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, eventType INTEGER, globalTid INTEGER, text TEXT,"
      " textId INTEGER, domainId INTEGER);" +
      numbers + "NVTX_EVENTS SELECT i * 100 - 70, i * 100 - 30, 59, " + both +
      ", 'aten::add, op_id = ' || i, NULL, 0 FROM n;");
  ASSERT_GT(file.size(), size_t{1} << 20) << "small files are read by one thread";
  const auto load = [&](unsigned threads) {
    Result<Model> model = load_trace_bytes(file, "test", {.threads = threads});
    EXPECT_TRUE(model.ok());
    return std::move(model).value();
  };
  const Model alone = load(1);
  EXPECT_EQ(alone.kernel_details.size(), 12001U);
  EXPECT_EQ(alone.losses[Stat::kDeviceSliceWithoutLaunch], 0U);
  EXPECT_EQ(alone.losses[Stat::kDeviceSliceWithoutOp], 0U);
  EXPECT_EQ(first_difference(alone, load(2)), std::nullopt);
}

TEST(Nsight, gpu_metrics_are_counters_of_their_gpu) {
  const Model m = load_bytes(make_database(
      "CREATE TABLE META_DATA_EXPORT(name TEXT, value TEXT);"
      "INSERT INTO META_DATA_EXPORT VALUES('EXPORT_SCHEMA_VERSION', '3.20.0');"
      "CREATE TABLE TARGET_INFO_GPU_METRICS(typeId INTEGER, sourceId INTEGER, typeName TEXT, metricId INTEGER,"
      " metricName TEXT);"
      "INSERT INTO TARGET_INFO_GPU_METRICS VALUES(281470681743360, 0, 'gpu', 3, 'SMs Active [Throughput %]'),"
      "(281470681743361, 0, 'gpu', 3, 'SMs Active [Throughput %]');"
      "CREATE TABLE GPU_METRICS(rawTimestamp INTEGER, timestamp INTEGER, typeId INTEGER, metricId INTEGER,"
      " value INTEGER);"
      "INSERT INTO GPU_METRICS VALUES(0, -50, 281470681743360, 3, 1),(0, 1000, 281470681743360, 3, 40),"
      "(0, 2000, 281470681743360, 3, 60),(0, 1500, 281470681743361, 3, 10),(0, 1600, 281470681743361, 8, 7),"
      "(0, NULL, 281470681743361, 3, 10);"));
  ASSERT_EQ(m.counter_tracks.size(), 3u);
  EXPECT_EQ(m.text(m.counter_tracks.name[0]), "SMs Active [Throughput %]");
  EXPECT_EQ(m.counter_tracks.pid[0].number, 0);
  EXPECT_EQ(m.counter_tracks.pid[1].number, 1);
  EXPECT_EQ(m.text(m.counter_tracks.name[2]), "metric 8");
  EXPECT_EQ(m.counter_samples.value, (std::vector<double>{40, 10, 7, 60})) << "by time";
  EXPECT_EQ(m.losses[Stat::kEventNotUsed], 1u) << "before the recording";
  EXPECT_EQ(m.losses[Stat::kEventWithoutTime], 1u);
  EXPECT_EQ(m.losses[Stat::kNameMissing], 1u);
}

TEST(Nsight, processes_with_the_same_ids_keep_their_work_apart) {
  const Model m = load_bytes(two_processes());
  ASSERT_EQ(m.device_slices.size(), 3u);
  const auto launch_of = [&](std::string_view kernel) {
    for (Row row = 0; row < m.device_slices.size(); ++row) {
      if (m.text(m.device_slices.name[row]) == kernel) return m.device_slices.launch[row];
    }
    return kNoRow;
  };
  ASSERT_NE(launch_of("gemm"), kNoRow);
  ASSERT_NE(launch_of("relu"), kNoRow);
  EXPECT_EQ(m.text(m.host_slices.name[launch_of("gemm")]), "cudaLaunchKernel") << "without its version";
  EXPECT_EQ(m.text(m.host_slices.name[launch_of("relu")]), "cuLaunchKernel");
  EXPECT_EQ(m.host_slices.kind[launch_of("relu")], HostKind::kDriver);
  EXPECT_EQ(m.info.format, "Nsight Systems SQLite, schema 3.1.0");
}

TEST(Nsight, ranges_are_operators_steps_and_collectives) {
  const Model m = load_bytes(two_processes());
  ASSERT_EQ(m.op_details.size(), 3u);
  EXPECT_EQ(m.text(m.op_details.input_dims[0]), "[[2, 3], [3, 4]]");
  EXPECT_EQ(m.op_details.sequence_number[0], 3);
  EXPECT_EQ(m.text(m.host_slices.name[m.op_details.slice[0]]), "aten::mm");
  EXPECT_EQ(m.host_slices.kind[m.op_details.slice[0]], HostKind::kOp);
  EXPECT_EQ(m.steps.number, std::vector<int64_t>{7});
  ASSERT_EQ(m.comm_details.size(), 1u);
  EXPECT_EQ(m.text(m.comm_details.collective[0]), "allreduce");
  EXPECT_EQ(m.comm_details.group_size[0], 2);
  EXPECT_EQ(m.instants.size(), 1u);
}

TEST(Nsight, a_synchronization_is_on_the_device_of_its_context) {
  const Model m = load_bytes(two_processes());
  for (Row row = 0; row < m.device_slices.size(); ++row) {
    if (m.device_slices.kind[row] != DeviceKind::kSync) continue;
    EXPECT_EQ(m.device_slices.device[row], 1) << "the table says 0 for every device";
    EXPECT_EQ(m.text(m.device_slices.name[row]), "Stream Sync");
  }
}

// What schemas between the first and the last differ in: the table of versions, whole graphs as one row or their nodes,
// names of ranges in the row or in StringIds, ranges that end in another thread.
TEST(Nsight, graphs_copies_memsets_and_ranges_of_schemas_in_between) {
  const std::string thread = thread_id(10, 11), other = thread_id(10, 12), pid = thread_id(10, 0);
  for (const std::string version : {"3.4.2", "3.11.0", "3.18.1", "3.25.0"}) {
    const Model m = load_bytes(make_database(
        "CREATE TABLE META_DATA_EXPORT(name TEXT, value TEXT);"
        "INSERT INTO META_DATA_EXPORT VALUES('EXPORT_SCHEMA_VERSION', '" +
        version +
        "');"
        "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);"
        "INSERT INTO StringIds VALUES(1, 'gemm'),(2, 'cudaGraphLaunch_v10000'),(3, 'cudaMemcpyAsync_v3020'),"
        "(4, 'cudaMemsetAsync_v3020'),(5, 'iteration 3'),(6, 'cudaEventRecord_v3020'),(7, 'cudaStreamWaitEvent');"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,"
        " streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, graphNodeId INTEGER,"
        " graphId INTEGER, registersPerThread INTEGER, staticSharedMemory INTEGER, dynamicSharedMemory INTEGER);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(100,200,0,1,7,1," +
        pid + ",1,71,5,32,1024,2048),(210,260,0,1,7,1," + pid +
        ",1,72,5,32,0,0);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE(start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,"
        " streamId INTEGER, correlationId INTEGER, globalPid INTEGER, graphId INTEGER);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES(300,400,0,1,7,2," +
        pid +
        ",6);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,"
        " streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER,"
        " srcKind INTEGER, dstKind INTEGER, srcDeviceId INTEGER, dstDeviceId INTEGER);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES(410,420,0,1,8,3," +
        pid + ",4096,1,1,2,NULL,NULL),(430,440,0,1,8,4," + pid +
        ",512,10,2,2,0,1);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET(start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,"
        " streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, memKind INTEGER);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES(450,455,0,1,7,5," +
        pid +
        ",64,2);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT(globalPid INTEGER, eventSyncId INTEGER, streamId INTEGER,"
        " correlationId INTEGER);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_CUDA_EVENT VALUES(" +
        pid +
        ",77,7,6);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(start INTEGER, end INTEGER, deviceId INTEGER, contextId "
        "INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, syncType INTEGER, eventId INTEGER,"
        " eventSyncId INTEGER);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES(460,461,0,1,8,7," +
        pid +
        ",2,9,77);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER,"
        " nameId INTEGER);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(50,60," +
        thread + ",1,2),(62,64," + thread + ",2,2),(66,68," + thread + ",3,3),(69,70," + thread + ",4,3),(71,72," +
        thread + ",5,4),(73,74," + thread + ",6,6),(75,76," + thread +
        ",7,7);"
        "CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, eventType INTEGER, globalTid INTEGER, endGlobalTid "
        "INTEGER, text TEXT, textId INTEGER, domainId INTEGER);"
        "INSERT INTO NVTX_EVENTS VALUES(10,500,59," +
        thread + ",NULL,NULL,5,0),(20,90,60," + thread + "," + other + ",'loading',NULL,0);"));
    EXPECT_EQ(m.info.format, "Nsight Systems SQLite, schema " + version);
    std::vector<int64_t> graphs;
    for (Row row = 0; row < m.device_slices.size(); ++row) {
      if (m.device_slices.kind[row] == DeviceKind::kSync) continue;
      EXPECT_NE(m.device_slices.launch[row], kNoRow) << m.text(m.device_slices.name[row]);
      if (m.device_slices.kind[row] == DeviceKind::kKernel)
        graphs.push_back(m.kernel_details.graph_id[m.device_slices.detail[row]]);
    }
    EXPECT_EQ(graphs, (std::vector<int64_t>{5, 5, 6}));
    EXPECT_EQ(m.kernel_details.shared_memory_bytes[m.device_slices.detail[0]], 3072);
    ASSERT_EQ(m.copy_details.size(), 3u);
    EXPECT_EQ(m.copy_details.direction[0], CopyDirection::kHtoD);
    EXPECT_EQ(m.copy_details.source_memory[0], MemoryKind::kPinned);
    EXPECT_EQ(m.copy_details.direction[1], CopyDirection::kPtoP);
    EXPECT_EQ(m.copy_details.target_device[1], 1);
    ASSERT_EQ(m.sync_details.size(), 1u);
    EXPECT_EQ(m.sync_details.wait_on_stream[0], 7);
    EXPECT_EQ(m.steps.number, std::vector<int64_t>{3}) << "its name is in StringIds";
    EXPECT_NE(m.strings.find("loading"), kNoString);
    EXPECT_EQ(m.losses[Stat::kNameMissing], 0u);
  }
}

TEST(Nsight, missing_tables_and_columns_are_said) {
  const Model m = load_bytes(two_processes());
  EXPECT_GT(m.losses[Stat::kTableMissing], 0u);   // no copies, no memsets, no GPUs
  EXPECT_GT(m.losses[Stat::kColumnMissing], 0u);  // no graphs, no registers
  EXPECT_EQ(m.losses[Stat::kDatabaseDamaged], 0u);
}

TEST(Nsight, values_of_wrong_types_are_counted_and_skipped) {
  const Model m = load_bytes(make_database(
      "CREATE TABLE StringIds(id, value); INSERT INTO StringIds VALUES('x', 1), (1, x'00ff');"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start, end, deviceId, streamId, correlationId, globalPid, "
      "demangledName);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES('soon', 5, 0, 7, 1, 1, 1), (NULL, 5, 0, 7, 1, 1, 1),"
      "(10, 'late', 'a', 'b', 'c', 'd', 99), (20, 10, 0, 7, 1, 1, 1), (9223372036854775807, 1, 0, 7, 1, 1, 1),"
      "(-9223372036854775808, 1, 1e300, 7, -1, 1, 1);"));
  EXPECT_EQ(m.device_slices.size(), 2u);
  EXPECT_EQ(m.losses[Stat::kValueOfWrongType], 2u);  // "soon", and a number that stands for "none" here
  EXPECT_EQ(m.losses[Stat::kEventWithoutTime], 1u);
  EXPECT_EQ(m.losses[Stat::kTimeOutOfRange], 1u);
  EXPECT_EQ(m.losses[Stat::kNameMissing], 1u);
}

TEST(Nsight, a_range_without_a_thread_before_all_others_has_a_lane) {
  const Model m = load_bytes(make_database(
      "CREATE TABLE StringIds(id, value); CREATE TABLE NVTX_EVENTS(start, end, eventType, globalTid, text);"
      "INSERT INTO NVTX_EVENTS VALUES(10, 90, 59, NULL, 'nobody');"));
  ASSERT_EQ(m.host_slices.size(), 1u);
  EXPECT_EQ(m.text(m.host_slices.name[0]), "nobody");
}

TEST(Nsight, a_view_instead_of_a_table_is_not_asked) {
  const Result<Model> loaded = load_trace_bytes(
      make_database("CREATE TABLE StringIds(id, value); CREATE TABLE NVTX_EVENTS(start);"
                    "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 "
                    "FROM n) SELECT i AS start, i AS end FROM n;"),
      "test.sqlite");
  ASSERT_FALSE(loaded.ok());
  EXPECT_NE(loaded.error().message.find("without events"), std::string::npos) << loaded.error().message;
}

TEST(Nsight, any_cut_is_an_error_or_a_part_of_it) {
  const std::string whole = two_processes();
  for (size_t size = 1; size < whole.size(); size += 97) {
    const Result<Model> loaded = load_trace_bytes(whole.substr(0, size), "cut.sqlite");
    if (!loaded.ok()) {
      EXPECT_EQ(loaded.error().message.find('\n'), std::string::npos);
    } else {
      EXPECT_LE(loaded.value().device_slices.size(), 3u);
    }
  }
}

TEST(Nsight, other_databases_and_reports_say_what_they_are) {
  const Result<Model> other = load_trace_bytes(make_database("CREATE TABLE people(name)"), "people.db");
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.error().message.find("neither"), std::string::npos);
  const Result<Model> report = load_trace_bytes("anything", "run/a.nsys-rep");
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().message.find("nsys export --type sqlite"), std::string::npos);
}

TEST(Nsight, compressed_ones_open_too) {
  const Model m = load_bytes(gzip(two_processes()));
  EXPECT_EQ(m.device_slices.size(), 3u);
}

TEST(NvtxText, words_of_pytorch) {
  EXPECT_EQ(read_nvtx_text("FSDP::pre_forward (a.b), op_id = 12").name, "FSDP::pre_forward (a.b)");
  EXPECT_TRUE(read_nvtx_text("x, op_id = 12").is_op);
  EXPECT_FALSE(read_nvtx_text("my range").is_op);
  EXPECT_EQ(read_nvtx_text("aten::mm, seq = , op_id = ").op_id, kNoNumber);
  EXPECT_EQ(without_version("cudaMemcpyAsync_v3020"), "cudaMemcpyAsync");
  EXPECT_EQ(without_version("my_value"), "my_value");
}

// ---- the real file, against SQLite itself

TEST(Nsight, the_sample_gives_every_row) {
  FL_NEED_SAMPLE(path, "nsys_h100_2gpu.sqlite");
  Result<Model> loaded = load_trace(path);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const Model& m = loaded.value();
  struct Want {
    DeviceKind kind;
    std::string table;
  };
  for (const Want& want :
       {Want{DeviceKind::kKernel, "CUPTI_ACTIVITY_KIND_KERNEL"}, Want{DeviceKind::kCopy, "CUPTI_ACTIVITY_KIND_MEMCPY"},
        Want{DeviceKind::kSet, "CUPTI_ACTIVITY_KIND_MEMSET"},
        Want{DeviceKind::kSync, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"}}) {
    int64_t count = 0;
    int64_t sum_ns = 0;
    for (Row row = 0; row < m.device_slices.size(); ++row) {
      if (m.device_slices.kind[row] != want.kind) continue;
      ++count;
      sum_ns += m.device_slices.duration_ns[row];
    }
    EXPECT_EQ(count, ask_file(path, "SELECT count(*) FROM " + want.table));
    EXPECT_EQ(sum_ns, ask_file(path, "SELECT sum(end - start) FROM " + want.table));
  }
  EXPECT_EQ(static_cast<int64_t>(m.call_details.size()),
            ask_file(path, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME"));
  EXPECT_EQ(static_cast<int64_t>(m.op_details.size()), ask_file(path, "SELECT count(*) FROM NVTX_EVENTS"));
  int64_t bytes = 0;
  for (const int64_t each : m.copy_details.bytes) bytes += each;
  EXPECT_EQ(bytes, ask_file(path,
                            "SELECT (SELECT sum(bytes) FROM CUPTI_ACTIVITY_KIND_MEMCPY) + (SELECT sum(bytes) "
                            "FROM CUPTI_ACTIVITY_KIND_MEMSET)"));
  const int64_t launched =
      ask_file(path,
               "SELECT count(DISTINCT k.rowid) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON "
               "r.correlationId = k.correlationId WHERE r.globalTid >> 24 = k.globalPid >> 24");
  int64_t with_launch = 0;
  int64_t named = 0;
  const StringId add = m.strings.find("aten::add");
  for (Row row = 0; row < m.device_slices.size(); ++row) {
    if (m.device_slices.kind[row] == DeviceKind::kKernel && m.device_slices.launch[row] != kNoRow) ++with_launch;
  }
  for (Row row = 0; row < m.host_slices.size(); ++row) named += m.host_slices.name[row] == add;
  EXPECT_EQ(with_launch, launched);
  EXPECT_EQ(named, ask_file(path, "SELECT count(*) FROM NVTX_EVENTS WHERE text LIKE 'aten::add, %'"));
  EXPECT_EQ(m.losses[Stat::kNameMissing], 0u);
}

}  // namespace
}  // namespace firelane::importer
