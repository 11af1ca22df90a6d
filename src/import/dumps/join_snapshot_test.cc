// Memory snapshots on the axis of a trace. The snapshots are written as JSON: the same document that a pickle gives.
#include "import/dumps/join_snapshot.h"

#include <gtest/gtest.h>

#include "import/byte_source.h"
#include "import/dumps/flight.h"
#include "import/json/read_json.h"
#include "import/samples_for_tests.h"
#include "import/testing.h"

namespace firelane::importer {
namespace {

// 2024-01-01, as torch writes it: the base of times in the trace, and part of those in the snapshot.
constexpr std::string_view kBase = "1704067200000000000";

// From 1,000 to 2,000 us after the base.
std::string trace_text(std::string_view more_events = "") {
  return R"({"schemaVersion": 1, "baseTimeNanoseconds": )" + std::string(kBase) + R"(, "traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1000, "dur": 1000})" +
         std::string(more_events) + "]}";
}

// [memory] of torch.profiler: 512 bytes at 4608, `ts` us after the base.
std::string own_allocation(int ts) {
  return R"(, {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "s": "t", "ts": )" +
         std::to_string(ts) + R"(, "args": {"Device Type": 1, "Device Id": 0, "Bytes": 512, "Addr": 4608}})";
}

std::string event(std::string_view action, uint64_t address, int size, int after_base_us) {
  return R"({"action": ")" + std::string(action) + R"(", "addr": )" + std::to_string(address) + R"(, "size": )" +
         std::to_string(size) + R"(, "stream": 0, "time_us": )" + std::to_string(1704067200000000 + after_base_us) +
         R"(, "frames": []})";
}

// 4096 is allocated before the trace, 4608 in it, 5120 after it. All are held at the end.
std::string snapshot_text(int clock_us = 0) {
  return R"({"segments": [{"device": 0, "address": 4096, "total_size": 2048, "stream": 0, "segment_pool_id": [0, 0],
      "blocks": [{"address": 4096, "size": 512, "state": "active_allocated", "frames": []},
                 {"address": 4608, "size": 512, "state": "active_allocated", "frames": []},
                 {"address": 5120, "size": 512, "state": "active_allocated", "frames": []},
                 {"address": 5632, "size": 512, "state": "inactive", "frames": []}]}],
    "device_traces": [[)" +
         event("segment_alloc", 4096, 2048, 400 + clock_us) + ", " + event("alloc", 4096, 512, 500 + clock_us) + ", " +
         event("alloc", 4608, 512, 1500 + clock_us) + ", " + event("alloc", 5120, 512, 2500 + clock_us) + "]]}";
}

struct Joined {
  Result<void> result;
  Model model;
};

Joined join(const std::string& trace, const std::string& snapshot) {
  const Result<Document> document = document_of_json(snapshot, "snap.pickle");
  EXPECT_TRUE(document.ok());
  Result<RawTrace> raw = read_json(open_memory(trace), "run.json", {});
  EXPECT_TRUE(raw.ok());
  raw.value().info.path = "run.json";
  Result<void> result = join_snapshot(document.value(), "snap.pickle", raw.value());
  return {std::move(result), assemble(std::move(raw).value())};
}

std::string refusal(const std::string& trace, const std::string& snapshot) {
  const Joined joined = join(trace, snapshot);
  return joined.result.ok() ? "" : joined.result.error().message;
}

