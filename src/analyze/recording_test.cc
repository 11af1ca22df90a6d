// The true step from steps that were timed without recording.
#include "analyze/recording.h"

#include <gtest/gtest.h>

#include "analyze/study.h"
#include "model/trace_builder.h"

namespace firelane {
namespace {

// Four steps of 1000 us and one of `last_us`, with 100 ops each; steps of 900 us were timed without recording.
Study study_of(double last_us) {
  TraceBuilder builder;
  for (int i = 0; i < 5; ++i) {
    const double at = 1000.0 * i;
    builder.step(i, {.start_us = at, .end_us = at + (i == 4 ? last_us : 1000)});
    for (int k = 0; k < 100; ++k) builder.op("aten::add", {.start_us = at + 9.0 * k, .end_us = at + 9.0 * k + 8});
  }
  Model model = builder.build();
  using D = StepDisturbance;
  model.timed_steps = {.number = {1, 2, 3},
                       .disturbance = {D::kNone, D::kNone, D::kNone},
                       .start_ns = {1, 2, 3},
                       .duration_ns = {900'000, 900'000, 900'000}};
  return study(model);
}

TEST(Recording, steps_timed_without_it_are_the_truth) {
  const Study s = study_of(1000);
  EXPECT_EQ(s.undone.source, CostSource::kBaseline);
  EXPECT_NEAR(static_cast<double>(s.undone.step_ns), 900'000, 500);
}

TEST(Recording, a_slow_step_is_not_blamed_on_the_recorder) {
  const Study s = study_of(3000);  // the mean is 1400 us, the median 1000: recording cost 100
  EXPECT_NEAR(static_cast<double>(s.undone.step_ns), 1'300'000, 500);
}

}  // namespace
}  // namespace firelane
