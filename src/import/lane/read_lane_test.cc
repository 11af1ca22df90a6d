// .lane files made by hand, read into the model; the golden file of version 1; damage.
#include "import/lane/read_lane.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>

#include "import/lane/testing.h"
#include "import/load.h"

namespace firelane::importer {
namespace {

using test::kStart;
using test::kUnix;
using test::LaneBuilder;
using test::StreamBuilder;

Model load(const std::string& bytes) {
  auto model = load_trace_bytes(bytes, "t.lane");
  if (!model.ok()) {
    ADD_FAILURE() << model.error().message;
    return {};
  }
  return std::move(model).value();
}

std::string text_of(const Model& m) {
  std::string out;
  const auto line = [&](const std::string& text) { out += text + "\n"; };
  const auto t = [&](StringId id) { return std::string(m.text(id)); };
  const auto optional = [&](const char* key, int64_t n) {
    return n == kNoNumber ? std::string() : std::string(" ") + key + " " + std::to_string(n);
  };
  for (Row row = 0; row < m.host_slices.size(); ++row) {
    const HostSlices& h = m.host_slices;
    std::string text = m.id_text(m.lanes.tid[static_cast<size_t>(h.lane[row])]) + " " +
                       std::string(h.depth[row] * 2u, ' ') + std::to_string(h.start_ns[row]) + "+" +
                       std::to_string(h.duration_ns[row]) + " " + t(h.name[row]) + " (" + t(h.category[row]) + ")";
    if (h.kind[row] == HostKind::kOp || h.kind[row] == HostKind::kAnnotation) {
      const OpDetails& d = m.op_details;
      const Row op = h.detail[row];
      text += optional("sequence", d.sequence_number[op]) + optional("flops", d.flops[op]);
      if (d.input_dims[op] != kNoString) text += " " + t(d.input_dims[op]) + " " + t(d.input_types[op]);
      if (d.stack[op] != kNoString) text += " stack " + t(d.stack[op]);
      if (d.forward[op] != kNoRow) text += " forward " + t(h.name[d.forward[op]]);
    }
    line(text);
  }
  for (size_t i = 0; i < m.memory_events.size(); ++i) {
    line("memory " + std::to_string(m.memory_events.time_ns[i]) + " " + std::to_string(m.memory_events.bytes[i]) +
         " total " + std::to_string(m.memory_events.total_allocated_bytes[i]));
  }
  for (size_t i = 0; i < m.instants.size(); ++i) {
    line("instant " + std::to_string(m.instants.time_ns[i]) + " " + t(m.instants.name[i]));
  }
  for (size_t i = 0; i < m.counter_samples.size(); ++i) {
    line("counter " + std::to_string(m.counter_samples.time_ns[i]) + " " +
         t(m.counter_tracks.name[m.counter_samples.track[i]]) + " " + std::to_string(m.counter_samples.value[i]));
  }
  for (size_t i = 0; i < m.timed_steps.size(); ++i) {
    line("step " + std::to_string(m.timed_steps.number[i]) + " disturbance " +
         std::to_string(static_cast<int>(m.timed_steps.disturbance[i])) + " " +
         std::to_string(m.timed_steps.start_ns[i]) + "+" + std::to_string(m.timed_steps.duration_ns[i]) +
         (m.timed_steps.ran_ns[i] == kNoNumber ? ""
                                               : " ran " + std::to_string(m.timed_steps.ran_ns[i]) + " waited " +
                                                     std::to_string(m.timed_steps.waited_ns[i])));
  }
  for (size_t i = 0; i < kStatCount; ++i) {
    if (m.losses.counts[i] > 0) line(std::string(kStats[i].name) + " " + std::to_string(m.losses.counts[i]));
  }
  return out;
}

// One of everything that version 1 has.
void add_everything(LaneBuilder& lane) {
  std::string blob;  // one float tensor [16, 512] without strides, one scalar
  blob.append(std::string_view("\1\6\2\0\0\0\0\0", 8));
  append_fixed(blob, int64_t{16});
  append_fixed(blob, int64_t{512});
  blob.append(std::string_view("\4\0\0\0\1\0\0\0", 8));
  blob.append(std::string_view("1\0\0\0\0\0\0\0", 8));
  lane.events(1, {"aten::mm", blob, "train.py(3): main;train.py(9): f", "MmBackward0", "ProfilerStep#4", "f", "mark"},
              {StreamBuilder(0, 100)
                   .begin(0, 5, format::Scope::kUser)
                   .begin(100, 6, format::Scope::kPythonFunction)
                   .begin(200, 1, format::Scope::kFunction, 9)
                   .text(format::Attribute::kInputs, 2)
                   .text(format::Attribute::kStack, 3)
                   .number(format::Attribute::kFlops, 4096)
                   .add({.kind = format::Record::kMemory,
                         .ticks = StreamBuilder::ticks(250),
                         .memory = {.address = 64, .bytes = 512, .total_allocated_bytes = 512}})
                   .end(300)
                   .end(400, format::Record::kEndPython)
                   .add({.kind = format::Record::kInstant, .text = 7, .ticks = StreamBuilder::ticks(450)})
                   .add({.kind = format::Record::kCounter, .text = 7, .ticks = StreamBuilder::ticks(460), .value = 2.5})
                   .add({.kind = format::Record::kAsyncBegin,
                         .scope = format::Scope::kUser,
                         .text = 7,
                         .ticks = StreamBuilder::ticks(470),
                         .number = 5})});
  lane.events(8, {"cudaLaunchKernel", "model.layers.0"},
              {StreamBuilder(1, 200)
                   .begin(500, 4, format::Scope::kBackwardFunction, 9)
                   .number(format::Attribute::kForwardThread, 100)
                   .end(700)
                   .add({.kind = format::Record::kAsyncEnd, .ticks = StreamBuilder::ticks(750), .number = 5}),
               StreamBuilder(0, 100)
                   .begin(800, 9, format::Scope::kModule)
                   .end(900, format::Record::kEndModule)
                   .add({.kind = format::Record::kSlice,
                         .scope = format::Scope::kRuntime,
                         .text = 8,
                         .ticks = StreamBuilder::ticks(910),
                         .number = 20})
                   .number(format::Attribute::kCorrelation, 3)
                   .end(1000)});
  std::string items;
  format::NotesWriter notes(items);
  notes.metadata("distributedInfo", R"({"backend": "gloo", "rank": 1, "world_size": 2})");
  notes.step(3, format::StepPhase::kUnrecorded, kStart - 2000, 1800);
  notes.step(4, format::StepPhase::kRecorded, kStart, 2000);
  notes.cost("op", 84.5);
  notes.loss("events dropped: the buffers were full", 3);
  notes.loss("events dropped: the buffers were full", 8);
  notes.thread(0, 100, "python");
  notes.thread(1, 200, "pt_autograd_0");
  lane.chunk(format::ChunkKind::kNotes, items);
  lane.stop(2000);
}
std::string everything() {
  LaneBuilder lane;
  add_everything(lane);
  return lane.finish();
}

constexpr const char* kEverythingDumped = R"(100 0+1000 ProfilerStep#4 (user_annotation)
100   100+300 f (python_function)
100     200+100 aten::mm (cpu_op) sequence 9 flops 4096 [[16, 512], []] ["float", "Scalar"] stack train.py(3): main;train.py(9): f
100   470+280 mark (user_annotation)
100   800+100 model.layers.0 (module)
100   910+10 cudaLaunchKernel (cuda_runtime)
200 500+200 MmBackward0 (cpu_op) sequence 9 forward aten::mm
memory 250 512 total 512
instant 450 mark
counter 460 mark 2.500000
step 3 disturbance 0 -1000+900
step 4 disturbance 2 0+1000
link.launch_without_device_slice 1
record.dropped_events 8
)";

TEST(ReadLane, a_collective_has_its_details) {
  StreamBuilder stream(0, 300);
  stream.begin(10, 1).text(format::Attribute::kExtraArgs, 2).end(20);
  stream.begin(30, 1).text(format::Attribute::kExtraArgs, 3).end(40);
  stream.begin(50, 1).text(format::Attribute::kExtraArgs, 4).end(60);
  LaneBuilder file;
  file.events(
      1,
      {"record_param_comms",
       R"({"Collective name": "allreduce", "Group size": 2, "In msg nelems": 64, "Out msg nelems": 64,)"
       R"( "Process Group Description": "default_pg", "Process Group Name": "0",)"
       R"( "Process Group Ranks": [0, 1], "Rank": 1, "Seq": 7, "dtype": "BFloat16"})",
       R"({"Collective name": "send", "Dst Rank": 3, "Process Group Ranks": "[0, ..., 63]",)"
       R"( "In split size": "[3, 5]", "Out split size": "[]", "Global rank start": 8, "Global rank stride": 2})",
       "{torn"},
      {stream});
  const Model m = load(file.stop(100).finish());
  ASSERT_EQ(m.op_details.size(), 3u);
  ASSERT_EQ(m.comm_details.size(), 2u);
  EXPECT_EQ(m.op_details.comm, (std::vector<Row>{0, 1, kNoRow}));
  const CommDetails& comm = m.comm_details;
  EXPECT_EQ(m.text(comm.collective[0]), "allreduce");
  EXPECT_EQ(m.text(comm.dtype[0]), "BFloat16");
  EXPECT_EQ(m.text(comm.group_name[0]), "0");
  EXPECT_EQ(m.text(comm.group_description[0]), "default_pg");
  EXPECT_EQ(m.text(comm.group_ranks[0]), "[0, 1]");
  EXPECT_EQ(comm.in_elements[0], 64);
  EXPECT_EQ(comm.group_size[0], 2);
  EXPECT_EQ(comm.rank[0], 1);
  EXPECT_EQ(comm.sequence[0], 7);
  EXPECT_EQ(comm.source_rank[0], kNoNumber);
  EXPECT_EQ(comm.destination_rank[1], 3);
  EXPECT_EQ(m.text(comm.group_ranks[1]), "[0, ..., 63]");
  EXPECT_EQ(comm.in_split_sizes[0], kNoString);
  EXPECT_EQ(comm.global_rank_start[0], kNoNumber);
  EXPECT_EQ(m.text(comm.in_split_sizes[1]), "[3, 5]");
  EXPECT_EQ(m.text(comm.out_split_sizes[1]), "[]");
  EXPECT_EQ(comm.global_rank_start[1], 8);
  EXPECT_EQ(comm.global_rank_stride[1], 2);
}

TEST(ReadLane, an_overload_belongs_to_the_name_it_was_noted_for) {
  std::string items;
  format::NotesWriter(items).overload(1, "Tensor");
  format::NotesWriter(items).overload(2, "out");
  format::NotesWriter(items).overload(UINT32_MAX, "far beyond any text");
  StreamBuilder stream(0, 300);
  for (const uint32_t name : {1u, 2u, 3u}) stream.begin(10 * name, name).end(10 * name + 5);
  LaneBuilder file;
  file.chunk(format::ChunkKind::kNotes, items).events(1, {"aten::add", "aten::add", "aten::mm"}, {stream}).stop(100);
  const Model m = load(file.finish());
  ASSERT_EQ(m.op_details.size(), 3u);
  EXPECT_EQ(m.text(m.host_slices.name[1]), "aten::add");
  EXPECT_EQ(m.text(m.op_details.overload[0]), "Tensor");
  EXPECT_EQ(m.text(m.op_details.overload[1]), "out");
  EXPECT_EQ(m.op_details.overload[2], kNoString);
  EXPECT_EQ(m.losses[Stat::kLaneChunkDamaged], 1u);
}

TEST(ReadLane, a_python_function_knows_the_line_that_called_it) {
  LaneBuilder lane;
  lane.events(1, {"f", "g"},
              {StreamBuilder(0, 100)
                   .begin(0, 1, format::Scope::kPythonFunction)
                   .begin(1, 2, format::Scope::kPythonBuiltin)
                   .number(format::Attribute::kCallLine, 12)
                   .end(2, format::Record::kEndPython)
                   .end(3, format::Record::kEndPython)});
  const Model m = load(lane.stop(10).finish());
  ASSERT_EQ(m.host_slices.size(), 2u);
  EXPECT_LT(m.host_slices.call_line[0], 0);
  EXPECT_EQ(m.host_slices.call_line[1], 12);
}

TEST(ReadLane, calls_of_modules_say_how_they_are_named) {
  LaneBuilder lane;
  lane.events(1, {"layers.0 (Linear)", "nn.Module: Linear_0", "f.py(1): f"},
              {StreamBuilder(0, 100)
                   .begin(100, 1, format::Scope::kModule)
                   .begin(110, 2, format::Scope::kPythonFunction)
                   .begin(120, 3, format::Scope::kPythonFunction)
                   .end(130, format::Record::kEndPython)
                   .end(140, format::Record::kEndPython)
                   .end(150, format::Record::kEndModule)});
  const Model m = load(lane.stop(200).finish());
  using C = ModuleCall;
  EXPECT_EQ(m.host_slices.module, (std::vector<C>{C::kPath, C::kNumbered, C::kNone}));
}

TEST(ReadLane, a_cost_that_no_event_can_have_is_damage) {
  std::string items;
  for (const double ns : {1.2e195, -1.0, std::numeric_limits<double>::quiet_NaN(), 90.0})
    format::NotesWriter(items).cost("op", ns);
  LaneBuilder file;
  file.chunk(format::ChunkKind::kNotes, items).stop(100);
  const Model m = load(file.finish());
  ASSERT_EQ(m.info.recorder.costs.size(), 1u);
  EXPECT_EQ(m.info.recorder.costs[0].ns, 90);
  EXPECT_EQ(m.losses[Stat::kLaneChunkDamaged], 3u);
}

TEST(ReadLane, everything_that_version_one_has_reaches_the_model) {
  const Model m = load(everything());
  EXPECT_EQ(text_of(m), kEverythingDumped);
  EXPECT_EQ(m.info.format, "Firelane");
  EXPECT_EQ(m.info.start_ns + m.info.base_time_ns, kUnix);
  EXPECT_EQ(m.info.recorder.command, "/usr/bin/python3 train.py");
  EXPECT_EQ(m.info.recorder.host_name, "box");
  ASSERT_EQ(m.info.recorder.costs.size(), 1u);
  EXPECT_EQ(m.info.recorder.costs[0].ns, 84.5);
  EXPECT_EQ(m.info.distributed.rank, 1);
  ASSERT_NE(m.find_metadata("record_shapes"), nullptr);
  EXPECT_EQ(m.find_metadata("with_stack"), nullptr);
  EXPECT_EQ(m.text(m.lanes.name[0]), "thread 100 (python)");
  EXPECT_EQ(m.text(m.lanes.process_name[0]), "python3");
  ASSERT_EQ(m.steps.size(), 1u);
  EXPECT_EQ(m.steps.number[0], 4);
}

TEST(ReadLane, what_the_thread_of_a_step_did_stands_with_the_step_before_it) {
  LaneBuilder lane;
  std::string items;
  format::NotesWriter notes(items);
  notes.step(3, format::StepPhase::kUnrecorded, kStart - 2000, 1800);
  notes.step(4, format::StepPhase::kRecorded, kStart, 2000);
  notes.step_thread(700, 200);
  lane.chunk(format::ChunkKind::kNotes, items);
  lane.stop(2000);
  const Model m = load(lane.finish());
  const std::string text = text_of(m);
  const size_t third = text.find("step 3 disturbance 0");
  const size_t fourth = text.find("step 4 disturbance 2");
  ASSERT_NE(fourth, std::string::npos) << text;
  EXPECT_NE(text.find("ran 700 waited 200", fourth), std::string::npos) << text;
  EXPECT_EQ(text.substr(third, fourth - third).find("ran"), std::string::npos) << text;
  std::string lost;
  format::NotesWriter(lost).step_thread(700, 200);
  LaneBuilder damaged;
  damaged.chunk(format::ChunkKind::kNotes, lost);
  damaged.stop(2000);
  EXPECT_EQ(load(damaged.finish()).losses[Stat::kLaneChunkDamaged], 1u) << "of no step";
}

// UPDATE=1 writes the file; only ever when version 1 is not yet released.
TEST(ReadLane, the_golden_file_of_version_one_reads_as_it_always_did) {
  const std::string path = std::string(FIRELANE_TEST_DATA) + "/v1.lane";
  if (std::getenv("UPDATE") != nullptr) {
    std::ofstream(path, std::ios::binary) << everything();
  }
  auto model = load_trace(path);
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(text_of(model.value()), kEverythingDumped);
}

TEST(ReadLane, a_cut_at_any_byte_keeps_what_came_before_it) {
  LaneBuilder lane;
  add_everything(lane);
  const std::string whole = lane.finish();
  for (size_t cut = format::kFileHeaderBytes; cut < whole.size(); ++cut) {
    const Model m = load(whole.substr(0, cut));
    const size_t ops = cut >= lane.offsets[2] ? 7 : cut >= lane.offsets[1] ? 4 : 0;
    EXPECT_EQ(m.host_slices.size(), ops) << "cut at byte " << cut;
    EXPECT_EQ(m.losses[Stat::kRecorderStoppedEarly], 1u) << "cut at byte " << cut;
    const bool between =
        std::count(lane.offsets.begin(), lane.offsets.end(), cut) > 0 || cut == format::kFileHeaderBytes;
    if (cut < lane.offsets.back()) EXPECT_EQ(m.losses[Stat::kTruncated], between ? 0u : 1u) << "cut at byte " << cut;
  }
}

TEST(ReadLane, a_killed_recording_is_closed_at_its_last_event) {
  LaneBuilder lane;
  lane.events(1, {"outer", "inner"}, {StreamBuilder(0, 5).begin(0, 1).begin(100, 2).end(300)});
  const Model m = load(lane.torn());
  EXPECT_EQ(text_of(m),
            "5 0+300 outer (cpu_op)\n"
            "5   100+200 inner (cpu_op)\n"
            "torch.unfinished_op 1\n"
            "record.stopped_early 1\n");
}

TEST(ReadLane, any_byte_changed_is_damage_not_a_crash) {
  LaneBuilder lane;
  add_everything(lane);
  const std::string whole = lane.finish();
  for (size_t at = format::kFileHeaderBytes; at < whole.size() - format::kTrailerBytes; ++at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x55);
    const Model m = load(bytes);
    EXPECT_GT(m.losses[Stat::kLaneChunkDamaged] + m.losses[Stat::kTruncated], 0u) << "byte " << at;
  }
}

