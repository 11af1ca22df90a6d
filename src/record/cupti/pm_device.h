// The metrics of one GPU, by CUPTI's PM sampling.
//
//   PmDevice device(pm, api, 0);
//   if (!device.enable({}, 1'000'000, reason)) ...        // the default set, every millisecond
//   device.start();
//   device.read(samples);                                  // now and then: CUPTI's buffer is finite
//   device.stop();
//   device.read(samples);
//
// One thread at a time; CUPTI lets it be any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "record/cupti/pm_api.h"

namespace firelane::cupti {

// Times are CUPTI's, as those of kernels; values of a sample lie behind each other, in the order of the metrics.
struct PmSamples {
  std::vector<int64_t> start_ns;
  std::vector<int64_t> end_ns;
  std::vector<double> values;
  uint64_t lost_count = 0;  // that there was no memory for
};

#if FIRELANE_PM_SAMPLING
// Tests: what GPUs have is asked once in a process.
void forget_known_devices();

class PmDevice {
 public:
  PmDevice(const PmApi& pm, const CuptiApi& api, size_t index) : pm_(pm), api_(api), index_(index) {}
  ~PmDevice();
  PmDevice(const PmDevice&) = delete;
  PmDevice& operator=(const PmDevice&) = delete;

  // `names` are CUPTI's; none: of the default set what this GPU has and what it can count at once. False: `reason`.
  bool enable(const std::vector<std::string>& names, uint64_t interval_ns, std::string& reason);
  void disable() noexcept;
  CUptiResult start() noexcept;
  CUptiResult stop() noexcept;
  bool is_enabled() const noexcept { return sampler_ != nullptr; }
  bool is_started() const noexcept { return is_started_; }
  // Adds what has come since the last call. `overflow`: CUPTI's buffer was full, and some are lost.
  CUptiResult read(PmSamples& samples, bool& overflow) noexcept;

  size_t index() const noexcept { return index_; }
  const std::vector<std::string>& metrics() const noexcept { return metrics_; }
  // Whether values are other than CUPTI's, which come in another unit than the names say (base/gpu_metrics.h).
  bool is_scaled() const noexcept;

 private:
  CUptiResult open_host() noexcept;
  void close_host() noexcept;
  CUptiResult schedule(const std::vector<std::string>& names, size_t& passes);
  bool choose_default(std::string& reason);
  bool choose_named(const std::vector<std::string>& names, std::string& reason);
  bool prepare(const std::vector<std::string>& names, uint64_t interval_ns, std::string& reason);
  CUptiResult configure(uint64_t interval_ns) noexcept;
  CUptiResult find_availability();
  CUptiResult clear_data() noexcept;
  CUptiResult recover() noexcept;
  CUptiResult take_image(PmSamples& samples, size_t count) noexcept;
  bool refuse(CUptiResult result, std::string& reason) const;

  const PmApi pm_;
  const CuptiApi api_;
  const size_t index_;
  std::string chip_;
  std::vector<uint8_t> availability_;
  std::vector<uint8_t> config_;
  std::vector<uint8_t> data_;
  std::vector<std::string> metrics_;
  std::vector<const char*> metric_names_;
  std::vector<double> values_;   // of one sample
  std::vector<double> factors_;  // of CUPTI's values, by metric
  CUpti_Profiler_Host_Object* host_ = nullptr;
  CUpti_PmSampling_Object* sampler_ = nullptr;
  bool is_started_ = false;
  bool is_first_ = false;  // the sample after start(): it begins before
};
#endif

}  // namespace firelane::cupti
