// The JSON reader: what each kind of event becomes, and that neither the size of chunks nor
// the number of threads changes anything.
#include "import/json/read_json.h"

#include <gtest/gtest.h>

#include "import/load.h"
#include "import/testing.h"

namespace firelane::importer {
namespace {

Model load_in_chunks(const std::string& text, size_t chunk_bytes, unsigned threads) {
  Result<RawTrace> raw =
      read_json(open_memory(text), "test.json", {.threads = threads, .chunk_bytes = chunk_bytes, .progress = {}});
  EXPECT_TRUE(raw.ok());
  return assemble(std::move(raw).value(), threads);
}

// One of everything, pretty-printed as Kineto does; the name of an op looks like a cut
// between events, and args hold a list of objects that does too.
constexpr std::string_view kEverything = R"({
  "schemaVersion": 1, "baseTimeNanoseconds": 1790857026000000000,
  "deviceProperties": [{"id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150109880320, "numSms": 132}],
  "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8, "pg_config": [{"a": 1}, {"b": 2}]},
  "traceEvents": [
  {
    "ph": "X", "cat": "user_annotation", "name": "ProfilerStep#2", "pid": 688, "tid": 688,
    "ts": 3853369486268.093, "dur": 50164.096,
    "args": {
      "External id": 1,"Record function id": 0, "Ev Idx": 0
    }
  },
  {
    "ph": "X", "cat": "cpu_op", "name": "aten::mm}, {\"x", "pid": 688, "tid": 688,
    "ts": 3853369486300.5, "dur": 100,
    "args": {
      "External id": 2,"Sequence number": 620, "Fwd thread id": 0, "Input Dims": [[16, 513], [], []], "Input type": ["float", "", ""]
    }
  },
  {
    "ph": "X", "cat": "cpu_op", "name": "MmBackward0", "pid": 688, "tid": 750, "ts": 3853369486500, "dur": 10,
    "args": {"External id": 3, "list": [{"a": 1}, {"ph": "X", "ts": 5}]}
  },
  {"ph": "s", "id": 1, "pid": 688, "tid": 688, "ts": 3853369486300.500, "cat": "fwdbwd", "name": "fwdbwd"},
  {"ph": "f", "id": 1, "pid": 688, "tid": 750, "ts": 3853369486500, "cat": "fwdbwd", "name": "fwdbwd", "bp": "e"},
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 688, "tid": 688,
   "ts": 3853369486310.001, "dur": 2.169, "args": {"External id": 2, "cbid": 211, "correlation": 77}},
  {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 3853369486320, "dur": 40.064,
   "args": {"External id": 2, "device": 0, "context": 1, "stream": 7, "correlation": 77, "grid": [8, 4, 1], "block": [128, 1, 1],
            "registers per thread": 32, "est. achieved occupancy %": 50, "occupancy": {"limitingFactors": "REGS"}}},
  {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 688, "tid": 688, "ts": 3853369486301,
   "args": {"Total Reserved": 1000, "Total Allocated": 512, "Bytes": 512, "Device Id": 0, "Device Type": 1, "Addr": 139969627902464}},
  {"ph": "C", "name": "power", "pid": 0, "ts": 3853369486302, "args": {"W": 310.5}},
  {"name": "thread_name", "ph": "M", "ts": 0, "pid": 0, "tid": 7, "args": {"name": "stream 7 "}}
  ],
  "traceName": "x.json", "more": [{"a": 1}, {"b": 2}]
}
)";

TEST(ReadJson, one_of_everything_becomes_what_it_is) {
  const Model m = load_text(std::string(kEverything));
  EXPECT_EQ(describe(m),
            "lane thread 688 688  \n"
            "lane thread 688 750  \n"
            "lane stream 0 7 stream 7 \n"
            "host 0 0 50164096 ProfilerStep#2 user_annotation annotation - \n"
            "host 0 32407 100000 aten::mm}, {\"x cpu_op op ProfilerStep#2 \n"
            "host 0 41908 2169 cudaLaunchKernel cuda_runtime runtime aten::mm}, {\"x \n"
            "host 1 231907 10000 MmBackward0 cpu_op op - \n"
            "op ProfilerStep#2 1 -9223372036854775808  - \n"
            "op aten::mm}, {\"x 2 620 [[16, 513], [], []] - \n"
            "op MmBackward0 3 -9223372036854775808  aten::mm}, {\"x \n"
            "device 2 51907 40064 gemm kernel cudaLaunchKernel aten::mm}, {\"x 7 \n"
            "memory 32907 512 139969627902464 \n"
            "counter 33907 power W 310.500000 \n"
            "step 2 50164096 \n"
            "metadata schemaVersion 1 \n"
            "metadata baseTimeNanoseconds 1790857026000000000 \n"
            "metadata deviceProperties [{\"id\": 0, \"name\": \"NVIDIA H200\", \"totalGlobalMem\": 150109880320, "
            "\"numSms\": 132}] \n"
            "metadata distributedInfo {\"backend\": \"nccl\", \"rank\": 3, \"world_size\": 8, \"pg_config\": [{\"a\": "
            "1}, {\"b\": 2}]} \n"
            "metadata traceName \"x.json\" \n"
            "metadata more [{\"a\": 1}, {\"b\": 2}] \n");
  EXPECT_EQ(m.info.format, "Kineto JSON");
  EXPECT_EQ(m.info.devices.at(0).multiprocessors, 132);
  EXPECT_EQ(m.info.distributed.rank, 3);
  EXPECT_EQ(m.kernel_details.grid_y, (std::vector<int32_t>{4}));
  EXPECT_EQ(m.kernel_details.occupancy_percent, (std::vector<float>{50}));
}

TEST(ReadJson, any_cut_gives_the_same_model) {
  const std::string text(kEverything);
  const std::string whole = describe(load_in_chunks(text, 1 << 20, 1));
  // Small chunks cut everywhere; of the large ones, every ninth size.
  for (size_t chunk = 1; chunk <= text.size() + 2; chunk += chunk < 200 ? 1 : 9) {
    ASSERT_EQ(describe(load_in_chunks(text, chunk, static_cast<unsigned>(1 + chunk % 3))), whole)
        << "chunks of " << chunk << " bytes";
  }
}

TEST(ReadJson, a_truncated_trace_keeps_every_event_before_the_tear) {
  const std::string text(kEverything);
  const size_t list = text.find('[', text.find("traceEvents"));
  size_t last_slices = 0;
  for (size_t size = 1; size < text.size(); ++size) {
    const Result<Model> loaded = load_trace_bytes(text.substr(0, size), "torn.json", {.threads = 1});
    if (size <= list) {
      ASSERT_FALSE(loaded.ok()) << size;
      continue;
    }
    ASSERT_TRUE(loaded.ok()) << size << ": " << loaded.error().message;
    const Model& m = loaded.value();
    const size_t slices = m.host_slices.size() + m.device_slices.size();
    ASSERT_GE(slices, last_slices) << size;
    last_slices = slices;
    const bool complete = size >= text.rfind('}') + 1;
    ASSERT_EQ(m.losses[Stat::kTruncated], complete ? 0u : 1u) << "cut at " << size;
    ASSERT_EQ(m.losses[Stat::kEventMalformed], 0u) << "cut at " << size;
  }
  EXPECT_EQ(last_slices, 5u);
}

TEST(ReadJson, a_bare_list_is_a_trace_with_or_without_its_closing_bracket) {
  for (const char* end : {"]", "", ",\n", " ]  "}) {
    const Model m = load_text(R"([{"name":"a","ph":"X","ts":1,"dur":2,"pid":1,"tid":1,"args":{}})" + std::string(end));
    EXPECT_EQ(m.host_slices.size(), 1u) << end;
    EXPECT_EQ(m.losses, LossCounts{}) << end;
    EXPECT_EQ(m.info.format, "Chrome JSON");
  }
}

TEST(ReadJson, the_exporter_of_torch_without_kineto_writes_ops) {
  const Model m = load_text(
      R"([{"name": "aten::add", "ph": "X", "ts": 1.5, "dur": 2.25, "tid": 1, "pid": "CPU functions", "args": {}}])");
  EXPECT_EQ(m.host_slices.kind[0], HostKind::kOp);
  EXPECT_EQ(m.host_slices.duration_ns[0], 2250);
}

TEST(ReadJson, the_names_of_torch_1_8_are_known) {
  const Model m = load_text(R"({"traceEvents": [
    {"ph":"X","cat":"Operator","name":"aten::mm","pid":9,"tid":"9","ts":10,"dur":20,"args":{"Device":9,"External id":2,"Input dims":[[2,2],[2,2]]}},
    {"ph":"X","cat":"Runtime","name":"cudaLaunchKernel","pid":9,"tid":"9","ts":12,"dur":3,"args":{"cbid":211,"correlation":5,"external id":2}},
    {"ph":"X","cat":"Kernel","name":"gemm","pid":0,"tid":"stream 7","ts":30,"dur":4,"args":{"device":0,"stream":7,"correlation":5,"external id":2}}]})");
  EXPECT_EQ(describe(m),
            "lane thread 9 9  \n"
            "lane stream 0 stream 7  \n"
            "host 0 0 20000 aten::mm Operator op - \n"
            "host 0 2000 3000 cudaLaunchKernel Runtime runtime aten::mm \n"
            "op aten::mm 2 -9223372036854775808 [[2,2],[2,2]] - \n"
            "device 1 20000 4000 gemm kernel cudaLaunchKernel aten::mm 7 \n");
}

