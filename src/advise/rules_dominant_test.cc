// What stands out: dominant operators, steps that grow, closures, other ranks, first calls. Found with the fault,
// absent without it.
#include <gtest/gtest.h>

#include "advise/diagnose.h"
#include "advise/testing.h"
#include "analyze/steps/phases.h"
#include "model/trace_builder.h"

namespace firelane::advise {
namespace {

// A CPU program, op after op.
class CpuProgram : public WrittenProgram<CpuProgram> {
 public:
  CpuProgram& op(std::string_view name, double us) {
    builder_.op(name, {.start_us = at_, .end_us = at_ + us});
    at_ += us + 1;
    return *this;
  }
  CpuProgram& idle(double us) {
    at_ += us;
    return *this;
  }
  // A collective of the backend's thread, from now on.
  CpuProgram& reduces(double us) {
    builder_.annotation("gloo:all_reduce", {.start_us = at_, .end_us = at_ + us, .thread = 9});
    return *this;
  }
  // An autograd node around one op.
  CpuProgram& node(std::string_view node, std::string_view op, double us) {
    builder_.op("autograd::engine::evaluate_function: " + std::string(node), {.start_us = at_, .end_us = at_ + us + 2});
    builder_.op(op, {.start_us = at_ + 1, .end_us = at_ + 1 + us});
    at_ += us + 3;
    return *this;
  }
  template <typename Body>
  CpuProgram& in_optimizer(const Body& body) {
    const double start = at_;
    ++at_;
    body();
    builder_.annotation("Optimizer.step#AdamW.step", {.start_us = start, .end_us = at_});
    ++at_;
    return *this;
  }
};

TEST(DominantOperator, is_named_with_what_it_may_be) {
  CpuProgram program;
  for (int step = 0; step < 4; ++step) program.op("aten::sort", 8000).op("aten::mm", 1000).end_step();
  const Judged judged = program.judged();
  ASSERT_EQ(judged.findings.size(), 1U);
  EXPECT_EQ(judged.findings[0].id, "dominant-operator");
  EXPECT_TRUE(judged.healthy) << "it promises no gain";
  EXPECT_EQ(judged.findings[0].title, "aten::sort takes 89% of a step");
  EXPECT_NE(judged.findings[0].try_text.find("once, before the loop"), std::string::npos);
}

TEST(DominantOperator, what_no_rule_speaks_of_is_named_in_a_note) {
  CpuProgram program;
  for (int step = 0; step < 4; ++step)
    program.op("aten::mm", 8000).op("aten::mm", 8000).op("aten::exp", 1000).end_step();
  const Judged judged = program.judged();
  EXPECT_TRUE(judged.findings.empty()) << "a product that takes most of a step is no fault";
  const auto largest = std::find_if(judged.notes.begin(), judged.notes.end(), [](const std::string& note) {
    return note.starts_with("largest operator: aten::mm takes");
  });
  ASSERT_NE(largest, judged.notes.end());
  EXPECT_NE(largest->find("94% of a step, 2 calls: useful work; check that all of it is needed"), std::string::npos)
      << *largest;
  CpuProgram even;
  for (int step = 0; step < 4; ++step) {
    for (const char* name : {"aten::mm", "aten::exp", "aten::sin", "aten::cos", "aten::tan"}) even.op(name, 1000);
    even.end_step();
  }
  for (const std::string& note : even.judged().notes) EXPECT_FALSE(note.starts_with("largest")) << note;
}

TEST(DominantOperator, what_sorts_or_joins_is_named_earlier_than_what_computes) {
  const auto is_named = [](std::string_view name) {
    CpuProgram program;
    for (int step = 0; step < 4; ++step) {
      program.op("aten::mm", 4000).op(name, 3000).op("aten::linear", 3000).end_step();
    }
    return find(program.judged(), "dominant-operator") != nullptr;
  };
  EXPECT_TRUE(is_named("aten::sort")) << "although a product takes more";
  EXPECT_TRUE(is_named("aten::cat"));
  EXPECT_FALSE(is_named("aten::exp")) << "30% is much for a sort, not for the rest";
}

// Distances of all pairs, by a broadcast or by a product, and the same operators on what either makes.
Judged distances(std::string_view dims) {
  TraceBuilder builder;
  double at = 0;
  for (int step = 0; step < 4; ++step) {
    const double from = at;
    for (const std::string_view name : {"aten::sub", "aten::square", "aten::sum"}) {
      builder.op(name, {.start_us = at,
                        .end_us = at + 3000,
                        .dims = name == "aten::sub" ? dims : "[[64, 512, 16]]",
                        .types = name == "aten::sub" ? R"(["float", "float"])" : R"(["float"])"});
      at += 3001;
      builder.op("aten::mm", {.start_us = at, .end_us = at + 1300});  // or they would be a chain to be fused
      at += 1301;
    }
    builder.step(step, {.start_us = from, .end_us = at});
  }
  const Model model = builder.build();
  return diagnose(model);
}

TEST(DominantOperator, a_tensor_that_a_broadcast_makes_many_times_larger_is_named_with_all_its_operators) {
  const Judged judged = distances("[[64, 1, 16], [1, 512, 16]]");
  const Finding* finding = find(judged, "dominant-operator");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->title.find("a tensor of [64, 512, 16]"), std::string::npos) << finding->title;
  EXPECT_EQ(find(distances("[[64, 512, 16], [1, 512, 16]]"), "dominant-operator"), nullptr) << "as large before";
}

TEST(DominantOperator, tells_the_place_of_the_call_that_takes_most) {
  CpuProgram program;
  for (int step = 0; step < 4; ++step) {
    program.node("ConvolutionBackward0", "aten::convolution_backward", 9000);
    program.node("ConvolutionBackward0", "aten::convolution_backward", 800).op("aten::mm", 500).end_step();
  }
  const Judged judged = program.judged();
  const Finding* finding = find(judged, "dominant-operator");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->title.find("the 1st of its 2 calls in a step"), std::string::npos) << finding->title;
  EXPECT_EQ(find(judged, "one-time-costs"), nullptr) << "as long in every step";
}

