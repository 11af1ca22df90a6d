#include "record/cupti/activity.h"

#include <exception>
#include <utility>

#include "format/notes.h"
#include "record/core/recorder.h"
#include "record/cupti/detach.h"

namespace firelane::cupti {
namespace {

constexpr CUpti_ActivityKind kKinds[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMCPY2,           CUPTI_ACTIVITY_KIND_MEMSET,
    CUPTI_ACTIVITY_KIND_OVERHEAD,
};
// Expensive: on an H200 these alone added as much to a training step as everything else together. The calls that wait
// are recorded without them.
constexpr CUpti_ActivityKind kSyncKinds[] = {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_CUDA_EVENT};

bool is_wanted(const record::Parts& parts, CUpti_ActivityKind kind) noexcept {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return parts.kernels;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
    case CUPTI_ACTIVITY_KIND_MEMCPY2: return parts.copies;
    case CUPTI_ACTIVITY_KIND_MEMSET: return parts.memsets;
    case CUPTI_ACTIVITY_KIND_OVERHEAD: return parts.overhead;
    default: return true;
  }
}

// One is being filled; the next ones, until the drain comes round again.
constexpr size_t kReadyBuffers = 3;

// CUPTI's callbacks have no argument of ours, and may come late: both outlive every recording.
std::atomic<DeviceActivity*> g_active{nullptr};
std::atomic<bool> g_has_left{false};  // the previous recording detached CUPTI
BufferQueue& buffers() {
  static BufferQueue& queue = *new BufferQueue();
  return queue;
}

}  // namespace

std::unique_ptr<DeviceActivity> DeviceActivity::start(const CuptiApi& api, record::Session& session,
                                                      std::string& reason) noexcept {
  try {
    std::unique_ptr<DeviceActivity> activity(new DeviceActivity(api, session));
    DeviceActivity* none = nullptr;
    if (!g_active.compare_exchange_strong(none, activity.get())) {
      activity->stopped_ = true;
      reason = "GPU: another recording in this process is using the GPU; stop it first";
      return nullptr;
    }
    activity->is_after_leaving_ = g_has_left.exchange(false);
    BufferQueue::Full left;
    while (buffers().next(left)) buffers().release(left.data);  // of a recording that was stopped before
    buffers().prepare(kReadyBuffers);
    if (!activity->enable(reason)) {
      reason = "GPU: " + reason;
      activity->stop();
      return nullptr;
    }
    size_t of_others = 0;  // records that were dropped before our time
    api.dropped_records(nullptr, 0, &of_others);
    activity->note_clock(format::PairRole::kStart);
    activity->note_versions();
    session.set_device_source(activity.get());
    return activity;
  } catch (const std::exception& error) {
    reason = std::string("GPU: ") + error.what();
    return nullptr;
  }
}

DeviceActivity::~DeviceActivity() {
  if (session_.status().state == record::SessionState::kForked) {  // CUPTI belongs to the parent: its locks may be held
    g_active.store(nullptr, std::memory_order_release);
    return;
  }
  stop();
  session_.set_device_source(nullptr);
  buffers().trim();
}

size_t DeviceActivity::buffer_count() noexcept { return buffers().count(); }

// ---- CUPTI's side -----------------------------------------------------------------------

void DeviceActivity::request_buffer(uint8_t** buffer, size_t* bytes, size_t* max_records) {
  BufferQueue::Full lost;
  *buffer = buffers().take(lost);
  *bytes = *buffer != nullptr ? BufferQueue::kBufferBytes : 0;
  *max_records = 0;
  DeviceActivity* active = g_active.load(std::memory_order_acquire);
  if (lost.data != nullptr && active != nullptr) active->lost_ += active->count_records(lost);
}

void DeviceActivity::complete_buffer(CUcontext context, uint32_t stream, uint8_t* buffer, size_t, size_t valid_bytes) {
  if (buffer == nullptr) return;
  const bool is_wanted = valid_bytes > 0 && g_active.load(std::memory_order_acquire) != nullptr;
  if (!is_wanted) return buffers().complete({.data = buffer});
  buffers().complete({.data = buffer, .valid_bytes = valid_bytes, .context = context, .stream = stream});
  record::Recorder::get().wake();
}

uint64_t DeviceActivity::count_records(const BufferQueue::Full& buffer) const noexcept {
  CUpti_Activity* record = nullptr;
  uint64_t count = 0;
  while (api_.next_record(buffer.data, buffer.valid_bytes, &record) == CUPTI_SUCCESS) ++count;
  return count;
}

