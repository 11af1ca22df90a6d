// The speed of the host that recorded, read from a trace of torch.profiler.
#include "analyze/verdict/torch_costs.h"

#include <gtest/gtest.h>

#include <string>

#include "analyze/verdict/study.h"
#include "import/load.h"
#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

// A host-bound step of 200 operators that launch a short kernel each, `apart_us` apart; after every fourth the host
// does something else for `other_us`.
Study host_bound(double apart_us, double other_us = 0, Origin origin = Origin::kKineto) {
  TraceBuilder builder;
  builder.metadata("schemaVersion", "1");
  double at = 0;
  for (int i = 0; i < 200; ++i) {
    builder.op("aten::mm", {.start_us = at, .end_us = at + 0.75 * apart_us});
    builder.call("cudaLaunchKernel",
                 {.start_us = at + 0.25 * apart_us, .end_us = at + 0.5 * apart_us, .correlation = i + 1});
    builder.kernel("gemm", {.start_us = at + 0.6 * apart_us, .end_us = at + 0.7 * apart_us, .correlation = i + 1});
    at += apart_us + (i % 4 == 3 ? other_us : 0);
  }
  builder.step(1, {.start_us = 0, .end_us = at});
  Model model = builder.build();
  model.info.origin = origin;
  return study(model);
}

int64_t removed_ns(const Study& s) { return s.undone.recorded_ns - s.undone.step_ns; }

TEST(TorchCosts, a_host_that_is_twice_as_fast_pays_half_as_much) {
  const auto fast = static_cast<double>(removed_ns(host_bound(8)));
  EXPECT_GT(fast, 0);
  EXPECT_NEAR(static_cast<double>(removed_ns(host_bound(16))), 2 * fast, 0.01 * fast);
}

TEST(TorchCosts, what_the_host_does_between_operators_does_not_make_it_slow) {
  EXPECT_NEAR(static_cast<double>(removed_ns(host_bound(8, 1000))), static_cast<double>(removed_ns(host_bound(8))),
              10'000);
}

// Converted traces have torch's keys: the speed of the host was read from them as if torch.profiler had recorded.
TEST(TorchCosts, a_converted_trace_of_another_recorder_says_nothing_of_the_host) {
  const auto removed = [](double apart_us) {
    return static_cast<double>(removed_ns(host_bound(apart_us, 0, Origin::kNsight)));
  };
  EXPECT_NEAR(removed(32), removed(16), 0.01 * removed(16));
}

// tests/data/library/torch: programs of the library's tuning half, and two of its merged set on a faster host, under
// torch.profiler. The recorded step is 1.3 to 2.2 times the one that was timed without a profiler, but for that of a
// program that sorts for most of its step.
struct Recorded {
  const char* name;
  const char* trace;
  double true_ms;
  double recorded_least = 1.3;
};

class TorchTraces : public testing::TestWithParam<Recorded> {};

TEST_P(TorchTraces, come_within_ten_percent_of_the_step_without_a_profiler) {
  Result<Model> model =
      importer::load_trace(FIRELANE_TEST_DATA "/library/torch/" + std::string(GetParam().trace) + ".json.gz");
  ASSERT_TRUE(model.ok()) << model.error().message;
  const Study s = study(model.value());
  EXPECT_GT(static_cast<double>(s.usual_recorded_ns) / 1e6, GetParam().recorded_least * GetParam().true_ms);
  EXPECT_NEAR(static_cast<double>(s.usual_step_ns) / 1e6, GetParam().true_ms, 0.1 * GetParam().true_ms);
}

INSTANTIATE_TEST_SUITE_P(
    Library, TorchTraces,
    testing::Values(Recorded{"no_flags", "h200.rl-rollout-item.fixed.plain", 0.883},
                    Recorded{"shapes_and_memory", "h200.recommender-tables.fixed.memory", 2.150},
                    Recorded{"device_as_busy_as_the_host", "h200.segmentation-metrics.fixed.memory", 3.873},
                    Recorded{"stacks", "h200.speech-loop-over-time.fixed.stacks", 7.070},
                    Recorded{"a_faster_host", "h200_fast_host.evaluation-with-gradients.faulty.memory", 5.458},
                    Recorded{"without_a_device", "cpu.speech-loop-over-time.fixed.memory", 1.796},
                    Recorded{"without_a_device_many_operators", "cpu_fast_host.resampled-phase-by-phase.faulty.memory",
                             5.944},
                    Recorded{"without_a_device_long_operators",
                             "cpu_fast_host.quantiles-sorted-one-by-one.faulty.memory", 8.914, 1.05}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace firelane::analyze
