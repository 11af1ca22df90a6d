// Memory snapshots, written as JSON: the same document that a pickle gives.
#include "import/dumps/snapshot_rows.h"

#include <gtest/gtest.h>

#include "import/dumps/flight.h"
#include "import/testing.h"

namespace firelane::importer {
namespace {

Model snapshot_of(const std::string& json) {
  Result<Document> document = document_of_json(json, "t.pickle");
  EXPECT_TRUE(document.ok());
  EXPECT_TRUE(is_snapshot(document.value()));
  return assemble(snapshot_rows(document.value()));
}

std::string rows_of(const Model& m) {
  std::string out;
  const auto n = [](auto number) { return std::to_string(number); };
  for (Row i = 0; i < m.allocator_segments.size(); ++i) {
    const AllocatorSegments& s = m.allocator_segments;
    out += "segment " + n(s.time_ns[i]) + " " + n(s.address[i]) + "+" + n(s.bytes[i]) +
           (s.pool[i] == kNoString ? "" : " " + std::string(m.text(s.pool[i]))) + "\n";
  }
  for (Row i = 0; i < m.allocator_blocks.size(); ++i) {
    const AllocatorBlocks& b = m.allocator_blocks;
    out += "block " + n(b.address[i]) + "+" + n(b.bytes[i]) + " " + std::string(name_of(b.state[i])) + "\n";
  }
  for (Row i = 0; i < m.memory_events.size(); ++i) {
    const MemoryEvents& e = m.memory_events;
    out += std::string(name_of(e.kind[i])) + " " + n(e.time_ns[i]) + " " + n(e.address[i]) + " " + n(e.bytes[i]) +
           (e.op[i] == kNoString ? "" : " " + std::string(m.text(e.op[i]))) +
           (e.stack[i] == kNoString ? "" : " " + std::string(m.text(e.stack[i]))) + "\n";
  }
  for (Row i = 0; i < m.allocator_events.size(); ++i) {
    const AllocatorEvents& e = m.allocator_events;
    out += std::string(name_of(e.kind[i])) + " " + n(e.time_ns[i]) + " " + n(e.address[i]) + " " + n(e.bytes[i]) + "\n";
  }
  for (Row i = 0; i < m.host_slices.size(); ++i)
    out += std::string(m.text(m.host_slices.name[i])) + " " + n(m.host_slices.start_ns[i]) + "+" +
           n(m.host_slices.duration_ns[i]) + "\n";
  return out;
}

// Of what was held at the end, 4096 was allocated before the history; 8192 was freed in it and its segment given back.
TEST(Snapshot, the_state_at_the_start_is_the_end_with_its_history_undone) {
  const Model m = snapshot_of(R"json({"segments": [
      {"device": 0, "address": 4096, "total_size": 2048, "stream": 0, "segment_pool_id": [0, 0], "blocks": [
        {"address": 4096, "size": 512, "requested_size": 500, "state": "active_allocated", "frames": []},
        {"address": 4608, "size": 512, "requested_size": 512, "state": "active_allocated", "frames": []},
        {"address": 5120, "size": 1024, "requested_size": 1024, "state": "inactive", "frames": []}]}],
    "device_traces": [[
      {"action": "alloc", "addr": 4608, "size": 500, "stream": 0, "time_us": 100, "frames": [
        {"name": "at::_ops::empty_strided::call(int)", "filename": "??", "line": 0},
        {"name": "at::_ops::linear::call(at::Tensor const&)", "filename": "??", "line": 0},
        {"name": "forward", "filename": "/x/torch/nn/linear.py", "line": 7},
        {"name": "step", "filename": "train.py", "line": 41}]
},
      {"action": "free_requested", "addr": 8192, "size": 1000, "stream": 0, "time_us": 100, "frames": []},
      {"action": "free_completed", "addr": 8192, "size": 1000, "stream": 0, "time_us": 100, "frames": []},
      {"action": "segment_free", "addr": 8192, "size": 2048, "stream": 0, "time_us": 101, "frames": []},
      {"action": "oom", "device_free": 5, "size": 1152921504606846976, "stream": 0, "time_us": 102, "frames": []}],
      []],
    "external_annotations": [
      {"stage": "START", "name": "Optimizer.step#SGD.step", "device": 0, "time_us": 99},
      {"stage": "END", "name": "Optimizer.step#SGD.step", "device": 0, "time_us": 103},
      {"stage": "END", "name": "began before", "device": 0, "time_us": 104}]
})json");
  EXPECT_EQ(rows_of(m),
            "segment 999 4096+2048 common\n"
            "segment 999 8192+2048 common\n"
            "block 4096+512 allocated\n"
            "block 8192+1024 allocated\n"
            "alloc 1000 4608 500 aten::linear /x/torch/nn/linear.py(7): forward;train.py(41): step\n"
            "free 1001 8192 -1000\n"
            "out_of_memory 3000 0 1152921504606846976\n"
            "free_completed 1002 8192 1000\n"
            "segment_free 2000 8192 2048\n"
            "Optimizer.step#SGD.step 0+4000\n");
  EXPECT_EQ(m.losses[Stat::kDumpEntryMalformed], 0u);
  EXPECT_EQ(m.info.format, "PyTorch memory snapshot");
}

