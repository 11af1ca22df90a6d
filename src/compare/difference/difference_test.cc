#include "compare/difference/difference.h"

#include <gtest/gtest.h>

#include <numeric>

#include "compare/testing.h"
#include "import/load.h"

namespace firelane::compare {
namespace {

int64_t sum_of_parts(const Difference& d) {
  int64_t sum = 0;
  for (const PartChange& part : d.parts) sum += part.change_ns();
  return sum;
}

Difference compare_programs(const TestProgram& before, const TestProgram& after) {
  return compare_sides({run_of(before)}, {run_of(after)});
}

WorkChange only_change(const Difference& d) {
  const WorkChange* found = nullptr;
  for (const WorkChange& work : d.work) {
    const bool same = work.change == Change::kNone && std::abs(work.change_ns()) < 1 &&
                      std::abs(work.calls_after - work.calls_before) < 0.01;
    if (same) continue;
    EXPECT_EQ(found, nullptr) << work.op << " " << work.kernel_after;
    found = &work;
  }
  return found == nullptr ? WorkChange{} : *found;
}

TEST(Summary, parts_add_up_to_the_step_and_device_time_is_that_of_the_kernels) {
  const compare::Run run = run_of(layers(4));
  EXPECT_EQ(std::accumulate(run.parts.begin(), run.parts.end(), int64_t{0}), run.step_ns);
  EXPECT_EQ(run.gpu_ns, 400'000);
  EXPECT_EQ(run.kernels, 4);
  EXPECT_EQ(run.launches, 4);
  EXPECT_EQ(run.work.size(), 4u);
  EXPECT_EQ(run.work[2].module, "Linear_2");
}

TEST(Difference, of_a_run_and_itself_is_nothing) {
  const Difference d = compare_programs(layers(4), layers(4));
  EXPECT_EQ(d.step.ratio, 1);
  EXPECT_EQ(sum_of_parts(d), 0);
  EXPECT_TRUE(d.reasons.empty());
  EXPECT_TRUE(d.environment.empty());
}

TEST(Difference, a_slower_kernel_is_named_by_its_speed_and_the_parts_add_up) {
  TestProgram slow = layers(4);
  slow.ops[1].kernel_us = 180;
  const Difference d = compare_programs(layers(4), slow);
  EXPECT_EQ(sum_of_parts(d), d.step_after_ns() - d.step_before_ns());
  const WorkChange work = only_change(d);
  EXPECT_EQ(work.module, "Linear_1");
  EXPECT_NEAR(work.by_speed_ns, 80'000, 1);
  EXPECT_NEAR(work.by_calls_ns, 0, 1);
  ASSERT_FALSE(d.reasons.empty());
  EXPECT_NE(d.reasons[0].text.find("matmul kernels: aten::mm takes"), std::string::npos) << d.reasons[0].text;
}

TEST(Difference, more_calls_are_told_from_slower_ones) {
  TestProgram before = layers(4);
  for (TestOp& op : before.ops) op.module = "";
  TestProgram more = before;
  more.ops.push_back(more.ops[0]);
  const WorkChange work = only_change(compare_programs(before, more));
  EXPECT_NEAR(work.by_calls_ns, 100'000, 1);
  EXPECT_NEAR(work.by_speed_ns, 0, 1);
  EXPECT_EQ(work.calls_after, 5);
}

TEST(Difference, a_precision_that_changed_is_named) {
  TestOp fp32{.kernel = "sgemm_fp32", .kernel_us = 300, .types = "[\"float\", \"float\"]"};
  const Difference d = compare_programs(layers(4), layers(4, fp32));
  const WorkChange work = only_change(d);
  EXPECT_EQ(work.change, Change::kPrecision);
  EXPECT_EQ(work.precision_before, "bf16");
  EXPECT_EQ(work.precision_after, "fp32");
  EXPECT_EQ(work.places, 4);
  EXPECT_NE(d.reasons[0].text.find("runs in fp32 instead of bf16"), std::string::npos) << d.reasons[0].text;
}

TEST(Difference, another_kernel_and_other_shapes_are_told_apart) {
  const TestOp other{.kernel = "gemm_split_bf16", .kernel_us = 150};
  EXPECT_EQ(only_change(compare_programs(layers(2), layers(2, other))).change, Change::kAlgorithm);
  const TestOp wide{.kernel_us = 150, .dims = "[[64, 96], [96, 64]]"};
  EXPECT_EQ(only_change(compare_programs(layers(2), layers(2, wide))).change, Change::kShapes);
}

TEST(Difference, an_added_layer_is_new_and_leaves_the_others_alone) {
  const Difference d = compare_programs(layers(4), layers(5));
  const WorkChange work = only_change(d);
  EXPECT_EQ(work.change, Change::kNew);
  EXPECT_EQ(work.module, "Linear_4");
  EXPECT_EQ(d.batch_ratio, 1);
}

TEST(Difference, sums_by_operator_and_module_have_both_sides_and_add_up) {
  TestProgram slow = layers(3);
  slow.ops[1].kernel_us = 180;
  slow.ops.push_back({.op = "aten::add", .kernel = "add", .kernel_us = 10});
  const Difference d = compare_programs(layers(3), slow);
  ASSERT_EQ(d.ops.size(), 2u);
  EXPECT_EQ(d.ops[0].name, "aten::mm");
  EXPECT_NEAR(d.ops[0].before_ns, 300'000, 1);
  EXPECT_NEAR(d.ops[0].after_ns, 380'000, 1);
  EXPECT_EQ(d.ops[0].calls_after, 3);
  EXPECT_EQ(d.ops[1].calls_before, 0);
  ASSERT_EQ(d.modules.size(), 4u) << "three layers, and outside of them";
  EXPECT_EQ(d.modules[0].name, "Linear_1");
  EXPECT_EQ(d.modules[1].name, "");
  double change_ns = 0;
  for (const SumChange& sum : d.modules) change_ns += sum.change_ns();
  EXPECT_NEAR(change_ns, d.gpu.after - d.gpu.before, 1);
  EXPECT_TRUE(compare_programs({.ops = {{}}}, {.ops = {{}}}).modules.empty()) << "no modules were recorded";
}

TEST(Difference, renamed_modules_are_the_same_work) {
  TestProgram renamed = layers(4);
  for (TestOp& op : renamed.ops) op.module = "block_" + op.module;
  const Difference d = compare_programs(layers(4), renamed);
  EXPECT_EQ(only_change(d).places, 0);
}

TEST(Difference, another_batch_size_is_compared_by_sample) {
  const TestOp twice{.kernel_us = 190, .dims = "[[128, 64], [64, 64]]"};
  const Difference d = compare_programs(layers(8), layers(8, twice));
  EXPECT_EQ(d.batch_ratio, 2);
  EXPECT_LT(d.step.ratio, 1);
  EXPECT_GT(d.step.ratio, 0.9);
  EXPECT_EQ(sum_of_parts(d), d.step_after_ns() - d.step_before_ns());
}

TEST(Difference, a_slower_loader_is_waiting_for_input) {
  TestProgram slow = layers(4);
  slow.input_us = 400;
  const Difference d = compare_programs(layers(4), slow);
  EXPECT_EQ(d.parts[0].part, Part::kInput);
  EXPECT_NE(d.reasons[0].text.find("waiting for input"), std::string::npos);
}

TEST(Difference, memory_comes_first_where_the_step_may_differ_by_chance) {
  compare::Run before = run_of(layers(4));
  compare::Run after = run_of(layers(4));
  before.has_memory = after.has_memory = true;
  before.peak_bytes = 1'000'000;
  after.peak_bytes = 1'500'000;
  after.parts[static_cast<size_t>(Part::kOperators)] += before.step_ns / 20;
  after.step_ns += before.step_ns / 20;
  const Difference d = compare_sides({before}, {after});
  ASSERT_EQ(d.reasons.size(), 2u);
  EXPECT_TRUE(d.reasons[0].text.starts_with("peak memory")) << d.reasons[0].text;
  after.parts[static_cast<size_t>(Part::kOperators)] += before.step_ns / 5;
  after.step_ns += before.step_ns / 5;
  EXPECT_FALSE(compare_sides({before}, {after}).reasons[0].text.starts_with("peak memory"));
}

TEST(Difference, memory_of_a_larger_batch_does_not_come_first) {
  compare::Run before = run_of(layers(8));
  compare::Run after = run_of(layers(8, {.kernel_us = 190, .dims = "[[128, 64], [64, 64]]"}));
  before.has_memory = after.has_memory = true;
  before.peak_bytes = 1'000'000;
  after.peak_bytes = 1'900'000;
  const Difference d = compare_sides({before}, {after});
  EXPECT_EQ(d.batch_ratio, 2);
  ASSERT_GT(d.reasons.size(), 1u);
  EXPECT_FALSE(d.reasons[0].text.starts_with("peak memory"));
}

TEST(Difference, a_commit_that_only_the_baseline_knows_is_no_change_of_the_environment) {
  compare::Run before = run_of(layers(2));
  compare::Run after = before;
  before.environment.emplace_back("commit", "abc");
  EXPECT_TRUE(compare_sides({before}, {after}).environment.empty());
  after.environment.emplace_back("commit", "def");
  EXPECT_EQ(compare_sides({before}, {after}).environment.size(), 1u);
}

TEST(Summary, flops_are_counted_by_the_precision_that_the_kernels_used) {
  const TestOp wide{.kernel = "sm90_xmma_gemm_bf16bf16_bf16f32", .dims = "[[512, 512], [512, 512]]"};
  TestProgram program = layers(2, wide);
  program.ops.push_back(
      {.kernel = "sgemm_fp32", .dims = "[[512, 512], [512, 512]]", .types = "[\"float\", \"float\"]"});
  const compare::Run run = run_of(program);
  ASSERT_EQ(run.precisions.size(), 2u);
  EXPECT_EQ(run.precisions[0].precision, "bf16");
  EXPECT_NEAR(run.precisions[0].flops, 2 * 2.0 * 512 * 512 * 512, 1);
  EXPECT_NEAR(run.precisions[0].device_ns, 200'000, 1);
  EXPECT_EQ(run.precisions[1].precision, "fp32");
  EXPECT_NEAR(combine({run, run}).precisions[0].flops, run.precisions[0].flops, 1);
}

TEST(Summary, of_several_runs_is_their_mean_also_for_what_is_not_always_known) {
  compare::Run slow = run_of(layers(2));
  compare::Run fast = slow;
  slow.mfu_percent = 10;
  fast.mfu_percent = 20;
  slow.energy_joules = 4;
  slow.step_ns *= 3;
  slow.parts[static_cast<size_t>(Part::kUneven)] += 2 * fast.step_ns;
  EXPECT_NEAR(combine({slow, fast}).mfu_percent, 12.5, 1e-9);
  EXPECT_EQ(combine({slow, fast}).energy_joules, -1);
}

TEST(Difference, modules_that_one_profiler_alone_records_do_not_make_work_new_or_gone) {
  TestProgram without = layers(4);
  for (TestOp& op : without.ops) op.module = "";
  for (const bool other_way : {false, true}) {
    const Difference d = other_way ? compare_programs(without, layers(4)) : compare_programs(layers(4), without);
    EXPECT_EQ(only_change(d).places, 0);
    ASSERT_EQ(d.work.size(), 1u);
    EXPECT_EQ(d.work[0].calls_before, 4);
    EXPECT_EQ(d.work[0].calls_after, 4);
  }
}

// torch.compile flattens: the first product has batch times tokens rows.
TEST(Difference, rows_of_a_matrix_are_not_taken_for_a_larger_batch_of_images) {
  TestProgram eager = layers(4);
  eager.ops[0].op = "aten::conv2d";
  eager.ops[0].dims = "[[8, 3, 32, 32], [64, 3, 4, 4]]";
  TestProgram compiled = eager;
  compiled.ops[0].op = "aten::addmm";
  compiled.ops[0].dims = "[[64], [512, 48], [48, 64]]";
  const Difference d = compare_programs(eager, compiled);
  EXPECT_EQ(d.batch_ratio, 1);
  EXPECT_NEAR(d.step.ratio, 1, 0.01);
}

TEST(Difference, several_runs_a_side_are_judged_and_averaged) {
  std::vector<compare::Run> before;
  std::vector<compare::Run> after;
  for (int i = 0; i < 4; ++i) {
    TestProgram program = layers(4);
    program.input_us = 10 + i;
    before.push_back(run_of(program));
    for (TestOp& op : program.ops) op.kernel_us = 120;
    after.push_back(run_of(program));
  }
  const Difference d = compare_sides(before, after);
  EXPECT_EQ(d.step.outcome, Outcome::kMore);
  EXPECT_EQ(d.step.method, Method::kPermutation);
  EXPECT_FALSE(d.within_run_only);
  EXPECT_NEAR(static_cast<double>(sum_of_parts(d)), static_cast<double>(d.step_after_ns() - d.step_before_ns()), 1);
  EXPECT_LT(d.work[0].p, 0.05);
}

TEST(Difference, one_run_a_side_has_a_range_of_its_steps_and_no_verdict) {
  const Difference d = compare_programs(layers(4), layers(5));
  EXPECT_EQ(d.step.outcome, Outcome::kInconclusive);
  EXPECT_TRUE(d.within_run_only);
  EXPECT_TRUE(d.step.has_range);
}

// Programs of tests/data whose difference is known, recorded on an H200 and on a CPU.
compare::Run run_of_file(const std::string& name) {
  Result<Model> model = importer::load_trace(std::string(FIRELANE_TEST_DATA) + "/" + name, {});
  EXPECT_TRUE(model.ok()) << name;
  const StudiedTrace trace(std::move(model).value());
  return summarize(trace);
}

struct Planted {
  const char* program;
  const char* reason;                // what the first reason says
  const char* file_after = nullptr;  // of pairs that share a first side
};

class PlantedDifference : public testing::TestWithParam<Planted> {};

TEST_P(PlantedDifference, is_named_first_and_the_parts_add_up) {
  const std::string name = GetParam().program;
  const bool is_pair = GetParam().file_after != nullptr;
  const Difference d = compare_sides({run_of_file(name + (is_pair ? ".lane" : ".fixed.lane"))},
                                     {run_of_file(is_pair ? GetParam().file_after : name + ".faulty.lane")});
  EXPECT_EQ(sum_of_parts(d), d.step_after_ns() - d.step_before_ns());
  ASSERT_FALSE(d.reasons.empty());
  EXPECT_NE(d.reasons[0].text.find(GetParam().reason), std::string::npos) << d.reasons[0].text;
}

INSTANTIATE_TEST_SUITE_P(
    All, PlantedDifference,
    testing::Values(
        Planted{"h200_faults/fp32-matmul", "runs in fp32 instead of tf32"},
        Planted{"h200_faults/launch-overhead", "launches a step instead of"},
        Planted{"h200_faults/dtype-ping-pong", "pointwise kernels: aten::copy_ is new"},
        Planted{"h200_faults/pageable-copies", "Pageable"}, Planted{"h200_faults/memory-near-limit", "peak memory"},
        Planted{"h200_faults/memory-leak", "peak memory"},
        Planted{"h200_pairs/unet-none", "runs in fp32 instead of bf16", "h200_pairs/unet-fp32_instead_of_bf16.lane"},
        Planted{"h200_pairs/vit-none", "8 synchronizing calls a step instead of 0", "h200_pairs/vit-a_sync.lane"},
        Planted{"h200_pairs/vit-none", "aten::add is new: 400 a step", "h200_pairs/vit-more_launches.lane"},
        Planted{"cpu_faults/input-bound", "waiting for input"}, Planted{"cpu_faults/gc-pauses", "garbage collection"},
        Planted{"cpu_faults/launch-overhead", "operators a step instead of"}),
    [](const auto& each) {
      std::string name = each.param.file_after != nullptr ? each.param.file_after : each.param.program;
      std::replace_if(name.begin(), name.end(), [](char c) { return c == '/' || c == '-' || c == '.'; }, '_');
      return name;
    });

}  // namespace
}  // namespace firelane::compare
