// Power samples become counters of the trace, through a fake NVML of a machine with many GPUs.
#include "record/cupti/nvml.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string_view>
#include <thread>

#include "record/core/testing.h"

namespace firelane::cupti {
namespace {

int g_running = 0;
int g_gpus[2];  // what handles point to

// GPUs at bus 0a and 0b, the second one draws twice the power.
NvmlApi fake_nvml() {
  return {.init = [] { return ++g_running, 0; },
          .shutdown = [] { return --g_running, 0; },
          .device =
              [](const char* bus_id, NvmlDevice* device) {
                const std::string_view bus(bus_id);
                if (bus != "0000:0a:00.0" && bus != "0000:0b:00.0") return 6;  // not found
                return *device = reinterpret_cast<NvmlDevice>(&g_gpus[bus == "0000:0b:00.0"]), 0;
              },
          .power_mw =
              [](NvmlDevice device, unsigned* mw) {
                const bool is_first = device == reinterpret_cast<NvmlDevice>(&g_gpus[0]);
                return *mw = is_first ? 312'500 : 625'000, 0;
              },
          .energy_mj = [](NvmlDevice, unsigned long long*) { return 3; },  // not supported
          .memory = [](NvmlDevice, NvmlMemory* memory) { return memory->used = 3 << 20, 0; }};
}

std::string text_of(record::Session& session) {
  session.stop();
  return record::test::records_of(session.path(), {.times = false, .notes = false, .chunks = false});
}

TEST(Nvml, samples_are_counters_and_what_the_driver_refuses_is_left_out) {
  record::test::TemporaryFolder folder;
  auto session = record::test::start({.output = folder / "run.lane"});
  {
    NvmlApi api = fake_nvml();
    api.init();
    NvmlSampler sampler(api, {.interval_ms = 1, .bus_ids = [] { return std::vector<std::string>{"0000:0a:00.0"}; }});
    while (session->status().event_count < 4) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(g_running, 0);
  const std::string text = text_of(*session);
  EXPECT_NE(text.find("counter \"GPU 0 power (W)\" = 312.5\n"), std::string::npos) << text;
  EXPECT_NE(text.find("counter \"GPU 0 memory used (MiB)\" = 3\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("energy"), std::string::npos) << text;
}

// CUDA_VISIBLE_DEVICES=2,1,0 on a machine with three: CUDA's GPU 1 is not used, GPU 2 is gone.
TEST(Nvml, gpus_have_cudas_numbers_and_those_of_others_are_not_sampled) {
  record::test::TemporaryFolder folder;
  auto session = record::test::start({.output = folder / "run.lane"});
  NvmlApi api = fake_nvml();
  api.init();
  {
    const auto used = [] { return std::vector<std::string>{"0000:0b:00.0", "", "0000:0c:00.0"}; };
    NvmlSampler sampler(api, {.interval_ms = 60'000, .bus_ids = used});
  }  // takes a last sample
  const std::string text = text_of(*session);
  EXPECT_NE(text.find("counter \"GPU 0 power (W)\" = 625\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("GPU 1"), std::string::npos) << text;
  EXPECT_EQ(text.find("GPU 2"), std::string::npos) << text;
}

TEST(Nvml, a_recording_has_a_sample_at_its_begin_and_at_its_end_however_short_it_is) {
  record::test::TemporaryFolder folder;
  auto session = record::test::start({.start_paused = true, .output = folder / "run.lane"});
  NvmlApi api = fake_nvml();
  api.init();
  {
    NvmlSampler sampler(api,
                        {.interval_ms = 60'000, .bus_ids = [] { return std::vector<std::string>{"0000:0a:00.0"}; }});
    session->resume();
    sampler.wake();
    while (session->status().event_count < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const std::string text = text_of(*session);
  const std::string_view sample = "counter \"GPU 0 power (W)\"";
  const size_t first = text.find(sample);
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_NE(text.find(sample, first + 1), std::string::npos) << text;
}

TEST(Nvml, a_forked_childs_copy_does_not_wait_for_the_parents_thread) {
  record::test::TemporaryFolder folder;
  auto session = record::test::start({.output = folder / "run.lane"});
  auto sampler = std::make_unique<NvmlSampler>(
      fake_nvml(),
      NvmlSampler::Options{.interval_ms = 1, .bus_ids = [] { return std::vector<std::string>{"0000:0a:00.0"}; }});
  while (session->status().event_count < 4) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const ::pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    sampler.reset();
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
}

TEST(Nvml, its_absence_is_a_normal_answer) {
  std::string reason;
  const std::optional<NvmlApi> api = load_nvml(reason);
  if (api.has_value()) {
    api->shutdown();
  } else {
    EXPECT_NE(reason.find("NVML"), std::string::npos);
  }
}

}  // namespace
}  // namespace firelane::cupti
