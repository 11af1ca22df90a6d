// What torch.profiler took of steps on a CPU, computed by hand.
#include "analyze/verdict/torch_stretches.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analyze/verdict/study.h"
#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

// A step: operators of 1 us, 1 us apart from each other and from the ends of the step. `extra_us`: by how much longer
// the operator of that place is.
struct StepShape {
  std::vector<double> extra_us = std::vector<double>(24);
  std::string_view name = "aten::add";
};

Model model_of(const std::vector<StepShape>& steps, std::string_view dims = "", Origin origin = Origin::kKineto) {
  TraceBuilder builder;
  builder.metadata("schemaVersion", "1");
  double at = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const double start = at;
    for (const double extra_us : steps[i].extra_us) {
      at += 1;
      builder.op(steps[i].name, {.start_us = at, .end_us = at + 1 + extra_us, .dims = dims});
      at += 1 + extra_us;
    }
    at += 1;
    builder.step(static_cast<int64_t>(i), {.start_us = start, .end_us = at});
  }
  Model model = builder.build();
  model.info.origin = origin;
  return model;
}

StepShape step_with(size_t place, double extra_us) {
  StepShape step;
  step.extra_us[place] = extra_us;
  return step;
}

TorchStretches stretches_of(const Model& model) {
  const HostSteps found = host_steps(model);
  return torch_stretches(model, *found.host, found.steps);
}