TEST(JoinSnapshot, events_lie_on_the_axis_of_the_trace) {
  const Joined joined = join(trace_text(), snapshot_text());
  ASSERT_TRUE(joined.result.ok()) << joined.result.error().message;
  const Model& m = joined.model;
  EXPECT_EQ(m.info.duration_ns, 1'000'000);
  ASSERT_EQ(m.memory_events.size(), 1u);
  EXPECT_EQ(m.memory_events.address[0], 4608u);
  EXPECT_EQ(m.memory_events.time_ns[0], 500'000);  // the trace begins at 1,000 us, the allocation is at 1,500
}

TEST(JoinSnapshot, what_was_before_the_trace_is_the_state_at_its_start) {
  const Model m = join(trace_text(), snapshot_text()).model;
  ASSERT_EQ(m.allocator_segments.size(), 1u);
  EXPECT_EQ(m.allocator_segments.bytes[0], 2048);
  ASSERT_EQ(m.allocator_blocks.size(), 1u);
  EXPECT_EQ(m.allocator_blocks.address[0], 4096u);
  EXPECT_EQ(m.losses[Stat::kSnapshotOutsideTrace], 3u);  // the segment and a block before, a block after
  ASSERT_EQ(m.info.joined.size(), 1u);
  EXPECT_EQ(m.info.joined[0].entries, 4);
  EXPECT_EQ(m.info.joined[0].used, 1);
  EXPECT_EQ(m.info.joined[0].clock_offset_ns, kNoNumber);
}

TEST(JoinSnapshot, allocations_that_both_have_count_once_and_measure_the_clock) {
  // The snapshot's clock is 20 us ahead.
  const Joined joined = join(trace_text(own_allocation(1500)), snapshot_text(20));
  ASSERT_TRUE(joined.result.ok()) << joined.result.error().message;
  EXPECT_EQ(joined.model.info.joined[0].clock_offset_ns, 20'000);
  ASSERT_EQ(joined.model.memory_events.size(), 1u);
  EXPECT_EQ(joined.model.memory_events.time_ns[0], 500'000);
}

TEST(JoinSnapshot, memory_of_the_cpu_stays_the_traces_own) {
  const Joined joined =
      join(trace_text(R"(, {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "s": "t",
                      "ts": 1200, "args": {"Device Type": 0, "Device Id": -1, "Bytes": 64, "Addr": 77}})"),
           snapshot_text());
  ASSERT_TRUE(joined.result.ok()) << joined.result.error().message;
  ASSERT_EQ(joined.model.memory_events.size(), 2u);
  EXPECT_EQ(joined.model.memory_events.device_type[0], 0);
}

TEST(JoinSnapshot, a_trace_with_other_allocations_is_of_another_process) {
  std::string other = own_allocation(1500);
  other.replace(other.find("4608"), 4, "9999");
  EXPECT_NE(refusal(trace_text(other), snapshot_text()).find("not of the same process as run.json"), std::string::npos);
}

TEST(JoinSnapshot, a_snapshot_of_another_time_is_refused_with_the_distance) {
  EXPECT_EQ(refusal(trace_text(), snapshot_text(-60'000)),
            "snap.pickle: its events end 58 ms before the trace begins: they are of two runs");
  EXPECT_EQ(refusal(trace_text(), snapshot_text(60'000)),
            "snap.pickle: its events begin 58 ms after the trace ends: they are of two runs");
}

TEST(JoinSnapshot, a_clock_that_is_not_known_is_not_guessed) {
  std::string trace = trace_text();
  trace.replace(trace.find("\"baseTimeNanoseconds\": "), 22 + kBase.size() + 2, "");
  EXPECT_NE(refusal(trace, snapshot_text()).find("does not say when it was recorded"), std::string::npos);
  std::string untimed = snapshot_text();
  for (size_t at; (at = untimed.find("time_us")) != std::string::npos;) untimed.replace(at, 7, "another");
  EXPECT_NE(refusal(trace_text(), untimed).find("no events with times"), std::string::npos);
}

TEST(JoinSnapshot, the_samples_are_of_two_runs) {
  FL_NEED_SAMPLE(trace, "kineto_nccl_one_rank_h200.json.gz");
  FL_NEED_SAMPLE(snapshot, "memory_snapshot_h200.pickle");
  const Result<Model> joined = load_trace(trace, {.snapshot = snapshot});
  ASSERT_FALSE(joined.ok());
  EXPECT_NE(joined.error().message.find("of two runs"), std::string::npos) << joined.error().message;
}

}  // namespace
}  // namespace firelane::importer