TEST(DominantOperator, is_not_said_of_matmuls_that_are_alike) {
  CpuProgram program;
  for (int step = 0; step < 4; ++step)
    program.op("aten::mm", 4000).op("aten::mm", 4100).op("aten::relu", 500).end_step();
  EXPECT_TRUE(program.judged().findings.empty());
}

TEST(DominantOperator, is_not_said_of_what_is_spread) {
  CpuProgram program;
  for (int step = 0; step < 4; ++step) {
    program.op("aten::mm", 1000).op("aten::gelu", 900).op("aten::sum", 800).op("aten::sort", 700).end_step();
  }
  EXPECT_EQ(find(program.judged(), "dominant-operator"), nullptr);
}

TEST(DominantOperator, kernels_without_length_are_no_crash) {
  TraceBuilder builder;
  builder.op("aten::relu", {.start_us = 0, .end_us = 100});
  builder.call("cudaLaunchKernel", {.start_us = 10, .end_us = 20, .correlation = 1});
  builder.kernel("relu_kernel", {.start_us = 50, .end_us = 50, .correlation = 1});
  EXPECT_EQ(find(diagnose(builder.build()), "dominant-operator"), nullptr);
}

TEST(GrowingSteps, name_the_operator_that_grows) {
  CpuProgram program;
  for (int step = 0; step < 12; ++step) program.op("aten::cat", 2000 + 400 * step).op("aten::mm", 2000).end_step();
  const Judged judged = program.judged();
  ASSERT_FALSE(judged.findings.empty());
  EXPECT_EQ(judged.findings[0].id, "growing-steps");
  EXPECT_NE(judged.findings[0].title.find("linear: 400.0 us more with each; most of it in aten::cat"),
            std::string::npos)
      << judged.findings[0].title;
  EXPECT_NEAR(static_cast<double>(judged.findings[0].gain.middle_ns()), 2.2e6, 2e5)
      << "11 times 400 us, on average half";
  EXPECT_EQ(find(judged, "dominant-operator"), nullptr) << "the one that grows has its remedy";
}

TEST(GrowingSteps, are_none_where_steps_differ_by_chance) {
  CpuProgram program;
  for (int step = 0; step < 12; ++step)
    program.op("aten::cat", 2000 + 100 * (step * 7 % 5)).op("aten::mm", 2000).end_step();
  EXPECT_EQ(find(program.judged(), "growing-steps"), nullptr);
}

