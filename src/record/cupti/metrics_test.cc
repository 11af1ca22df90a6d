// Hardware metrics become rows of the file, through a fake of CUPTI's PM sampling.
#include "record/cupti/metrics.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "record/core/testing.h"
#include "record/cupti/detach.h"
#include "record/cupti/pm_testing.h"
#include "record/cupti/testing.h"

namespace firelane::cupti {
namespace {

using test::FakeCupti;
using test::FakePm;

const std::vector<std::string> kTwo = {"sm__cycles_active.avg", "dram__throughput.avg"};

// A recording of a GPU that a test feeds. CUPTI's clock moves by a microsecond each time it is read, from 1 ms on.
class Metrics : public testing::Test {
 protected:
  std::unique_ptr<MetricsSampler> start(std::vector<std::string> names = kTwo,
                                        std::vector<std::string> bus_ids = {"a"}) {
    session = record::test::start({.output = folder / "run.lane"});
    auto sampler = std::make_unique<MetricsSampler>(
        pm.api(), cupti.api(), *session,
        MetricsOptions{.names = std::move(names), .read_ms = 1, .bus_ids = [bus_ids] { return bus_ids; }});
    session->set_device_source(sampler.get());
    return sampler;
  }
  void wait_for_start(bool is_started = true, size_t device = 0) {
    while (pm.is_started(device) != is_started) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  // The window is open from a time that the fake's clock has passed by far.
  static FakePm::Sample at(uint64_t ms, std::vector<double> values) {
    return {ms * 1'000'000, (ms + 1) * 1'000'000, std::move(values)};
  }
  // The metrics in the file; their time and device; their losses.
  std::string end(std::unique_ptr<MetricsSampler>& sampler) {
    sampler->stop();
    session->stop();
    std::string out;
    const std::string all = record::test::records_of(session->path(), {});
    for (size_t begin = 0; begin < all.size();) {
      const size_t end = std::min(all.find('\n', begin), all.size());
      const std::string line = all.substr(begin, end - begin);
      if (const size_t metric = line.find("metric ");
          metric != std::string::npos && line.find("loss") == std::string::npos)
        out += line.substr(metric) + "\n";
      begin = end + 1;
    }
    for (const record::Loss& loss : session->status().losses) out += "loss: " + loss.reason + "\n";
    return out;
  }
  void wait_for_calls(const std::string& what, ptrdiff_t times) {
    while (std::ranges::count(pm.calls(), what) < times) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  bool was_called(const std::string& what) {
    const std::vector<std::string> calls = pm.calls();
    return std::ranges::find(calls, what) != calls.end();
  }
  std::string refusal_of(std::unique_ptr<MetricsSampler> sampler) {
    sampler->resume();
    return end(sampler);
  }

  record::test::TemporaryFolder folder;
  FakeCupti cupti;
  FakePm pm;
  std::unique_ptr<record::Session> session;
};

TEST_F(Metrics, samples_are_rows_of_the_file_metric_by_metric) {
  auto sampler = start();
  sampler->resume();
  wait_for_start();
  pm.feed(0, at(9, {99, 99}));  // the first one began before sampling did
  for (uint64_t i = 0; i < 5; ++i) pm.feed(0, at(10 + i, {static_cast<double>(i), 0.5}));
  cupti.now_ns = 1'000'000'000;
  const std::string text = end(sampler);
  EXPECT_EQ(text.substr(0, text.find("10000000 1000000 0 \"dram")),
            "metric 10000000 1000000 0 \"sm__cycles_active.avg\" = 0\n"
            "metric 11000000 1000000 0 \"sm__cycles_active.avg\" = 1\n"
            "metric 12000000 1000000 0 \"sm__cycles_active.avg\" = 2\n"
            "metric 13000000 1000000 0 \"sm__cycles_active.avg\" = 3\n"
            "metric 14000000 1000000 0 \"sm__cycles_active.avg\" = 4\n"
            "metric ");
  EXPECT_EQ(record::test::count(text, "\"dram__throughput.avg\" = 0.5"), 5u);
  EXPECT_EQ(record::test::count(text, "loss"), 0u) << text;
  EXPECT_TRUE(was_called("disable 0"));
  EXPECT_EQ(pm.open_hosts(), 0u);
}

// CUPTI 13.0 gives throughputs as fractions; later ones are taken at their word.
TEST_F(Metrics, values_are_in_the_unit_that_their_names_say) {
  const std::string sm = "sm__cycles_active.avg.pct_of_peak_sustained_elapsed";
  const std::string dram = "dram__throughput.avg.pct_of_peak_sustained_elapsed";
  const auto sampled = [&](uint32_t version, double dram_value) {
    cupti.version = version;
    cupti.now_ns = 1'000'000;
    auto sampler = start({sm, dram});
    sampler->resume();
    wait_for_start();
    pm.feed(0, at(9, {99, 99}));
    pm.feed(0, at(10, {0.5, dram_value}));
    cupti.now_ns = 1'000'000'000;
    return end(sampler);
  };
  const std::string expected =
      "metric 10000000 1000000 0 \"" + sm + "\" = 0.5\nmetric 10000000 1000000 0 \"" + dram + "\" = 75\n";
  EXPECT_EQ(sampled(130001, 0.75), expected);
  EXPECT_NE(record::test::records_of(session->path(), {}).find("throughputs_in_percent"), std::string::npos);
  session.reset();
  EXPECT_EQ(sampled(130100, 75), expected);
  EXPECT_EQ(record::test::records_of(session->path(), {}).find("throughputs_in_percent"), std::string::npos);
}

TEST_F(Metrics, nothing_is_sampled_while_paused_and_samples_across_the_border_are_left_out) {
  auto sampler = start();
  EXPECT_FALSE(pm.is_started(0));
  cupti.now_ns = 20'000'000;
  sampler->resume();
  wait_for_start();
  pm.feed(0, at(1, {0, 0}));
  pm.feed(0, at(19, {1, 1}));  // begins before the window
  pm.feed(0, at(21, {2, 2}));
  pm.feed(0, at(29, {3, 3}));  // ends after it
  cupti.now_ns = 29'500'000;
  sampler->pause();
  wait_for_start(false);
  pm.feed(0, at(30, {4, 4}));
  cupti.now_ns = 40'000'000;
  sampler->resume();
  wait_for_start();
  pm.feed(0, at(41, {5, 5}));
  pm.feed(0, at(42, {6, 6}));
  cupti.now_ns = 50'000'000;
  const std::string text = end(sampler);
  EXPECT_EQ(record::test::count(text, "sm__cycles"), 2u) << text;
  EXPECT_NE(text.find("metric 21000000 1000000 0 \"sm__cycles_active.avg\" = 2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("metric 42000000 1000000 0 \"sm__cycles_active.avg\" = 6\n"), std::string::npos) << text;
}

TEST_F(Metrics, of_the_default_set_a_gpu_counts_what_it_has_and_what_fits_at_once) {
  pm.unknown_metrics = {"nvlrx__bytes.sum.per_second", "nvltx__bytes.sum.per_second"};
  pm.metrics_per_pass = 3;
  auto sampler = start({});
  sampler->resume();
  wait_for_start();
  pm.feed(0, at(9, {}));
  pm.feed(0, at(10, {1, 2, 3}));
  cupti.now_ns = 1'000'000'000;
  const std::string text = end(sampler);
  EXPECT_EQ(record::test::count(text, "metric "), 3u) << text;
  EXPECT_NE(text.find("\"sm__cycles_active.avg.pct_of_peak_sustained_elapsed\" = 1\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("nvl"), std::string::npos) << text;
}

TEST_F(Metrics, every_gpu_in_use_is_sampled_by_cudas_number_and_no_other) {
  auto sampler = start(kTwo, {"a", "", "b"});
  sampler->resume();
  wait_for_start(true, 2);
  for (const uint64_t ms : {9u, 10u}) pm.feed(2, at(ms, {7, 7}));
  cupti.now_ns = 1'000'000'000;
  const std::string text = end(sampler);
  EXPECT_TRUE(was_called("enable 0"));
  EXPECT_FALSE(was_called("enable 1"));
  EXPECT_NE(text.find("metric 10000000 1000000 2 \"sm__cycles_active.avg\" = 7\n"), std::string::npos) << text;
}

TEST_F(Metrics, a_gpu_that_the_program_uses_later_is_sampled_from_then_on) {
  std::atomic<bool> is_used = false;
  session = record::test::start({.output = folder / "run.lane"});
  MetricsSampler sampler(pm.api(), cupti.api(), *session, {.names = kTwo, .read_ms = 1, .bus_ids = [&] {
                                                             return is_used ? std::vector<std::string>{"a"}
                                                                            : std::vector<std::string>();
                                                           }});
  sampler.resume();
  EXPECT_FALSE(was_called("enable 0"));
  is_used = true;
  wait_for_start();
  sampler.stop();
  EXPECT_TRUE(was_called("enable 0"));
}

// The real one detaches in a call of its own, which the fake makes, too.
TEST_F(Metrics, cupti_stays_attached_where_its_profiler_was_started) {
  auto sampler = start();
  sampler->resume();
  end(sampler);
  EXPECT_FALSE(detach_cupti(cupti.api()));
  EXPECT_EQ(cupti.finalized, 0);
}

TEST_F(Metrics, nothing_is_asked_of_cupti_before_the_program_uses_a_gpu) {
  auto sampler = start(kTwo, {"", ""});
  sampler->resume();
  EXPECT_EQ(
      end(sampler),
      "loss: GPU metrics: no samples: no GPU was used for long enough; the first one comes about 0.4 s after a GPU's "
      "first use\n");
  EXPECT_TRUE(pm.calls().empty());
  EXPECT_TRUE(detach_cupti(cupti.api()));
}

TEST_F(Metrics, a_gpu_that_was_ready_late_is_said_so) {
  auto sampler = start();
  sampler->resume();
  wait_for_start();
  pm.feed(0, at(9, {99, 99}));
  pm.feed(0, at(500, {1, 2}));
  cupti.now_ns = 1'000'000'000;
  EXPECT_NE(end(sampler).find("loss: GPU metrics: no samples in the first 49"), std::string::npos);
}

TEST_F(Metrics, a_forked_childs_copy_does_not_wait_for_the_parents_thread) {
  auto sampler = start();
  sampler->resume();
  wait_for_start();
  const ::pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    sampler->pause();
    sampler->resume();
    sampler->stop();
    sampler.reset();
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  end(sampler);
}

TEST_F(Metrics, gpus_without_time_intervals_count_cycles) {
  pm.knows_time_interval = false;
  auto sampler = start();
  sampler->resume();
  EXPECT_TRUE(was_called("every cycles"));
  EXPECT_EQ(pm.interval, 1'000'000u);
  end(sampler);
}

TEST_F(Metrics, a_recorder_built_with_newer_headers_samples_with_the_cupti_of_cuda_12_6) {
  pm.knows_append_mode = false;
  auto sampler = start();
  sampler->resume();
  EXPECT_TRUE(was_called("every ns"));
  pm.knows_time_interval = false;
  end(sampler);
  sampler = start();
  sampler->resume();
  EXPECT_TRUE(was_called("every cycles"));
  end(sampler);
}

TEST_F(Metrics, a_lack_of_permission_is_one_line_with_the_remedy) {
  pm.refusals = {{"availability", CUPTI_ERROR_INSUFFICIENT_PRIVILEGES}};
  const std::string text = refusal_of(start(kTwo, {"a", "b"}));
  EXPECT_EQ(record::test::count(text, "\n"), 1u) << text;
  EXPECT_NE(text.find("NVreg_RestrictProfilingToAdminUsers=0"), std::string::npos) << text;
  EXPECT_NE(text.find("CAP_SYS_ADMIN"), std::string::npos) << text;
}

TEST_F(Metrics, counters_that_another_profiler_holds_are_named_as_such) {
  pm.refusals = {{"enable", CUPTI_ERROR_HARDWARE_BUSY}};
  EXPECT_NE(refusal_of(start()).find("another profiler"), std::string::npos);
}

TEST_F(Metrics, a_gpu_that_cannot_be_sampled_is_said_so) {
  pm.refusals = {{"enable", CUPTI_ERROR_NOT_SUPPORTED}};
  EXPECT_NE(refusal_of(start()).find("does not allow it"), std::string::npos);
}

TEST_F(Metrics, the_reason_of_a_refusal_was_that_of_the_last_mode_tried) {
  constexpr CUptiResult kUnknownMode = CUPTI_ERROR_INVALID_PARAMETER;
  pm.config_results = {CUPTI_ERROR_HARDWARE_BUSY, CUPTI_ERROR_UNKNOWN, kUnknownMode, kUnknownMode, kUnknownMode};
  const std::string text = refusal_of(start());
  EXPECT_NE(text.find("DCGM"), std::string::npos) << text;
}

TEST_F(Metrics, an_unknown_name_is_named) {
  pm.unknown_metrics = {"sm__nonsense.avg"};
  const std::string text = refusal_of(start({"sm__cycles_active.avg", "sm__nonsense.avg"}));
  EXPECT_NE(text.find("GPU metrics: sm__nonsense.avg: this GPU (gh100) has no such metric"), std::string::npos) << text;
}

TEST_F(Metrics, names_that_need_several_passes_are_refused) {
  pm.metrics_per_pass = 1;
  EXPECT_NE(refusal_of(start()).find("these 2 metrics need 2 passes"), std::string::npos);
}

TEST_F(Metrics, nothing_is_asked_of_a_profiler_that_does_not_start) {
  pm.refusals = {{"initialize", CUPTI_ERROR_UNKNOWN}};
  EXPECT_NE(refusal_of(start()).find("the driver is too old"), std::string::npos);
  EXPECT_EQ(pm.calls().size(), 1u);  // CUPTI crashes in the next one
}

TEST_F(Metrics, a_full_buffer_is_a_loss_and_sampling_begins_anew) {
  auto sampler = start();
  sampler->resume();
  wait_for_start();
  pm.overflows = 1;
  while (pm.overflows > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  wait_for_calls("start 0", 2);
  for (const uint64_t ms : {9u, 10u}) pm.feed(0, at(ms, {1, 1}));
  cupti.now_ns = 1'000'000'000;
  const std::string text = end(sampler);
  EXPECT_NE(text.find("buffer was full; sample less often"), std::string::npos) << text;
  EXPECT_NE(text.find("metric 10000000"), std::string::npos) << text;
}

TEST_F(Metrics, no_memory_for_samples_ended_the_program_or_lost_them_in_silence) {
  auto sampler = start();
  sampler->resume();
  wait_for_start();
  pm.more_samples = size_t{1} << 60;
  while (pm.more_samples > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  pm.feed(0, at(10, {1, 1}));
  cupti.now_ns = 1'000'000'000;
  const std::string text = end(sampler);
  EXPECT_NE(text.find("loss: GPU metrics: samples lost because there was no memory for them"), std::string::npos)
      << text;
  EXPECT_NE(text.find("metric 10000000"), std::string::npos) << text;
  EXPECT_EQ(session->status().losses[0].count, uint64_t{1} << 60);
}

// Its samples were then written to where there was no memory.
TEST_F(Metrics, a_gpu_without_memory_for_its_samples_counted_as_enabled) {
  pm.data_bytes = SIZE_MAX;
  auto sampler = start();
  sampler->resume();
  EXPECT_FALSE(pm.is_started(0));
  EXPECT_TRUE(was_called("disable 0"));
  EXPECT_EQ(pm.open_hosts(), 0u);
  EXPECT_EQ(record::test::count(end(sampler), "loss: GPU metrics: "), 1u);
}

TEST_F(Metrics, no_memory_to_find_gpus_is_a_reason) {
  session = record::test::start({.output = folder / "run.lane"});
  auto sampler = std::make_unique<MetricsSampler>(
      pm.api(), cupti.api(), *session,
      MetricsOptions{
          .names = kTwo, .read_ms = 1, .bus_ids = []() -> std::vector<std::string> { throw std::bad_alloc(); }});
  sampler->resume();
  EXPECT_EQ(end(sampler), "loss: GPU metrics: out of memory: a GPU could not be prepared\n");
}

TEST(LoadPmSampling, a_cupti_without_it_says_what_to_do) {
  std::string reason;
  if (!load_pm_sampling(reason)) {
    EXPECT_NE(reason.find("CUDA 12.6"), std::string::npos) << reason;
  }
}

}  // namespace
}  // namespace firelane::cupti
