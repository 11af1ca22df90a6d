#include "analyze/common/self_time.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

// Self time by name of the slices of the only thread that `pick` wants.
template <typename Pick>
std::map<std::string, int64_t> self_us(const Model& model, const Interval& range, const Pick& pick) {
  std::map<Row, int64_t> self;
  sweep_lane(model, LaneId{0}, range, pick, [&](const SweptSlice& slice) {
    self[slice.row] += slice.part.end_ns - slice.part.start_ns;
    if (slice.around != kNoRow) self[slice.around] -= slice.covers_ns;
  });
  std::map<std::string, int64_t> out;
  for (const auto& [row, ns] : self) out[std::string(model.text(model.host_slices.name[row]))] += ns / 1000;
  return out;
}

const auto kAllRows = [](Row) { return true; };
using Times = std::map<std::string, int64_t>;

TEST(SelfTime, time_inside_of_children_is_not_the_parents) {
  const Model model = TraceBuilder()
                          .op("outer", {.start_us = 0, .end_us = 100})
                          .op("a", {.start_us = 10, .end_us = 40})
                          .op("leaf", {.start_us = 20, .end_us = 25})
                          .op("b", {.start_us = 50, .end_us = 60})
                          .build();
  EXPECT_EQ(self_us(model, kAllTime, kAllRows), (Times{{"outer", 60}, {"a", 25}, {"leaf", 5}, {"b", 10}}));
}

TEST(SelfTime, slices_that_overlap_cover_a_moment_once) {
  const Model model = TraceBuilder()
                          .op("outer", {.start_us = 0, .end_us = 100})
                          .op("a", {.start_us = 10, .end_us = 40})
                          .op("b", {.start_us = 30, .end_us = 60})
                          .build();
  EXPECT_EQ(self_us(model, kAllTime, kAllRows), (Times{{"outer", 50}, {"a", 30}, {"b", 30}}));
}

TEST(SelfTime, what_lies_in_an_unwanted_slice_belongs_to_the_one_around_it) {
  const Model model = TraceBuilder()
                          .op("outer", {.start_us = 0, .end_us = 100})
                          .call("cudaLaunchKernel", {.start_us = 10, .end_us = 50})
                          .op("inner", {.start_us = 20, .end_us = 30})
                          .build();
  const auto ops = [&](Row row) { return model.host_slices.kind[row] == HostKind::kOp; };
  EXPECT_EQ(self_us(model, kAllTime, ops), (Times{{"outer", 90}, {"inner", 10}}));
}

TEST(SelfTime, only_the_part_in_the_range_counts) {
  const Model model = TraceBuilder()
                          .op("before", {.start_us = 0, .end_us = 10})
                          .op("outer", {.start_us = 10, .end_us = 100})
                          .op("a", {.start_us = 20, .end_us = 60})
                          .op("late", {.start_us = 90, .end_us = 95})
                          .build();
  EXPECT_EQ(self_us(model, {50'000, 90'000}, kAllRows), (Times{{"outer", 30}, {"a", 10}}));
}

}  // namespace
}  // namespace firelane::analyze
