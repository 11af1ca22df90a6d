// How much of a CPU's time is calling operators: hand-computed stretches.
#include "analyze/host/dispatch.h"

#include <gtest/gtest.h>

#include "analyze/testing.h"
#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

Study study_of(TraceBuilder& builder, Model& model) {
  model = builder.build();
  return study(model);
}

TEST(Dispatch, an_operators_first_microseconds_are_dispatch_and_the_rest_computes) {
  TraceBuilder builder;
  for (int i = 0; i < 3; ++i) {
    const double at = 100.0 * i;
    builder.step(i, {.start_us = at, .end_us = at + 100});
    builder.op("aten::mm", {.start_us = at, .end_us = at + 80});
    builder.op("aten::add", {.start_us = at + 80, .end_us = at + 84});
  }
  Model model;
  const Study s = study_of(builder, model);
  // Of 100 us: mm computes 75, add's 4 and the 16 between are dispatch.
  EXPECT_NEAR(s.computing_share, 0.75, 1e-9);
  EXPECT_EQ(s.bound.limit, Limit::kCompute);
}

TEST(Dispatch, a_program_of_tiny_operators_is_bound_by_overhead_however_many_there_are) {
  TraceBuilder builder;
  for (int i = 0; i < 3; ++i) {
    const double at = 400.0 * i;
    builder.step(i, {.start_us = at, .end_us = at + 400});
    for (int k = 0; k < 100; ++k) builder.op("aten::add", {.start_us = at + 4.0 * k, .end_us = at + 4.0 * k + 3});
  }
  Model model;
  const Study s = study_of(builder, model);
  EXPECT_EQ(s.computing_share, 0);
  EXPECT_EQ(s.bound.limit, Limit::kOverhead);
}

TEST(Dispatch, one_large_operator_among_many_views_still_computes) {
  TraceBuilder builder;
  for (int i = 0; i < 3; ++i) {
    const double at = 1000.0 * i;
    builder.step(i, {.start_us = at, .end_us = at + 1000});
    for (int k = 0; k < 50; ++k) builder.op("aten::view", {.start_us = at + 4.0 * k, .end_us = at + 4.0 * k + 2});
    builder.op("aten::mm", {.start_us = at + 200, .end_us = at + 1000});
  }
  Model model;
  EXPECT_EQ(study_of(builder, model).bound.limit, Limit::kCompute);
}

TEST(Dispatch, a_long_stretch_without_operators_is_other_code_and_named_by_its_function) {
  TraceBuilder builder;
  builder.step(0, {.start_us = 0, .end_us = 5000});
  builder.op("aten::mm", {.start_us = 0, .end_us = 1000});
  builder.python("log.py(3): write", {.start_us = 1000, .end_us = 4500});
  builder.op("aten::mm", {.start_us = 4500, .end_us = 5000});
  const Model model = builder.build();
  const HostTime host = host_time(model);
  const auto stretches = stretches_between_ops(host.chains[0], {0, 5'000'000});
  ASSERT_EQ(stretches.size(), 1U);
  EXPECT_EQ(stretches[0].start_ns, 1'000'000);
  EXPECT_EQ(stretches[0].end_ns, 4'500'000);
  EXPECT_EQ(model.text(model.host_slices.name[stretches[0].slice]), "log.py(3): write");
  const std::vector<double> shares = dispatch_shares(model, host.chains[0], {0, 5'000'000});
  const size_t at = host.chains[0].segment_after(2'000'000);
  EXPECT_NEAR(shares[at], 1.0 / 3.5, 1e-9);  // the first millisecond could be the way to the next operator
}

}  // namespace
}  // namespace firelane::analyze
