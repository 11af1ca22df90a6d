#include "traces/studied_trace.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <new>
#include <thread>

#include "model/trace_builder.h"

namespace firelane {
namespace {

Model two_ops() {
  return TraceBuilder()
      .op("aten::mm", {.start_us = 0, .end_us = 20})
      .op("aten::add", {.start_us = 20, .end_us = 30})
      .build();
}

std::atomic<int> counted = 0;

size_t count_slices(const Model& model) {
  ++counted;
  return model.host_slices.size();
}

struct LongerThan {
  int64_t ns = 0;
  bool operator==(const LongerThan&) const = default;
};

size_t count_longer(const Model& model, const LongerThan& options) {
  ++counted;
  size_t count = 0;
  for (const int64_t ns : model.host_slices.duration_ns) count += ns > options.ns ? 1 : 0;
  return count;
}

// An analysis of another analysis.
double share_longer(const StudiedTrace& trace, const LongerThan& options) {
  return static_cast<double>(trace.get<count_longer>(options)) / static_cast<double>(trace.get<count_slices>());
}

TEST(StudiedTrace, computes_each_analysis_once_and_keeps_it) {
  const StudiedTrace trace(two_ops());
  counted = 0;
  const size_t& first = trace.get<count_slices>();
  EXPECT_EQ(first, 2u);
  EXPECT_EQ(&trace.get<count_slices>(), &first);
  EXPECT_EQ(counted, 1);
}

TEST(StudiedTrace, keeps_one_result_for_each_set_of_options) {
  const StudiedTrace trace(two_ops());
  counted = 0;
  EXPECT_EQ(trace.get<count_longer>({.ns = 10'000}), 1u);
  EXPECT_EQ(trace.get<count_longer>({.ns = 5'000}), 2u);
  EXPECT_EQ(trace.get<count_longer>({.ns = 10'000}), 1u);
  EXPECT_EQ(trace.get<count_longer>(), 2u);
  EXPECT_EQ(counted, 3);
}

TEST(StudiedTrace, an_analysis_that_builds_on_others_shares_them) {
  const StudiedTrace trace(two_ops());
  counted = 0;
  EXPECT_EQ(trace.get<count_slices>(), 2u);
  EXPECT_EQ(trace.get<share_longer>({.ns = 10'000}), 0.5);
  EXPECT_EQ(trace.get<count_longer>({.ns = 10'000}), 1u);
  EXPECT_EQ(counted, 2);
}

TEST(StudiedTrace, threads_that_ask_at_once_get_the_same_result) {
  constexpr int kThreads = 8;
  const StudiedTrace trace(two_ops());
  counted = 0;
  std::barrier start(kThreads);
  std::vector<const double*> seen(kThreads);
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        start.arrive_and_wait();
        trace.get<count_longer>({.ns = static_cast<int64_t>(i)});
        seen[i] = &trace.get<share_longer>({.ns = 10'000});
      });
    }
  }
  for (const double* each : seen) EXPECT_EQ(each, seen[0]);
  EXPECT_EQ(counted, kThreads + 2);  // each thread's own, then count_slices and count_longer once
}

std::atomic<int> failures_left = 0;

int out_of_memory_at_first(const Model&) {
  if (failures_left-- > 0) throw std::bad_alloc();
  return 7;
}

TEST(StudiedTrace, an_analysis_that_ran_out_of_memory_is_tried_again) {
  const StudiedTrace trace(two_ops());
  failures_left = 2;
  EXPECT_THROW(trace.get<out_of_memory_at_first>(), std::bad_alloc);
  EXPECT_THROW(trace.get<out_of_memory_at_first>(), std::bad_alloc);
  EXPECT_EQ(trace.get<out_of_memory_at_first>(), 7);
}

}  // namespace
}  // namespace firelane
