#include "import/dumps/flight.h"

#include <gtest/gtest.h>

#include "import/testing.h"

namespace firelane::importer {
namespace {

// As torch writes it: numbers of pg_status as texts in JSON, as numbers in the pickle.
const std::string kDump = R"({"comm_lib_version": "2.28.9", "entries": [
    {"record_id": 0, "pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": 1, "p2p_seq_id": 0, "op_id": 1,
     "profiling_name": "nccl:all_reduce", "time_created_ns": 1000, "time_discovered_started_ns": 0,
     "time_discovered_completed_ns": 5000, "input_sizes": [[4, 2]], "input_dtypes": ["Float"], "output_sizes": [[4, 2]],
     "output_dtypes": ["Float"], "state": "completed", "retired": true, "timeout_ms": 600000, "is_p2p": false,
     "frames": [{"name": "all_reduce", "filename": "/v/site-packages/torch/distributed/d.py", "line": 3},
                {"name": "step", "filename": "/home/me/train.py", "line": 41}]},
    {"record_id": 1, "pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": 2, "op_id": 2,
     "profiling_name": "nccl:all_reduce", "time_created_ns": 6000, "state": "scheduled", "is_p2p": false},
    {"record_id": 2}, 7],
  "pg_config": {"0": {"desc": "default_pg", "name": "0", "ranks": "[0, 1]"}},
  "pg_status": {"0": {"last_completed_collective": "1", "last_enqueued_collective": "2", "last_started_collective": "-1"}},
  "version": "2.10"})";

TEST(FlightLog, a_dump_gives_groups_entries_and_their_states) {
  const Result<Document> document = document_of_json(kDump, "d");
  ASSERT_TRUE(document.ok());
  ASSERT_TRUE(is_flight_log(document.value()));
  const FlightLog log = flight_log(document.value(), "/tmp/nccl_trace_rank_1");
  EXPECT_EQ(log.rank, 1);
  EXPECT_EQ(log.version, "2.10");
  EXPECT_EQ(log.malformed, 2);
  ASSERT_EQ(log.groups.size(), 1u);
  EXPECT_EQ(log.groups[0].ranks, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(log.groups[0].last_enqueued, 2);
  ASSERT_EQ(log.entries.size(), 2u);
  const FlightEntry& first = log.entries[0];
  EXPECT_EQ(log.text(first.collective), "all_reduce");
  EXPECT_EQ(log.text(first.group_description), "default_pg");
  EXPECT_EQ(first.state, CommState::kCompleted);
  EXPECT_EQ(first.started_ns, kNoNumber);
  EXPECT_EQ(first.completed_ns, 5000);
  EXPECT_EQ(log.text(first.input_sizes), "[[4, 2]]");
  EXPECT_EQ(log.text(first.place), "train.py(41): step");
  EXPECT_EQ(log.entries[1].state, CommState::kScheduled);
}

TEST(FlightLog, the_name_of_a_file_ends_with_its_rank) {
  const auto rank = [](const std::string& path) {
    const Result<Document> document = document_of_json(R"({"entries": [], "version": "1"})", "d");
    return flight_log(document.value(), path).rank;
  };
  EXPECT_EQ(rank("/tmp/nccl_trace_rank_0"), 0);
  EXPECT_EQ(rank("dumps/17.json.gz"), 17);
  EXPECT_EQ(rank("h200.pickle"), 200);
  EXPECT_EQ(rank("/tmp/x/dump"), kNoNumber);
  EXPECT_EQ(rank("99999999999999999999"), kNoNumber);
}

TEST(FlightLog, a_number_in_the_name_that_is_no_member_of_a_group_is_not_the_rank) {
  const auto rank = [](const std::string& ranks, const std::string& path) {
    const std::string text =
        R"({"entries": [], "version": "1", "pg_config": {"0": {"name": "0", "ranks": ")" + ranks + R"("}}})";
    const Result<Document> document = document_of_json(text, "d");
    return flight_log(document.value(), path).rank;
  };
  EXPECT_EQ(rank("[0, 1]", "dump_1.json"), 1);
  EXPECT_EQ(rank("[0, 1]", "h200.json"), kNoNumber);
  EXPECT_EQ(rank("[0]", "h200.json"), 0);
}

TEST(FlightLog, opens_as_a_trace_of_collectives) {
  const Result<Model> loaded = load_trace_bytes(kDump, "rank1.json");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const Model& m = loaded.value();
  EXPECT_EQ(m.info.format, "NCCL flight recorder");
  EXPECT_EQ(m.info.distributed.rank, 1);
  EXPECT_EQ(m.info.distributed.world_size, 2);
  EXPECT_EQ(m.losses[Stat::kDumpEntryMalformed], 2u);
  ASSERT_EQ(m.host_slices.size(), 2u);
  EXPECT_EQ(m.text(m.host_slices.name[0]), "nccl:all_reduce");
  EXPECT_EQ(m.host_slices.duration_ns[0], 4000);
  ASSERT_EQ(m.comm_details.size(), 2u);
  EXPECT_EQ(m.comm_details.sequence[1], 2);
  EXPECT_EQ(m.comm_details.state[1], CommState::kScheduled);
  EXPECT_EQ(m.comm_details.backend[1], CommBackend::kNccl);
}

TEST(FlightLog, json_is_told_from_a_trace_by_its_first_key) {
  for (const std::string_view begin :
       {R"({"comm_lib_versi)", "{\n  \"entries\": [", R"({"nccl_comm_stat)", R"({"nccl_version":)"})
    EXPECT_TRUE(may_be_flight_json(begin)) << begin;
  for (const std::string_view begin :
       {"", "{", R"({"schemaVersion")", R"({"traceEvents":)", "[1, 2, 3, 4, 5, 6", R"({"entry":)"})
    EXPECT_FALSE(may_be_flight_json(begin)) << begin;
}

TEST(FlightLog, what_is_no_dump_is_one_line) {
  const Result<Model> other = load_trace_bytes(R"({"entries": 5})", "x.json");
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().message, "x.json: JSON, but neither a trace nor a flight recorder dump");
  const Result<Model> cut = load_trace_bytes(kDump.substr(0, kDump.size() / 2), "x.json");
  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.error().message.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace firelane::importer