TEST(ReadLane, a_lost_definition_costs_the_name_not_the_event) {
  LaneBuilder lane;
  lane.events(5, {"known"}, {StreamBuilder(0, 5).begin(0, 3).begin(10, 5).end(20).end(30)});
  EXPECT_EQ(text_of(load(lane.stop(2000).finish())), "5 0+30 (name lost) (cpu_op)\n5   10+10 known (cpu_op)\n");
}

TEST(ReadLane, the_environment_is_read_from_the_metadata_and_the_last_value_of_a_key_counts) {
  LaneBuilder lane;
  std::string items;
  format::NotesWriter notes(items);
  notes.metadata("machine", R"({"cpu":"x","cores":64,"cores_allowed":2,"cpu_quota":1.5,"memory_bytes":1024})");
  notes.metadata("torch", R"({"version":"2.11.0","threads":8,"cudnn_benchmark":true,"matmul_tf32":"?"})");
  notes.metadata("front", R"("firelane.profile")");
  notes.metadata("front", R"("firelane record")");
  notes.metadata("trace_id", R"("A")");
  notes.metadata("load", "2.5");
  notes.metadata("slow", "[1, 20, \"x\"]");
  lane.chunk(format::ChunkKind::kNotes, items);
  const Model m = load(lane.stop(2000).finish());
  const Environment& environment = m.info.environment;
  EXPECT_EQ(environment.cores_allowed, 2);
  EXPECT_DOUBLE_EQ(environment.cpu_quota, 1.5);
  EXPECT_EQ(environment.torch, "2.11.0");
  EXPECT_EQ(environment.cudnn_benchmark, 1);
  EXPECT_EQ(environment.matmul_tf32, kNoNumber);
  EXPECT_EQ(environment.flag(RecordOption::kStacks), "--stacks");
  EXPECT_EQ(m.find_metadata("trace_id")->text, "A");
  EXPECT_EQ(m.find_metadata("trace_id")->number, std::nullopt);
  EXPECT_EQ(m.find_metadata("load")->number, 2.5);
  EXPECT_EQ(m.find_metadata("slow")->numbers, (std::vector<double>{1, 20}));
  EXPECT_EQ(std::count_if(m.info.metadata.begin(), m.info.metadata.end(),
                          [](const MetadataEntry& entry) { return entry.key == "front"; }),
            1);
}

