#include "record/cupti/pm_device.h"

#if FIRELANE_PM_SAMPLING

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>
#include <utility>

#include "base/gpu_metrics.h"

namespace firelane::cupti {
namespace {

#define FL_PM_PARAMS(name) params_of<CUpti_##name##_Params>(CUpti_##name##_Params_STRUCT_SIZE)

// CUPTI tells by the size which version of the struct a program was compiled with.
template <typename Params>
Params params_of(size_t bytes) {
  Params params{};
  params.structSize = bytes;
  return params;
}

// What `--metrics` means without a list, most wanted first: GPUs count only so much at once. Names differ between
// generations; of alternatives the first that a GPU has and can count is taken. CUPTI 13.0 counts
// sm__inst_executed_pipe_tensor of an H200 in two passes.
struct Wanted {
  const char* names[3];
};
constexpr Wanted kDefaultSet[] = {
    {{"sm__cycles_active.avg.pct_of_peak_sustained_elapsed"}},
    {{"sm__pipe_tensor_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed",
      "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
      "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_elapsed"}},
    {{"dram__bytes_read.avg.pct_of_peak_sustained_elapsed", "dram__read_throughput.avg.pct_of_peak_sustained_elapsed"}},
    {{"dram__bytes_write.avg.pct_of_peak_sustained_elapsed",
      "dram__write_throughput.avg.pct_of_peak_sustained_elapsed"}},
    {{"pcie__read_bytes.sum.per_second"}},
    {{"pcie__write_bytes.sum.per_second"}},
    {{"nvlrx__bytes.sum.per_second"}},
    {{"nvltx__bytes.sum.per_second"}},
};

// How to ask for samples, best first. A100 and Turing GPUs take the interval only in cycles of the system clock, of
// about a nanosecond each. A full buffer of a Turing GPU can only keep its oldest samples. CUPTI before CUDA 12.8 has
// no append mode: neither its headers nor its struct have the field, so the struct is passed with the size before it.
enum class Append { kLatest, kOldest, kUnknown };
struct Mode {
  CUpti_PmSampling_TriggerMode trigger;
  Append append;
};
constexpr Mode kModes[] = {
#if CUPTI_API_VERSION >= 26
    {CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL, Append::kLatest},
    {CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL, Append::kLatest},
    {CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL, Append::kOldest},
#endif
    {CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL, Append::kUnknown},
    {CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL, Append::kUnknown},
};

void set_append_mode(CUpti_PmSampling_SetConfig_Params& config, Append append) {
  if (append == Append::kUnknown) {
    config.structSize = CUPTI_PROFILER_STRUCT_SIZE(CUpti_PmSampling_SetConfig_Params, triggerMode);
    return;
  }
#if CUPTI_API_VERSION >= 26
  config.hwBufferAppendMode = append == Append::kLatest ? CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_LATEST
                                                        : CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST;
#endif
}

// CUPTI's buffer for what it has not decoded yet, and the image that it decodes into, 16 KB a sample on an H200. Larger
// ones take longer to set up and to clear.
constexpr size_t kBufferBytes = 64u << 20;
constexpr uint32_t kImageSamples = 256;
// A thread that reads more slowly than samples come must come back to be told to stop.
constexpr int kImagesPerRead = 32;

// What is the same in every recording of a process, and takes 100 ms to find out. By device.
struct Known {
  std::vector<uint8_t> availability;
  std::vector<std::string> default_set;
};
std::mutex g_known_mutex;
std::map<size_t, Known>& known_devices() {
  static auto& known = *new std::map<size_t, Known>();
  return known;
}

}  // namespace

void forget_known_devices() {
  const std::lock_guard lock(g_known_mutex);
  known_devices().clear();
}

PmDevice::~PmDevice() { disable(); }

bool PmDevice::is_scaled() const noexcept {
  return std::ranges::any_of(factors_, [](double factor) { return factor != 1; });
}

bool PmDevice::refuse(CUptiResult result, std::string& reason) const {
  if (result == CUPTI_SUCCESS) return false;
  reason = explain_metrics(api_, result);
  return true;
}

CUptiResult PmDevice::open_host() noexcept {
  auto host = FL_PM_PARAMS(Profiler_Host_Initialize);
  host.profilerType = CUPTI_PROFILER_TYPE_PM_SAMPLING;
  host.pChipName = chip_.c_str();
  host.pCounterAvailabilityImage = availability_.data();
  const CUptiResult result = pm_.host_initialize(&host);
  if (result == CUPTI_SUCCESS) host_ = host.pHostObject;
  return result;
}

void PmDevice::close_host() noexcept {
  if (host_ == nullptr) return;
  auto host = FL_PM_PARAMS(Profiler_Host_Deinitialize);
  host.pHostObject = std::exchange(host_, nullptr);
  pm_.host_deinitialize(&host);
}

// A host object keeps what was added to it, so that each try takes a new one.
CUptiResult PmDevice::schedule(const std::vector<std::string>& names, size_t& passes) {
  close_host();
  CUptiResult result = open_host();
  if (result != CUPTI_SUCCESS) return result;
  uint32_t version = 0;
  if (api_.get_version(&version) != CUPTI_SUCCESS) version = 0;
  metric_names_.clear();
  factors_.clear();
  for (const std::string& name : names) {
    metric_names_.push_back(name.c_str());
    factors_.push_back(factor_to_percent(name, version));
  }
  auto add = FL_PM_PARAMS(Profiler_Host_ConfigAddMetrics);
  add.pHostObject = host_;
  add.ppMetricNames = metric_names_.data();
  add.numMetrics = metric_names_.size();
  if (result = pm_.add_metrics(&add); result != CUPTI_SUCCESS) return result;
  auto size = FL_PM_PARAMS(Profiler_Host_GetConfigImageSize);
  size.pHostObject = host_;
  if (result = pm_.config_size(&size); result != CUPTI_SUCCESS) return result;
  config_.assign(size.configImageSize, 0);
  auto config = FL_PM_PARAMS(Profiler_Host_GetConfigImage);
  config.pHostObject = host_;
  config.configImageSize = config_.size();
  config.pConfigImage = config_.data();
  if (result = pm_.config(&config); result != CUPTI_SUCCESS) return result;
  auto count = FL_PM_PARAMS(Profiler_Host_GetNumOfPasses);
  count.configImageSize = config_.size();
  count.pConfigImage = config_.data();
  result = pm_.passes(&count);
  passes = count.numOfPasses;
  return result;
}

bool PmDevice::choose_default(std::string& reason) {
  size_t passes = 0;
  CUptiResult refusal = CUPTI_SUCCESS;
  {
    const std::lock_guard lock(g_known_mutex);
    metrics_ = known_devices()[index_].default_set;
  }
  if (metrics_.empty()) {
    for (const Wanted& wanted : kDefaultSet) {
      for (const char* name : wanted.names) {
        if (name == nullptr) break;
        std::vector<std::string> names = metrics_;
        names.emplace_back(name);
        const CUptiResult result = schedule(names, passes);
        if (result != CUPTI_SUCCESS) refusal = result;
        if (result != CUPTI_SUCCESS || passes != 1) continue;
        metrics_ = std::move(names);
        break;
      }
    }
    const std::lock_guard lock(g_known_mutex);
    known_devices()[index_].default_set = metrics_;
  }
  if (!metrics_.empty()) return !refuse(schedule(metrics_, passes), reason);
  reason = explain_metrics(api_, refusal);
  return false;
}

// CUPTI's answer to a name that a GPU does not have is "invalid parameter", and to one of a unit that the machine does
// not have (NVLink) "unknown".
bool PmDevice::choose_named(const std::vector<std::string>& names, std::string& reason) {
  metrics_ = names;
  size_t passes = 0;
  const CUptiResult result = schedule(metrics_, passes);
  if (result != CUPTI_SUCCESS) {
    for (const std::string& name : names) {
      if (schedule({name}, passes) == CUPTI_SUCCESS) continue;
      reason = name + ": this GPU (" + chip_ + ") has no such metric; `ncu --query-metrics` lists those that it has, " +
               "each with a rollup, as in sm__cycles_active.avg";
      return false;
    }
    return !refuse(result, reason);
  }
  if (passes == 1) return true;
  reason = (names.size() == 1 ? names[0] + " needs " : "these " + std::to_string(names.size()) + " metrics need ") +
           std::to_string(passes) +
           " passes, and sampling has one; ask for fewer, or for counters instead of throughputs";
  return false;
}

// A mode that a GPU or CUPTI does not know is an invalid parameter; any other refusal is the reason.
CUptiResult PmDevice::configure(uint64_t interval_ns) noexcept {
  CUptiResult reason = CUPTI_ERROR_INVALID_PARAMETER;
  for (const Mode& mode : kModes) {
    auto config = FL_PM_PARAMS(PmSampling_SetConfig);
    config.pPmSamplingObject = sampler_;
    config.configSize = config_.size();
    config.pConfig = config_.data();
    config.hardwareBufferSize = kBufferBytes;
    config.samplingInterval = interval_ns;
    config.triggerMode = mode.trigger;
    set_append_mode(config, mode.append);
    const CUptiResult result = pm_.set_config(&config);
    if (result == CUPTI_SUCCESS) return result;
    if (reason == CUPTI_ERROR_INVALID_PARAMETER) reason = result;
  }
  return reason;
}

CUptiResult PmDevice::clear_data() noexcept {
  auto clear = FL_PM_PARAMS(PmSampling_CounterDataImage_Initialize);
  clear.pPmSamplingObject = sampler_;
  clear.counterDataSize = data_.size();
  clear.pCounterData = data_.data();
  return pm_.clear_data(&clear);
}

CUptiResult PmDevice::find_availability() {
  const std::lock_guard lock(g_known_mutex);
  Known& known = known_devices()[index_];
  if (known.availability.empty()) {
    auto availability = FL_PM_PARAMS(PmSampling_GetCounterAvailability);
    availability.deviceIndex = index_;
    CUptiResult result = pm_.availability(&availability);
    if (result != CUPTI_SUCCESS) return result;
    std::vector<uint8_t> image(availability.counterAvailabilityImageSize);
    availability.pCounterAvailabilityImage = image.data();
    if (result = pm_.availability(&availability); result != CUPTI_SUCCESS) return result;
    known.availability = std::move(image);
  }
  availability_ = known.availability;
  return CUPTI_SUCCESS;
}

bool PmDevice::enable(const std::vector<std::string>& names, uint64_t interval_ns, std::string& reason) {
  try {
    if (prepare(names, interval_ns, reason)) return true;
  } catch (const std::exception&) {  // without memory for the samples it must not count as enabled
    disable();
    throw;
  }
  disable();
  return false;
}

bool PmDevice::prepare(const std::vector<std::string>& names, uint64_t interval_ns, std::string& reason) {
  auto chip = FL_PM_PARAMS(Device_GetChipName);
  chip.deviceIndex = index_;
  if (refuse(pm_.chip_name(&chip), reason)) return false;
  chip_ = chip.pChipName != nullptr ? chip.pChipName : "";

  if (refuse(find_availability(), reason)) return false;
  if (!(names.empty() ? choose_default(reason) : choose_named(names, reason))) return false;

  auto enable = FL_PM_PARAMS(PmSampling_Enable);
  enable.deviceIndex = index_;
  if (refuse(pm_.enable(&enable), reason)) return false;
  sampler_ = enable.pPmSamplingObject;
  if (refuse(configure(interval_ns), reason)) return false;

  auto size = FL_PM_PARAMS(PmSampling_GetCounterDataSize);
  size.pPmSamplingObject = sampler_;
  size.pMetricNames = metric_names_.data();
  size.numMetrics = metric_names_.size();
  size.maxSamples = kImageSamples;
  if (refuse(pm_.data_size(&size), reason)) return false;
  data_.assign(size.counterDataSize, 0);
  values_.assign(metric_names_.size(), 0);
  return !refuse(clear_data(), reason);
}

void PmDevice::disable() noexcept {
  if (is_started_) stop();
  if (sampler_ != nullptr) {
    auto disable = FL_PM_PARAMS(PmSampling_Disable);
    disable.pPmSamplingObject = std::exchange(sampler_, nullptr);
    pm_.disable(&disable);
  }
  close_host();
}

CUptiResult PmDevice::start() noexcept {
  auto start = FL_PM_PARAMS(PmSampling_Start);
  start.pPmSamplingObject = sampler_;
  const CUptiResult result = pm_.start(&start);
  is_started_ = is_first_ = result == CUPTI_SUCCESS;
  return result;
}

CUptiResult PmDevice::stop() noexcept {
  is_started_ = false;
  auto stop = FL_PM_PARAMS(PmSampling_Stop);
  stop.pPmSamplingObject = sampler_;
  return pm_.stop(&stop);
}

// After an overflow CUPTI gives no more samples until sampling is restarted.
CUptiResult PmDevice::recover() noexcept {
  const CUptiResult result = clear_data();
  if (result != CUPTI_SUCCESS || !is_started_) return result;
  stop();
  return start();
}

// Samples of the image, or their number where there is no room for them.
CUptiResult PmDevice::take_image(PmSamples& samples, size_t count) noexcept {
  try {
    samples.start_ns.reserve(samples.start_ns.size() + count);
    samples.end_ns.reserve(samples.end_ns.size() + count);
    samples.values.reserve(samples.values.size() + count * values_.size());
  } catch (const std::exception&) {
    samples.lost_count += count;
    is_first_ = false;
    return CUPTI_SUCCESS;
  }
  for (size_t i = 0; i < count; ++i) {
    auto sample = FL_PM_PARAMS(PmSampling_CounterData_GetSampleInfo);
    sample.pPmSamplingObject = sampler_;
    sample.pCounterDataImage = data_.data();
    sample.counterDataImageSize = data_.size();
    sample.sampleIndex = i;
    auto evaluate = FL_PM_PARAMS(Profiler_Host_EvaluateToGpuValues);
    evaluate.pHostObject = host_;
    evaluate.pCounterDataImage = data_.data();
    evaluate.counterDataImageSize = data_.size();
    evaluate.rangeIndex = i;
    evaluate.ppMetricNames = metric_names_.data();
    evaluate.numMetrics = metric_names_.size();
    evaluate.pMetricValues = values_.data();
    if (const CUptiResult result = pm_.sample_info(&sample); result != CUPTI_SUCCESS) return result;
    if (std::exchange(is_first_, false) || sample.endTimestamp <= sample.startTimestamp) continue;
    if (const CUptiResult result = pm_.evaluate(&evaluate); result != CUPTI_SUCCESS) return result;
    samples.start_ns.push_back(static_cast<int64_t>(sample.startTimestamp));
    samples.end_ns.push_back(static_cast<int64_t>(sample.endTimestamp));
    for (size_t metric = 0; metric < values_.size(); ++metric) {
      samples.values.push_back(values_[metric] * factors_[metric]);
    }
  }
  return CUPTI_SUCCESS;
}

CUptiResult PmDevice::read(PmSamples& samples, bool& overflow) noexcept {
  int images = 0;
  for (bool is_more = true; is_more && (images < kImagesPerRead || !is_started_); ++images) {
    auto decode = FL_PM_PARAMS(PmSampling_DecodeData);
    decode.pPmSamplingObject = sampler_;
    decode.pCounterDataImage = data_.data();
    decode.counterDataImageSize = data_.size();
    CUptiResult result = pm_.decode(&decode);
    if (decode.overflow != 0 || result == CUPTI_ERROR_OUT_OF_MEMORY) overflow = true;
    if (result != CUPTI_SUCCESS) return overflow ? recover() : result;
    is_more = decode.decodeStopReason == CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL;

    auto info = FL_PM_PARAMS(PmSampling_GetCounterDataInfo);
    info.pCounterDataImage = data_.data();
    info.counterDataImageSize = data_.size();
    if (result = pm_.data_info(&info); result != CUPTI_SUCCESS) return result;
    if (result = take_image(samples, info.numCompletedSamples); result != CUPTI_SUCCESS) return result;
    if (info.numCompletedSamples == 0) is_more = false;
    if (result = clear_data(); result != CUPTI_SUCCESS) return result;
  }
  return CUPTI_SUCCESS;
}

}  // namespace firelane::cupti

#endif