TEST(ReadJson, the_line_of_a_call_is_read_and_what_is_none_is_not) {
  const auto event = [](std::string_view from) {
    return R"({"ph": "X", "cat": "python_function", "name": "f", "ts": 1, "dur": 1, "pid": 1, "tid": 1, "args": {"CallFrom": )" +
           std::string(from) + "}},";
  };
  const Model m = load_text("[" + event("\"a/b.py:12\"") + event("\"C:b.py\"") + event("\"b.py:0\"") + event("7") +
                            event("\"b.py:99999999999\"") + "{}]");
  std::vector<int32_t> lines(m.host_slices.call_line.begin(), m.host_slices.call_line.end());
  EXPECT_EQ(lines, (std::vector<int32_t>{12, -1, -1, -1, -1}));
}

TEST(ReadJson, calls_of_modules_and_the_profilers_own_lane_are_kinds_not_names) {
  const Model m = load_text(R"([
    {"ph": "X", "cat": "python_function", "name": "nn.Module: Linear_3", "pid": 5, "tid": 5, "ts": 1, "dur": 1},
    {"ph": "X", "cat": "python_function", "name": "train.py(3): step", "pid": 5, "tid": 5, "ts": 3, "dur": 1},
    {"ph": "X", "cat": "module", "name": "layers.0", "pid": 5, "tid": 5, "ts": 5, "dur": 1},
    {"ph": "X", "cat": "user_annotation", "name": "nn.Module: Linear_3", "pid": 5, "tid": 5, "ts": 7, "dur": 1},
    {"ph": "X", "cat": "overhead", "name": "Activity Buffer Request", "pid": -1, "tid": 0, "ts": 9, "dur": 1}])");
  using C = ModuleCall;
  EXPECT_EQ(m.host_slices.module, (std::vector<C>{C::kNumbered, C::kNone, C::kPath, C::kNone, C::kNone}));
  EXPECT_EQ(m.lanes.owner, (std::vector<LaneOwner>{LaneOwner::kProgram, LaneOwner::kProfiler}));
}

