// Light and full steps of one file: kept apart, and the work of light steps gets the ops of full ones.
//
// Ticks are nanoseconds. A step takes 1,000; launches take 10, their kernels run 100 later.
#include <gtest/gtest.h>

#include <string>
#include <unordered_map>

#include "format/chunk.h"
#include "format/device.h"
#include "format/events.h"
#include "format/notes.h"
#include "format/testing.h"
#include "import/lane/light_rows.h"
#include "import/lane/read_lane.h"
#include "import/load.h"
#include "model/sampled_time.h"

namespace firelane::importer {
namespace {

using format::test::StringSink;

constexpr int64_t kLightUnix = 1'790'000'000'000'000'000;

struct Launch {
  std::string op;  // "" = recorded without ops; "outer/inner" nests
  std::string kernel;
  int64_t grid = 1;
};

class LightRun {
 public:
  LightRun() : writer_(sink_, 1) {
    EXPECT_EQ(writer_.write_header(1), "");
    format::NotesWriter notes(notes_);
    notes.process(77, TickSource::kMonotonic, 1e9, "box", "python train.py");
    notes.clock_pair(format::PairRole::kStart, {.ticks = 0, .monotonic_ns = 0, .unix_ns = kLightUnix});
    notes.device_clock(format::PairRole::kStart, 0, 0, 1);
    section_.begin(0, 42, 0, 0);
  }
  LightRun& level(format::RecordLevel level) {
    format::NotesWriter(notes_).level(level, now_);
    return *this;
  }
  LightRun& light() { return level(format::RecordLevel::kLight); }
  LightRun& full() { return level(format::RecordLevel::kFull); }

  LightRun& step(int64_t number, const std::vector<Launch>& launches) {
    const uint64_t begin = now_;
    section_.add({.kind = format::Record::kAsyncBegin,
                  .scope = format::Scope::kUser,
                  .text = text("ProfilerStep#" + std::to_string(number)),
                  .ticks = now_,
                  .number = number});
    for (const Launch& launch : launches) add(launch);
    now_ = begin + 1000;
    section_.add({.kind = format::Record::kAsyncEnd, .ticks = now_ - 1, .number = number});
    return *this;
  }
  LightRun& samples(const std::string& json) {
    format::NotesWriter(notes_).metadata("stack_samples", json);
    return *this;
  }
  LightRun& wait_for_device(int64_t ns) {
    lag_ = ns;
    return *this;
  }

  std::string bytes() {
    format::NotesWriter notes(notes_);
    notes.clock_pair(format::PairRole::kStop,
                     {.ticks = now_, .monotonic_ns = int64_t(now_), .unix_ns = kLightUnix + int64_t(now_)});
    notes.device_clock(format::PairRole::kStop, now_, int64_t(now_), 1);
    chunk(format::ChunkKind::kNotes, notes_);
    std::string payload;
    format::append_definitions(payload, 1, {texts_.begin(), texts_.end()});
    section_.append_to(payload);
    chunk(format::ChunkKind::kEvents, payload);
    payload.clear();
    format::append_definitions(payload, static_cast<uint32_t>(texts_.size()) + 1, {});
    device_.append_to(payload);
    chunk(format::ChunkKind::kDevice, payload);
    EXPECT_EQ(writer_.finish(0), "");
    return sink_.content;
  }

 private:
  uint32_t text(const std::string& bytes) {
    for (size_t i = 0; i < texts_.size(); ++i) {
      if (texts_[i] == bytes) return static_cast<uint32_t>(i) + 1;
    }
    texts_.push_back(bytes);
    return static_cast<uint32_t>(texts_.size());
  }
  void add(const Launch& launch) {
    std::string_view rest = launch.op;
    int open = 0;
    while (!rest.empty()) {
      const std::string op(rest.substr(0, rest.find('/')));
      rest = op.size() < rest.size() ? rest.substr(op.size() + 1) : std::string_view();
      section_.add(
          {.kind = format::Record::kBegin, .scope = format::Scope::kFunction, .text = text(op), .ticks = now_++});
      ++open;
    }
    section_.add({.kind = format::Record::kSlice,
                  .scope = format::Scope::kRuntime,
                  .text = text("cudaLaunchKernel"),
                  .ticks = now_,
                  .number = 10});
    section_.add(
        {.kind = format::Record::kAttribute, .attribute = format::Attribute::kCorrelation, .number = ++correlation_});
    device_.add(format::DeviceKernelRow{.start_ns = int64_t(now_) + 100 + lag_,
                                        .duration_ns = 5,
                                        .context = 1,
                                        .stream = 7,
                                        .correlation = correlation_,
                                        .name = text(launch.kernel),
                                        .grid_x = launch.grid,
                                        .grid_y = 1,
                                        .grid_z = 1,
                                        .block_x = 128,
                                        .block_y = 1,
                                        .block_z = 1});
    now_ += 12;
    for (; open > 0; --open) section_.add({.kind = format::Record::kEnd, .ticks = now_++});
    now_ += 8;
  }
  void chunk(format::ChunkKind kind, std::string_view payload) { EXPECT_EQ(writer_.write_chunk(kind, payload), ""); }