TEST(OneTimeCosts, a_first_call_that_no_later_step_repeats_counts) {
  CpuProgram program;
  for (int step = 0; step < 5; ++step) {
    program.op("aten::mm", 30'000).node("ConvolutionBackward0", "aten::convolution_backward", step == 0 ? 5000 : 300);
    program.node("ConvolutionBackward0", "aten::convolution_backward", 280).op("aten::relu", 500).end_step();
  }
  EXPECT_NE(find(program.judged(), "one-time-costs"), nullptr);
}

// As Lightning does it: the optimizer calls a closure that computes loss and gradients.
CpuProgram lightning(int updates, double update_us) {
  CpuProgram program;
  for (int step = 0; step < 4; ++step) {
    program.in_optimizer([&] {
      for (int i = 0; i < 30; ++i) program.op("aten::linear", 300).op("aten::add_", 100);
      for (int i = 0; i < 30; ++i) program.node("AddmmBackward0", "aten::mm", 400);
      constexpr std::string_view kOfOneTensor[] = {"aten::lerp_", "aten::mul_", "aten::addcmul_", "aten::addcdiv_"};
      for (int i = 0; i < updates; ++i) program.op(kOfOneTensor[i % 4], update_us);
    });
    program.end_step();
  }
  return program;
}

TEST(Closure, forward_and_backward_inside_of_an_optimizer_are_no_update) {
  CpuProgram program = lightning(2, 100);
  const Model& model = program.model();
  const Judged judged = diagnose(model);
  EXPECT_EQ(find(judged, "single-tensor-optimizer"), nullptr);
  const analyze::Phases phases = analyze::find_phases(model);
  for (Row row = 0; row < model.host_slices.size(); ++row) {
    const std::string_view name = model.text(model.host_slices.name[row]);
    if (name == "aten::linear" || name == "aten::add_") EXPECT_EQ(phases.host[row], analyze::Phase::kForward) << name;
    if (name == "aten::mm") EXPECT_EQ(phases.host[row], analyze::Phase::kBackward);
    if (name == "aten::addcdiv_") EXPECT_EQ(phases.host[row], analyze::Phase::kOptimizer);
  }
}

TEST(Closure, only_the_update_of_such_an_optimizer_counts) {
  CpuProgram program = lightning(60, 100);
  const Judged judged = program.judged();
  const Finding* finding = find(judged, "single-tensor-optimizer");
  ASSERT_NE(finding, nullptr);
  EXPECT_NEAR(static_cast<double>(finding->cost_ns), 60 * 101e3, 1e5);
}

TEST(Ranks, waiting_for_another_rank_is_communication_and_no_host_code) {
  CpuProgram program;
  for (int step = 0; step < 4; ++step) {
    program.op("aten::mm", 3000)
        .op("c10d::allreduce_", 50)
        .reduces(40'000)
        .idle(40'000)
        .op("aten::add_", 500)
        .end_step();
  }
  const Judged judged = program.judged();
  ASSERT_FALSE(judged.findings.empty());
  EXPECT_EQ(judged.findings[0].id, "exposed-communication");
  EXPECT_NE(judged.findings[0].title.find("waits for other ranks in gloo:all_reduce: 40.0 ms"), std::string::npos)
      << judged.findings[0].title;
  EXPECT_EQ(find(judged, "host-code"), nullptr);
  EXPECT_EQ(judged.verdict.label, "communication-bound");
}

TEST(Ranks, a_rank_that_is_late_itself_or_computes_meanwhile_does_not_wait) {
  CpuProgram late;
  CpuProgram overlaps;
  for (int step = 0; step < 4; ++step) {
    late.op("aten::mm", 3000).idle(40'000).op("c10d::allreduce_", 50).reduces(60).op("aten::add_", 500).end_step();
    overlaps.op("c10d::allreduce_", 50).reduces(20'000);
    for (int i = 0; i < 10; ++i) overlaps.op("aten::mm", 2000);
    overlaps.end_step();
  }
  const Judged of_late = diagnose(late.model());
  EXPECT_EQ(find(of_late, "exposed-communication"), nullptr);
  EXPECT_NE(find(of_late, "host-code"), nullptr);
  EXPECT_EQ(find(diagnose(overlaps.model()), "exposed-communication"), nullptr);
}

}  // namespace
}  // namespace firelane::advise
