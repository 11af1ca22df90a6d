// Ops of a real torch, recorded and read back as text: overloads, collectives, and the C++ Profiler's timed steps.
#include "record/torch/recording.h"

#include <ATen/ATen.h>
#include <firelane/profiler.h>
#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>

#include <sstream>
#include <string>
#include <vector>

#include "record/core/testing.h"

namespace firelane {
namespace {

using testing_record::records_of;
using testing_record::TemporaryFolder;

std::vector<std::string> lines_with(const std::string& text, std::string_view wanted) {
  std::vector<std::string> found;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.find(wanted) != std::string::npos) found.push_back(line);
  }
  return found;
}

std::string record(const RecordOptions& options, const std::function<void()>& program) {
  auto recording = Recording::start(options);
  EXPECT_TRUE(recording.ok());
  program();
  recording.value()->stop();
  return records_of(recording.value()->session().path(), {.times = false, .chunks = false});
}

TEST(Recording, the_overload_of_an_op_is_noted_once) {
  TemporaryFolder folder;
  const std::string text = record({.output = folder / "run.lane"}, [] {
    const at::Tensor x = at::ones({2});
    for (int i = 0; i < 3; ++i) x.add(x);
  });
  EXPECT_EQ(lines_with(text, "begin \"aten::add\"").size(), 3u);
  EXPECT_EQ(lines_with(text, "note overload of text").size(), 3u) << text;  // empty, fill_, add
  EXPECT_EQ(lines_with(text, " Tensor").size(), 1u);
}

void all_reduce() {
  RECORD_PARAM_COMMS(std::make_tuple(int64_t{7}, false), std::make_tuple(std::string("0"), std::string("default_pg")),
                     1, "allreduce", 64, 64, at::kBFloat16, std::vector<int64_t>(), std::vector<int64_t>(), 0, 1, 2);
}

TEST(Recording, a_collective_says_what_was_asked_of_it) {
  for (const bool shapes : {false, true}) {
    TemporaryFolder folder;
    const std::string text = record({.shapes = shapes, .output = folder / "run.lane"}, all_reduce);
    EXPECT_EQ(lines_with(text, "begin \"record_param_comms\"").size(), 1u) << text;
    const auto args = lines_with(text, "attribute 6");
    ASSERT_EQ(args.size(), 1u) << text;
    for (const std::string key : {"Collective name", "dtype", "In msg nelems", "Group size", "Process Group Name"}) {
      EXPECT_NE(args[0].find(key), std::string::npos) << key << " in " << args[0];
    }
    EXPECT_NE(args[0].find("BFloat16"), std::string::npos);
  }
}

TEST(Recording, the_first_step_and_the_one_cut_off_are_no_baseline) {
  TemporaryFolder folder;
  ProfilerOptions options;
  options.schedule = schedule({.wait = 3, .warmup = 1, .active = 2, .repeat = 1});
  Profiler profiler(options);
  for (int i = 0; i < 5; ++i) {  // 0 cold, 1 and 2 timed, 3 warms up, 4 recorded, 5 cut off
    at::ones({2});
    profiler.step();
  }
  profiler.stop();
  ASSERT_EQ(profiler.save((folder / "run.lane").string()), "");
  const std::string text = records_of(folder / "run.lane", {.times = false, .chunks = false});
  const auto steps = lines_with(text, "note step");
  ASSERT_EQ(steps.size(), 5u) << text;
  for (const auto& [step, phase] : {std::pair{0, 1}, {1, 0}, {2, 0}, {3, 1}, {4, 2}}) {
    EXPECT_TRUE(steps[static_cast<size_t>(step)].starts_with("note step " + std::to_string(step) + " phase " +
                                                             std::to_string(phase) + " "))
        << steps[static_cast<size_t>(step)];
  }
  EXPECT_EQ(lines_with(text, "note metadata unfinished_step = 5").size(), 1u);
}

}  // namespace
}  // namespace firelane
