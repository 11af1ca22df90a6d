// What must hold for every trace: random ones, and the real ones of tests/data.
#include "analyze/verdict/study.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "analyze/device/device_work.h"
#include "analyze/testing.h"
#include "import/load.h"

namespace firelane::analyze {
namespace {

template <typename Array>
int64_t sum_of(const Array& parts) {
  return std::accumulate(parts.begin(), parts.end(), int64_t{0});
}

void expect_sums(const Model& model, const Study& s, const std::string& which) {
  const Breakdown& breakdown = s.breakdown;
  int64_t steps_ns = 0;
  for (const BreakdownRow& row : breakdown.steps) {
    steps_ns += row.duration_ns;
    EXPECT_EQ(sum_of(row.host), row.duration_ns) << which;
    if (s.has_device_work) EXPECT_EQ(row.busy_ns() + sum_of(row.idle), row.duration_ns) << which;
  }
  EXPECT_EQ(steps_ns, breakdown.total.duration_ns) << which;
  EXPECT_EQ(breakdown.total.duration_ns, s.recorded.total_ns()) << which;
  if (s.has_device_work) {
    EXPECT_EQ(s.idle.busy_ns, device_busy(model).covered_ns(s.recorded.start_ns, s.recorded.end_ns)) << which;
    int64_t gaps = 0;
    for (const IdleGap& gap : s.idle.gaps) gaps += gap.end_ns - gap.start_ns;
    EXPECT_EQ(gaps, s.idle.idle_ns) << which;
    int64_t segments = 0;
    for (const IdleSegment& segment : s.idle.segments) segments += segment.end_ns - segment.start_ns;
    EXPECT_EQ(segments, s.idle.idle_ns) << which;
  }
  EXPECT_EQ(sum_of(s.path.by_class), s.played.total_ns()) << which;
  int64_t at = s.played.start_ns;
  for (const PathPiece& piece : s.path.pieces) {
    EXPECT_EQ(piece.start_ns, at) << which;
    at = piece.end_ns;
  }
  if (!s.path.pieces.empty()) EXPECT_EQ(at, s.played.end_ns) << which;
}

// Taking a cost away never makes anything slower, and twice the cost never faster.
void expect_monotone(const Study& s, const std::string& which) {
  const auto total = [&](const WhatIf& change) { return replay(s.graph, change, {.recording_removed = 0}).end_ns; };
  const int64_t now = total({});
  EXPECT_EQ(now, s.recorded.end_ns) << which;
  for (const double keep : {0.0, 0.5}) {
    EXPECT_LE(total({.keep_host = keep}), now) << which;
    EXPECT_LE(total({.keep_kernels = keep}), now) << which;
    EXPECT_LE(total({.keep_communication = keep}), now) << which;
    EXPECT_LE(total({.keep_copies = keep}), now) << which;
    EXPECT_LE(total({.keep_latency = keep}), now) << which;
  }
  EXPECT_GE(total({.keep_host = 2}), now) << which;
  EXPECT_GE(total({.keep_kernels = 2}), now) << which;
  EXPECT_LE(s.undone.step_ns, s.undone.recorded_ns) << which;
  EXPECT_LE(s.undone.low_ns, s.undone.usual_ns) << which;
  EXPECT_GE(s.undone.high_ns, s.undone.usual_ns) << which;
}

TEST(Study, sums_hold_and_replays_are_monotone_on_random_traces) {
  for (uint32_t seed = 0; seed < 400; ++seed) {
    const Model model = random_trace(seed);
    const Study s = study(model);
    expect_sums(model, s, "seed " + std::to_string(seed));
    expect_monotone(s, "seed " + std::to_string(seed));
    if (HasFailure()) break;
  }
}

TEST(Study, sums_hold_and_replays_are_monotone_on_real_traces) {
  size_t seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(FIRELANE_TEST_DATA)) {
    const std::string path = entry.path().string();
    if (!path.ends_with(".json.gz") && !path.ends_with(".lane")) continue;
    Result<Model> model = importer::load_trace(path);
    ASSERT_TRUE(model.ok()) << path;
    const Study s = study(model.value());
    expect_sums(model.value(), s, path);
    expect_monotone(s, path);
    ++seen;
  }
  EXPECT_GE(seen, 10u);
}

TEST(Study, an_empty_trace_has_no_limit) {
  const Study s = study(TraceBuilder().build());
  EXPECT_EQ(s.bound.limit, Limit::kUnknown);
  EXPECT_EQ(s.undone.step_ns, 0);
}

Limit limit_of(const std::string& name) {
  Result<Model> model = importer::load_trace(std::string(FIRELANE_TEST_DATA) + "/" + name);
  EXPECT_TRUE(model.ok());
  return study(model.value()).bound.limit;
}

TEST(Study, real_traces_are_limited_by_what_their_program_was_made_to_be_limited_by) {
  EXPECT_EQ(limit_of("gpt_plain.json.gz"), Limit::kOverhead);
  EXPECT_EQ(limit_of("gpt_full.json.gz"), Limit::kOverhead);
  EXPECT_EQ(limit_of("gpt_slowdata.json.gz"), Limit::kInput);
}

// add(matmul), n = 64, 1024, 8192. Timed without a profiler, the middle one keeps the device busy for half of the time.
TEST(Study, a_larger_matrix_moves_the_limit_from_overhead_to_computing) {
  const auto judged = [](const std::string& name) {
    Result<Model> model = importer::load_trace(std::string(FIRELANE_TEST_DATA) + "/" + name);
    EXPECT_TRUE(model.ok());
    const Study s = study(model.value());
    return std::string(name_of(s.bound.limit)) +
           (s.undone.undecided ? " or " + std::string(name_of(s.other_limit)) : "");
  };
  EXPECT_EQ(judged("mm64.json.gz"), "overhead");
  EXPECT_EQ(judged("mm1024.json.gz"), "overhead or mixed");
  EXPECT_EQ(judged("mm8192.json.gz"), "compute");
}

// The steps before the recorded ones, `before_us` each, and six after, the last two of which take `last_us`.
SlowSteps slow_of(double before_us, double last_us) {
  TraceBuilder builder;
  double at = 0;
  const auto step = [&](int64_t number, double us, StepDisturbance disturbance) {
    builder.timed_step(number, {.start_us = at, .end_us = at + us, .disturbance = disturbance});
    at += us;
  };
  for (int64_t number = 0; number < 5; ++number) step(number, before_us, StepDisturbance::kNone);
  step(5, 8'000, StepDisturbance::kRecorded);
  for (int64_t number = 6; number < 12; ++number) step(number, number < 10 ? 5'000 : last_us, StepDisturbance::kNone);
  return find_slow_steps(builder.build());
}

// Three steps of a program's warm-up, six times as long as all later ones, were told as slow steps.
TEST(SlowSteps, warm_up_before_the_recording_is_none_and_slow_steps_after_it_are) {
  EXPECT_TRUE(slow_of(30'000, 5'000).numbers.empty());
  EXPECT_EQ(slow_of(5'000, 30'000).numbers, (std::vector<int64_t>{10, 11}));
  EXPECT_EQ(slow_of(30'000, 30'000).usual_ns, 30'000'000);  // as long before as the slowest after: no warm-up
}

}  // namespace
}  // namespace firelane::analyze