TEST(ReadJson, begins_and_ends_are_paired_on_a_lane_and_async_ones_by_id) {
  const Model m = load_text(R"([
    {"ph":"B","name":"outer","pid":1,"tid":1,"ts":0},
    {"ph":"B","name":"inner","pid":1,"tid":1,"ts":1},
    {"ph":"E","pid":1,"tid":1,"ts":3},
    {"ph":"E","pid":1,"tid":1,"ts":9},
    {"ph":"E","pid":1,"tid":1,"ts":10},
    {"ph":"B","name":"open","pid":1,"tid":1,"ts":11},
    {"ph":"b","cat":"net","id":"0x5","name":"request","pid":1,"tid":1,"ts":2},
    {"ph":"n","cat":"net","id":"0x5","name":"byte","pid":1,"tid":1,"ts":4},
    {"ph":"e","cat":"net","id":"0x5","name":"request","pid":1,"tid":2,"ts":20}])");
  EXPECT_EQ(describe(m),
            "lane thread 1 1  \n"
            "lane async 1 0x5  \n"
            "host 0 0 9000 outer  other - \n"
            "host 0 1000 2000 inner  other outer \n"
            "host 0 11000 9000 open  other - \n"
            "host 1 2000 18000 request net other - \n"
            "instant 4000 byte \n"
            "loss chrome.begin_without_end 1 \n"
            "loss chrome.end_without_begin 1 \n");
}

TEST(ReadJson, keys_may_come_in_any_order_and_the_last_of_two_wins) {
  const Model m = load_text(R"({"traceEvents": [
    {"args": {"External id": 1, "External id": 4}, "dur": 1, "dur": 2, "ts": 5, "tid": 1, "pid": 1, "name": "x", "name": "y", "cat": "cpu_op", "ph": "X"}]})");
  EXPECT_EQ(m.text(m.host_slices.name[0]), "y");
  EXPECT_EQ(m.host_slices.duration_ns[0], 2000);
  EXPECT_EQ(m.op_details.external_id[0], 4);
}

