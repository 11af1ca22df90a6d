// Ranges, noise and confidence: what may be said about a gain, by numbers that one can check on paper.
#include "advise/gain.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "advise/proofs.h"
#include "advise/rule.h"
#include "advise/testing.h"
#include "model/trace_builder.h"

namespace firelane::advise {
namespace {

// A step of 10 ms that the device fills: its noise is 1%.
Gain range_of(std::string_view rule, const Gain& said) {
  const StudiedTrace trace(TraceBuilder().build());
  const Context context{.trace = trace, .window = {0, 10'000'000}, .step_ns = 10'000'000, .has_device_work = true};
  return gain_range(context, {.id = std::string(rule), .gain = said});
}

TEST(Gains, what_is_likely_is_a_little_more_than_the_replay_and_the_range_as_wide_as_the_errors_of_the_rule) {
  const Gain range = range_of("pageable-copies", {2'000'000, 4'000'000});
  const double likely = likely_ns(3e6, 10e6);
  EXPECT_NEAR(static_cast<double>(range.likely_ns), likely, 1);
  EXPECT_EQ(range.middle_ns(), range.likely_ns);
  const Errors errors = errors_of("pageable-copies");
  EXPECT_NEAR(static_cast<double>(range.likely_ns - range.low_ns), std::hypot(errors.below * likely, 1e5), 2);
  EXPECT_NEAR(static_cast<double>(range.high_ns - range.likely_ns), std::hypot(errors.above * likely, 1e5), 2);
  const Gain wider = range_of("pointwise-unfused", {3'000'000, 3'000'000});
  EXPECT_GT(errors_of("pointwise-unfused").above, errors.above);
  EXPECT_GT(wider.high_ns, range.high_ns);
  EXPECT_GT(wider.low_ns, 0) << "no rule is so uncertain that nothing is left";
}

TEST(Gains, nothing_takes_less_than_no_time) {
  const Gain range = range_of("repeated-operators", {9'500'000, 9'500'000});
  EXPECT_EQ(range.likely_ns, std::llround(likely_ns(9.5e6, 10e6)));
  EXPECT_EQ(range.high_ns, 10'000'000);
  EXPECT_LT(range.low_ns, 8'500'000) << "the top is cut off, the range below stays as it is";
}

TEST(Gains, a_finding_that_saves_all_of_its_cost_saves_little_more_than_that) {
  const StudiedTrace trace(TraceBuilder().build());
  const Context context{.trace = trace, .window = {0, 10'000'000}, .step_ns = 10'000'000, .has_device_work = true};
  Finding finding{.id = "input-bound"};
  set_gain_of_all(context, {4'000'000, 4'000'000}, finding);
  const Gain range = gain_range(context, finding);
  EXPECT_EQ(range.likely_ns, 4'000'000);
  EXPECT_EQ(range.high_ns, 4'500'000) << "a tenth, and noise";
}

TEST(Gains, what_is_within_the_noise_of_a_step_is_not_said) {
  EXPECT_EQ(range_of("pointwise-unfused", {80'000, 100'000}).high_ns, 0);
  EXPECT_GT(range_of("pointwise-unfused", {180'000, 200'000}).low_ns, 0);
}

TEST(Proofs, are_of_rules_and_their_numbers_make_sense) {
  for (const Rule& rule : all_rules()) {
    const Proof* proof = proof_of(rule.id);
    if (proof == nullptr) continue;
    EXPECT_GT(proof->programs, 0) << rule.id;
    EXPECT_LE(proof->right, proof->programs) << rule.id;
    EXPECT_GT(errors_of(rule.id).below, 0) << rule.id;
    EXPECT_LT(errors_of(rule.id).below, 1) << rule.id << ": something is left";
    EXPECT_GT(errors_of(rule.id).above, 0) << rule.id;
  }
  EXPECT_NE(proof_of("repeated-operators"), nullptr);
}

TEST(Proofs, a_rule_without_proof_or_with_few_programs_cannot_say_high) {
  for (const Rule& rule : all_rules()) {
    const Proof* proof = proof_of(rule.id);
    const bool proven =
        proof != nullptr && proof->programs >= kLeastPrograms && 10 * proof->right >= 9 * proof->programs;
    if (!proven) EXPECT_LT(most_sure(rule.id), Confidence::kHigh) << rule.id;
  }
  EXPECT_EQ(most_sure("a-rule-of-tomorrow"), Confidence::kMedium);
  EXPECT_EQ(most_sure("slow-steps"), Confidence::kHigh);
}

TEST(Gains, a_stretch_is_not_charged_for_more_of_recording_than_its_share) {
  // Five steps of 2 ms: 100 operators of 10 us, then one of 1 ms. By the estimate recording cost each of them the same.
  TraceBuilder builder;
  for (int64_t i = 0; i < 5; ++i) {
    const double at = static_cast<double>(i) * 2000;
    builder.step(i, {.start_us = at, .end_us = at + 2000});
    for (int k = 0; k < 100; ++k) builder.op("aten::add", {.start_us = at + 10 * k, .end_us = at + 10 * (k + 1)});
    builder.op("aten::mm", {.start_us = at + 1000, .end_us = at + 2000});
  }
  const Judged judged = diagnose(builder.build());
  const analyze::Study& study = judged.study;
  const auto without = [&](double start_us, double end_us) {
    analyze::WhatIf change;
    for (int64_t i = 0; i < 5; ++i) {
      const int64_t at = i * 2'000'000;
      change.host.push_back({.lane = study.host->chains[0].lanes[0],
                             .start_ns = at + static_cast<int64_t>(start_us * 1000),
                             .end_ns = at + static_cast<int64_t>(end_us * 1000)});
    }
    return change;
  };
  ASSERT_LT(study.undone.step_ns, study.undone.recorded_ns);
  const auto half_a_step = static_cast<double>(study.undone.step_ns) / 2;
  EXPECT_LT(static_cast<double>(study.gain_ns(without(0, 1000))), half_a_step - 1000);
  EXPECT_NEAR(static_cast<double>(saved_ns(study, without(0, 1000))), half_a_step, 100) << "many: half of the time";
  EXPECT_EQ(saved_ns(study, without(1000, 2000)), study.gain_ns(without(1000, 2000))) << "few: all of it";
}

// Steps of 4 ms in which a loop reads 80 numbers, one after another; timed without recording, they take `timed_us`.
Judged loop_on_cpu(double timed_us) {
  TraceBuilder builder;
  for (int64_t i = 0; i < 5; ++i) {
    const double at = static_cast<double>(i) * 4000;
    builder.step(i, {.start_us = at, .end_us = at + 4000});
    for (int k = 0; k < 80; ++k) {
      const double from = at + 45 * k;
      builder.op("aten::select", {.start_us = from, .end_us = from + 10});
      builder.op("aten::sum", {.start_us = from + 12, .end_us = from + 30});
      builder.op("aten::item", {.start_us = from + 32, .end_us = from + 42});
    }
    builder.op("aten::mm", {.start_us = at + 3600, .end_us = at + 3990});
    const double timed_at = 1e6 + static_cast<double>(i) * timed_us;
    builder.timed_step(20 + i, {.start_us = timed_at, .end_us = timed_at + timed_us});
  }
  return diagnose(builder.build());
}

TEST(Gains, a_loop_of_small_calls_once_saved_more_than_a_step_takes_without_recording) {
  const Judged slow = loop_on_cpu(4000);
  const Judged quick = loop_on_cpu(1500);
  const Finding* of_slow = find(slow, "host-sync");
  const Finding* of_quick = find(quick, "host-sync");
  ASSERT_NE(of_slow, nullptr);
  ASSERT_NE(of_quick, nullptr);
  ASSERT_GT(quick.study.undone.step_ns, 2'000'000) << "the recorder's cost does not explain it";
  EXPECT_GT(of_slow->gain.middle_ns(), 2'400'000);
  EXPECT_EQ(of_slow->of_step_ns, slow.study.undone.step_ns) << "nothing to make up for";
  EXPECT_NEAR(static_cast<double>(of_quick->of_step_ns), 1'500'000, 100'000);
  EXPECT_LT(of_quick->gain.middle_ns(), 1'500'000);
  EXPECT_GT(of_quick->gain.middle_ns(), 500'000);
}

TEST(Gains, no_finding_gains_more_than_a_step_takes_without_recording) {
  for (const double timed_us : {300.0, 900.0, 2000.0}) {
    const Judged judged = loop_on_cpu(timed_us);
    EXPECT_FALSE(judged.findings.empty());
    for (const Finding& finding : judged.findings) {
      const int64_t step_ns = std::llround(timed_us * 1000);
      EXPECT_LE(finding.gain.high_ns, step_ns) << finding.id;
      EXPECT_LE(finding.gain.middle_ns(), finding.gain.high_ns) << finding.id;
      EXPECT_LE(finding.gain.low_ns, finding.gain.middle_ns()) << finding.id;
    }
  }
}

TEST(Gains, a_pinned_copy_takes_what_the_link_takes) {
  // 53 MB in 10 ms from pageable memory, then 1 ms of work: at 40 to 53 GB/s the copy takes 1.3 to 1 ms.
  TraceBuilder builder;
  for (int64_t i = 0; i < 5; ++i) {
    const double at = static_cast<double>(i) * 11'100;
    builder.step(i, {.start_us = at, .end_us = at + 11'100})
        .call("cudaMemcpyAsync", {.start_us = at, .end_us = at + 10'000, .correlation = 2 * i + 1})
        .copy("Memcpy HtoD (Pageable -> Device)",
              {.start_us = at + 1, .end_us = at + 10'001, .correlation = 2 * i + 1, .bytes = 53'000'000})
        .call("cudaLaunchKernel", {.start_us = at + 10'010, .end_us = at + 10'015, .correlation = 2 * i + 2})
        .kernel("gemm", {.start_us = at + 10'020, .end_us = at + 11'020, .correlation = 2 * i + 2})
        .call("cudaDeviceSynchronize", {.start_us = at + 10'030, .end_us = at + 11'030});
  }
  const Judged judged = diagnose(builder.build());
  const Finding* finding = find(judged, "pageable-copies");
  ASSERT_NE(finding, nullptr);
  EXPECT_NEAR(static_cast<double>(finding->gain.middle_ns()), likely_ns(8.84e6, 11e6), 0.1e6);
  EXPECT_EQ(finding->confidence, Confidence::kHigh) << "four programs, and right on all";
}

TEST(Gains, a_graph_that_nobody_uses_costs_its_calls_on_a_cpu) {
  // 60 operators of 10 us and one of 400 us in a step of 1 ms: of each call, at most 20 us, 50% to 70% go.
  TraceBuilder builder;
  for (int64_t i = 0; i < 5; ++i) {
    const double at = static_cast<double>(i) * 1000;
    builder.step(i, {.start_us = at, .end_us = at + 1000});
    for (int k = 0; k < 60; ++k) {
      builder.op("aten::add", {.start_us = at + 10 * k, .end_us = at + 10 * (k + 1), .sequence_number = i * 61 + k});
    }
    builder.op("aten::mm", {.start_us = at + 600, .end_us = at + 1000, .sequence_number = i * 61 + 60});
  }
  const Judged judged = diagnose(builder.build());
  const Finding* finding = find(judged, "unused-gradients");
  ASSERT_NE(finding, nullptr);
  EXPECT_NEAR(static_cast<double>(finding->gain.middle_ns()), likely_ns(0.6 * (600'000 + 20'000), 1e6), 15'000);
}

TEST(Gains, findings_say_no_more_than_their_rule_has_proven) {
  TraceBuilder builder;
  for (int64_t i = 0; i < 5; ++i) {
    const double at = static_cast<double>(i) * 5000;
    builder.step(i, {.start_us = at, .end_us = at + 5000})
        .python("gc", {.start_us = at, .end_us = at + 10})
        .op("aten::mm", {.start_us = at + 4000, .end_us = at + 4990});
  }
  for (const Finding& finding : diagnose(builder.build()).findings) {
    EXPECT_LE(finding.confidence, most_sure(finding.id)) << finding.id;
  }
}

}  // namespace
}  // namespace firelane::advise