// ---- on and off -------------------------------------------------------------------------

bool DeviceActivity::enable(std::string& reason) noexcept {
  const std::lock_guard lock(mutex_);
  if (enabled_) return true;
  const auto ok = [&](CUptiResult result) {
    if (result == CUPTI_SUCCESS) return true;
    reason = explain(api_, result);
    return false;
  };
  // Records carry system thread ids then, as our own events do. Given back by disable().
  api_.get_thread_id_type(&thread_id_type_);
  if (!ok(api_.set_thread_id_type(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM))) return false;
  enabled_ = true;  // from here on there is something to disable
  if (!ok(api_.register_callbacks(request_buffer, complete_buffer))) return false;
  CUptiResult refusal = CUPTI_SUCCESS;
  const bool wants_calls = session_.options().parts.calls;
  const bool hooked = wants_calls && (is_first_enable_ || has_call_hook_) && call_hook_.start(refusal);
  if (is_first_enable_ && wants_calls) {
    has_call_hook_ = hooked;
    session_.add_metadata("cuda_calls_by", hooked ? "\"callbacks\"" : "\"activity records\"");
    is_first_enable_ = false;
  }
  for (const CUpti_ActivityKind kind : kKinds) {
    if (is_wanted(session_.options().parts, kind) && !ok(api_.enable(kind))) return false;
  }
  if (session_.options().cuda_sync) {
    for (const CUpti_ActivityKind kind : kSyncKinds) {
      if (!ok(api_.enable(kind))) return false;
    }
  }
  return hooked || !wants_calls || enable_call_records(reason);
}

// If another tool has the callbacks. Expensive: these kinds slow down every CUDA call, even those that are turned off.
bool DeviceActivity::enable_call_records(std::string& reason) noexcept {
  for (const CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER}) {
    if (const CUptiResult result = api_.enable(kind); result != CUPTI_SUCCESS) {
      reason = explain(api_, result);
      return false;
    }
  }
  // All are on now. Turning on only the wanted ones succeeds, too, but gives no records (CUDA 13.0). What an older
  // library cannot turn off the decoder leaves out.
  if (api_.enable_runtime_call == nullptr || api_.enable_driver_call == nullptr) return true;
  try {
    if (unwanted_.runtime.empty()) unwanted_ = unwanted_calls(api_);
  } catch (const std::exception&) {
    return true;
  }
  for (const CUpti_CallbackId id : unwanted_.runtime) api_.enable_runtime_call(id, 0);
  for (const CUpti_CallbackId id : unwanted_.driver) api_.enable_driver_call(id, 0);
  return true;
}

void DeviceActivity::disable() noexcept {
  const std::lock_guard lock(mutex_);
  if (!enabled_) return;
  enabled_ = false;
  call_hook_.stop();
  const record::Parts& parts = session_.options().parts;
  for (const CUpti_ActivityKind kind : kKinds) {
    if (is_wanted(parts, kind)) api_.disable(kind);
  }
  if (session_.options().cuda_sync) {
    for (const CUpti_ActivityKind kind : kSyncKinds) api_.disable(kind);
  }
  if (!has_call_hook_ && parts.calls) {
    api_.disable(CUPTI_ACTIVITY_KIND_RUNTIME);
    api_.disable(CUPTI_ACTIVITY_KIND_DRIVER);
  }
  api_.set_thread_id_type(thread_id_type_);
}

void DeviceActivity::open_window() noexcept {
  resume();
  uint64_t now = 0;
  if (from_ns_.load() != UINT64_MAX || api_.get_timestamp(&now) != CUPTI_SUCCESS) return;
  from_ns_.store(now);
  note_window(false, now);
}

void DeviceActivity::close_window() noexcept {
  uint64_t now = 0;
  if (std::exchange(closed_, true) || from_ns_.load() == UINT64_MAX) return;
  if (api_.get_timestamp(&now) == CUPTI_SUCCESS) note_window(true, now);
}

void DeviceActivity::note_window(bool closed, uint64_t device_ns) noexcept {
  try {
    std::string items;
    format::NotesWriter(items).device_window(closed, static_cast<int64_t>(device_ns));
    session_.add_notes(items);
  } catch (const std::exception&) {
  }
}

