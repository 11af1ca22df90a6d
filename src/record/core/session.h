// One recording: from start to stop, into one .lane file.
//
//   auto session = Session::start({.shapes = true});   // Result<std::unique_ptr<Session>>
//   ... hooks push through record/core/thread_buffer.h ...
//   session->stop();
//   session->save("run.lane");                          // else the file is deleted with `session`
//
// At most one session records in a process; a second start is an Error. Problems with the
// environment (no folder, read-only, disk full, no memory) are not Errors: the program continues, the
// session records nothing more, and status().losses has the reason, once.
//
// All methods may be called from any thread; none throws. Only the drain thread touches the disk,
// except in stop() and save(), which wait for it.
//
// fork: the child's copy is inert (status().state == kForked, no file, no thread) and the child
// may start a session of its own. exec and kill -9 leave a readable file that lacks the last 200 ms.
// exit without stop: the file is completed, closed and kept.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "format/record_options.h"
#include "format/sink.h"
#include "record/core/call_lines.h"
#include "record/core/device_source.h"
#include "record/core/parts.h"
#include "record/core/steps.h"

namespace firelane::record {

struct RecordOptions {
  // What the hooks record, by the names of format/record_options.h. The core only writes these into the trace;
  // hooks read them through Session::options().
#define FL_FIELD(name, on, key, help) bool name = on;
  FL_RECORD_OPTIONS(FL_FIELD)
#undef FL_FIELD

  // What follows is for the fronts.
  std::string metric_names;  // with metrics: CUPTI's names, by commas; empty: a default set
  uint64_t metric_interval_ns = 1'000'000;
  bool flops = false;           // torch.profiler's with_flops: hooks record shapes, readers compute FLOPs from them
  bool cuda_detach = true;      // with `cuda`: stop() detaches CUPTI, unless another tool uses it
  bool concrete_inputs = true;  // with shapes: the values of numbers and lists of numbers
  bool tensors = false;         // with shapes: which tensor and which storage each input is
  Parts parts;                  // all of them, or what the user chose
  CallLines call_lines;         // with lines: who knows them
  bool start_paused = false;    // nothing is recorded until resume()
  bool start_light = false;     // without ops and what else costs time, until begin_full() of the hooks
  // The file while it is written. Empty: FIRELANE_DIR, else the system's temporary folder, as
  // firelane-<pid>-<n>.lane. A folder: that name inside it. An existing file is replaced.
  std::filesystem::path output;
  // Keep the file when the session is destroyed, even without save(). Set if the user chose `output`.
  bool keep = false;
  uint64_t max_in_flight_bytes = 48u << 20;  // events not yet written; at most 48 MiB
  uint32_t drain_interval_ms = 200;
  int zstd_level = 1;
  // Tests: where the bytes go instead of a file.
  std::function<std::unique_ptr<format::ByteSink>()> make_sink;
};

// Something that is not in the trace, and why. Ends up in prof.losses.
struct Loss {
  std::string reason;  // "disk full: /tmp/firelane-12-1.lane: No space left on device"
  uint64_t count = 0;  // events; 0 = unknown or not about events
};

enum class SessionState : uint8_t {
  kRecording,
  kPaused,
  kFailed,   // stopped itself: see losses
  kStopped,  // by stop()
  kForked,   // this is a child's copy
};

struct SessionStatus {
  SessionState state = SessionState::kStopped;
  std::vector<Loss> losses;
  uint64_t event_count = 0;    // written
  uint64_t dropped_count = 0;  // the same number as in losses
  uint64_t file_bytes = 0;
  uint64_t in_flight_bytes = 0;  // blocks in use now
  uint32_t thread_count = 0;     // seen so far
};

class Session {
 public:
  static Result<std::unique_ptr<Session>> start(const RecordOptions& options);
  // Stops when still running; removes the file unless kept or saved.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Hooks push nothing while paused; slices begun before still get their ends. Cheap; takes no
  // part in the drain. Disable the hooks after pause() and enable them before resume().
  void pause() noexcept;
  void resume() noexcept;
  // Ends the recording: drains what is left, completes the file. Idempotent. Python slices
  // and ops still open are closed by the reader at the time of the stop.
  void stop() noexcept;

  // After stop(): moves the file (rename, or copy across file systems). A second save copies.
  // Also works for a session that stopped itself: what was written is saved.
  Result<void> save(const std::filesystem::path& path);
  // After stop(): the path of the file; empty if there is none.
  std::filesystem::path path() const;

  SessionStatus status() const;
  const RecordOptions& options() const noexcept;
  uint64_t start_ticks() const noexcept;

  // Notes for the trace; any time until stop(), also while paused. Written by the drain.
  void add_metadata(std::string_view key, std::string_view json) noexcept;
  void add_steps(const std::vector<StepSample>& steps) noexcept;
  // How much the hooks record from now on.
  void note_level(format::RecordLevel level) noexcept;
  // What one event of `kind` ("op", "op+inputs", "memory", "python") adds to the program, as
  // measured in this process, hook included. core_costs() gives the part below the hooks.
  void add_cost(std::string_view kind, double ns_per_event) noexcept;
  // Where an item of notes that only a hook knows goes (format/notes.h).
  void add_notes(std::string_view items) noexcept;
  // What the drain asks for device activity from now on; null: nothing. The source must live until stop() or
  // until this was called with null.
  void set_device_source(DeviceSource* source) noexcept;
  // Something a hook could not record.
  void add_loss(std::string_view reason, uint64_t count) noexcept;

 private:
  Session() = default;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// ns per event of the buffers alone, measured now on a scratch buffer (about 0.3 ms): for
// "begin+end", "begin+end+inputs", "memory", "text".
struct CoreCost {
  std::string_view kind;
  double ns_per_event = 0;
};
std::vector<CoreCost> core_costs();

}  // namespace firelane::record
