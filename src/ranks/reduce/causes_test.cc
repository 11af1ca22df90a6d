// Why a rank was late, in the words that a user reads.
#include <gtest/gtest.h>

#include "ranks/reduce/findings.h"
#include "ranks/testing/generate.h"

namespace firelane::ranks {
namespace {

using testing::generate;
using testing::JobSpec;

constexpr int64_t kLate = 5;

// Of eight ranks the sixth is late; `change` gets each part.
template <typename Change>
Straggler late_rank(Cause cause, const Change& change) {
  auto intake = std::make_shared<Intake>();
  for (Part& part : generate({.ranks = 8, .straggler = kLate, .cause = cause}).parts) {
    change(part);
    intake->add(std::move(part));
  }
  const auto job = study_job(std::move(intake)).value();
  const std::vector<Straggler>& found = job->result.stragglers;
  EXPECT_EQ(found.size(), 1u);
  return found.empty() ? Straggler{} : found[0];
}

TEST(Causes, more_work_names_the_operator_whose_inputs_are_larger_than_on_other_ranks) {
  const Straggler found = late_rank(Cause::kMoreWork, [](Part& part) {
    const bool late = part.rank == kLate;
    const char* const shapes = late ? "[[8192, 512], [512, 64]]" : "[[4096, 512], [512, 64]]";
    part.kernels = {{.name = late ? "gemm_large" : "gemm_small",
                     .op = "aten::mm",
                     .calls = 10,
                     .total_ns = late ? 2'000'000 : 1'000'000,
                     .shapes = shapes},
                    {.name = "relu", .op = "aten::relu", .calls = 10, .total_ns = 500'000, .shapes = "[[8]]"}};
  });
  EXPECT_EQ(found.cause, Cause::kMoreWork);
  EXPECT_NE(found.why.find("; most in aten::mm of [[8192, 512], [512, 64]] instead of [[4096, 512], [512, 64]]"),
            std::string::npos)
      << found.why;
}

TEST(Causes, more_work_says_nothing_of_shapes_that_are_those_of_others) {
  const Straggler found = late_rank(Cause::kMoreWork, [](Part& part) {
    part.kernels = {
        {.name = "gemm", .op = "aten::mm", .calls = 9 + part.rank, .total_ns = 1'000'000, .shapes = "[[8]]"}};
  });
  EXPECT_EQ(found.why.find("instead of [["), std::string::npos) << found.why;
}

TEST(Causes, slower_kernels_are_told_with_the_clock_power_and_temperature_of_the_device) {
  const Straggler found = late_rank(Cause::kSlowerKernels, [](Part& part) {
    const bool late = part.rank == kLate;
    part.device_state = {
        .sm_clock_mhz = late ? 1410 : 1980, .power_watts = late ? 430 : 650, .temperature_celsius = late ? 88 : 61};
  });
  EXPECT_EQ(found.cause, Cause::kSlowerKernels);
  EXPECT_TRUE(found.few_steps.empty()) << "late in all steps alike";
  EXPECT_NE(
      found.why.find("; its GPU ran at 1410 MHz, the others at 1980 MHz, 430 W (others 650 W), 88 C (others 61 C)"),
      std::string::npos)
      << found.why;
}

TEST(Causes, a_clock_as_high_as_that_of_others_is_said_because_something_else_is_slow_then) {
  const Straggler found =
      late_rank(Cause::kSlowerKernels, [](Part& part) { part.device_state.sm_clock_mhz = 1970 + part.rank; });
  EXPECT_NE(found.why.find("; its GPU ran at 1975 MHz, as the others did"), std::string::npos) << found.why;
}

TEST(Causes, a_rank_that_alone_writes_checkpoints_is_told_to_write_them_in_the_background) {
  auto intake = std::make_shared<Intake>();
  const JobSpec spec{.ranks = 8, .straggler = kLate, .cause = Cause::kCheckpoint, .every_steps = 5};
  for (Part& part : generate(spec).parts) intake->add(std::move(part));
  const auto job = study_job(std::move(intake)).value();
  ASSERT_EQ(job->result.stragglers.size(), 1u);
  EXPECT_EQ(job->result.stragglers[0].cause, Cause::kCheckpoint);
  const std::vector<RankFinding> findings = rank_findings(job->result);
  ASSERT_FALSE(findings.empty());
  EXPECT_NE(findings[0].title.find("it writes checkpoints"), std::string::npos) << findings[0].title;
  EXPECT_NE(findings[0].try_text.find("async_save"), std::string::npos);
  // Late in two steps alone: the straggler and the table of steps say so.
  EXPECT_EQ(job->result.stragglers[0].few_steps, (std::vector<int64_t>{100, 105}));
  const std::vector<StepResult>& steps = job->result.by_step;
  ASSERT_EQ(steps.size(), 10u);
  for (const size_t s : {size_t{0}, size_t{5}}) {
    EXPECT_EQ(steps[s].latest_rank, kLate) << s;
    EXPECT_GT(steps[s].wait_ns, 2 * steps[s + 1].wait_ns) << s;
  }
}

TEST(Findings, the_command_that_opens_the_trace_of_a_rank_can_be_pasted) {
  Reduction job{.ranks = 4, .world_size = 4};
  job.time.step_ns = 100'000'000;
  job.stragglers = {{.rank = 3, .gain_percent = 20, .cause = Cause::kGc}};
  job.by_rank = {{.rank = 3, .path = "my traces/rank 3.json"}};
  const std::vector<RankFinding> found = rank_findings(job);
  ASSERT_FALSE(found.empty());
  EXPECT_TRUE(found[0].try_text.ends_with("; firelane diagnose 'my traces/rank 3.json' has the rank itself"))
      << found[0].try_text;
}

TEST(Findings, a_pipeline_stage_with_more_work_than_the_others_is_named_with_what_evenness_saves) {
  Reduction job{.ranks = 4, .world_size = 4};
  job.time.step_ns = 100'000'000;
  job.pipeline.stages = {{.ranks = {0, 1}, .work_ns = 20'000'000}, {.ranks = {2, 3}, .work_ns = 30'000'000}};
  job.what_ifs = {{"even-stages", "the same work on all pipeline stages", 4'000'000, 4}};
  const std::vector<RankFinding> found = rank_findings(job);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].id, "uneven-stages");
  EXPECT_EQ(found[0].title, "pipeline stage 1 has 30.0 ms of work in a step, the others 20.0 ms on average");
  EXPECT_EQ(found[0].gain_high_ns, 4'000'000);
  job.what_ifs[0].gain_percent = 1;
  EXPECT_TRUE(rank_findings(job).empty());
}

}  // namespace
}  // namespace firelane::ranks