TEST(ReadLane, chunks_and_notes_of_later_versions_are_skipped) {
  LaneBuilder lane;
  lane.chunk(static_cast<format::ChunkKind>(99), "whatever");
  std::string items;
  append_varint(items, 200);  // an unknown tag
  append_text(items, "later");
  format::NotesWriter(items).metadata("k", "1");
  lane.chunk(format::ChunkKind::kNotes, items);
  const Model m = load(lane.stop(2000).finish());
  EXPECT_EQ(text_of(m), "lane.unknown_chunk 1\n");
  EXPECT_NE(m.find_metadata("k"), nullptr);
}

TEST(ReadLane, ends_dropped_by_the_recorder_close_their_slices_at_the_gap) {
  LaneBuilder lane;
  lane.events(1, {"a", "b", "c"},
              {StreamBuilder(0, 5)
                   .begin(0, 1)
                   .begin(10, 2)
                   .add({.kind = format::Record::kLost,
                         .ticks = StreamBuilder::ticks(500),
                         .number = 7,
                         .lost_ends = {1, 0, 0, 0}})
                   .begin(600, 3)
                   .end(700)
                   .end(800)});
  EXPECT_EQ(text_of(load(lane.stop(2000).finish())),
            "5 0+800 a (cpu_op)\n5   10+490 b (cpu_op)\n5   600+100 c (cpu_op)\ntorch.unfinished_op 1\n");
}

