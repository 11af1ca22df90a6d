#include "compare/gate/gate.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "compare/run/store.h"
#include "compare/testing.h"

namespace firelane::compare {
namespace {

// A run whose step takes so long, with noise that is the same in every test.
compare::Run run_at(double step_us, int64_t peak_bytes = 1000) {
  compare::Run run{.has_device_work = true, .step_ns = static_cast<int64_t>(step_us * 1000)};
  run.parts[static_cast<size_t>(Part::kMatmul)] = run.step_ns;
  run.gpu_ns = run.step_ns;
  run.has_memory = true;
  run.peak_bytes = peak_bytes;
  run.memory[0] = peak_bytes;
  run.work.push_back({.part = Part::kMatmul,
                      .kernel = "gemm",
                      .op = "aten::mm",
                      .calls = 1,
                      .total_ns = static_cast<double>(run.step_ns)});
  return run;
}

std::vector<compare::Run> runs_at(double step_us, int count) {
  std::vector<compare::Run> out;
  for (int i = 0; i < count; ++i) out.push_back(run_at(step_us * (1 + 0.002 * ((i * 7) % 5 - 2))));
  return out;
}

GateStatus status(const std::vector<compare::Run>& before, const std::vector<compare::Run>& after,
                  std::vector<Limit> limits = {}) {
  const Result<GateResult> result = gate(before, after, {.limits = std::move(limits)});
  EXPECT_TRUE(result.ok());
  return result.ok() ? result.value().status : GateStatus::kNotKnown;
}

TEST(Gate, equal_runs_hold_and_slower_ones_do_not) {
  EXPECT_EQ(status(runs_at(1000, 5), runs_at(1001, 5)), GateStatus::kHolds);
  EXPECT_EQ(status(runs_at(1000, 5), runs_at(1080, 5)), GateStatus::kBroken);
  EXPECT_EQ(status(runs_at(1000, 5), runs_at(900, 5)), GateStatus::kHolds);
}

TEST(Gate, exit_codes_tell_the_three_answers_apart) {
  EXPECT_EQ(gate(runs_at(1000, 5), runs_at(1000, 5), {}).value().exit_code(), 0);
  EXPECT_EQ(gate(runs_at(1000, 5), runs_at(1080, 5), {}).value().exit_code(), 3);
  EXPECT_EQ(gate(runs_at(1000, 1), runs_at(1080, 1), {}).value().exit_code(), 4);
}

TEST(Gate, one_run_is_judged_by_the_noise_of_its_baseline) {
  EXPECT_EQ(status(runs_at(1000, 6), runs_at(1080, 1), {{"step_time", "3%"}}), GateStatus::kBroken);
  EXPECT_EQ(status(runs_at(1000, 6), runs_at(1002, 1), {{"step_time", "3%"}}), GateStatus::kHolds);
  EXPECT_EQ(status(runs_at(1000, 1), runs_at(1000, 1), {{"step_time", "3%"}}), GateStatus::kInconclusive);
}

TEST(Gate, memory_needs_one_run_a_side) {
  EXPECT_EQ(status({run_at(1000, 1000)}, {run_at(1000, 1100)}, {{"peak_memory", "5%"}}), GateStatus::kBroken);
  EXPECT_EQ(status({run_at(1000, 1000)}, {run_at(1000, 1020)}, {{"peak_memory", "5%"}}), GateStatus::kHolds);
}

TEST(Gate, a_limit_without_percent_is_for_the_new_runs_alone) {
  EXPECT_EQ(status({run_at(1000)}, {run_at(2000)}, {{"step_time", "1.5 ms"}}), GateStatus::kBroken);
  EXPECT_EQ(status({run_at(1000)}, {run_at(1400)}, {{"step_time", "1.5 ms"}}), GateStatus::kHolds);
}

TEST(Gate, a_limit_that_nobody_can_judge_is_not_passed_in_silence) {
  EXPECT_EQ(status(runs_at(1000, 5), runs_at(1000, 5), {{"energy", "5%"}}), GateStatus::kInconclusive);
}

TEST(Gate, wrong_limits_are_refused_with_what_to_write) {
  const auto message = [](const Limit& limit) {
    return gate({run_at(1)}, {run_at(1)}, {.limits = {limit}}).error().message;
  };
  EXPECT_EQ(message({"step_time", "fast"}), "limit of step_time: 'fast' is not one; write 3% or 25 ms");
  EXPECT_EQ(message({"step_time", "25"}), "limit of step_time: '25' is not one; write 3% or 25 ms");
  EXPECT_NE(message({"speed", "3%"}).find("no such figure; there are step_time, gpu_time"), std::string::npos);
}

TEST(Gate, a_kernel_that_got_slower_is_found_among_many_though_the_step_did_not) {
  const auto with_kernels = [](double slow_us) {
    std::vector<compare::Run> runs = runs_at(10000, 6);
    for (size_t i = 0; i < runs.size(); ++i) {
      for (int k = 0; k < 20; ++k) {
        const double us =
            (k == 3 ? slow_us : 100) * (1 + 0.001 * static_cast<double>((i * 3 + static_cast<size_t>(k)) % 5));
        runs[i].work.push_back({.kernel = "kernel" + std::to_string(k), .op = "op", .calls = 1, .total_ns = us * 1000});
      }
    }
    return runs;
  };
  const Result<GateResult> same = gate(with_kernels(100), with_kernels(100), {});
  EXPECT_EQ(same.value().status, GateStatus::kHolds);
  const Result<GateResult> slower = gate(with_kernels(100), with_kernels(150), {});
  EXPECT_EQ(slower.value().rows[0].status, GateStatus::kHolds);
  EXPECT_EQ(slower.value().rows.back().status, GateStatus::kBroken);
  EXPECT_NE(slower.value().rows.back().detail.find("kernel3"), std::string::npos);
}

TEST(Gate, runs_from_before_a_change_of_the_baseline_are_left_out) {
  std::vector<compare::Run> history = runs_at(1500, 8);
  for (const compare::Run& run : runs_at(1000, 8)) history.push_back(run);
  const GateResult result = gate(history, runs_at(1080, 5), {}).value();
  EXPECT_EQ(result.baseline_used, 8u);
  ASSERT_EQ(result.changes.size(), 1u);
  EXPECT_EQ(result.status, GateStatus::kBroken);
}

TEST(Store, a_run_comes_back_as_it_was_put_in) {
  compare::Run run = run_of(layers(3));
  run.environment = {{"gpu", "NVIDIA H200"}};
  run.numbers = {{"answer", 42.5}};
  const compare::Run back = run_from_json(to_json(run), "x").value();
  EXPECT_EQ(back.step_ns, run.step_ns);
  EXPECT_EQ(back.parts, run.parts);
  EXPECT_EQ(back.environment, run.environment);
  EXPECT_EQ(back.numbers, run.numbers);
  EXPECT_EQ(back.steps_ns, run.steps_ns);
  ASSERT_EQ(back.work.size(), run.work.size());
  EXPECT_EQ(back.work[1].module, run.work[1].module);
  EXPECT_EQ(to_json(back), to_json(run));
}

TEST(Store, of_very_many_kernels_the_largest_are_kept_and_sums_stay) {
  compare::Run run = run_at(1000);
  run.work.clear();
  double sum = 0;
  for (int i = 0; i < 500; ++i) {
    run.work.push_back({.part = Part::kPointwise, .kernel = "k" + std::to_string(i), .calls = 1, .total_ns = 1.0 + i});
    sum += 1.0 + i;
  }
  const std::string json = to_json(run);
  EXPECT_LT(json.size(), 40'000u);
  double kept = 0;
  const compare::Run back = run_from_json(json, "x").value();
  for (const WorkGroup& group : back.work) kept += group.total_ns;
  EXPECT_NEAR(kept, sum, 0.5);
}

TEST(Store, files_are_numbered_listed_and_dropped) {
  const auto folder = std::filesystem::temp_directory_path() / "firelane_store_test";
  std::filesystem::remove_all(folder);
  EXPECT_TRUE(read_store(folder.string()).value().empty());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(add_to_store(folder.string(), "main", run_at(1000 + i)).ok());
  EXPECT_TRUE(add_to_store(folder.string(), "other", run_at(5)).ok());
  const auto stored = read_store(folder.string(), "main").value();
  ASSERT_EQ(stored.size(), 3u);
  EXPECT_EQ(stored[2].number, 3);
  EXPECT_EQ(stored[2].run.step_ns, 1'002'000);
  EXPECT_EQ(drop_from_store(folder.string(), "main", 1).value(), 2);
  EXPECT_EQ(read_store(folder.string(), "main").value()[0].number, 3);
  EXPECT_FALSE(drop_from_store(folder.string(), "none", 0).ok());
  EXPECT_FALSE(add_to_store(folder.string(), "../up", run_at(1)).ok());
  std::ofstream(folder / "main.0009.json") << "{}";
  EXPECT_FALSE(read_store(folder.string()).ok());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace firelane::compare
