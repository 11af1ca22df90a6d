// Hardware counters of a trace, as they were sampled every 100 us.
#include "analyze/device/hardware_metrics.h"

#include <gtest/gtest.h>

#include <string>

#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

constexpr const char* kSm = "sm__cycles_active.avg.pct_of_peak_sustained_elapsed";
constexpr const char* kRead = "dram__bytes_read.avg.pct_of_peak_sustained_elapsed";
constexpr const char* kWrite = "dram__bytes_write.avg.pct_of_peak_sustained_elapsed";
constexpr const char* kDram = "dram__throughput.avg.pct_of_peak_sustained_elapsed";

UnitUse use_while(const Model& model, std::vector<Interval> busy_us) {
  for (Interval& each : busy_us) each = {each.start_ns * 1000, each.end_ns * 1000};
  return HardwareMetrics(model).use_while(IntervalSet(std::move(busy_us)));
}

TEST(HardwareMetrics, reads_and_writes_of_memory_add_up) {
  TraceBuilder builder;
  for (const double at : {0.0, 100.0, 200.0}) builder.gpu_counter(0, kRead, at, 50).gpu_counter(0, kWrite, at, 30);
  const UnitUse use = use_while(builder.build(), {{0, 300}});
  EXPECT_DOUBLE_EQ(use.of(HardwareUnit::kDram), 80);
  EXPECT_EQ(use.of(HardwareUnit::kTensor), -1);
  EXPECT_EQ(use.sampled_ns, 300'000);
}

TEST(HardwareMetrics, idle_time_inside_a_sample_does_not_count) {
  TraceBuilder builder;
  builder.gpu_counter(0, kSm, 0, 25).gpu_counter(0, kSm, 100, 50).gpu_counter(0, kSm, 200, 0);
  EXPECT_DOUBLE_EQ(use_while(builder.build(), {{0, 25}, {150, 200}}).of(HardwareUnit::kSm), 100);
}

TEST(HardwareMetrics, a_sample_before_a_pause_does_not_reach_across_it) {
  TraceBuilder builder;
  for (const double at : {0.0, 100.0, 200.0, 5000.0, 5100.0}) builder.gpu_counter(0, kSm, at, 90);
  const Model model = builder.build();
  EXPECT_DOUBLE_EQ(use_while(model, {{0, 300}}).of(HardwareUnit::kSm), 90);
  EXPECT_FALSE(use_while(model, {{300, 5000}}).is_known());
  EXPECT_FALSE(use_while(model, {{200, 1000}}).is_known());  // most of it was not sampled
}

TEST(HardwareMetrics, other_counters_and_other_units_say_nothing) {
  TraceBuilder builder;
  builder.counter(kSm, 0, 90).counter(kSm, 100, 90);  // not under a GPU
  for (const double at : {0.0, 100.0}) builder.gpu_counter(0, "sm__cycles_active.avg", at, 1e6);
  EXPECT_TRUE(HardwareMetrics(builder.build()).devices().empty());
  EXPECT_FALSE(unit_of("GPU 0 power (W)").has_value());
  EXPECT_EQ(unit_of("Tensor Active [Throughput %]")->unit, HardwareUnit::kTensor);
}

TEST(HardwareMetrics, memory_as_a_whole_and_its_reads_and_writes_do_not_count_twice) {
  TraceBuilder builder;
  for (const double at : {0.0, 100.0}) {
    builder.gpu_counter(0, kRead, at, 50).gpu_counter(0, kDram, at, 70).gpu_counter(0, kWrite, at, 25);
  }
  EXPECT_DOUBLE_EQ(use_while(builder.build(), {{0, 200}}).of(HardwareUnit::kDram), 70);
}

TEST(HardwareMetrics, reads_alone_do_not_say_how_busy_memory_was) {
  TraceBuilder builder;
  for (const double at : {0.0, 100.0}) builder.gpu_counter(0, kRead, at, 50).gpu_counter(0, kSm, at, 90);
  const UnitUse use = use_while(builder.build(), {{0, 200}});
  EXPECT_EQ(use.of(HardwareUnit::kDram), -1);
  EXPECT_DOUBLE_EQ(use.of(HardwareUnit::kSm), 90);
}

TEST(HardwareMetrics, reads_and_writes_are_no_more_than_the_peak_together) {
  TraceBuilder builder;
  for (const double at : {0.0, 100.0}) builder.gpu_counter(0, kRead, at, 60).gpu_counter(0, kWrite, at, 41);
  const HardwareMetrics metrics(builder.build());
  EXPECT_DOUBLE_EQ(metrics.devices().at(0).at(0).percent[static_cast<size_t>(HardwareUnit::kDram)], 100);
}

TEST(HardwareMetrics, one_percent_of_the_peak_is_no_fraction_of_it) {
  TraceBuilder builder;
  for (const double at : {0.0, 100.0}) builder.gpu_counter(0, kDram, at, 0.9);
  EXPECT_DOUBLE_EQ(use_while(builder.build(), {{0, 200}}).of(HardwareUnit::kDram), 0.9);
}

TEST(HardwareMetrics, one_sample_has_no_length) {
  TraceBuilder builder;
  builder.gpu_counter(0, kSm, 0, 90);
  EXPECT_TRUE(HardwareMetrics(builder.build()).devices().empty());
}

}  // namespace
}  // namespace firelane::analyze
