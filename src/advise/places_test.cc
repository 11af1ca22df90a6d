// At which lines of the program a finding lies.
#include "advise/places.h"

#include <gtest/gtest.h>

#include "advise/testing.h"

namespace firelane::advise {
namespace {

// Four steps: a layer, and a loop of 32 rounds in losses.py, of which each operator launches a kernel of 3 us.
class Program : public WrittenProgram<Program> {
 public:
  Program& op(std::string_view name, std::string_view line) {
    builder_.op(name, {.start_us = at_, .end_us = at_ + 40, .stack = line})
        .call("cudaLaunchKernel", {.start_us = at_ + 20, .end_us = at_ + 26, .correlation = correlation_})
        .kernel("k", {.start_us = at_ + 28, .end_us = at_ + 31, .correlation = correlation_++});
    at_ += 50;
    return *this;
  }
  Program& view(std::string_view name, std::string_view line) {
    builder_.op(name, {.start_us = at_, .end_us = at_ + 4, .stack = line});
    at_ += 6;
    return *this;
  }
};

Judged looped(bool with_lines) {
  const std::string_view layer = with_lines ? "src/model.py(41): forward" : "";
  const std::string_view loop = with_lines ? "src/losses.py(7): penalty" : "";
  Program program;
  for (int step = 0; step < 4; ++step) {
    program.op("aten::mm", layer).op("aten::relu", layer);
    for (int i = 0; i < 32; ++i) program.view("aten::select", loop).op("aten::mm", loop).op("aten::tanh", loop);
    program.op("aten::mean", layer).end_step();
  }
  return program.judged();
}

TEST(Places, a_loop_is_told_with_its_line_and_lines_with_what_they_take_of_a_step) {
  const Judged judged = looped(true);
  const Finding* loop = find(judged, "repeated-operators");
  ASSERT_NE(loop, nullptr);
  ASSERT_EQ(loop->places.size(), 1u);
  EXPECT_EQ(place_name(loop->places[0]), "losses.py(7): penalty");
  EXPECT_GT(loop->places[0].share, 0.99);
  EXPECT_EQ(loop->confirm_by.find("to see the line"), std::string::npos) << loop->confirm_by;
  ASSERT_FALSE(judged.lines.lines.empty());
  EXPECT_FALSE(judged.lines.on_device);
  EXPECT_EQ(judged.lines.lines[0].line, "src/losses.py(7): penalty");
  EXPECT_EQ(judged.lines.lines[0].most_in, "aten::mm 50%, aten::tanh 50%");
  EXPECT_GT(judged.lines.lines[0].share, 0.9);
}

TEST(Places, without_lines_none_are_named_and_how_to_see_them_is_said) {
  const Judged judged = looped(false);
  const Finding* loop = find(judged, "repeated-operators");
  ASSERT_NE(loop, nullptr);
  EXPECT_TRUE(loop->places.empty());
  EXPECT_TRUE(judged.lines.lines.empty());
  EXPECT_EQ(loop->confirm_by, "record with with_stack=True, to see the line of the loop");
}

// A step of 200 us: ten ops of a package, called by one line of the program, and others.
Judged packaged(int calls) {
  TraceBuilder builder;
  for (int step = 0; step < 2; ++step) {
    const double at = 200 * step;
    builder.step(step, {.start_us = at, .end_us = at + 200});
    for (int i = 0; i < calls; ++i) {
      builder.op("aten::mul", {.start_us = at + 10 * i,
                               .end_us = at + 10 * i + 10,
                               .stack = i % 2 == 0 ? "site-packages/metrics/core.py(7): update;train.py(41): log"
                                                   : "site-packages/metrics/core.py(9): reset;train.py(41): log"});
    }
    for (int i = calls; i < 20; ++i) {
      builder.op("aten::mm", {.start_us = at + 10 * i,
                              .end_us = at + 10 * i + 10,
                              .stack = i == 19 ? "net.py(30): Net.forward;train.py(50): check"
                                               : "net.py(30): Net.forward;train.py(44): main"});
    }
  }
  const Model model = builder.build();
  return diagnose(model);
}

TEST(Places, lines_of_a_package_are_told_together_by_the_line_that_called_it) {
  const LargestLines lines = packaged(10).lines;
  ASSERT_EQ(lines.lines.size(), 2u);
  EXPECT_EQ(lines.lines[0].line, "net.py(30): Net.forward");
  EXPECT_EQ(lines.lines[1].line, "train.py(41): log");
  EXPECT_EQ(lines.lines[1].most_in, "core.py(7): update 50%, core.py(9): reset 50%");
}

TEST(Places, a_line_that_leads_to_nearly_everything_is_told_by_the_lines_of_the_package) {
  const LargestLines lines = packaged(18).lines;
  ASSERT_EQ(lines.lines.size(), 3u);
  EXPECT_EQ(lines.lines[0].line, "site-packages/metrics/core.py(7): update");
  EXPECT_EQ(lines.lines[0].called_from, "train.py(41): log");
}

TEST(Places, several_callers_of_a_line_are_named) {
  TraceBuilder builder = TraceBuilder();
  builder.op("aten::mm", {.start_us = 0, .end_us = 60, .stack = "net.py(30): Net.forward;train.py(44): main"})
      .op("aten::mm", {.start_us = 60, .end_us = 100, .stack = "net.py(30): Net.forward;train.py(50): check"});
  const Model model = builder.build();
  const StudiedTrace trace{std::shared_ptr<const Model>(std::shared_ptr<void>(), &model)};
  Finding finding;
  finding.slices = {{.row = 0, .on_device = false}, {.row = 1, .on_device = false}};
  const std::vector<Place> places = places_of(trace, finding);
  ASSERT_EQ(places.size(), 1u);
  EXPECT_EQ(place_name(places[0]), "net.py(30): Net.forward, called at train.py(44): main and train.py(50): check");
}

TEST(Places, a_line_of_a_package_is_named_with_the_programs_own) {
  EXPECT_EQ(place_name({.line = "einops/einops.py(97): reduce", .called_from = "/home/a/model.py(41): forward"}),
            "einops.py(97): reduce, from model.py(41): forward");
}

}  // namespace
}  // namespace firelane::advise