TEST(Snapshot, expandable_segments_grow_and_shrink_backwards) {
  const Model m = snapshot_of(R"json({"segments": [
      {"device": 0, "address": 1000, "total_size": 300, "stream": 0, "is_expandable": true, "blocks": [
        {"size": 300, "state": "inactive"}]}],
    "device_traces": [[
      {"action": "segment_map", "addr": 1000, "size": 500, "stream": 0, "time_us": 1},
      {"action": "segment_map", "addr": 1500, "size": 100, "stream": 0, "time_us": 2},
      {"action": "segment_unmap", "addr": 1300, "size": 300, "stream": 0, "time_us": 3}]]})json");
  EXPECT_EQ(rows_of(m).substr(0, 14), "segment -1 0+0");  // it held nothing
}

TEST(Snapshot, without_history_what_is_held_counts_as_allocated) {
  const Model m = snapshot_of(R"json([{"device": 1, "address": 4096, "total_size": 2048, "stream": 0, "blocks": [
      {"size": 512, "state": "active_allocated", "frames": [{"name": "f", "filename": "a.py", "line": 1}]},
      {"size": 1024, "state": "active_pending_free"}, {"size": 512, "state": "inactive"}]}])json");
  EXPECT_EQ(rows_of(m),
            "segment -1 4096+2048\n"
            "block 4608+1024 waiting\n"
            "alloc 0 4096 512 a.py(1): f\n");
}

TEST(Snapshot, entries_that_make_no_sense_are_counted_and_left_out) {
  const Model m = snapshot_of(R"json({"segments": [5, {"device": -1}, {"device": 0, "address": 1, "total_size": 100,
      "blocks": [{"size": 1000, "state": "active_allocated"}, 7]}],
    "device_traces": [[3, {"action": "alloc"}, {"action": "alloc", "addr": -5, "size": 1, "time_us": 3},
      {"action": "alloc", "addr": 5, "size": 9223372036854775807, "time_us": 3},
      {"action": "alloc", "addr": 5, "size": 4, "time_us": 9223372036854775807}, {"time_us": 5},
      {"action": "snapshot", "time_us": 6}], "x", null, {}],
    "external_annotations": [{"stage": "START"}, 1]})json");
  EXPECT_EQ(m.losses[Stat::kDumpEntryMalformed], 12u);
  EXPECT_EQ(m.memory_events.size(), 0u);
  ASSERT_EQ(m.instants.size(), 1u);
  EXPECT_EQ(m.text(m.instants.name[0]), "snapshot");
}

TEST(Snapshot, a_pickle_is_recognized_whatever_its_name) {
  using std::string_literals::operator""s;
  const std::string bytes =
      "\x80\x02}(X\x08\x00\x00\x00segments]X\x0d\x00\x00\x00"
      "device_traces](](}(X\x06\x00\x00\x00"
      "actionX\x05\x00\x00\x00"
      "allocX\x04\x00\x00\x00"
      "addrM\x00\x10"
      "X\x04\x00\x00\x00sizeM\x00\x02X\x07\x00\x00\x00time_usK\x05uee"
      "u."s;
  const Result<Model> m = load_trace_bytes(bytes, "x");
  ASSERT_TRUE(m.ok()) << m.error().message;
  EXPECT_EQ(m.value().memory_events.size(), 1u);
  for (size_t size = 2; size < bytes.size(); ++size) {
    const Result<Model> cut = load_trace_bytes(bytes.substr(0, size), "x");
    if (!cut.ok()) continue;
    EXPECT_EQ(cut.value().losses[Stat::kTruncated], 1u) << size;
  }
  const Result<Model> other = load_trace_bytes("\x80\x02}X\x05\x00\x00\x00modelK\x01s."s, "weights.pt");
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().message,
            "weights.pt: an unrelated pickle (model); memory snapshots (torch.cuda.memory._dump_snapshot) and "
            "NCCL flight recorders are read");
}

}  // namespace
}  // namespace firelane::importer
