// Hardware metrics of the GPUs that the process uses (SM and tensor core activity, DRAM, PCIe, NVLink), sampled while
// the recording's window is open, as rows of the file.
//
//   auto metrics = start_metrics(api, session, {.interval_ns = 1'000'000});
//   metrics->resume();
//   metrics->stop();                  // before CUPTI is detached
//   metrics->drain(sink);             // on the drain's thread, also after stop()
//
// A thread of its own reads and evaluates the samples: CUPTI takes some 50 us for one. The GPU counts
// by itself; kernels are neither replayed nor serialized. What cannot be sampled is a loss of the session, once.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "record/core/session.h"
#include "record/cupti/own_wake.h"
#include "record/cupti/pm_device.h"

namespace firelane::cupti {

struct MetricsOptions {
  std::vector<std::string> names;  // CUPTI's; empty: a default set
  uint64_t interval_ns = 1'000'000;
  uint32_t read_ms = 100;
  // By CUDA device index, "": not used. Asked now and then: a program may begin to use a GPU later.
  std::function<std::vector<std::string>()> bus_ids;
};

class MetricsSource : public record::DeviceSource {
 public:
  // Waits until sampling has begun: the first time in a process that takes 0.4 s a GPU (H200), later 0.15 s, less what
  // has passed since the start, and 1 ms after a pause.
  virtual void resume() noexcept = 0;
  virtual void pause() noexcept = 0;  // does not wait
  // Waits until the last sample is read. Idempotent.
  virtual void stop() noexcept = 0;
};

// Null, and a loss of the session, where CUPTI or its headers are too old.
std::unique_ptr<MetricsSource> start_metrics(const CuptiApi& api, record::Session& session, MetricsOptions options);

#if FIRELANE_PM_SAMPLING
class MetricsSampler final : public MetricsSource {
 public:
  // The thread prepares the GPUs that are in use.
  MetricsSampler(const PmApi& pm, const CuptiApi& api, record::Session& session, MetricsOptions options);
  ~MetricsSampler() override;
  MetricsSampler(const MetricsSampler&) = delete;
  MetricsSampler& operator=(const MetricsSampler&) = delete;

  void resume() noexcept override;
  void pause() noexcept override;
  void stop() noexcept override;
  void drain(record::DeviceSink& sink) override;

 private:
  struct Window {
    int64_t from_ns = 0;
    int64_t until_ns = INT64_MAX;
  };
  struct Batch {
    size_t device = 0;
    std::vector<std::string> metrics;
    PmSamples samples;
  };
  void run() noexcept;
  bool start_profiler();
  void find_devices() noexcept;
  void visit(PmDevice& device, bool is_on) noexcept;
  void read(PmDevice& device) noexcept;
  size_t keep_inside(PmSamples& samples, size_t metrics) noexcept;
  void refuse(std::string_view reason) noexcept;
  void refuse(CUptiResult result) noexcept;
  bool is_forked() const noexcept;
  void say_what_is_missing() noexcept;
  int64_t now_ns() const noexcept;

  const PmApi pm_;
  const CuptiApi api_;
  record::Session& session_;
  const MetricsOptions options_;
  const int process_;
  std::vector<std::unique_ptr<PmDevice>> devices_;  // by index; null: not tried. The thread's, once it runs
  bool is_initialized_ = false;                     // likewise, as the next
  bool is_refused_ = false;
  std::atomic<bool> is_refused_once_ = false;  // a loss says why there are no samples
  std::mutex mutex_;                           // guards what follows
  OwnWake wake_;
  bool stop_ = false;
  bool is_on_ = false;
  int64_t first_window_ns_ = 0;
  int64_t first_sample_ns_ = 0;
  bool is_changed_ = false;
  bool is_running_ = false;  // what is_on_ asks for has been done
  std::vector<Window> windows_;
  std::vector<Batch> batches_;
  size_t waiting_values_ = 0;                        // in them
  std::unordered_map<std::string, uint32_t> texts_;  // the drain's
  std::thread thread_;
};
#endif

}  // namespace firelane::cupti
