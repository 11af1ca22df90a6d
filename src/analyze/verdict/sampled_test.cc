// Where the training thread was by its samples, and times that are taken from light steps.
#include "analyze/verdict/sampled.h"

#include <gtest/gtest.h>

#include "analyze/testing.h"
#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

constexpr const char* kCollate =
    "/usr/lib/python3.11/json/decoder.py(9): decode;/home/a/data.py(7): load;/home/a/train.py(41): main";
constexpr const char* kTrain = "/x/site-packages/torch/nn/modules/module.py(12): __call__;/home/a/train.py(44): main";

// The device works 10..20 and 95..120.
TraceBuilder gap() {
  TraceBuilder builder;
  builder.step(1, {.start_us = 0, .end_us = 120})
      .call("cudaLaunchKernel", {.start_us = 5, .end_us = 8, .correlation = 1})
      .kernel("a", {.start_us = 10, .end_us = 20, .correlation = 1})
      .call("cudaLaunchKernel", {.start_us = 90, .end_us = 94, .correlation = 2})
      .kernel("b", {.start_us = 95, .end_us = 120, .correlation = 2});
  return builder;
}

std::string lines_text(const std::vector<SampledLine>& lines) {
  std::string out;
  for (const SampledLine& line : lines) {
    out += std::string(line.frame) + " " + std::to_string(line.ns / 1000) + " " +
           std::to_string(line.on_cpu_ns / 1000) + "\n";
  }
  return out;
}

TEST(Sampled, the_line_is_the_innermost_one_of_the_programs_own_code) {
  EXPECT_EQ(own_frame(kCollate), "/home/a/data.py(7): load");
  EXPECT_EQ(own_frame(kTrain), "/home/a/train.py(44): main");
  EXPECT_EQ(own_frame("<frozen runpy>(3): run;/usr/lib/python3.12/runpy.py(8): go"), "<frozen runpy>(3): run");
  EXPECT_EQ(own_frame("train.py(3): f"), "train.py(3): f");
  EXPECT_EQ(own_frame("/src/firelane/_auto.py(9): both;/home/a/train.py(45): main"), "/home/a/train.py(45): main");
  EXPECT_EQ(own_frame(""), "");
}

TEST(Sampled, gaps_of_the_device_and_steps_have_the_lines_in_which_the_host_was) {
  TraceBuilder builder = gap();
  builder.sample(kTrain, {.at_us = 20, .weight_us = 20})
      .sample(kCollate, {.at_us = 60, .weight_us = 40})
      .sample(kTrain, {.at_us = 80, .weight_us = 20})
      .sample(kCollate, {.at_us = 60, .weight_us = 40, .thread = 2});  // another thread's time is not the step's
  const Model model = builder.build();
  const StudiedTrace trace(borrowed(model));
  const auto& places = trace.get<sampled_places>();
  EXPECT_EQ(places.gaps_ns, 70'000);
  EXPECT_EQ(lines_text(places.in_gaps), "/home/a/data.py(7): load 40 40\n/home/a/train.py(44): main 30 30\n");
  EXPECT_EQ(places.steps_ns, 80'000);
  ASSERT_EQ(places.of_gaps.size(), 2u);
  EXPECT_EQ(places.of_gaps[0], "/home/a/train.py(44): main");
  EXPECT_EQ(places.of_gaps[1], "/home/a/data.py(7): load");
}

TEST(Sampled, a_thread_that_waits_counts_from_the_look_on_and_not_as_on_a_core) {
  TraceBuilder builder = gap();
  builder.sample(kCollate, {.at_us = 30, .weight_us = 50, .on_cpu = false});
  const Model model = builder.build();
  const StudiedTrace trace(borrowed(model));
  EXPECT_EQ(lines_text(trace.get<sampled_places>().in_gaps), "/home/a/data.py(7): load 50 0\n");
}

// Threads of which it is not known whether they waited are merged as waiting ones are.
TEST(Sampled, a_wait_that_is_not_known_as_one_was_counted_before_it_began) {
  TraceBuilder builder = gap();
  builder.sample(kCollate, {.at_us = 30, .weight_us = 50, .knows_cpu = false});
  const Model model = builder.build();
  const StudiedTrace trace(borrowed(model));
  EXPECT_EQ(lines_text(trace.get<sampled_places>().in_gaps), "/home/a/data.py(7): load 50 0\n");
  EXPECT_FALSE(trace.get<sampled_places>().knows_cpu);
}

TEST(Sampled, a_trace_without_samples_has_no_lines) {
  const Model model = gap().build();
  const StudiedTrace trace(borrowed(model));
  EXPECT_TRUE(trace.get<sampled_places>().in_gaps.empty());
}

TEST(Times, are_those_of_the_light_steps_where_these_saw_the_device) {
  Model model = gap().build();
  const StudiedTrace alone(borrowed(model));
  EXPECT_EQ(&alone.times(), &alone);
  model.light = std::make_shared<const Model>(gap().build());
  const StudiedTrace both(borrowed(model));
  EXPECT_EQ(&both.times().model(), model.light.get());
  EXPECT_EQ(&both.times(), &both.times());
  TraceBuilder cpu;
  model.light = std::make_shared<const Model>(cpu.step(1, {.start_us = 0, .end_us = 100}).build());
  const StudiedTrace without_device(borrowed(model));
  EXPECT_EQ(&without_device.times(), &without_device);
}

}  // namespace
}  // namespace firelane::analyze