TEST(ReadJson, collectives_keep_what_nccl_was_asked) {
  const Model m = load_text(R"({"traceEvents": [
    {"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce","pid":0,"tid":20,"ts":1,"dur":2,"args":{"Collective name":"allreduce",
     "In msg nelems":1048576,"Out msg nelems":1048576,"Group size":8,"dtype":"BFloat16","Process Group Name":"0",
     "Process Group Description":"default_pg","Process Group Ranks":"[0, ..., 7]","Seq":12,
     "In split size":"[4, 4]","Out split size":"[]","Global rank start":2,"Global rank stride":1}}]})");
  ASSERT_EQ(m.comm_details.size(), 1u);
  EXPECT_EQ(m.text(m.comm_details.in_split_sizes[0]), "[4, 4]");
  EXPECT_EQ(m.text(m.comm_details.out_split_sizes[0]), "[]");
  EXPECT_EQ(m.comm_details.global_rank_start[0], 2);
  EXPECT_EQ(m.comm_details.global_rank_stride[0], 1);
  EXPECT_EQ(m.device_slices.comm[0], 0u);
  EXPECT_EQ(m.text(m.comm_details.collective[0]), "allreduce");
  EXPECT_EQ(m.comm_details.in_elements[0], 1048576);
  EXPECT_EQ(m.text(m.comm_details.group_ranks[0]), "[0, ..., 7]");
}

TEST(ReadJson, a_kernel_does_the_collective_of_its_op) {
  const Model m = load_text(R"({"traceEvents": [
    {"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":1,"tid":1,"ts":1,"dur":9,"args":{"External id":4,"Collective name":"allgather"}},
    {"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":11,"dur":9,"args":{"External id":5}},
    {"ph":"X","cat":"kernel","name":"ncclDevKernel","pid":0,"tid":20,"ts":5,"dur":2,"args":{"External id":4,"correlation":1}},
    {"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":20,"ts":15,"dur":2,"args":{"External id":5,"correlation":2}}]})");
  EXPECT_EQ(m.device_slices.comm, (std::vector<Row>{0, kNoRow}));
}

TEST(ReadJson, an_overload_of_our_own_export_is_not_part_of_the_name) {
  const Model m = load_text(R"({"traceEvents": [
    {"ph":"X","cat":"cpu_op","name":"aten::add.Tensor","pid":1,"tid":1,"ts":1,"dur":1,"args":{"Overload name":"Tensor"}},
    {"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":1,"ts":3,"dur":1,"args":{"Overload name":"out"}}]})");
  EXPECT_EQ(m.host_slices.name[0], m.host_slices.name[1]);
  EXPECT_EQ(m.text(m.op_details.overload[0]), "Tensor");
  EXPECT_EQ(m.text(m.op_details.overload[1]), "out");
}

std::string with_gpu_counters(std::string_view keys) {
  return "{" + std::string(keys) + R"( "schemaVersion": 1, "traceEvents": [
    {"ph":"C","name":"dram__throughput.avg.pct_of_peak_sustained_elapsed","pid":"GPU 0 Counters","ts":1,"args":{"value":0.75}},
    {"ph":"C","name":"sm__cycles_active.avg.pct_of_peak_sustained_elapsed","pid":"GPU 0 Counters","ts":2,"args":{"value":0.5}},
    {"ph":"C","name":"dram__throughput.avg.pct_of_peak_sustained_elapsed","pid":7,"ts":3,"args":{"value":0.25}}]})";
}

// Kineto writes what CUPTI gave, which are fractions in 13.0 for throughputs.
TEST(ReadJson, throughputs_of_cuptis_that_give_fractions_become_percents) {
  const auto values = [](std::string_view keys) { return load_text(with_gpu_counters(keys)).counter_samples.value; };
  EXPECT_EQ(values(R"("cupti_version": 130001,)"), (std::vector<double>{75, 0.5, 0.25}));
  EXPECT_EQ(values(R"("cupti_version": 130100,)"), (std::vector<double>{0.75, 0.5, 0.25}));
  EXPECT_EQ(values(""), (std::vector<double>{0.75, 0.5, 0.25}));
}

TEST(ReadJson, throughputs_that_were_made_percents_stay_as_they_are) {
  const Model first = load_text(with_gpu_counters(R"("cupti_version": 130001,)"));
  EXPECT_NE(first.find_metadata("throughputs_in_percent"), nullptr);  // an export says so, too
  const Model again = load_text(with_gpu_counters(R"("cupti_version": 130001, "throughputs_in_percent": 1,)"));
  EXPECT_EQ(again.counter_samples.value, (std::vector<double>{0.75, 0.5, 0.25}));
}

TEST(ReadJson, args_that_no_analysis_reads_come_back_when_asked) {
  const Model m = load_text(std::string(kEverything));
  const Result<std::string> event = m.args->event_json(m.host_slices.source[3]);
  ASSERT_TRUE(event.ok());
  EXPECT_NE(event.value().find(R"("list": [{"a": 1}, {"ph": "X", "ts": 5}])"), std::string::npos);
  EXPECT_EQ(event.value().front(), '{');
  EXPECT_EQ(event.value().back(), '}');
}

}  // namespace
}  // namespace firelane::importer
