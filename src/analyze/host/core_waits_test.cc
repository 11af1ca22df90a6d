// Time that steps lost because other programs had the cores: whose it is, where it lies, and that no verdict counts it.
#include "analyze/host/core_waits.h"

#include <gtest/gtest.h>

#include "analyze/testing.h"
#include "import/metadata.h"
#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

// Five recorded steps of ten operators of 90 us, 10 us apart, and four timed before them. `waited_us`, of every timed
// or recorded step: in a recorded one the wait lies in its third operator.
Model program(const std::vector<double>& waited_us, std::string_view own_cores = "1.0",
              std::string_view other_cores = "1.0") {
  TraceBuilder builder;
  double at = 10'000;
  builder.instant("begin", 0);
  for (int64_t step = 0; step < 9; ++step) {
    const double waited = waited_us[static_cast<size_t>(step)];
    const double from = at;
    const bool recorded = step >= 4;
    for (int op = 0; op < 10; ++op) {
      const double end = at + 90 + (op == 2 ? waited : 0);
      if (recorded) builder.op("aten::mul", {.start_us = at, .end_us = end});
      at = end + 10;
    }
    builder.timed_step(step, {.start_us = from,
                              .end_us = at,
                              .disturbance = recorded ? StepDisturbance::kRecorded : StepDisturbance::kNone,
                              .ran_us = 1000,
                              .waited_us = waited});
    if (recorded) builder.step(step, {.start_us = from, .end_us = at});
  }
  builder.metadata("cores_used", own_cores).metadata("cores_used_by_others", other_cores);
  Model model = builder.build();
  importer::interpret_metadata(model.info);
  return model;
}

const std::vector<double> kQuiet(9, 0);
const std::vector<double> kBusy = {0, 3000, 0, 0, 0, 5000, 0, 4000, 0};
const std::vector<double> kSteady(9, 700);

TEST(CoreWaits, what_every_step_pays_and_what_the_program_itself_does_is_not_lost) {
  const auto lost = [](const Model& model) { return CoreWaits(model).lost_ns(5); };
  EXPECT_EQ(lost(program(kBusy)), 5'000'000);
  EXPECT_EQ(lost(program(kSteady)), 0) << "no chance: each step waits as long";
  EXPECT_EQ(lost(program(kBusy, "3.0", "0.0")), 0) << "its own workers had the cores";
  EXPECT_EQ(lost(program(kBusy, "2.0", "1.0")), 2'500'000) << "one of two others";
  EXPECT_EQ(lost(TraceBuilder().build()), 0);
  EXPECT_NEAR(CoreWaits(program(kSteady)).waited_share(), 0.7 / 1.7, 1e-6);
  EXPECT_EQ(CoreWaits(program(kSteady, "3.0", "0.0")).waited_share(), 0);
}

TEST(CoreWaits, a_wait_is_found_in_what_is_far_longer_than_its_like_and_parts_still_add_up) {
  const Model model = program(kBusy);
  const Study s = study(model);
  const HostChain& chain = s.host->chains[0];
  int64_t no_core = 0;
  for (const HostSegment& segment : chain.segments) {
    if (segment.activity != Activity::kNoCore) continue;
    no_core += segment.end_ns - segment.start_ns;
    EXPECT_EQ(model.text(model.host_slices.name[segment.slice]), "aten::mul");
  }
  EXPECT_NEAR(static_cast<double>(no_core), 9e6, 0.1e6);
  EXPECT_EQ(s.host->no_core.total_ns(), no_core);
  const int64_t window = s.steps.window.end_ns - s.steps.window.start_ns;
  int64_t sum = 0;
  for (const int64_t ns : chain.times_in(s.steps.window.start_ns, s.steps.window.end_ns)) sum += ns;
  EXPECT_EQ(sum, window);
}

TEST(CoreWaits, what_a_few_steps_waited_for_a_core_is_no_part_of_a_step) {
  const Study quiet = study(program(kQuiet));
  const Model model = program(kBusy);
  const Study busy = study(model);
  EXPECT_NEAR(static_cast<double>(busy.usual_step_ns), static_cast<double>(quiet.usual_step_ns), 0.02e6);
  EXPECT_NEAR(static_cast<double>(busy.undone.step_ns), static_cast<double>(quiet.undone.step_ns), 0.05e6);
  EXPECT_TRUE(busy.slow_steps.numbers.empty());
  for (const FoundStep& step : busy.steps.steps) EXPECT_FALSE(step.outlier) << step.number;
  // What a change saves: half of the operators' time, and none of the waits.
  const HostSlices& host = model.host_slices;
  WhatIf change;
  for (Row row = 0; row < host.size(); ++row) {
    if (host.kind[row] == HostKind::kOp)
      change.host.push_back({host.lane[row], host.start_ns[row], host.end_ns(row), 0.5});
  }
  EXPECT_NEAR(static_cast<double>(busy.gain_ns(change)), 0.45e6, 0.05e6);
}

}  // namespace
}  // namespace firelane::analyze
