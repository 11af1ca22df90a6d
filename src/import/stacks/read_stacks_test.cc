#include "import/stacks/read_stacks.h"

#include <gtest/gtest.h>

#include "import/testing.h"

namespace firelane::importer {
namespace {

std::map<std::string, int64_t> totals(const Model& m) {
  std::map<std::string, int64_t> out;
  for (Row row = 0; row < m.host_slices.size(); ++row)
    out[std::string(m.text(m.host_slices.name[row]))] += m.host_slices.duration_ns[row];
  return out;
}

constexpr std::string_view kSchema = R"({"$schema": "https://www.speedscope.app/file-format-schema.json", )";

TEST(Stacks, speedscope_events_nest) {
  const Model m =
      load_bytes(std::string(kSchema) + R"("shared": {"frames": [{"name": "main", "file": "a.py", "line": 3},
    {"name": "step"}]}, "profiles": [{"type": "evented", "name": "MainThread", "unit": "milliseconds", "startValue": 5,
    "endValue": 15, "events": [{"type": "O", "frame": 0, "at": 5}, {"type": "O", "frame": 1, "at": 6},
    {"type": "C", "frame": 1, "at": 8}, {"type": "C", "frame": 0, "at": 15}]}]})");
  ASSERT_EQ(m.host_slices.size(), 2u);
  EXPECT_EQ(m.text(m.host_slices.name[0]), "a.py(3): main");
  EXPECT_EQ(m.host_slices.duration_ns[0], 10'000'000);
  EXPECT_EQ(m.host_slices.parent[1], 0u);
  EXPECT_EQ(m.text(m.lanes.name[0]), "MainThread");
  EXPECT_EQ(m.info.origin, Origin::kStacks);
}

TEST(Stacks, speedscope_samples_with_the_same_frames_are_one_slice) {
  const Model m =
      load_bytes(std::string(kSchema) + R"("shared": {"frames": [{"name": "a"}, {"name": "b"}, {"name": "c"}]},
    "profiles": [{"type": "sampled", "name": "t", "unit": "seconds", "samples": [[0, 1], [0, 1], [0, 2], [0, 9]],
    "weights": [0.5, 0.25, 1, 1]}]})");
  EXPECT_EQ(totals(m),
            (std::map<std::string, int64_t>{{"a", 1'750'000'000}, {"b", 750'000'000}, {"c", 1'000'000'000}}));
  EXPECT_EQ(m.host_slices.size(), 3u);
  EXPECT_EQ(m.losses[Stat::kNameMissing], 1u);
}

TEST(Stacks, what_was_written_before_a_cut_of_speedscope_is_kept) {
  const std::string head =
      std::string(kSchema) + R"("shared": {"frames": [{"name": "a"}, {"name": "b"}]}, "profiles": [)";
  const Model events = load_bytes(head + R"({"type": "evented", "name": "t", "unit": "nanoseconds", "events": [
    {"type": "O", "frame": 0, "at": 5}, {"type": "O", "frame": 1, "at": 6}, {"type": "C", "frame": 1, "at": 8}, {"ty)");
  EXPECT_EQ(totals(events), (std::map<std::string, int64_t>{{"a", 3}, {"b", 2}})) << "what is open ends with the file";
  EXPECT_EQ(events.losses[Stat::kTruncated], 1u);
  const Model samples =
      load_bytes(head + R"({"type": "sampled", "name": "t", "unit": "nanoseconds", "samples": [[0, 1], [0, )");
  EXPECT_EQ(totals(samples), (std::map<std::string, int64_t>{{"a", 1}, {"b", 1}})) << "half a stack is none";
  EXPECT_EQ(samples.losses[Stat::kTruncated], 1u);
}

TEST(Stacks, a_speedscope_file_that_ends_before_its_frames_says_so) {
  const Result<Model> loaded = load_trace_bytes(
      std::string(kSchema) + R"("profiles": [{"type": "sampled", "samples": [[0, 1], [0, 1]], "we)", "cut.json");
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().message, "cut.json: a speedscope file that is cut off before its frames; copy it again");
}

TEST(Stacks, a_caller_is_outside_of_what_it_calls_for_all_of_its_time) {
  const Model m =
      load_bytes(std::string(kSchema) + R"("shared": {"frames": [{"name": "a"}, {"name": "b"}, {"name": "c"}]},
    "profiles": [{"type": "sampled", "name": "t", "unit": "seconds", "samples": [[2, 0, 1]], "weights": [1]}]})");
  ASSERT_EQ(m.host_slices.size(), 3u);
  EXPECT_EQ(m.text(m.host_slices.name[0]), "c");
  EXPECT_EQ(m.text(m.host_slices.name[1]), "a");
  EXPECT_EQ(m.text(m.host_slices.name[2]), "b");
  EXPECT_EQ(m.host_slices.parent[1], 0u);
  EXPECT_EQ(m.host_slices.parent[2], 1u);
}

TEST(Stacks, collapsed_lines_add_up) {
  const Model m = load_bytes("main;train;step 40\nmain;load 10\nmain;train 5\n" + std::string(4096, 'x') + "\n");
  const auto sums = totals(m);
  EXPECT_EQ(sums.at("main"), 55'000);
  EXPECT_EQ(sums.at("train"), 45'000);
  EXPECT_EQ(sums.at("step"), 40'000);
  EXPECT_EQ(m.losses[Stat::kLineMalformed], 1u);
}

TEST(Stacks, other_texts_are_not_taken_for_them) {
  EXPECT_FALSE(is_collapsed("{\"traceEvents\": [;]} 5\n"));
  EXPECT_FALSE(is_collapsed("a sentence with a number 5\n"));
  EXPECT_FALSE(is_speedscope("{\"traceEvents\": []}"));
  EXPECT_TRUE(is_collapsed("a;b 5"));
  EXPECT_TRUE(is_collapsed("main 3\nmain;train 5\n"));
  EXPECT_FALSE(is_collapsed("a;b 5\nand then prose\n"));
  std::string deep = "main";
  for (int i = 0; i < 1000; ++i) deep += ";frame " + std::to_string(i);
  EXPECT_TRUE(is_collapsed(std::string_view(deep).substr(0, kSniffBytes))) << "longer than what is looked at";
}

TEST(Stacks, any_cut_is_one_line_or_a_part) {
  const std::string whole = "main;train;step 40\nmain;load 10\nmain;train 5\n";
  for (size_t size = 1; size < whole.size(); ++size) {
    const Result<Model> loaded = load_trace_bytes(whole.substr(0, size), "cut.txt");
    if (!loaded.ok()) {
      EXPECT_EQ(loaded.error().message.find('\n'), std::string::npos);
    }
  }
}

TEST(Stacks, hostile_numbers_are_counted) {
  std::string lines;  // more than is looked at to recognize the file
  for (int i = 0; i < 1000; ++i) lines += "a;b 1\n";
  lines += "a;b 9223372036854775807\na;c -5\na;d 99999999999999999999999\n";
  const Model m = load_bytes(lines);
  EXPECT_EQ(m.losses[Stat::kSizeOutOfRange], 1u);
  EXPECT_EQ(m.losses[Stat::kLineMalformed], 2u);
}

}  // namespace
}  // namespace firelane::importer
