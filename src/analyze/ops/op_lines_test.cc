// Which line called each op, from what a recorder noted.
#include "analyze/ops/op_lines.h"

#include <gtest/gtest.h>

#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

// "name: line" for each op, "backward of" a line for what that line's backward pass does.
std::string text(const Model& model) {
  const OpLines lines(model);
  std::string out;
  for (Row row = 0; row < model.host_slices.size(); ++row) {
    if (model.host_slices.kind[row] != HostKind::kOp) continue;
    const uint32_t line = lines.of(row);
    out += std::string(model.text(model.host_slices.name[row])) + ": ";
    if (line == OpLines::kNone) {
      out += "none\n";
      continue;
    }
    const ProgramLine& place = lines.lines()[line];
    out += (lines.is_of_forward(row) ? "backward of " : "") + place.line +
           (place.called_from.empty() ? "" : " from " + place.called_from) + "\n";
  }
  return out;
}

TEST(OpLines, what_an_op_calls_has_its_line_and_the_backward_pass_that_of_the_forward_op) {
  const Model model =
      TraceBuilder()
          .op("aten::linear", {.start_us = 0, .end_us = 10, .sequence_number = 7, .stack = "model.py(41): forward"})
          .op("aten::addmm", {.start_us = 2, .end_us = 8})
          .op("autograd::engine::evaluate_function: AddmmBackward0",
              {.start_us = 20, .end_us = 40, .stack = "train.py(9): step"})
          .op("AddmmBackward0", {.start_us = 22, .end_us = 30, .sequence_number = 7, .forward_thread = 1})
          .op("aten::mm", {.start_us = 23, .end_us = 29})
          .op("aten::add_", {.start_us = 31, .end_us = 39})  // the engine adds gradients up
          .op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad",
              {.start_us = 50, .end_us = 60, .stack = "train.py(9): step"})
          .flow("fwdbwd", 1, {.start_us = 0}, {.start_us = 22})
          .build();
  EXPECT_EQ(text(model),
            "aten::linear: model.py(41): forward\n"
            "aten::addmm: model.py(41): forward\n"
            "autograd::engine::evaluate_function: AddmmBackward0: backward of model.py(41): forward\n"
            "AddmmBackward0: backward of model.py(41): forward\n"
            "aten::mm: backward of model.py(41): forward\n"
            "aten::add_: backward of model.py(41): forward\n"
            "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad: train.py(9): step\n");
}

TEST(OpLines, python_code_inside_an_op_has_lines_of_its_own) {
  const Model model =
      TraceBuilder()
          .op("Square", {.start_us = 0, .end_us = 10, .sequence_number = 7, .stack = "train.py(5): loss"})
          .op("aten::mul", {.start_us = 2, .end_us = 8, .stack = "square.py(12): forward"})
          .op("SquareBackward", {.start_us = 20, .end_us = 40, .sequence_number = 7, .forward_thread = 1})
          .op("aten::mul", {.start_us = 22, .end_us = 30, .stack = "square.py(17): backward"})
          .flow("fwdbwd", 1, {.start_us = 0}, {.start_us = 20})
          .build();
  EXPECT_EQ(text(model),
            "Square: train.py(5): loss\n"
            "aten::mul: square.py(12): forward\n"
            "SquareBackward: backward of train.py(5): loss\n"
            "aten::mul: square.py(17): backward\n");
}

TEST(OpLines, a_line_of_a_package_comes_with_that_of_the_program) {
  const Model model =
      TraceBuilder()
          .op("aten::sum", {.start_us = 0,
                            .end_us = 10,
                            .stack = "site-packages/einops/einops.py(97): reduce;model.py(41): forward"})
          .build();
  EXPECT_EQ(text(model), "aten::sum: site-packages/einops/einops.py(97): reduce from model.py(41): forward\n");
}

TEST(OpLines, a_line_knows_the_one_that_called_its_function) {
  const Model model =
      TraceBuilder()
          .op("aten::mm", {.start_us = 0, .end_us = 10, .stack = "net.py(30): Net.forward;a.py(8): train"})
          .op("aten::mm", {.start_us = 10, .end_us = 20, .stack = "net.py(30): Net.forward;a.py(9): log"})
          .op("aten::mm", {.start_us = 20,
                           .end_us = 30,
                           .stack = "site-packages/x/y.py(3): f;net.py(31): Net.forward;a.py(9): log"})
          .build();
  const OpLines lines(model);
  ASSERT_EQ(lines.lines().size(), 3u);
  EXPECT_EQ(lines.lines()[0].caller, "a.py(8): train");
  EXPECT_EQ(lines.lines()[1].caller, "a.py(9): log");
  EXPECT_EQ(lines.lines()[1].program_line(), "net.py(30): Net.forward");
  EXPECT_EQ(lines.lines()[2].line, "site-packages/x/y.py(3): f");
  EXPECT_EQ(lines.lines()[2].program_line(), "net.py(31): Net.forward");
  EXPECT_EQ(lines.lines()[2].caller, "a.py(9): log");
}

TEST(OpLines, of_a_whole_stack_the_frames_outside_torch_count) {
  const Model model = TraceBuilder()
                          .op("aten::mm", {.start_us = 0,
                                           .end_us = 10,
                                           .stack = "torch/nn/functional.py(9): linear;/x/site-packages/torch/nn/"
                                                    "modules/linear.py(8): forward;/home/me/learn-pytorch/net.py(30): "
                                                    "forward;torch/nn/modules/module.py(7): _call_impl;a.py(8): train"})
                          .build();
  const OpLines lines(model);
  ASSERT_EQ(lines.lines().size(), 1u);
  EXPECT_EQ(lines.lines()[0].line, "/home/me/learn-pytorch/net.py(30): forward");
  EXPECT_EQ(lines.lines()[0].caller, "a.py(8): train");
}

TEST(OpLines, recorded_functions_tell_them_too) {
  const Model model = TraceBuilder()
                          .python("model.py(30): forward", {.start_us = 0, .end_us = 50})
                          .python("torch/nn/functional.py(9): relu", {.start_us = 5, .end_us = 30})
                          .python("<built-in function torch.relu>", {.start_us = 6, .end_us = 29})
                          .op("aten::relu", {.start_us = 7, .end_us = 20})
                          .op("aten::clamp_min", {.start_us = 8, .end_us = 19})
                          .build();
  EXPECT_EQ(text(model), "aten::relu: model.py(30): forward\naten::clamp_min: model.py(30): forward\n");
}

TEST(OpLines, a_trace_without_lines_and_functions_has_none) {
  const Model model = TraceBuilder().op("aten::relu", {.start_us = 7, .end_us = 20}).build();
  EXPECT_TRUE(OpLines(model).empty());
  EXPECT_EQ(text(model), "aten::relu: none\n");
}

}  // namespace
}  // namespace firelane::analyze