TEST(ReadLane, python_slices_open_at_a_pause_end_there) {
  LaneBuilder lane;
  lane.events(1, {"f", "op"}, {StreamBuilder(0, 5).begin(0, 1, format::Scope::kPythonFunction).begin(900, 2).end(950)});
  std::string items;
  format::NotesWriter(items).pause(false, StreamBuilder::ticks(300));
  format::NotesWriter(items).pause(true, StreamBuilder::ticks(800));
  lane.chunk(format::ChunkKind::kNotes, items);
  EXPECT_EQ(text_of(load(lane.stop(2000).finish())),
            "5 0+300 f (python_function)\n5 900+50 op (cpu_op)\ntorch.unfinished_op 1\n");
}

// gloo's range ends in its worker thread, after which the next range of the program may have its address.
TEST(LaneReader, a_range_that_ends_in_another_thread_ends_when_it_did) {
  const auto edge = [](format::Record kind, uint32_t name, int64_t at) {
    return format::EventRecord{
        .kind = kind, .scope = format::Scope::kUser, .text = name, .ticks = StreamBuilder::ticks(at), .number = 5};
  };
  using enum format::Record;
  LaneBuilder lane;
  lane.events(0, {"", "gloo:all_reduce", "Optimizer.step"},
              {StreamBuilder(1, 200).add(edge(kAsyncEnd, 0, 300)).add(edge(kAsyncBegin, 1, 700)),
               StreamBuilder(0, 100).add(edge(kAsyncBegin, 1, 100)).add(edge(kAsyncBegin, 2, 400)),
               StreamBuilder(2, 300).add(edge(kAsyncEnd, 0, 500))});
  lane.events(3, {}, {StreamBuilder(0, 100).add(edge(kAsyncEnd, 0, 900))});
  const Model m = load(lane.stop(1000).finish());
  EXPECT_EQ(text_of(m).substr(0, 160),
            "100 0+200 gloo:all_reduce (user_annotation)\n"
            "100 300+100 Optimizer.step (user_annotation)\n"
            "200 600+200 gloo:all_reduce (user_annotation)\n");
}

}  // namespace
}  // namespace firelane::importer