// 24 operators: 49 stretches of 1 us.
TEST(TorchStretches, a_share_of_each_short_stretch_is_the_profilers) {
  const TorchStretches out = stretches_of(model_of({{}, {}}));
  EXPECT_EQ(out.removed_ns, 21'560);  // 0.44 of 49 us
  EXPECT_EQ(out.step_ns, 27'440);
}

TEST(TorchStretches, operators_that_are_recorded_with_their_inputs_cost_more) {
  EXPECT_EQ(stretches_of(model_of({{}, {}}, "[[4]]")).removed_ns, 31'360);  // 0.64 of 49 us
}

// quantiles-sorted-one-by-one, bench/diagnose: 10 us of each short operator were taken for the profiler's, as most
// operators sorted, and the host seemed slow: 4.2 ms for a step of 8.9.
TEST(TorchStretches, long_operators_were_taken_for_a_slow_host) {
  StepShape sorts;
  for (size_t i = 0; i < 24; i += 2) sorts.extra_us[i] = 999;
  const TorchStretches out = stretches_of(model_of({sorts, sorts}));
  // 37 stretches of 1 us, and 12 of 1000 us, of which three usual ones count.
  EXPECT_EQ(out.removed_ns, 32'120);  // 0.44 of 37 + 36 us
  EXPECT_EQ(out.step_ns, 12'037'000 - 32'120);
}

// Every stretch is 10 us: half of the step was taken for the profiler's.
TEST(TorchStretches, operators_that_all_compute_are_no_slow_host) {
  TraceBuilder builder;
  builder.metadata("schemaVersion", "1");
  for (int i = 0; i < 2; ++i) {
    const double start = 490.0 * i;
    for (int k = 0; k < 24; ++k) {
      builder.op("aten::gelu", {.start_us = start + 10 + 20 * k, .end_us = start + 20 + 20 * k});
    }
    builder.step(i, {.start_us = start, .end_us = start + 490});
  }
  EXPECT_EQ(stretches_of(builder.build()).removed_ns, 129'360);  // 0.44 of three times 2 us, 49 times
}

TEST(TorchStretches, what_interrupts_one_of_two_steps_does_not_count) {
  const TorchStretches out = stretches_of(model_of({step_with(3, 500), step_with(7, 40)}));
  EXPECT_EQ(out.step_ns, 27'440);
}

TEST(TorchStretches, of_three_steps_a_stretch_is_between_the_shortest_and_the_middle_one) {
  // 1, 4 and 10 us: a third of the way from the first to the second, 2 us. 0.44 of 48 + 2 us are the profiler's.
  const TorchStretches out = stretches_of(model_of({step_with(3, 9), step_with(3, 0), step_with(3, 3)}));
  EXPECT_EQ(out.removed_ns, 22'000);
  EXPECT_EQ(out.step_ns, 28'000);
}

// gelu of 256 KiB, 19 us without the profiler: in most recorded steps it took 58.
TEST(TorchStretches, operators_that_wait_for_new_pages_in_most_steps_are_as_long_as_in_the_others) {
  const TorchStretches out = stretches_of(model_of({step_with(3, 57), step_with(3, 18), step_with(3, 57)}));
  EXPECT_EQ(out.removed_ns, 22'440);  // 0.44 of 48 us and of three more
  EXPECT_EQ(out.step_ns, 48'000 + 19'000 - 22'440);
}

TEST(TorchStretches, noise_of_what_the_program_computes_stays) {
  // 100, 115 and 160 us: the mean of the first two.
  const TorchStretches out = stretches_of(model_of({step_with(3, 159), step_with(3, 99), step_with(3, 114)}));
  EXPECT_EQ(out.step_ns, 48'000 + 107'500 - 22'440);
  EXPECT_EQ(stretches_of(model_of({step_with(3, 99), step_with(3, 114)})).step_ns, 48'000 + 100'000 - 22'440);
}

TEST(TorchStretches, steps_with_other_operators_are_not_compared) {
  EXPECT_EQ(stretches_of(model_of({{}, {.name = "aten::mul"}})).step_ns, kNoNumber);
  EXPECT_EQ(stretches_of(model_of({{}})).step_ns, kNoNumber);
  EXPECT_EQ(stretches_of(model_of({{}, {}, {.name = "aten::mul"}})).step_ns, 27'440);
  const TorchStretches halves = stretches_of(model_of({{}, {}, {.name = "aten::mul"}, {.name = "aten::mul"}}));
  EXPECT_EQ(halves.step_ns, kNoNumber) << "either could be the usual step";
}

// Two functions that begin and end in turn, as many stretches as above.
TEST(TorchStretches, a_python_function_costs_most) {
  TraceBuilder builder;
  builder.metadata("schemaVersion", "1");
  for (int i = 0; i < 2; ++i) {
    const double start = 49.0 * i;
    for (int k = 0; k < 24; ++k) {
      // Bound methods have the address of their object in their names.
      builder.python("<built-in method append of list object at 0x" + std::to_string(1000 * i + k) + ">",
                     {.start_us = start + 1 + 2 * k, .end_us = start + 2 + 2 * k});
    }
    builder.step(i, {.start_us = start, .end_us = start + 49});
  }
  EXPECT_EQ(stretches_of(builder.build()).removed_ns, 38'220);  // 0.78 of 49 us
}

TEST(TorchStretches, a_trace_with_few_events_does_not_tell) {
  const StepShape few{.extra_us = std::vector<double>(3)};  // 7 stretches in each of two steps
  EXPECT_TRUE(stretches_of(model_of({few, few})).charges.empty());
}

TEST(TorchStretches, the_verdict_says_the_step_that_nothing_interrupted) {
  const Study s = study(model_of({step_with(3, 9), step_with(3, 0), step_with(3, 3)}));
  EXPECT_EQ(s.usual_step_ns, 28'000);
  EXPECT_EQ(s.undone.source, CostSource::kEstimated);
  EXPECT_EQ(s.usual_recorded_ns, 52'000);
  EXPECT_NEAR(static_cast<double>(s.undone.cost_ns), 24'000, 20);
  // Half of the 22 us that were removed, and 15% of 28; 30% of them, and 10%.
  EXPECT_EQ(s.undone.low_ns, 28'000 - 11'775);
  EXPECT_EQ(s.undone.high_ns, 28'000 + 7'169);
}

// Python functions alone: 78% was removed, and half of that is more than the rest. The range began below zero.
TEST(TorchStretches, no_end_of_the_range_is_below_zero_where_most_of_a_step_was_the_profilers) {
  TraceBuilder builder;
  builder.metadata("schemaVersion", "1");
  for (int i = 0; i < 3; ++i) {
    const double start = 49.0 * i;
    for (int k = 0; k < 24; ++k) builder.python("split", {.start_us = start + 1 + 2 * k, .end_us = start + 2 + 2 * k});
    builder.step(i, {.start_us = start, .end_us = start + 49});
  }
  Model model = builder.build();
  model.info.origin = Origin::kKineto;
  const Study s = study(model);
  EXPECT_EQ(s.undone.usual_ns, 10'780);
  EXPECT_EQ(s.undone.low_ns, 2'695);
  EXPECT_GT(s.undone.high_ns, s.undone.usual_ns);
}

// One step of 100 operators: no other to compare it with.
TEST(TorchStretches, a_single_step_loses_the_share_of_its_own_stretches) {
  const StepShape step{.extra_us = std::vector<double>(100)};
  const Study s = study(model_of({step}));
  EXPECT_NEAR(static_cast<double>(s.usual_step_ns), 201'000 * (1 - 0.54), 1'000);
}

TEST(TorchStretches, traces_of_other_recorders_keep_their_own_costs) {
  const Study s = study(model_of({{}, {}}, "", Origin::kNsight));
  EXPECT_NEAR(static_cast<double>(s.usual_step_ns), 49'000 - 25 * 1.12 * 350, 500);
}

}  // namespace
}  // namespace firelane::analyze
