// Tiles against the plain definition: every slice is in every tile that it reaches, as itself or counted.
#include "serve/tiles.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

#include "analyze/testing.h"
#include "model/trace_builder.h"
#include "serve/places.h"

namespace firelane::serve {
namespace {

std::vector<SliceRef> all_slices(const Model& model, uint32_t lane) {
  std::vector<SliceRef> out;
  for (Row row = model.lanes.host_begin[lane]; row < model.lanes.host_end[lane]; ++row) out.push_back({row, false});
  for (Row row = model.lanes.device_begin[lane]; row < model.lanes.device_end[lane]; ++row) out.push_back({row, true});
  return out;
}

// What the protocol says of a tile, slice by slice.
void expect_as_defined(const Model& model, const Timeline& timeline, uint32_t lane, uint32_t level, uint64_t index) {
  const Tile tile = make_tile(timeline, lane, level, index);
  const int64_t bin_ns = int64_t{1} << level;
  const int64_t begin_ns = static_cast<int64_t>(index * kBinsPerTile) * bin_ns;
  const int64_t end_ns = begin_ns + static_cast<int64_t>(kBinsPerTile) * bin_ns;
  std::map<uint32_t, uint16_t> slices;
  struct Run {
    int64_t total_ns = 0;
    uint32_t count = 0;
    int64_t longest_ns = 0;
  };
  std::map<std::pair<uint16_t, uint64_t>, Run> runs;
  for (const SliceRef& slice : all_slices(model, lane)) {
    const int64_t start = start_of(model, slice);
    const int64_t duration = duration_of(model, slice);
    if (duration >= bin_ns) {
      if (start < end_ns && start + duration > begin_ns) slices[ref_of(slice)] = timeline.row_of(slice);
    } else if (start >= begin_ns && start < end_ns) {
      Run& run = runs[{timeline.row_of(slice), static_cast<uint64_t>(start / bin_ns)}];
      run.total_ns += duration;
      run.longest_ns = std::max(run.longest_ns, duration);
      ++run.count;
    }
  }
  ASSERT_EQ(tile.slices.size(), slices.size());
  for (const TileSlice& slice : tile.slices) EXPECT_EQ(slices.at(slice.ref), slice.row);
  ASSERT_EQ(tile.runs.size(), runs.size());
  for (const TileRun& run : tile.runs) {
    const Run& wanted = runs.at({run.row, run.bin});
    EXPECT_EQ(run.count, wanted.count);
    EXPECT_EQ(duration_of(model, slice_of(run.longest)), wanted.longest_ns);
    // The last of them may reach over the end of the bin.
    EXPECT_FLOAT_EQ(run.busy, std::min(1.0f, static_cast<float>(wanted.total_ns) / static_cast<float>(bin_ns)));
  }
}

void expect_all_tiles_as_defined(const Model& model) {
  const Timeline timeline(model, 2);
  for (uint32_t lane = 0; lane < model.lanes.size(); ++lane) {
    for (uint32_t level = 0; level <= 30; ++level) {
      const uint64_t last = (static_cast<uint64_t>(timeline.end_ns()) >> level) / kBinsPerTile;
      const uint64_t step = std::max<uint64_t>(1, last / 20);
      for (uint64_t index = 0; index <= last + 1; index += step) {
        expect_as_defined(model, timeline, lane, level, index);
      }
    }
  }
}

TEST(Tiles, random_traces_have_the_tiles_that_the_protocol_defines) {
  for (uint32_t seed = 0; seed < 40; ++seed) expect_all_tiles_as_defined(analyze::random_trace(seed));
}

TEST(Tiles, dense_and_empty_stretches_on_one_lane_have_the_tiles_that_the_protocol_defines) {
  std::mt19937 random(7);
  TraceBuilder builder;
  double now = 0;
  for (int i = 0; i < 3000; ++i) {
    const double length = i % 100 == 0 ? 5000 : static_cast<double>(random() % 20) / 10;
    builder.kernel("k" + std::to_string(i % 7), {.start_us = now, .end_us = now + length});
    now += length + (i % 500 == 0 ? 1e6 : static_cast<double>(random() % 3) / 10);
  }
  expect_all_tiles_as_defined(builder.build());
}

TEST(Tiles, a_slice_of_exactly_a_bin_is_sent_and_one_ns_less_is_counted) {
  const Model model = TraceBuilder()
                          .kernel("long", {.start_us = 0, .end_us = 1.024})
                          .kernel("short", {.start_us = 2.048, .end_us = 3.071})
                          .build();
  const Timeline timeline(model);
  const Tile tile = make_tile(timeline, 0, 10, 0);
  ASSERT_EQ(tile.slices.size(), 1u);
  EXPECT_EQ(model.text(name_id_of(model, slice_of(tile.slices[0].ref))), "long");
  ASSERT_EQ(tile.runs.size(), 1u);
  EXPECT_EQ(tile.runs[0].bin, 2u);
  EXPECT_EQ(tile.runs[0].count, 1u);
  EXPECT_FLOAT_EQ(tile.runs[0].busy, 1023.0f / 1024.0f);
}

TEST(Tiles, far_behind_the_end_there_is_nothing_at_any_level) {
  const Model model = analyze::random_trace(1);
  const Timeline timeline(model);
  for (uint32_t level = 0; level <= kMaxLevel; ++level) {
    const Tile tile = make_tile(timeline, 0, level, uint64_t{1} << 52);
    EXPECT_TRUE(tile.slices.empty() && tile.runs.empty());
  }
}

TEST(Tiles, overlapping_slices_get_rows_of_their_own) {
  const Model model = TraceBuilder()
                          .kernel("a", {.start_us = 0, .end_us = 10})
                          .kernel("b", {.start_us = 5, .end_us = 15})
                          .kernel("c", {.start_us = 10, .end_us = 12})
                          .build();
  const Timeline timeline(model);
  EXPECT_EQ(timeline.row_of({0, true}), 0);
  EXPECT_EQ(timeline.row_of({1, true}), 1);
  EXPECT_EQ(timeline.row_of({2, true}), 0);
  EXPECT_EQ(timeline.lanes()[0].rows.size(), 2u);
}

TEST(Tiles, a_lane_with_thousands_of_slices_at_once_still_has_tiles) {
  TraceBuilder builder;
  for (int i = 0; i < 3000; ++i) builder.kernel("k", {.start_us = i * 0.001, .end_us = 100.0 + i});
  const Model model = builder.build();
  const Timeline timeline(model);
  EXPECT_LE(timeline.lanes()[0].rows.size(), 1024u);
  EXPECT_GE(make_tile(timeline, 0, 4, 0).slices.size(), 1023u);
}

template <typename T>
T read(const std::string& bytes, size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

TEST(Tiles, the_bytes_are_laid_out_as_the_protocol_draws_them) {
  const Model model = TraceBuilder()
                          .kernel("gemm", {.start_us = 1, .end_us = 5})
                          .kernel("tiny", {.start_us = 6, .end_us = 6.5})
                          .build();
  const Timeline timeline(model);
  const std::string bytes = encode_tiles(model, 10, {make_tile(timeline, 0, 10, 0)});
  EXPECT_EQ(bytes.substr(0, 4), "FLT1");
  EXPECT_EQ(read<uint32_t>(bytes, 4), 10u);  // level
  EXPECT_EQ(read<uint32_t>(bytes, 8), 1u);   // tiles
  EXPECT_EQ(read<uint32_t>(bytes, 12), 2u);  // names
  EXPECT_EQ(read<uint32_t>(bytes, 20), 1u);  // slices
  EXPECT_EQ(read<uint32_t>(bytes, 24), 1u);  // runs
  EXPECT_EQ(read<double>(bytes, 32), 0.0);   // index
  EXPECT_EQ(read<double>(bytes, 40), 0.0);   // start: the trace begins with it
  EXPECT_EQ(read<double>(bytes, 48), 4000.0);
  EXPECT_EQ(read<uint32_t>(bytes, 56), kDeviceBit);
  EXPECT_EQ(read<uint32_t>(bytes, 64), static_cast<uint32_t>(model.device_slices.name[0]));
  EXPECT_EQ(read<uint16_t>(bytes, 72), 0);  // row
  EXPECT_EQ(read<uint8_t>(bytes, 80), 16);  // kernel
  EXPECT_EQ(read<double>(bytes, 88), 4096.0);
  EXPECT_EQ(read<double>(bytes, 96), 1024.0);
  EXPECT_FLOAT_EQ(read<float>(bytes, 104), 500.0f / 1024.0f);
  EXPECT_EQ(read<uint32_t>(bytes, 112), 1u);
  EXPECT_EQ(read<uint8_t>(bytes, 136), 16);
  const size_t name = 144;
  EXPECT_EQ(read<uint32_t>(bytes, name + 4), 4u);
  EXPECT_EQ(bytes.substr(name + 8, 4), "gemm");
  EXPECT_EQ(bytes.size(), name + 24);
}

TEST(Tiles, work_that_the_edge_of_the_recording_cuts_is_marked) {
  Model model = TraceBuilder().kernel("gemm", {.start_us = 1, .end_us = 5}).build();
  model.device_slices.window[0] = WindowMark::kEndsAfter;
  const std::string bytes = encode_tiles(model, 10, {make_tile(Timeline(model), 0, 10, 0)});
  EXPECT_EQ(read<uint8_t>(bytes, 80), 16 | kCutBit);
}

TEST(Tiles, long_and_broken_names_are_cut_to_valid_text) {
  std::string long_name;
  for (int i = 0; i < 100; ++i) long_name += "é";
  long_name += "é";
  const Model model = TraceBuilder()
                          .kernel(long_name, {.start_us = 0, .end_us = 1})
                          .kernel("x" + long_name, {.start_us = 1, .end_us = 2})
                          .build();
  const std::string bytes =
      encode_tiles(model, 0, {make_tile(Timeline(model), 0, 0, 0), make_tile(Timeline(model), 0, 0, 2)});
  EXPECT_NE(bytes.find(long_name.substr(0, 200)), std::string::npos);
  EXPECT_EQ(bytes.find(long_name), std::string::npos);
}

}  // namespace
}  // namespace firelane::serve
