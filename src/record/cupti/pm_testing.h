// PM sampling without a GPU: the same table of functions over samples that a test writes.
//
//   FakePm pm;
//   pm.feed(0, {1'000'000, 2'000'000, {50, 3}});     // device 0: from, until, one value a metric
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "record/cupti/detach.h"
#include "record/cupti/pm_device.h"

namespace firelane::cupti::test {

// One at a time: as FakeCupti.
class FakePm {
 public:
  struct Sample {
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
    std::vector<double> values;
  };

  FakePm() {
    current() = this;
    forget_known_devices();
  }
  ~FakePm() {
    current() = nullptr;
    keep_cupti_attached(false);
  }
  FakePm(const FakePm&) = delete;
  FakePm& operator=(const FakePm&) = delete;

  // Lies in CUPTI's buffer until it is decoded, if the device samples.
  void feed(size_t device, Sample sample) {
    const std::lock_guard lock(mutex_);
    if (devices_[device].is_started) devices_[device].buffer.push_back(std::move(sample));
  }
  bool is_started(size_t device) {
    const std::lock_guard lock(mutex_);
    return devices_[device].is_started;
  }
  // Whatever was asked of CUPTI, in its order: "enable 0", "start 0", ...
  std::vector<std::string> calls() {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  size_t open_hosts() {
    const std::lock_guard lock(mutex_);
    return hosts_.size();
  }

  std::set<std::string> unknown_metrics;
  size_t metrics_per_pass = 100;
  std::map<std::string, CUptiResult> refusals;  // by call: "enable"
  std::atomic<int> overflows = 0;               // of CUPTI's buffer, in the next reads
  std::atomic<size_t> more_samples = 0;         // that the next image claims to have
  size_t image_samples = 3;                     // what a counter data image holds
  bool knows_time_interval = true;
  bool knows_append_mode = true;  // CUDA 12.6 does not
  uint64_t interval = 0;
  std::deque<CUptiResult> config_results;  // of the next calls of set_config
  size_t data_bytes = 8;                   // of a counter data image

  PmApi api() const {
    return {
        .initialize = [](auto*) { return current()->call("initialize"); },
        .chip_name = [](auto* p) { return p->pChipName = "gh100", current()->call("chip_name"); },
        .host_initialize =
            [](auto* p) {
              const CUptiResult result = current()->call("host_initialize");
              if (result != CUPTI_SUCCESS) return result;
              const std::lock_guard lock(current()->mutex_);
              auto* host = new std::vector<std::string>();
              current()->hosts_.insert(host);
              p->pHostObject = reinterpret_cast<CUpti_Profiler_Host_Object*>(host);
              return CUPTI_SUCCESS;
            },
        .host_deinitialize =
            [](auto* p) {
              const std::lock_guard lock(current()->mutex_);
              auto* host = names_of(p->pHostObject);
              current()->hosts_.erase(host);
              delete host;
              return CUPTI_SUCCESS;
            },
        .add_metrics =
            [](auto* p) {
              for (size_t i = 0; i < p->numMetrics; ++i) {
                if (current()->unknown_metrics.contains(p->ppMetricNames[i])) return CUPTI_ERROR_INVALID_PARAMETER;
                names_of(p->pHostObject)->emplace_back(p->ppMetricNames[i]);
              }
              return CUPTI_SUCCESS;
            },
        .config_size = [](auto* p) { return p->configImageSize = 1, CUPTI_SUCCESS; },
        .config =
            [](auto* p) {
              *p->pConfigImage = static_cast<uint8_t>(names_of(p->pHostObject)->size());
              return CUPTI_SUCCESS;
            },
        .passes =
            [](auto* p) {
              const size_t per_pass = current()->metrics_per_pass;
              p->numOfPasses = (*p->pConfigImage + per_pass - 1) / per_pass;
              return CUPTI_SUCCESS;
            },
        .evaluate =
            [](auto* p) {
              const std::vector<double>& values = image_at(p->pCounterDataImage)[p->rangeIndex].values;
              for (size_t i = 0; i < p->numMetrics; ++i) p->pMetricValues[i] = i < values.size() ? values[i] : 0;
              return CUPTI_SUCCESS;
            },
        .availability = [](auto* p) { return p->counterAvailabilityImageSize = 8, current()->call("availability"); },
        .enable =
            [](auto* p) {
              p->pPmSamplingObject = object_of(p->deviceIndex);
              return current()->call("enable " + std::to_string(p->deviceIndex));
            },
        .disable = [](auto* p) { return current()->turn(p->pPmSamplingObject, "disable", false); },
        .set_config =
            [](auto* p) {
              if (std::deque<CUptiResult>& results = current()->config_results; !results.empty()) {
                const CUptiResult result = results.front();
                return results.pop_front(), result;
              }
              constexpr size_t kOldSize = CUPTI_PROFILER_STRUCT_SIZE(CUpti_PmSampling_SetConfig_Params, triggerMode);
              if (p->structSize > kOldSize && !current()->knows_append_mode) return CUPTI_ERROR_INVALID_PARAMETER;
              const bool by_time = p->triggerMode == CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL;
              if (by_time && !current()->knows_time_interval) return CUPTI_ERROR_INVALID_PARAMETER;
              current()->interval = p->samplingInterval;
              return current()->call(by_time ? "every ns" : "every cycles");
            },
        .start = [](auto* p) { return current()->turn(p->pPmSamplingObject, "start", true); },
        .stop = [](auto* p) { return current()->turn(p->pPmSamplingObject, "stop", false); },
        .decode =
            [](auto* p) {
              if (current()->overflows > 0) return --current()->overflows, p->overflow = 1, CUPTI_ERROR_OUT_OF_MEMORY;
              const std::lock_guard lock(current()->mutex_);
              std::vector<Sample>& buffer = current()->devices_[device_of(p->pPmSamplingObject)].buffer;
              const size_t count = std::min(buffer.size(), current()->image_samples);
              image_at(p->pCounterDataImage).assign(buffer.begin(), buffer.begin() + static_cast<ptrdiff_t>(count));
              buffer.erase(buffer.begin(), buffer.begin() + static_cast<ptrdiff_t>(count));
              p->decodeStopReason = buffer.empty() ? CUPTI_PM_SAMPLING_DECODE_STOP_REASON_END_OF_RECORDS
                                                   : CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL;
              return CUPTI_SUCCESS;
            },
        .data_size = [](auto* p) { return p->counterDataSize = current()->data_bytes, CUPTI_SUCCESS; },
        .clear_data = [](auto* p) { return image_at(p->pCounterData).clear(), CUPTI_SUCCESS; },
        .data_info =
            [](auto* p) {
              p->numCompletedSamples = image_at(p->pCounterDataImage).size() + current()->more_samples.exchange(0);
              return CUPTI_SUCCESS;
            },
        .sample_info =
            [](auto* p) {
              const Sample& sample = image_at(p->pCounterDataImage)[p->sampleIndex];
              p->startTimestamp = sample.start_ns;
              p->endTimestamp = sample.end_ns;
              return CUPTI_SUCCESS;
            }};
  }

 private:
  struct Device {
    bool is_started = false;
    std::vector<Sample> buffer;
  };
  static FakePm*& current() {
    static FakePm* fake = nullptr;
    return fake;
  }
  static CUpti_PmSampling_Object* object_of(size_t device) {
    return reinterpret_cast<CUpti_PmSampling_Object*>(device + 1);
  }
  static size_t device_of(CUpti_PmSampling_Object* object) { return reinterpret_cast<size_t>(object) - 1; }
  static std::vector<std::string>* names_of(CUpti_Profiler_Host_Object* host) {
    return reinterpret_cast<std::vector<std::string>*>(host);
  }
  // By its address: the recorder decodes one image after the other, on one thread.
  static std::vector<Sample>& image_at(const uint8_t* image) { return current()->images_[image]; }
  CUptiResult call(const std::string& what) {
    const std::lock_guard lock(mutex_);
    return note(what);
  }
  CUptiResult note(const std::string& what) {
    calls_.push_back(what);
    const auto refusal = refusals.find(what.substr(0, what.find(' ')));
    return refusal == refusals.end() ? CUPTI_SUCCESS : refusal->second;
  }
  CUptiResult turn(CUpti_PmSampling_Object* object, const std::string& what, bool on) {
    const size_t device = device_of(object);
    const std::lock_guard lock(mutex_);  // who sees the call in calls() may feed at once
    const CUptiResult result = note(what + " " + std::to_string(device));
    if (result == CUPTI_SUCCESS) devices_[device].is_started = on;
    return result;
  }

  std::mutex mutex_;  // a test feeds while the sampler reads
  std::map<size_t, Device> devices_;
  std::map<const uint8_t*, std::vector<Sample>> images_;
  std::set<std::vector<std::string>*> hosts_;
  std::vector<std::string> calls_;
};

}  // namespace firelane::cupti::test
