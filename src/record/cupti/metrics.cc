#include "record/cupti/metrics.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <exception>
#include <new>
#include <utility>

#include "base/gpu_metrics.h"
#include "base/own_thread.h"
#include "format/device.h"
#include "record/cupti/detach.h"

namespace firelane::cupti {

std::unique_ptr<MetricsSource> start_metrics(const CuptiApi& api, record::Session& session, MetricsOptions options) {
  std::string reason;
  [[maybe_unused]] const std::optional<PmApi> pm = load_pm_sampling(reason);
#if FIRELANE_PM_SAMPLING
  if (pm) return std::make_unique<MetricsSampler>(*pm, api, session, std::move(options));
#endif
  session.add_loss("GPU metrics: " + reason, 0);
  return nullptr;
}

#if FIRELANE_PM_SAMPLING
namespace {

// 64 MiB; a drain that takes no more has failed.
constexpr size_t kMaxWaitingValues = 8u << 20;
// A GPU that takes longer to prepare is sampled from then on.
constexpr std::chrono::seconds kLongestWait{3};
// How many reads apart the thread looks for GPUs that the program has begun to use.
constexpr int kReadsPerSearch = 10;

}  // namespace

MetricsSampler::MetricsSampler(const PmApi& pm, const CuptiApi& api, record::Session& session, MetricsOptions options)
    : pm_(pm), api_(api), session_(session), options_(std::move(options)), process_(::getpid()) {
  thread_ = start_own_thread("firelane-pm", [this] { run(); });
  if (!thread_.joinable()) refuse("could not start a thread to read them");
}

MetricsSampler::~MetricsSampler() {
  if (is_forked()) {  // the child's copy: thread and counters are the parent's
    if (thread_.joinable()) thread_.detach();
    wake_.leave_to_parent();
    for (std::unique_ptr<PmDevice>& device : devices_) static_cast<void>(device.release());
    return;
  }
  stop();
}

// The words for it take memory, of which there may be none: then the reason is missing, not the program.
void MetricsSampler::refuse(std::string_view reason) noexcept {
  is_refused_once_ = true;
  try {
    session_.add_loss("GPU metrics: " + std::string(reason), 0);
  } catch (const std::exception&) {
  }
}

void MetricsSampler::refuse(CUptiResult result) noexcept {
  try {
    refuse(explain_metrics(api_, result));
  } catch (const std::exception&) {
    is_refused_once_ = true;
  }
}

bool MetricsSampler::is_forked() const noexcept { return process_ != ::getpid(); }

int64_t MetricsSampler::now_ns() const noexcept {
  uint64_t now = 0;
  return api_.get_timestamp(&now) == CUPTI_SUCCESS ? static_cast<int64_t>(now) : 0;
}

void MetricsSampler::resume() noexcept {
  if (is_forked()) return;  // the lock, too, may be held by a thread of the parent's
  std::unique_lock lock(mutex_);
  if (is_on_ || stop_ || !thread_.joinable()) return;
  is_on_ = is_changed_ = true;
  is_running_ = false;
  wake_->notify_all();
  wake_->wait_for(lock, kLongestWait, [this] { return is_running_; });
  try {
    windows_.push_back({.from_ns = now_ns()});
    if (first_window_ns_ == 0) first_window_ns_ = windows_.back().from_ns;
  } catch (const std::exception&) {
    refuse("out of memory: the sampling window could not be stored");
  }
}

void MetricsSampler::pause() noexcept {
  if (is_forked()) return;
  const int64_t now = now_ns();
  {
    const std::lock_guard lock(mutex_);
    if (!is_on_) return;
    is_on_ = false;
    is_changed_ = true;
    if (!windows_.empty()) windows_.back().until_ns = now;
  }
  wake_->notify_all();
}

void MetricsSampler::stop() noexcept {
  if (is_forked()) return;
  pause();
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_->notify_all();
  if (thread_.joinable()) thread_.join();
  for (const std::unique_ptr<PmDevice>& device : devices_) {
    if (device != nullptr) device->disable();
  }
  say_what_is_missing();
}

// A program that begins to use its GPU while it is recorded has it prepared meanwhile.
void MetricsSampler::say_what_is_missing() noexcept {
  constexpr int64_t kLateNs = 100'000'000;
  if (first_window_ns_ == 0 || is_refused_once_) return;
  if (first_sample_ns_ == 0) {
    refuse("no samples: no GPU was used for long enough; the first one comes about 0.4 s after a GPU's first use");
  } else if (const int64_t late_ns = first_sample_ns_ - first_window_ns_; late_ns > kLateNs) {
    try {
      refuse("no samples in the first " + std::to_string(late_ns / 1'000'000) +
             " ms; the first one comes about 0.4 s after a GPU's first use");
    } catch (const std::exception&) {  // no memory for the words
    }
  }
  first_window_ns_ = 0;
}

// ---- the thread's side ------------------------------------------------------------------

// Only once the program has started CUDA: before, CUPTI refuses. Never undone, because CUPTI does not count, and ending
// it for another user of it crashes.
bool MetricsSampler::start_profiler() {
  if (is_initialized_) return true;
  CUpti_Profiler_Initialize_Params initialize{};
  initialize.structSize = CUpti_Profiler_Initialize_Params_STRUCT_SIZE;
  const CUptiResult result = pm_.initialize(&initialize);
  is_initialized_ = result == CUPTI_SUCCESS;
  is_refused_ = !is_initialized_;
  if (is_refused_) refuse(result);
  if (is_initialized_) keep_cupti_attached(true);
  return is_initialized_;
}

void MetricsSampler::find_devices() noexcept {
  if (is_refused_) return;
  try {
    const std::vector<std::string> bus_ids = options_.bus_ids ? options_.bus_ids() : std::vector<std::string>();
    if (devices_.size() < bus_ids.size()) devices_.resize(bus_ids.size());
    for (size_t i = 0; i < bus_ids.size(); ++i) {
      if (bus_ids[i].empty() || devices_[i] != nullptr) continue;
      if (!start_profiler()) return;
      devices_[i] = std::make_unique<PmDevice>(pm_, api_, i);
      std::string reason;
      if (!devices_[i]->enable(options_.names, options_.interval_ns, reason)) refuse(reason);
      if (devices_[i]->is_scaled()) session_.add_metadata(kThroughputsInPercent, "1");
    }
  } catch (const std::bad_alloc&) {
    refuse("out of memory: a GPU could not be prepared");
  } catch (const std::exception& error) {
    refuse(error.what());
  }
}

void MetricsSampler::run() noexcept {
  find_devices();
  int reads = 0;
  for (bool is_last = false; !is_last;) {
    bool is_on = false;
    size_t closed = 0;
    {
      std::unique_lock lock(mutex_);
      // Off, there is nothing to read.
      const auto is_awake = [this] { return stop_ || is_changed_; };
      if (is_on_) {
        wake_->wait_for(lock, std::chrono::milliseconds(options_.read_ms), is_awake);
      } else {
        wake_->wait(lock, is_awake);
      }
      is_changed_ = false;
      is_last = stop_;
      is_on = is_on_ && !stop_;
      if (!is_on) closed = windows_.size();
    }
    const bool is_alone = std::ranges::none_of(devices_, [](const auto& device) { return device != nullptr; });
    if (is_on && (++reads % kReadsPerSearch == 0 || is_alone)) find_devices();
    for (const std::unique_ptr<PmDevice>& device : devices_) {
      if (device != nullptr && device->is_enabled()) visit(*device, is_on);
    }
    {
      const std::lock_guard lock(mutex_);  // all samples of these windows were read
      windows_.erase(windows_.begin(), windows_.begin() + static_cast<ptrdiff_t>(closed));
      is_running_ = is_on;
    }
    wake_->notify_all();
  }
}

void MetricsSampler::visit(PmDevice& device, bool is_on) noexcept {
  if (device.is_started()) {
    if (!is_on) device.stop();
    read(device);
  } else if (is_on) {
    if (const CUptiResult result = device.start(); result != CUPTI_SUCCESS) {
      refuse(result);
      device.disable();
    }
  }
}

// Samples that reach beyond the window are left out: their values are those of the whole sample. How many stay.
size_t MetricsSampler::keep_inside(PmSamples& s, size_t metrics) noexcept {
  size_t kept = 0;
  for (size_t i = 0; i < s.start_ns.size(); ++i) {
    const bool is_inside = std::ranges::any_of(
        windows_, [&](const Window& w) { return s.start_ns[i] >= w.from_ns && s.end_ns[i] <= w.until_ns; });
    if (!is_inside) continue;
    s.start_ns[kept] = s.start_ns[i];
    s.end_ns[kept] = s.end_ns[i];
    std::copy_n(s.values.begin() + static_cast<ptrdiff_t>(i * metrics), metrics,
                s.values.begin() + static_cast<ptrdiff_t>(kept * metrics));
    ++kept;
  }
  s.start_ns.resize(kept);
  s.end_ns.resize(kept);
  s.values.resize(kept * metrics);
  return kept;
}

void MetricsSampler::read(PmDevice& device) noexcept {
  Batch batch{.device = device.index(), .metrics = {}, .samples = {}};
  bool overflow = false;
  const CUptiResult result = device.read(batch.samples, overflow);
  if (overflow) session_.add_loss("GPU metrics: samples lost because CUPTI's buffer was full; sample less often", 0);
  if (result != CUPTI_SUCCESS) {
    refuse(result);
    device.disable();
  }
  uint64_t lost = batch.samples.lost_count;
  const size_t count = device.metrics().size();
  const std::lock_guard lock(mutex_);
  const size_t kept = keep_inside(batch.samples, count);
  if (kept > 0 && first_sample_ns_ == 0) first_sample_ns_ = batch.samples.start_ns.front();
  if (waiting_values_ + kept * count > kMaxWaitingValues) {
    session_.add_loss("GPU metrics: samples lost because the file was not written fast enough", kept);
  } else if (kept > 0) {
    try {
      batch.metrics = device.metrics();
      batches_.push_back(std::move(batch));
      waiting_values_ += kept * count;
    } catch (const std::exception&) {
      lost += kept;
    }
  }
  if (lost > 0) session_.add_loss("GPU metrics: samples lost because there was no memory for them", lost);
}

// ---- the drain's side -------------------------------------------------------------------

// Metric by metric: times then differ by the interval, and values by little, which is short in the file.
void MetricsSampler::drain(record::DeviceSink& sink) {
  std::vector<Batch> batches;
  {
    const std::lock_guard lock(mutex_);
    batches.swap(batches_);
    waiting_values_ = 0;
  }
  for (const Batch& batch : batches) {
    const PmSamples& s = batch.samples;
    for (size_t metric = 0; metric < batch.metrics.size(); ++metric) {
      const auto [text, is_new] = texts_.try_emplace(batch.metrics[metric], 0);
      if (is_new) text->second = sink.text(text->first);
      for (size_t i = 0; i < s.start_ns.size(); ++i) {
        sink.rows().add(
            format::DeviceMetricRow{.start_ns = s.start_ns[i],
                                    .duration_ns = s.end_ns[i] - s.start_ns[i],
                                    .device = static_cast<int64_t>(batch.device),
                                    .name = text->second,
                                    .value = std::bit_cast<int64_t>(s.values[i * batch.metrics.size() + metric])});
      }
      sink.checkpoint();
    }
  }
}

#endif
}  // namespace firelane::cupti
