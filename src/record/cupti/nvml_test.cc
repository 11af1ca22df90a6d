// Power samples become counters of the trace, through a fake NVML.
#include "record/cupti/nvml.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "record/core/testing.h"

namespace firelane {
namespace {

int g_running = 0;

NvmlApi fake_nvml() {
  return {.init = [] { return ++g_running, 0; },
          .shutdown = [] { return --g_running, 0; },
          .device_count = [](unsigned* count) { return *count = 1, 0; },
          .device = [](unsigned, NvmlDevice* device) { return *device = reinterpret_cast<NvmlDevice>(&g_running), 0; },
          .power_mw = [](NvmlDevice, unsigned* mw) { return *mw = 312'500, 0; },
          .energy_mj = [](NvmlDevice, unsigned long long*) { return 3; },  // not supported
          .memory = [](NvmlDevice, NvmlMemory* memory) { return memory->used = 3 << 20, 0; }};
}

TEST(Nvml, samples_are_counters_and_what_the_driver_refuses_is_left_out) {
  testing_record::TemporaryFolder folder;
  auto session = testing_record::start({.output = folder / "run.lane"});
  {
    NvmlApi api = fake_nvml();
    api.init();
    NvmlSampler sampler(api, {.interval_ms = 1});
    while (session->status().event_count < 4) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(g_running, 0);
  session->stop();
  const std::string text =
      testing_record::records_of(session->path(), {.times = false, .notes = false, .chunks = false});
  EXPECT_NE(text.find("counter \"GPU 0 power (W)\" = 312.5\n"), std::string::npos) << text;
  EXPECT_NE(text.find("counter \"GPU 0 memory used (MiB)\" = 3\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("energy"), std::string::npos) << text;
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
}  // namespace firelane
