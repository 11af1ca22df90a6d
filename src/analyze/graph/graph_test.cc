#include "analyze/graph/graph.h"

#include <gtest/gtest.h>

#include "analyze/testing.h"
#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

// One step of 100 us: a kernel launched at 10 runs 20..50, another launched at 15 runs 51..71.
TraceBuilder two_queued_kernels() {
  TraceBuilder builder;
  builder.step(1, {.start_us = 0, .end_us = 100})
      .call("cudaLaunchKernel", {.start_us = 10, .end_us = 13, .correlation = 1})
      .call("cudaLaunchKernel", {.start_us = 15, .end_us = 18, .correlation = 2})
      .kernel("a", {.start_us = 20, .end_us = 50, .correlation = 1})
      .kernel("b", {.start_us = 51, .end_us = 71, .correlation = 2});
  return builder;
}

TEST(Graph, first_kernel_waits_for_its_launch_and_the_next_for_the_stream) {
  const Study s = study(two_queued_kernels().build());
  EXPECT_EQ(binding(s, 0).kind, EdgeKind::kLaunch);
  EXPECT_EQ(binding(s, 0).lag_ns, 10'000);
  EXPECT_EQ(binding(s, 1).kind, EdgeKind::kStream);
  EXPECT_EQ(binding(s, 1).lag_ns, 1'000);
}

TEST(Graph, a_host_bound_step_gains_nothing_from_faster_kernels) {
  const Study s = study(two_queued_kernels().build());
  EXPECT_EQ(replayed_us(s, {}), 100);
  EXPECT_EQ(replayed_us(s, {.keep_kernels = 0.5}), 100);
  EXPECT_EQ(replayed_us(s, {.keep_host = 0.5}), 66);  // launch at 5, start at 15, 30 + 1 + 20 us of work
}

TEST(Graph, a_cold_first_launch_before_the_steps_is_no_latency_that_a_faster_host_leaves) {
  // Each launch takes 10 us to its kernel of 5 us, but for the first, whose call loads a module for 400 us.
  TraceBuilder builder;
  builder.call("cudaLaunchKernel", {.start_us = 0, .end_us = 408, .correlation = 100})
      .kernel("a", {.start_us = 410, .end_us = 415, .correlation = 100});
  for (int i = 0; i < 4; ++i) {
    const double at = 440 + 50.0 * i;
    builder.step(i, {.start_us = at, .end_us = at + 50})
        .call("cudaLaunchKernel", {.start_us = at + 30, .end_us = at + 36, .correlation = i})
        .kernel("a", {.start_us = at + 40, .end_us = at + 45, .correlation = i});
  }
  const Study s = study(builder.build());
  EXPECT_EQ(replayed_us(s, {}), 200);
  EXPECT_EQ(replayed_us(s, {.keep_host = 0.5}), 105);  // steps from 220 to 320; the last kernel is launched at 310
}

TEST(Graph, thousands_of_short_python_functions_are_not_all_recording) {
  // A step of 100 us, of which 200 functions that call nothing take 80.
  TraceBuilder builder;
  builder.step(1, {.start_us = 0, .end_us = 100}).python("tokens_of", {.start_us = 5, .end_us = 90});
  for (int i = 0; i < 200; ++i) {
    builder.python("<method 'get' of 'dict' objects>", {.start_us = 6 + 0.4 * i, .end_us = 6.3 + 0.4 * i});
  }
  const Model model = builder.build();
  const Study s = study(model);
  const Graph graph = build_graph(model, *s.host, s.steps, {.python = 1'000});
  const int64_t left_ns = replay(graph, {}, {.recording_removed = 1}).total_ns();
  EXPECT_NEAR(static_cast<double>(left_ns), 100e3 - 1e3 - 0.6 * 80e3, 1e3) << "1 us for tokens_of itself";
}

TEST(Graph, a_stretch_of_months_that_no_double_holds_is_replayed_to_the_ns) {
  // 2^53 + 1 ns are 104 days.
  Model model = TraceBuilder().op("a", {.start_us = 0, .end_us = 1}).op("b", {.start_us = 2, .end_us = 3}).build();
  model.host_slices.duration_ns[1] = (int64_t{1} << 53) + 1;
  model.info.duration_ns = model.host_slices.end_ns(1);
  EXPECT_EQ(study(model).recorded.total_ns(), model.info.duration_ns);
}

TEST(Graph, a_wait_ties_the_host_to_the_device) {
  // Launch at 10, kernel 15..75, wait 20..78, another 22 us of host: 100.
  TraceBuilder builder;
  builder.step(1, {.start_us = 0, .end_us = 100})
      .call("cudaLaunchKernel", {.start_us = 10, .end_us = 13, .correlation = 1})
      .kernel("a", {.start_us = 15, .end_us = 75, .correlation = 1})
      .call("cudaDeviceSynchronize", {.start_us = 20, .end_us = 78, .correlation = 2});
  const Study s = study(builder.build());
  EXPECT_EQ(replayed_us(s, {.keep_kernels = 0.5}), 70);  // kernel 15..45, return at 48, 22 more
  ASSERT_EQ(s.syncs.rows.size(), 1u);
  EXPECT_EQ(s.syncs.rows[0].waited_ns, 55'000);
  EXPECT_EQ(s.syncs.rows[0].duration_ns, 58'000);
  // Without the wait the host is done at 20 + 5 + 22; the kernel then ends last.
  EXPECT_EQ(replayed_us(s, {.waits = {s.syncs.rows[0].call}}), 75);
}

TEST(Graph, a_copy_call_that_outlasts_its_copy_waits_for_it) {
  TraceBuilder builder;
  builder.step(1, {.start_us = 0, .end_us = 100})
      .op("aten::copy_", {.start_us = 5, .end_us = 70})
      .call("cudaMemcpyAsync", {.start_us = 10, .end_us = 65, .correlation = 1})
      .copy("Memcpy HtoD (Pageable -> Device)", {.start_us = 20, .end_us = 60, .correlation = 1});
  const Study s = study(builder.build());
  ASSERT_EQ(s.syncs.rows.size(), 1u);
  EXPECT_EQ(s.syncs.rows[0].reason, SyncReason::kPageableCopy);
  EXPECT_EQ(replayed_us(s, {.keep_copies = 0}), 60);
}

TEST(Graph, an_asynchronous_copy_call_does_not_wait) {
  TraceBuilder builder;
  builder.step(1, {.start_us = 0, .end_us = 100})
      .call("cudaMemcpyAsync", {.start_us = 10, .end_us = 14, .correlation = 1})
      .copy("Memcpy HtoD (Pinned -> Device)", {.start_us = 20, .end_us = 60, .correlation = 1});
  EXPECT_TRUE(study(builder.build()).syncs.rows.empty());
}

// A gather of one rank: the first call was held up for 0.7 ms while CUPTI asked for a buffer.
TEST(Graph, a_copy_within_the_device_whose_call_was_held_up_is_no_wait_for_the_cpu) {
  for (const char* copy : {"Memcpy DtoD (Device -> Device)", "Memcpy HtoD (Pinned -> Device)"}) {
    TraceBuilder builder;
    builder.step(1, {.start_us = 0, .end_us = 1000})
        .op("c10d::_allgather_base_", {.start_us = 5, .end_us = 800})
        .call("cudaMemcpyAsync", {.start_us = 10, .end_us = 734, .correlation = 1})
        .copy(copy, {.start_us = 60, .end_us = 62, .correlation = 1});
    EXPECT_TRUE(study(builder.build()).syncs.rows.empty()) << copy;
  }
}

TEST(Graph, a_late_start_right_after_another_stream_is_a_wait_for_it) {
  // b was launched at 12 on an idle stream, yet starts at 81, when a on the other stream has ended.
  TraceBuilder builder;
  builder.step(1, {.start_us = 0, .end_us = 120})
      .call("cudaLaunchKernel", {.start_us = 10, .end_us = 11, .correlation = 1})
      .call("cudaLaunchKernel", {.start_us = 12, .end_us = 13, .correlation = 2})
      .kernel("a", {.start_us = 15, .end_us = 80, .stream = 7, .correlation = 1})
      .kernel("b", {.start_us = 81, .end_us = 110, .stream = 8, .correlation = 2});
  const Study s = study(builder.build());
  EXPECT_EQ(s.graph.inferred_waits, 1);
  EXPECT_EQ(binding(s, 1).kind, EdgeKind::kOtherStream);
  EXPECT_EQ(s.idle.by_cause[static_cast<size_t>(IdleCause::kOtherStream)], 1'000);
}

TEST(Graph, the_backward_thread_belongs_to_the_chain_that_waits_for_it) {
  TraceBuilder builder;
  builder.step(1, {.start_us = 0, .end_us = 100})
      .op("aten::mm", {.start_us = 0, .end_us = 20, .thread = 1})
      .op("MmBackward0", {.start_us = 30, .end_us = 80, .thread = 2})
      .call("cudaLaunchKernel", {.start_us = 40, .end_us = 45, .thread = 2, .correlation = 1})
      .kernel("k", {.start_us = 50, .end_us = 60, .correlation = 1})
      .op("aten::add_", {.start_us = 85, .end_us = 95, .thread = 1});
  const Study s = study(builder.build());
  ASSERT_EQ(s.host->chains.size(), 1u);
  EXPECT_EQ(s.host->chains[0].lanes.size(), 2u);
  const ActivityTimes& host = s.breakdown.total.host;
  EXPECT_EQ(host[static_cast<size_t>(Activity::kOp)], 20'000 + 45'000 + 10'000);
  EXPECT_EQ(host[static_cast<size_t>(Activity::kLaunch)], 5'000);
  EXPECT_EQ(host[static_cast<size_t>(Activity::kUnrecorded)], 20'000);
}

TEST(Graph, threads_that_work_at_once_are_chains_of_their_own) {
  TraceBuilder builder;
  for (int i = 0; i < 10; ++i) {
    const double at = 10.0 * i;
    builder.op("aten::mm", {.start_us = at, .end_us = at + 9, .thread = 1});
    builder.op("aten::mm", {.start_us = at, .end_us = at + 9, .thread = 2});
    builder.call("cudaLaunchKernel", {.start_us = at + 1, .end_us = at + 2, .thread = 1, .correlation = 2 * i + 1});
    builder.call("cudaLaunchKernel", {.start_us = at + 1, .end_us = at + 2, .thread = 2, .correlation = 2 * i + 2});
    builder.kernel("k", {.start_us = at + 5, .end_us = at + 6, .stream = 7, .correlation = 2 * i + 1});
    builder.kernel("k", {.start_us = at + 5, .end_us = at + 6, .stream = 8, .correlation = 2 * i + 2});
  }
  EXPECT_EQ(study(builder.build()).host->chains.size(), 2u);
}

TEST(Graph, a_device_bound_window_does_not_pay_for_the_work_before_it) {
  // The device does 100 us of work per 10 us step; the work of the step before still runs at the start.
  TraceBuilder builder;
  for (int i = 0; i < 3; ++i) {
    builder.call("cudaLaunchKernel", {.start_us = 10.0 * i + 2, .end_us = 10.0 * i + 3, .correlation = i + 1});
    builder.kernel("gemm", {.start_us = 10 + 100.0 * i, .end_us = 110 + 100.0 * i, .correlation = i + 1});
  }
  builder.step(1, {.start_us = 10, .end_us = 20}).step(2, {.start_us = 20, .end_us = 30});
  const Study s = study(builder.build());
  EXPECT_EQ(s.steps.judged, 2);
  EXPECT_EQ(s.undone.recorded_ns, 100'000);  // 110..310 for two steps
  EXPECT_EQ(s.bound.limit, Limit::kCompute);
}

TEST(Graph, kernels_of_one_graph_launch_depend_on_one_call) {
  TraceBuilder builder;
  builder.step(1, {.start_us = 0, .end_us = 100})
      .call("cudaGraphLaunch", {.start_us = 10, .end_us = 20, .correlation = 1})
      .kernel("a", {.start_us = 25, .end_us = 40, .correlation = 1, .graph_id = 3})
      .kernel("b", {.start_us = 42, .end_us = 50, .correlation = 1, .graph_id = 3});
  const Study s = study(builder.build());
  EXPECT_EQ(binding(s, 0).kind, EdgeKind::kLaunch);
  EXPECT_EQ(binding(s, 1).kind, EdgeKind::kStream);
  EXPECT_EQ(s.launches.calls, 1);
  EXPECT_EQ(s.launches.work, 2);
  EXPECT_EQ(s.breakdown.total.compute_ns, 23'000);
}

TEST(Graph, a_cut_of_host_time_moves_what_comes_after) {
  const Study s = study(two_queued_kernels().build());
  const LaneId lane = s.host->chains[0].lanes[0];
  EXPECT_EQ(replayed_us(s, {.host = {{lane, 30'000, 90'000, 0}}}), 71);     // host done at 40, device at 71
  EXPECT_EQ(replayed_us(s, {.host = {{lane, 90'000, 100'000, 0.5}}}), 95);  // half of 10 us
  EXPECT_EQ(replayed_us(s, {.host = {{lane, 80'000, 95'000, 0}, {lane, 90'000, 100'000, 0}}}), 80);  // 20 us once
}

// Steps of 100 us on the host, each launching 60 us of work at its end: the last kernel ends 55 us after the host.
TEST(Graph, a_window_among_others_does_not_pay_for_a_queue_that_runs_empty) {
  TraceBuilder builder;
  for (int i = 0; i < 2; ++i) {
    const double at = 100.0 * i;
    builder.step(i, {.start_us = at, .end_us = at + 100});
    builder.call("cudaLaunchKernel", {.start_us = at + 90, .end_us = at + 92, .correlation = i + 1});
    builder.kernel("gemm", {.start_us = at + 95, .end_us = at + 155, .correlation = i + 1});
  }
  const Study s = study(builder.build());
  EXPECT_EQ(replay(s.graph, {}, {.recording_removed = 0}).total_ns(), 255'000);
  const ReplayOptions repeated{.recording_removed = 0, .repeated = true};
  EXPECT_EQ(replay(s.graph, {}, repeated).total_ns(), 200'000);
  const int64_t device_bound = replay(s.graph, {.keep_host = 0.1}, repeated).total_ns();
  EXPECT_NEAR(static_cast<double>(device_bound), 120'000, 3'000) << "two kernels, and the gaps between them";
}

TEST(Graph, the_length_alone_is_that_of_the_whole_replay) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const Model model = random_trace(seed);
    const Study s = study(model);
    if (s.graph.window_start == kNoNode) continue;
    WhatIf change;
    const LaneId lane = s.host->chains[0].lanes[0];
    change.host.push_back({lane, s.steps.window.start_ns, s.steps.window.start_ns + 20'000, 0.3});
    for (Row row = 0; row < model.device_slices.size(); row += 3) change.device.push_back({row, 0.5});
    for (const SyncRow& sync : s.syncs.rows) change.waits.push_back(sync.call);
    const WhatIf faster_host{.keep_host = 0.5, .keep_latency = 0.5};
    for (const double removed : {0.0, 0.7, 1.0}) {
      const ReplayOptions options{.recording_removed = removed, .repeated = seed % 2 == 0};
      const Replay unchanged = replay(s.graph, {}, options);
      for (const WhatIf& each : {WhatIf{}, change, faster_host}) {
        const int64_t whole = replay(s.graph, each, options).total_ns();
        EXPECT_EQ(replay_total_ns(s.graph, each, options), whole) << seed;
        EXPECT_EQ(replay_total_ns(s.graph, each, options, &unchanged), whole) << seed;
      }
    }
  }
}

// As the convolutions of a library do that has streams of its own.
TEST(Graph, work_that_starts_beside_other_work_long_after_its_launch_waited_for_the_device) {
  TraceBuilder builder;
  builder.step(1, {.start_us = 0, .end_us = 1000})
      .call("cudaLaunchKernel", {.start_us = 1, .end_us = 3, .correlation = 1})
      .call("cudaLaunchKernel", {.start_us = 4, .end_us = 6, .correlation = 2})
      .kernel("long", {.start_us = 5, .end_us = 900, .stream = 7, .correlation = 1})
      .kernel("late", {.start_us = 800, .end_us = 950, .stream = 8, .correlation = 2});
  const Study s = study(builder.build());
  EXPECT_EQ(binding(s, 1).kind, EdgeKind::kOtherStream);
  EXPECT_EQ(s.graph.inferred_waits, 1);
}

TEST(Graph, what_recording_added_to_a_stretch_is_not_gained_again_by_cutting_it) {
  // On the CPU a step is one stretch: 500 us without any event, then 100 ops in 500 us. torch.profiler's ops are taken
  // to cost 392 ns each: 39.2 us of the second half.
  TraceBuilder builder;
  builder.step(1, {.start_us = 0, .end_us = 1000});
  for (int k = 0; k < 100; ++k) builder.op("aten::add", {.start_us = 500 + 5.0 * k, .end_us = 504 + 5.0 * k});
  const Model model = builder.build();
  const Study s = study(model);
  const LaneId lane = s.host->chains[0].lanes[0];
  const int64_t mark_ns = 392;  // of the step itself, at its start
  EXPECT_EQ(s.undone.step_ns, 1'000'000 - 39'200 - mark_ns);
  EXPECT_EQ(s.gain_ns({.host = {{lane, 100'000, 500'000, 0}}}), 400'000);
  EXPECT_EQ(s.gain_ns({.host = {{lane, 500'000, 1'000'000, 0}}}), 500'000 - 39'200);
  EXPECT_EQ(s.gain_ns({.host = {{lane, 500'000, 1'000'000, 0.5}}}), (500'000 - 39'200) / 2);
}

}  // namespace
}  // namespace firelane::analyze