  StringSink sink_;
  format::ChunkWriter writer_;
  std::string notes_;
  format::SectionWriter section_;
  format::DeviceWriter device_;
  std::vector<std::string> texts_;
  uint64_t now_ = 0;
  int64_t lag_ = 0;
  int64_t correlation_ = 0;
};

Model load_part(LightRun& run, bool light) {
  auto model = load_trace_bytes(run.bytes(), "run.lane", {.light_steps = light});
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().message);
  return std::move(model).value();
}

// "gemm: aten::mm < aten::linear" for each kernel.
std::string work_text(const Model& m) {
  std::string out;
  for (Row row = 0; row < m.device_slices.size(); ++row) {
    if (m.device_slices.kind[row] != DeviceKind::kKernel) continue;
    out += std::string(m.text(m.device_slices.name[row])) + ":";
    std::string between = " ";
    for (Row op = m.device_slices.op[row]; op != kNoRow; op = m.host_slices.parent[op]) {
      if (m.host_slices.kind[op] != HostKind::kOp) continue;
      out += between + std::string(m.text(m.host_slices.name[op]));
      between = " < ";
    }
    out += "\n";
  }
  return out;
}

const std::vector<Launch> kFullStep = {
    {"aten::linear/aten::mm", "gemm", 8}, {"aten::relu", "relu", 4}, {"aten::linear/aten::mm", "gemm", 16}};

std::vector<Launch> without_ops(std::vector<Launch> launches) {
  for (Launch& launch : launches) launch.op.clear();
  return launches;
}

TEST(Light, work_of_light_steps_has_the_ops_of_the_full_step) {
  LightRun run;
  run.light().step(3, without_ops(kFullStep)).step(4, without_ops(kFullStep)).full().step(5, kFullStep);
  const Model m = load_part(run, true);
  EXPECT_EQ(work_text(m),
            "gemm: aten::mm < aten::linear\nrelu: aten::relu\ngemm: aten::mm < aten::linear\n"
            "gemm: aten::mm < aten::linear\nrelu: aten::relu\ngemm: aten::mm < aten::linear\n");
  EXPECT_EQ(m.info.light.work, 6);
  EXPECT_EQ(m.info.light.same, 6);
  EXPECT_EQ(m.steps.size(), 2u);
  EXPECT_EQ(m.steps.number[0], 3);
}

TEST(Light, tables_of_the_file_itself_are_of_full_steps_only) {
  LightRun run;
  run.light().step(3, without_ops(kFullStep)).step(4, without_ops(kFullStep)).full().step(5, kFullStep);
  const Model m = load_part(run, false);
  EXPECT_EQ(work_text(m), "gemm: aten::mm < aten::linear\nrelu: aten::relu\ngemm: aten::mm < aten::linear\n");
  EXPECT_EQ(m.steps.size(), 1u);
  EXPECT_FALSE(m.info.light.is_light);
}

TEST(Light, the_file_has_its_light_steps_with_it) {
  LightRun run;
  run.light().step(3, without_ops(kFullStep)).full().step(4, kFullStep);
  const Model m = load_part(run, false);
  ASSERT_NE(m.light, nullptr);
  EXPECT_EQ(work_text(*m.light), work_text(m));
  EXPECT_TRUE(m.light->info.light.is_light);
  EXPECT_EQ(m.light->info.path, "run.lane@light");
  LightRun without;
  without.step(3, kFullStep);
  EXPECT_EQ(load_part(without, false).light, nullptr);
}

// The device is more than a step behind: its work belongs to the step that launched it.
TEST(Light, work_belongs_to_the_step_that_launched_it) {
  LightRun run;
  run.wait_for_device(1500).light().step(3, without_ops(kFullStep)).full().step(4, kFullStep);
  EXPECT_EQ(load_part(run, true).info.light.same, 3);
  LightRun again;
  again.wait_for_device(1500).light().step(3, without_ops(kFullStep)).full().step(4, kFullStep);
  EXPECT_EQ(load_part(again, false).device_slices.size(), 3u + 1u);  // the step's own range on the stream
}

// The border is at 1000; times are "from..until" of what a sample stands for, since the recording's start.
TEST(Light, a_wait_over_several_steps_fell_wholly_to_the_light_ones) {
  const auto text_of = [](const Model& m, int64_t border) {
    std::string out;
    for (Row row = 0; row < m.stack_samples.size(); ++row) {
      const SampledTime time = sampled_time(m.stack_samples.time_ns[row] - border, m.stack_samples.weight_ns[row],
                                            m.stack_samples.on_cpu[row]);
      out += std::to_string(time.start_ns) + ".." + std::to_string(time.end_ns) + "\n";
    }
    return out;
  };
  const auto load = [](bool is_light) {
    LightRun out;
    out.light().step(3, without_ops(kFullStep)).full().step(4, kFullStep);
    // Waits from 400 to 1800; on a core from 900 to 1100; waits, or not, from 950 on; within each; of no length.
    out.samples(R"({"stacks":["a.py(1): f"],"samples":[[400,1400,42,0,0],[1100,200,42,0,1],[950,100,42,0,4],)"
                R"([300,10,42,0,1],[1300,10,42,0,0],[1500,0,42,0,0]]})");
    return load_part(out, is_light);
  };
  const Model light = load(true);
  const Model full = load(false);
  // Each of the two begins with its first event; steps begin at 0 and 1000.
  const auto begin_of = [](const Model& m) { return m.host_slices.start_ns[m.steps.slice[0]]; };
  EXPECT_EQ(text_of(light, begin_of(light)), "290..300\n400..1000\n950..1000\n900..1000\n");
  EXPECT_EQ(text_of(full, begin_of(full) - 1000), "1000..1800\n1000..1050\n1000..1100\n1300..1310\n1500..1500\n");
}

// 20 s for 80,000 of each. Windows are [0, 10), [20, 30), ...; a sample waits from 5 of one to 5 of the next.
TEST(Light, every_sample_went_through_all_windows) {
  constexpr int64_t kCount = 80'000;
  RawTrace raw;
  raw.pools.emplace_back();
  RawPart& part = raw.parts.emplace_back();
  part.host_slices.push_back({.start_ns = 15, .kind = HostKind::kOp});
  std::vector<LightWindow> windows;
  for (int64_t i = 0; i < kCount; ++i) {
    windows.push_back({.begin_ns = i * 20, .end_ns = i * 20 + 10});
    part.stack_samples.push_back({.time_ns = i * 20 + 5, .weight_ns = 20, .on_cpu = 0});
  }
  split_light(raw, windows);
  const auto sum_of = [](const RawTrace& trace) {
    int64_t sum = 0;
    for (const RawStackSample& row : trace.parts.front().stack_samples) sum += row.weight_ns;
    return sum;
  };
  const auto& light = raw.light->parts.front().stack_samples;
  const auto& full = raw.parts.front().stack_samples;
  ASSERT_EQ(full.size(), static_cast<size_t>(kCount));
  EXPECT_EQ(light.size(), static_cast<size_t>(2 * kCount - 1));  // the last one ends outside
  EXPECT_EQ(full[kCount / 2].time_ns, kCount / 2 * 20 + 10);
  EXPECT_EQ(sum_of(*raw.light), kCount * 10 - 5);
  EXPECT_EQ(sum_of(raw), kCount * 10 + 5);
}

TEST(Light, a_launch_that_no_full_step_has_is_without_op_and_counted) {
  LightRun run;
  std::vector<Launch> longer = without_ops(kFullStep);
  longer.insert(longer.begin() + 1, {"", "checksum", 1});
  run.light().step(3, longer).full().step(4, kFullStep);
  const Model m = load_part(run, true);
  EXPECT_EQ(work_text(m),
            "gemm: aten::mm < aten::linear\nchecksum:\nrelu: aten::relu\ngemm: aten::mm < aten::linear\n");
  EXPECT_EQ(m.info.light.other(), 1);
  EXPECT_EQ(m.losses[Stat::kLightWorkWithoutTwin], 1u);
}

TEST(Light, launches_of_other_sizes_are_recognized_by_name) {
  LightRun run;
  std::vector<Launch> larger = without_ops(kFullStep);
  larger[1].grid = 99;
  run.light().step(3, larger).full().step(4, kFullStep);
  const Model m = load_part(run, true);
  EXPECT_EQ(work_text(m), "gemm: aten::mm < aten::linear\nrelu: aten::relu\ngemm: aten::mm < aten::linear\n");
  EXPECT_EQ(m.info.light.same, 2);
  EXPECT_EQ(m.info.light.resized, 1);
}

// Two kinds of steps: each light one is compared with the full one that it resembles.
TEST(Light, the_most_similar_full_step_counts) {
  const std::vector<Launch> other = {{"aten::conv2d", "conv", 2}, {"aten::sum", "gemm", 8}};
  LightRun run;
  run.light().step(3, without_ops(other)).full().step(4, kFullStep).step(5, other);
  EXPECT_EQ(work_text(load_part(run, true)), "conv: aten::conv2d\ngemm: aten::sum\n");
}

TEST(Light, a_file_of_light_steps_only_is_shown_as_it_is) {
  LightRun run;
  run.light().step(3, without_ops(kFullStep));
  const Model m = load_part(run, false);
  EXPECT_EQ(work_text(m), "gemm:\nrelu:\ngemm:\n");
  EXPECT_TRUE(m.info.light.is_light);
}

TEST(Light, a_file_without_light_steps_says_so) {
  LightRun run;
  run.step(3, kFullStep);
  const auto model = load_trace_bytes(run.bytes(), "run.lane", {.light_steps = true});
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().message, "run.lane: has no light steps; record some with firelane record --light 5");
}

}  // namespace
}  // namespace firelane::importer
