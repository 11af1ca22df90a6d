// Notes of the recorder become findings: compiled code, threads, other processes, what coincides with slow steps.
#include <gtest/gtest.h>

#include <initializer_list>
#include <utility>

#include "advise/diagnose.h"
#include "advise/testing.h"
#include "import/metadata.h"
#include "model/trace_builder.h"

namespace firelane::advise {
namespace {

using Notes = std::initializer_list<std::pair<std::string_view, std::string_view>>;

// Four steps of a CPU program; the third is slow on request.
Model program_with(const Notes& notes, bool slow_step = false) {
  TraceBuilder builder;
  double at = 0;
  for (int step = 0; step < 8; ++step) {
    const double from = at;
    for (int i = 0; i < 3; ++i, at += 600)
      builder.op(i == 1 ? "aten::mm" : "aten::relu", {.start_us = at, .end_us = at + 500});
    if (slow_step && step == 5) at += 9000;
    builder.step(step, {.start_us = from, .end_us = at});
  }
  for (const auto& [key, json] : notes) builder.metadata(key, json);
  Model model = builder.build();
  importer::interpret_metadata(model.info);
  return model;
}

std::string title_of(const Model& model, std::string_view id) {
  const Judged judged = diagnose(model);
  const Finding* finding = find(judged, id);
  return finding == nullptr ? "" : finding->title;
}

TEST(Compile, breaks_and_recompilations_are_told_with_dynamos_reason) {
  const Model model = program_with({{"compile_frames", "4"},
                                    {"compile_graphs", "3"},
                                    {"compile_graph_breaks", "2"},
                                    {"compile_break_reason", "\"Unsupported: print\""},
                                    {"compile_recompiles", "5"},
                                    {"compile_recompiled", "\"train.py:12 forward\""},
                                    {"compile_recompile_reason", "\"n == 3\""},
                                    {"compile_seconds", "75.0"}});
  EXPECT_EQ(title_of(model, "graph-breaks"),
            "torch.compile broke its graph at 2 places, into 3 graphs; most often: Unsupported: print");
  EXPECT_EQ(title_of(model, "recompilations"),
            "torch.compile compiled the same code again 5 times, last train.py:12 forward, because of n == 3");
  EXPECT_NE(title_of(model, "compile-cold-start"), "");
}

TEST(Compile, a_function_that_dynamo_gave_up_on_comes_first_where_nothing_is_compiled) {
  const Model model = program_with({{"compile_frames", "5"},
                                    {"compile_graphs", "0"},
                                    {"compile_failed", "1"},
                                    {"compile_failed_at", "\"net.py:7 forward\""},
                                    {"compile_fail_reason", "\"Unsupported Tensor.item() call\""}});
  const Judged judged = diagnose(model);
  ASSERT_FALSE(judged.findings.empty());
  EXPECT_EQ(judged.findings[0].title,
            "torch.compile gave up on 1 function, first net.py:7 forward, and it runs uncompiled: nothing is compiled; "
            "why: Unsupported Tensor.item() call");
  for (const Finding& finding : judged.findings) {
    EXPECT_EQ(finding.try_code.find("model = torch.compile(model)"), std::string::npos) << finding.id;
  }
  EXPECT_EQ(title_of(program_with({{"compile_frames", "5"}, {"compile_graphs", "5"}, {"compile_failed", "0"}}),
                     "graph-breaks"),
            "");
}

TEST(Compile, cuda_graphs_that_were_asked_for_and_left_out_are_counted) {
  EXPECT_TRUE(title_of(program_with({{"compile_cudagraph_skips", "2"}}), "cuda-graphs-skipped")
                  .starts_with("torch.compile was asked for CUDA graphs and skipped them for 2 graphs"));
}

TEST(Compile, code_that_compiled_in_one_piece_has_no_findings) {
  const Model model = program_with({{"compile_frames", "1"},
                                    {"compile_graphs", "1"},
                                    {"compile_graph_breaks", "0"},
                                    {"compile_recompiles", "0"},
                                    {"compile_cudagraph_skips", "0"},
                                    {"compile_seconds", "3.5"}});
  for (const auto* id : {"graph-breaks", "recompilations", "compile-cold-start", "cuda-graphs-skipped"}) {
    EXPECT_EQ(title_of(model, id), "");
  }
}

TEST(Oversubscription, counts_the_threads_of_all_ranks_against_the_cores) {
  const Notes two_cores = {{"machine", R"({"cores":64,"cores_allowed":2})"}, {"torch", R"({"threads":2})"}};
  EXPECT_EQ(title_of(program_with(two_cores), "cpu-oversubscription"), "");
  EXPECT_NE(title_of(program_with({{"machine", R"({"cores_allowed":2})"}, {"torch", R"({"threads":16})"}}),
                     "cpu-oversubscription")
                .find("16 threads on 2 cores"),
            std::string::npos);
  EXPECT_NE(
      title_of(program_with(
                   {{"machine", R"({"cores_allowed":8})"}, {"torch", R"({"threads":4})"}, {"local_world_size", "4"}}),
               "cpu-oversubscription")
          .find("4 ranks with 4 threads each"),
      std::string::npos);
}

TEST(Oversubscription, of_a_container_names_its_cpu_limit) {
  const Notes limited = {{"machine", R"({"cores":64,"cores_allowed":2,"cpu_quota":1.5})"},
                         {"torch", R"({"threads":32})"}};
  EXPECT_EQ(
      title_of(program_with(limited), "cpu-oversubscription"),
      "torch computes with 32 threads on 2 cores (the container's CPU limit): operators wait for threads that have no "
      "core");
}

TEST(BusyMachine, is_said_when_others_leave_no_core_free) {
  const auto with = [](std::string_view own, std::string_view others) {
    return title_of(
        program_with({{"machine", R"({"cores":4})"}, {"cores_used", own}, {"cores_used_by_others", others}}),
        "busy-machine");
  };
  EXPECT_NE(with("1.0", "2.9").find("72% of the machine's cores"), std::string::npos) << with("1.0", "2.9");
  EXPECT_EQ(with("1.0", "1.0"), "") << "two cores are free";
  EXPECT_EQ(with("3.9", "0.1"), "") << "the program itself uses them";
}

TEST(BusyMachine, is_not_said_where_no_step_waited_for_a_core) {
  const auto with = [](double waited_us) {
    TraceBuilder builder;
    double at = 0;
    for (int step = 0; step < 8; ++step, at += 1000) {
      builder.op("aten::mm", {.start_us = at, .end_us = at + 900});
      builder.step(step, {.start_us = at, .end_us = at + 1000});
      builder.timed_step(step,
                         {.start_us = at, .end_us = at + 1000, .ran_us = 1000 - waited_us, .waited_us = waited_us});
    }
    builder.metadata("machine", R"({"cores":4})").metadata("cores_used", "1.0").metadata("cores_used_by_others", "2.9");
    Model model = builder.build();
    importer::interpret_metadata(model.info);
    return title_of(model, "busy-machine");
  };
  EXPECT_EQ(with(5), "");
  EXPECT_NE(with(300).find("waited 3"), std::string::npos) << with(300);
}

// An operator that two threads compute takes as long as the one that has to wait for a core: the optimizer was told to
// be slow.
TEST(BusyMachine, that_stalls_the_threads_of_operators_comes_first_and_no_other_finding_is_sure) {
  const auto with = [](std::string_view threads) {
    TraceBuilder builder;
    double at = 0;
    for (int step = 0; step < 8; ++step, at += 1000) {
      builder.op("Optimizer.step#Adam.step", {.start_us = at + 100, .end_us = at + 990});
      for (int i = 0; i < 80; ++i)
        builder.op("aten::addcdiv_", {.start_us = at + 101 + i * 11, .end_us = at + 111 + i * 11});
      builder.step(step, {.start_us = at, .end_us = at + 1000});
      builder.timed_step(step, {.start_us = at, .end_us = at + 1000, .ran_us = 400, .waited_us = 600});
    }
    builder.metadata("machine", R"({"cores":2,"cores_allowed":2})").metadata("torch", threads);
    builder.metadata("cores_used", "1.0").metadata("cores_used_by_others", "1.2");
    Model model = builder.build();
    importer::interpret_metadata(model.info);
    return diagnose(model);
  };
  const Judged stalled = with(R"({"threads":2})");
  ASSERT_GT(stalled.findings.size(), 1U);
  EXPECT_EQ(stalled.findings[0].id, "busy-machine");
  EXPECT_EQ(stalled.findings[0].try_code, "torch.set_num_threads(1)  # or OMP_NUM_THREADS, before the program starts");
  EXPECT_EQ(stalled.findings[1].confidence, Confidence::kLow);
  const Judged single = with(R"({"threads":1})");
  ASSERT_FALSE(single.findings.empty());
  EXPECT_NE(single.findings[0].id, "busy-machine") << "one thread waits for itself alone";
}

TEST(Throttling, a_clock_below_what_the_device_had_is_told_where_the_device_is_busy) {
  const auto title = [](double mhz_in_steps, double kernel_us) {
    TraceBuilder builder;
    builder.counter("GPU 0 SM clock (MHz)", 1, 1980);
    double at = 1000;
    for (int step = 0; step < 8; ++step, at += 1000) {
      builder.op("aten::mm", {.start_us = at, .end_us = at + 20});
      builder.call("cudaLaunchKernel", {.start_us = at + 5, .end_us = at + 9, .correlation = step + 1});
      builder.kernel("gemm", {.start_us = at + 12, .end_us = at + 12 + kernel_us, .correlation = step + 1});
      builder.counter("GPU 0 SM clock (MHz)", at + 100, mhz_in_steps);
      builder.counter("GPU 0 power (W)", at + 100, 700);
      builder.step(step, {.start_us = at, .end_us = at + 1000});
    }
    return title_of(builder.build(), "clocks-throttled");
  };
  EXPECT_EQ(title(1200, 900), "the device runs at 1200 MHz, and has run at 1980 MHz in this trace; it takes 700 W");
  EXPECT_EQ(title(1950, 900), "") << "nearly as high";
  EXPECT_EQ(title(1200, 50), "") << "an idle device lowers its clock";
}

TEST(SlowSteps, what_coincides_with_them_is_named) {
  EXPECT_NE(
      title_of(program_with({{"steps_with_checkpoint", "[5]"}}, true), "slow-steps").find("checkpoint is written"),
      std::string::npos);
  EXPECT_EQ(title_of(program_with({{"steps_with_checkpoint", "[2, 3, 4]"}}, true), "slow-steps").find("checkpoint"),
            std::string::npos)
      << "in other steps";
  EXPECT_EQ(title_of(program_with({{"steps_with_checkpoint", "[5]"}}), "slow-steps"), "") << "no step is slow";
}

}  // namespace
}  // namespace firelane::advise
