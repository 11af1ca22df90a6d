// Ops of a real torch, recorded and read back as text: the C++ Profiler's timed steps.
#include "record/torch/recording.h"

#include <ATen/ATen.h>
#include <firelane/profiler.h>
#include <gtest/gtest.h>

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
