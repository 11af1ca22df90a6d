// Device activity of one recording: CUPTI on, its buffers to the drain, CUPTI off again.
//
//   std::string reason;
//   auto activity = DeviceActivity::start(api, session, reason);   // null: the trace is CPU-only, and why
//   activity->open_window();       // what ended before this is left out
//   activity->stop();              // before session.stop(), which writes the rest
//
// No timestamp callback and no external ids: clocks are mapped by paired readings (a note every second), ops are
// linked to launches by thread and time. Calls come from callbacks (call_hook.h) or, if another tool has
// those, from activity records. After stop() nothing is enabled, our callbacks do nothing, and CUPTI is detached from
// the process (detach.h), unless another tool uses it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "format/notes.h"
#include "record/core/session.h"
#include "record/cupti/api.h"
#include "record/cupti/buffers.h"
#include "record/cupti/call_hook.h"
#include "record/cupti/calls.h"
#include "record/cupti/decode.h"

namespace firelane::cupti {

class DeviceActivity final : public record::DeviceSource {
 public:
  // At most one at a time in a process; `session` must outlive it. It becomes the session's device source.
  static std::unique_ptr<DeviceActivity> start(const CuptiApi& api, record::Session& session,
                                               std::string& reason) noexcept;
  ~DeviceActivity() override;
  DeviceActivity(const DeviceActivity&) = delete;
  DeviceActivity& operator=(const DeviceActivity&) = delete;

  // Also turns on what pause() turned off. Nothing here waits for the device.
  void open_window() noexcept;
  // What ends after this is kept, too, and marked by the reader. Part of stop(); called before it where stopping waits.
  void close_window() noexcept;
  void pause() noexcept;
  void resume() noexcept;
  // Everything off, all buffers handed over. REQUIRES: the device was synchronized; what still runs is lost.
  // Idempotent.
  void stop() noexcept;

  void drain(record::DeviceSink& sink) override;

  // Buffers of this process, CUPTI's included. After a recording: those that a CUPTI which stays keeps.
  static size_t buffer_count() noexcept;

 private:
  DeviceActivity(const CuptiApi& api, record::Session& session)
      : api_(api), session_(session), decoder_(api), call_hook_(api) {}
  static void request_buffer(uint8_t** buffer, size_t* bytes, size_t* max_records);
  static void complete_buffer(CUcontext context, uint32_t stream, uint8_t* buffer, size_t bytes, size_t valid_bytes);
  bool enable(std::string& reason) noexcept;
  bool enable_call_records(std::string& reason) noexcept;
  void disable() noexcept;
  void note_clock(format::PairRole role) noexcept;
  void note_window(bool closed, uint64_t device_ns) noexcept;
  void note_versions() noexcept;
  size_t count_dropped(const BufferQueue::Full& buffer);
  uint64_t count_records(const BufferQueue::Full& buffer) const noexcept;

  const CuptiApi api_;
  record::Session& session_;
  ActivityDecoder decoder_;
  CallHook call_hook_;
  CallIds unwanted_;            // of the activity records of calls
  bool has_call_hook_ = false;  // decided by the first enable()
  bool is_first_enable_ = true;
  bool is_after_leaving_ = false;  // the previous recording detached CUPTI
  CUpti_ActivityThreadIdType thread_id_type_ = CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT;
  bool stopped_ = false;
  bool closed_ = false;                           // close_window()
  std::mutex drain_mutex_;                        // CUPTI must not leave while its records are read
  bool detached_ = false;                         // guarded by drain_mutex_
  std::set<std::pair<void*, uint32_t>> counted_;  // contexts and streams whose dropped records were asked for; likewise
  std::mutex mutex_;                              // guards the two below
  bool enabled_ = false;
  uint64_t last_clock_ticks_ = 0;
  std::atomic<uint64_t> from_ns_{UINT64_MAX};  // UINT64_MAX: the window is not open yet
  std::atomic<uint64_t> lost_{0};
};

}  // namespace firelane::cupti
