// Tuning against programs whose law is known: which setting is found, in how many trials, and what is left alone.
#include "compare/sweep/tune.h"

#include <gtest/gtest.h>

#include <map>

namespace firelane::compare {
namespace {

// A step of `own_us`; a batch takes `load_us` in one process; each process costs a little.
struct Program {
  double own_us = 10'000;
  double load_us = 35'000;
  int cores = 64;
  int64_t first_workers = 0;

  TimedRun run(const Settings& settings) const {
    std::map<std::string, std::string> set(settings.begin(), settings.end());
    const int64_t workers = set.contains("workers") ? std::stoll(set["workers"]) : first_workers;
    const double usable = static_cast<double>(std::min<int64_t>(workers, cores));
    const double loading = workers == 0 ? load_us : load_us / usable;
    const double step =
        workers == 0 ? own_us + loading : std::max(own_us * (1 + 0.004 * static_cast<double>(workers)), loading);
    TimedSteps timed{.step_ns = static_cast<int64_t>(step * 1000), .steps = 30};
    timed.wait_ns = static_cast<int64_t>((workers == 0 ? loading : std::max(0.0, step - own_us * 1.02)) * 1000);
    timed.workers = workers;
    return {timed, ""};
  }
  double best_of_grid() const {
    double best = 1e18;
    for (int workers = 0; workers <= 16; ++workers) {
      best = std::min(best, static_cast<double>(run({{"workers", std::to_string(workers)}}).timed.step_ns));
    }
    return best;
  }
};

TuneResult tuned(const Program& program, const TuneOptions& options = {.max_workers = 16}) {
  return tune([&](const Settings& settings) -> Result<TimedRun> { return program.run(settings); }, options).value();
}

TEST(Tune, a_slow_loader_gets_within_5_percent_of_the_best_in_a_third_of_the_grid) {
  for (const double load_us : {12'000.0, 35'000.0, 60'000.0, 110'000.0}) {
    for (const int64_t first : {0, 1, 2}) {
      const Program program{.load_us = load_us, .first_workers = first};
      const TuneResult result = tuned(program);
      const auto reached = static_cast<double>(program.run(result.best).timed.step_ns);
      EXPECT_LE(reached, program.best_of_grid() / 0.95) << load_us << " from " << first;
      EXPECT_LE(result.trials.size(), 17u / 3) << load_us << " from " << first;
    }
  }
}

TEST(Tune, a_program_that_does_not_wait_keeps_its_loader) {
  const TuneResult result = tuned({.own_us = 10'000, .load_us = 100});
  EXPECT_TRUE(result.best.empty());
  EXPECT_EQ(result.trials.size(), 1u);
  ASSERT_EQ(result.left_alone.size(), 1u);
  EXPECT_NE(result.left_alone[0].find("1.0% of a step"), std::string::npos) << result.left_alone[0];
}

TEST(Tune, more_workers_than_cores_are_not_kept) {
  const TuneResult result = tuned({.own_us = 1000, .load_us = 40'000, .cores = 2});
  ASSERT_EQ(result.best.size(), 1u);
  EXPECT_EQ(result.trials.back().kept, false);
}

TEST(Tune, a_batch_that_would_not_fit_is_not_tried_and_the_time_of_a_sample_counts) {
  const auto measure = [](const Settings& settings) -> Result<TimedRun> {
    const int64_t batch = settings.empty() ? 8 : std::stoll(settings[0].second);
    TimedSteps timed{.step_ns = 1'000'000 + 100'000 * batch, .steps = 30};
    timed.batch = batch;
    timed.has_gpu = true;
    timed.peak_bytes = 100 + 10 * batch;
    timed.memory_bytes = 1000;
    return TimedRun{timed, ""};
  };
  const TuneOptions options{.variables = {{"batch", {"16", "32", "64", "128"}, true}}};
  const TuneResult result = tune(measure, options).value();
  EXPECT_EQ(result.best, (Settings{{"batch", "64"}}));  // 128 would take 1,380 of 1,000
  ASSERT_EQ(result.left_alone.size(), 2u);              // no loader, and this
  EXPECT_EQ(result.left_alone[1], "batch=128: it would take 138.0% of the GPU's memory; 10% are kept free");
}

TEST(Tune, a_trial_that_fails_is_one_that_is_not_kept) {
  const auto measure = [](const Settings& settings) -> Result<TimedRun> {
    if (!settings.empty() && settings[0].second == "bf16") return TimedRun{{}, "exit code 1: not supported"};
    return TimedRun{{.step_ns = settings.empty() ? 2000 : 1000, .steps = 3}, ""};
  };
  const TuneResult result = tune(measure, {.variables = {{"precision", {"bf16", "tf32"}}}}).value();
  EXPECT_EQ(result.best, (Settings{{"precision", "tf32"}}));
  EXPECT_EQ(result.trials[1].run.failure, "exit code 1: not supported");
}

TEST(Tune, a_program_that_does_not_run_is_an_error) {
  const auto measure = [](const Settings&) -> Result<TimedRun> { return TimedRun{{}, "exit code 1"}; };
  EXPECT_EQ(tune(measure, {}).error().message, "exit code 1");
}

}  // namespace
}  // namespace firelane::compare