void DeviceActivity::pause() noexcept {
  if (stopped_) return;
  api_.flush_all(0);  // as in stop(); it does not wait for the device
  disable();
}

void DeviceActivity::resume() noexcept {
  std::string reason;
  if (!stopped_ && !enable(reason)) session_.add_loss("GPU: " + reason, 0);
}

void DeviceActivity::stop() noexcept {
  if (stopped_) return;
  stopped_ = true;
  close_window();
  note_clock(format::PairRole::kStop);
  // Flushed while the kinds are on: turning one off drops what it holds back. A forced flush would also hand out work
  // that still runs, without its end.
  api_.flush_all(0);
  disable();
  api_.flush_all(0);
  if (session_.options().cuda_detach) {
    const std::lock_guard lock(drain_mutex_);
    detached_ = detach_cupti(api_);
    if (detached_) {
      g_has_left.store(true, std::memory_order_relaxed);
      buffers().reclaim();  // a flush leaves CUPTI the one that it fills at the moment
    }
  }
  g_active.store(nullptr, std::memory_order_release);
}

void DeviceActivity::note_versions() noexcept {
  uint32_t version = 0;
  if (api_.get_version(&version) == CUPTI_SUCCESS) session_.add_metadata("cupti_version", std::to_string(version));
  int driver = 0;
  if (api_.driver_call != nullptr && api_.driver_call(&driver) == CUDA_SUCCESS) {
    session_.add_metadata("cuda_driver_version", std::to_string(driver));
  }
}

// The tightest of a few readings of the device's clock between two of ours.
void DeviceActivity::note_clock(format::PairRole role) noexcept {
  constexpr int kReadings = 8;
  uint64_t best_width = UINT64_MAX;
  uint64_t best_ticks = 0;
  uint64_t best_ns = 0;
  for (int i = 0; i < kReadings; ++i) {
    uint64_t ns = 0;
    const uint64_t before = now_ticks();
    if (api_.get_timestamp(&ns) != CUPTI_SUCCESS) return;
    const uint64_t width = now_ticks() - before;
    if (width >= best_width) continue;
    best_width = width;
    best_ticks = before + width / 2;
    best_ns = ns;
  }
  try {
    std::string items;
    format::NotesWriter(items).device_clock(role, best_ticks, static_cast<int64_t>(best_ns), best_width);
    session_.add_notes(items);
  } catch (const std::exception&) {
  }
  const std::lock_guard lock(mutex_);
  last_clock_ticks_ = best_ticks;
}

// ---- the drain's side -------------------------------------------------------------------

// What ran while CUPTI was being detached counts as dropped, in the next recording.
size_t DeviceActivity::count_dropped(const BufferQueue::Full& buffer) {
  size_t dropped = 0;
  if (api_.dropped_records(static_cast<CUcontext>(buffer.context), buffer.stream, &dropped) != CUPTI_SUCCESS) return 0;
  const bool is_first = counted_.insert({buffer.context, buffer.stream}).second;
  return is_first && is_after_leaving_ ? 0 : dropped;
}

void DeviceActivity::drain(record::DeviceSink& sink) {
  const std::lock_guard draining(drain_mutex_);
  const uint64_t from = from_ns_.load();
  BufferQueue::Full buffer;
  while (buffers().next(buffer)) {
    if (from != UINT64_MAX) decoder_.decode(buffer, from, sink);
    if (!detached_) lost_ += count_dropped(buffer);
    buffers().release(buffer.data);
  }
  if (const uint64_t lost = lost_.exchange(0); lost > 0) {
    session_.add_loss("GPU: records dropped because the buffers were full", lost);
  }
  if (const uint64_t broken = decoder_.take_broken(); broken > 0) {
    session_.add_loss("GPU: malformed records from CUPTI; update the driver or torch", broken);
  }
  if (const uint64_t untimed = decoder_.take_untimed(); untimed > 0) {
    session_.add_loss("GPU: work without timestamps; synchronize before stop()", untimed);
  }
  bool is_enabled = false;
  bool is_clock_due = false;
  {
    const std::lock_guard lock(mutex_);
    is_enabled = enabled_;
    is_clock_due = static_cast<double>(now_ticks() - last_clock_ticks_) > ticks_per_second();
  }
  if (!is_enabled) return;
  buffers().prepare(kReadyBuffers);
  if (is_clock_due) note_clock(format::PairRole::kHeartbeat);
}

}  // namespace firelane::cupti
