// Samples of stacks in a .lane file, and pieces of them that are damaged.
#include "import/lane/sample_rows.h"

#include <gtest/gtest.h>

#include <string>

#include "format/chunk.h"
#include "format/notes.h"
#include "format/testing.h"
#include "import/load.h"

namespace firelane::importer {
namespace {

constexpr int64_t kSampledUnix = 1'790'000'000'000'000'000;

// Ticks are half nanoseconds.
Model sampled_model(const std::vector<std::string>& pieces) {
  format::test::StringSink sink;
  format::ChunkWriter writer(sink, 1);
  EXPECT_EQ(writer.write_header(1), "");
  std::string payload;
  format::NotesWriter notes(payload);
  notes.process(77, TickSource::kTsc, 2e9, "box", "python train.py");
  notes.clock_pair(format::PairRole::kStart, {.ticks = 1000, .monotonic_ns = 0, .unix_ns = kSampledUnix});
  notes.thread(0, 77, "main");
  for (const std::string& piece : pieces) notes.metadata("stack_samples", piece);
  notes.clock_pair(format::PairRole::kStop, {.ticks = 3000, .monotonic_ns = 1000, .unix_ns = kSampledUnix + 1000});
  EXPECT_EQ(writer.write_chunk(format::ChunkKind::kNotes, payload), "");
  EXPECT_EQ(writer.finish(0), "");
  auto model = load_trace_bytes(sink.content, "run.lane");
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().message);
  return std::move(model).value();
}

// Times since the first one.
std::string sample_text(const Model& m) {
  std::string out;
  for (Row row = 0; row < m.stack_samples.size(); ++row) {
    out += std::to_string(m.stack_samples.time_ns[row] - m.stack_samples.time_ns[0]) + " +" +
           std::to_string(m.stack_samples.weight_ns[row]) + " " +
           m.id_text(m.lanes.tid[static_cast<size_t>(m.stack_samples.lane[row])]) + " " +
           std::string(m.text(m.stack_samples.stack[row])) + " " + std::to_string(m.stack_samples.on_cpu[row]) + " " +
           std::to_string(m.stack_samples.has_gil[row]) + "\n";
  }
  return out;
}

TEST(StackSamples, LieOnTheTimeAxisOfTheTraceInOrder) {
  const Model m =
      sampled_model({R"({"stacks":["b.py(7): f;a.py(1): main"],"samples":[[2000,100,77,0,3],[2400,9,78,0,4]]})",
                     R"({"stacks":["a.py(2): main"],"samples":[[1200,50,77,0,0]]})"});
  EXPECT_EQ(sample_text(m),
            "0 +50 77 a.py(2): main 0 0\n"
            "400 +100 77 b.py(7): f;a.py(1): main 1 1\n"
            "600 +9 78 b.py(7): f;a.py(1): main -1 0\n");
  EXPECT_NE(m.strings.find("b.py(7): f"), kNoString);
  EXPECT_EQ(m.find_metadata("stack_samples"), nullptr);
}

TEST(StackSamples, WhatDoesNotFitIsCountedAndTheRestIsRead) {
  const Model m =
      sampled_model({"[]", "{\"stacks\":[", R"({"stacks":["a"],"samples":7})",
                     R"({"stacks":["a.py(1): f",3],"samples":[[1200,1,77,2,0],[-1,1,77,0,0],[1200,-1,77,0,0],)"
                     R"([1200,1,-7,0,0],[1200,1,77,0],"x",[1200,1,77,0,0],[9223372036854775807,1,77,0,0]]})"});
  EXPECT_EQ(m.losses[Stat::kLaneChunkDamaged], 9u);
  EXPECT_EQ(m.stack_samples.size(), 2u);
}

}  // namespace
}  // namespace firelane::importer
