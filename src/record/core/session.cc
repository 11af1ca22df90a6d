#include "record/core/session.h"

#include <unistd.h>

#include <cstdio>
#include <exception>
#include <mutex>
#include <system_error>

#include "base/environment.h"
#include "format/notes.h"
#include "record/core/abandoned.h"
#include "record/core/drain.h"
#include "record/core/machine.h"
#include "record/core/recorder.h"

namespace firelane::record {
namespace fs = std::filesystem;
namespace {

std::string host_name() {
  char name[256] = "";
  if (::gethostname(name, sizeof name - 1) != 0) return {};
  return name;
}

// The program's arguments, by spaces; at most 4 KiB.
std::string command_line() {
  std::string text(4096, '\0');
  std::FILE* file = std::fopen("/proc/self/cmdline", "re");
  if (file == nullptr) return {};
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  while (!text.empty() && text.back() == '\0') text.pop_back();
  for (char& c : text) {
    if (c == '\0') c = ' ';
  }
  return text;
}

fs::path choose_path(const fs::path& asked, uint64_t number) {
  const std::string name = "firelane-" + std::to_string(::getpid()) + "-" + std::to_string(number) + ".lane";
  std::error_code error;
  if (!asked.empty()) return fs::is_directory(asked, error) ? asked / name : asked;
  if (const char* dir = environment::value_of(environment::kDir)) return fs::path(dir) / name;
  fs::path temporary = fs::temp_directory_path(error);
  return (error ? fs::path("/tmp") : temporary) / name;
}

uint64_t new_trace_id() {
  const ClockPair now = read_clock_pair();
  return mix_hash(static_cast<uint64_t>(now.unix_ns) ^ now.ticks, static_cast<uint64_t>(::getpid()));
}

}  // namespace

struct Session::Impl final : Recorder::Client {
  RecordOptions options;
  uint64_t number = 0;
  uint32_t fork_count = 0;
  ClockPair start_pair;
  fs::path path;
  std::unique_ptr<Drain> drain;

  mutable std::mutex mutex;  // guards what follows
  SessionState state = SessionState::kRecording;
  std::vector<Loss> losses;
  bool ended = false;
  bool has_file = false;
  bool keep = false;
  uint32_t thread_count = 0;  // as of the end

  bool forked() const noexcept { return fork_count != Recorder::get().fork_count(); }
  void open();
  std::string first_notes() const;
  void end() noexcept;
  void fail(std::string_view reason);
  void add_loss_locked(std::string_view reason, uint64_t count);
  bool add_items(const std::string& items) { return drain == nullptr || drain->add_notes(items); }

  void on_exit() noexcept override {
    keep = true;
    end();
  }
  void on_fork_in_child() noexcept override {
    if (drain != nullptr) drain->abandon_in_child();
  }
};

// ---- start ------------------------------------------------------------------------------

Result<std::unique_ptr<Session>> Session::start(const RecordOptions& options) {
  try {
    std::unique_ptr<Session> session(new Session());
    session->impl_ = std::make_unique<Impl>();
    Impl& impl = *session->impl_;
    impl.options = options;
    impl.keep = options.keep;
    impl.fork_count = Recorder::get().fork_count();
    const char* reason = nullptr;
    impl.number = Recorder::get().open_session(&impl, options.max_in_flight_bytes, reason);
    if (impl.number == 0) return Error{std::string("cannot record: ") + reason};
    impl.open();
    return session;
  } catch (const std::exception& e) {
    return Error{std::string("cannot record: ") + e.what()};
  }
}

void Session::Impl::open() {
  start_pair = read_clock_pair();
  path = choose_path(options.output, number);
  if (options.output.empty()) {
    static const bool once = (remove_abandoned(path.parent_path()), true);
    static_cast<void>(once);
  }
  std::string error;
  std::unique_ptr<format::ByteSink> sink =
      options.make_sink ? options.make_sink() : format::open_file_sink(path, error);
  if (sink == nullptr) return fail("recording stopped: " + path.string() + ": " + error);
  has_file = !options.make_sink;
  drain = std::make_unique<Drain>(std::move(sink),
                                  Drain::Options{.interval_ms = options.drain_interval_ms,
                                                 .zstd_level = options.zstd_level,
                                                 .start_ticks = start_pair.ticks,
                                                 .trace_id = new_trace_id()},
                                  [this](const std::string& reason) { fail(reason); });
  error = drain->open(first_notes());
  if (!error.empty()) {
    std::error_code ignored;
    if (has_file) fs::remove(path, ignored);  // without its first notes it could not be read
    has_file = false;
    return fail("recording stopped: " + path.string() + ": " + error);
  }
  if (!drain->start_thread()) return fail("recording stopped: the system refused to start a thread for writing");
  if (options.start_paused) {
    state = SessionState::kPaused;
  } else {
    Recorder::get().set_recording(number, true);
  }
}

std::string Session::Impl::first_notes() const {
  std::string items;
  format::NotesWriter notes(items);
  notes.process(static_cast<uint32_t>(::getpid()), tick_source(), ticks_per_second(), host_name(), command_line());
  notes.clock_pair(format::PairRole::kStart, start_pair);
#define FL_NOTE(name, on, key, help) notes.option(key, options.name ? "1" : "0");
  FL_RECORD_OPTIONS(FL_NOTE)
#undef FL_NOTE
  notes.option("with_flops", options.flops ? "1" : "0");
  notes.metadata("machine", machine_json());
  if (options.start_paused) notes.pause(false, start_pair.ticks);
  if (options.start_light) notes.level(format::RecordLevel::kLight, start_pair.ticks);
  return items;
}

// ---- trouble ----------------------------------------------------------------------------

void Session::Impl::add_loss_locked(std::string_view reason, uint64_t count) {
  for (Loss& loss : losses) {
    if (loss.reason == reason) {
      loss.count += count;
      return;
    }
  }
  losses.push_back({std::string(reason), count});
}

void Session::Impl::fail(std::string_view reason) {
  Recorder::get().set_recording(number, false);
  const std::lock_guard lock(mutex);
  state = SessionState::kFailed;
  add_loss_locked(reason, 0);
}

// ---- while it runs ----------------------------------------------------------------------

void Session::pause() noexcept {
  Impl& s = *impl_;
  if (s.forked()) return;
  try {
    const std::lock_guard lock(s.mutex);
    if (s.state != SessionState::kRecording) return;
    s.state = SessionState::kPaused;
    Recorder::get().set_recording(s.number, false);
    std::string items;
    format::NotesWriter(items).pause(false, now_ticks());
    s.add_items(items);
  } catch (const std::exception&) {
  }
}

void Session::resume() noexcept {
  Impl& s = *impl_;
  if (s.forked()) return;
  try {
    const std::lock_guard lock(s.mutex);
    if (s.state != SessionState::kPaused) return;
    s.state = SessionState::kRecording;
    std::string items;
    format::NotesWriter(items).pause(true, now_ticks());
    s.add_items(items);
    Recorder::get().set_recording(s.number, true);
  } catch (const std::exception&) {
  }
}

void Session::add_metadata(std::string_view key, std::string_view json) noexcept {
  if (impl_->forked()) return;
  try {
    std::string items;
    format::NotesWriter(items).metadata(key, json);
    if (impl_->drain != nullptr && !impl_->drain->add_metadata(items))
      add_loss("metadata too large: " + std::string(key), 0);
  } catch (const std::exception&) {
  }
}

void Session::add_steps(const std::vector<StepSample>& steps) noexcept {
  if (impl_->forked()) return;
  try {
    std::string items;
    format::NotesWriter notes(items);
    for (const StepSample& s : steps) {
      notes.step(s.number, s.phase, s.start_ticks, s.duration_ticks, s.device_ns);
      if (s.thread.ran_ns >= 0) notes.step_thread(s.thread.ran_ns, s.thread.waited_ns);
    }
    if (!impl_->add_items(items)) add_loss("times of steps: too many to be written", steps.size());
  } catch (const std::exception&) {
  }
}

void Session::note_level(format::RecordLevel level) noexcept {
  if (impl_->forked()) return;
  try {
    std::string items;
    format::NotesWriter(items).level(level, now_ticks());
    impl_->add_items(items);
  } catch (const std::exception&) {
  }
}

void Session::add_cost(std::string_view kind, double ns_per_event) noexcept {
  if (impl_->forked()) return;
  try {
    std::string items;
    format::NotesWriter(items).cost(kind, ns_per_event);
    impl_->add_items(items);
  } catch (const std::exception&) {
  }
}

void Session::add_loss(std::string_view reason, uint64_t count) noexcept {
  if (impl_->forked()) return;
  try {
    std::string items;
    {
      const std::lock_guard lock(impl_->mutex);
      impl_->add_loss_locked(reason, count);
      for (const Loss& loss : impl_->losses) {
        if (loss.reason == reason) format::NotesWriter(items).loss(reason, loss.count);
      }
    }
    impl_->add_items(items);
  } catch (const std::exception&) {
  }
}

void Session::add_notes(std::string_view items) noexcept {
  if (impl_->forked() || impl_->drain == nullptr) return;
  try {
    impl_->drain->add_notes(items);
  } catch (const std::exception&) {
  }
}

void Session::set_device_source(DeviceSource* source) noexcept {
  if (!impl_->forked() && impl_->drain != nullptr) impl_->drain->set_device_source(source);
}

SessionStatus Session::status() const {
  const Impl& s = *impl_;
  SessionStatus status;
  if (s.forked()) {
    status.state = SessionState::kForked;
    return status;
  }
  const std::lock_guard lock(s.mutex);
  status.state = s.state;
  status.losses = s.losses;
  if (s.drain == nullptr) return status;
  status.event_count = s.drain->event_count();
  status.dropped_count = s.drain->lost_count();
  status.file_bytes = s.drain->file_bytes();
  status.in_flight_bytes = s.ended ? 0 : Recorder::get().in_flight_bytes();
  status.thread_count = s.ended ? s.thread_count : Recorder::get().thread_count();
  if (status.dropped_count > 0) status.losses.push_back({std::string(kDroppedReason), status.dropped_count});
  return status;
}

const RecordOptions& Session::options() const noexcept { return impl_->options; }
uint64_t Session::start_ticks() const noexcept { return impl_->start_pair.ticks; }

// ---- the end ----------------------------------------------------------------------------

void Session::Impl::end() noexcept {
  {
    const std::lock_guard lock(mutex);
    if (ended || number == 0) return;  // number 0: refused at the start, nothing to end
    ended = true;
    if (state != SessionState::kFailed) state = SessionState::kStopped;
  }
  Recorder& recorder = Recorder::get();
  recorder.set_recording(number, false);
  thread_count = recorder.thread_count();
  if (drain != nullptr) {
    std::string items;
    try {
      format::NotesWriter(items).clock_pair(format::PairRole::kStop, read_clock_pair());
    } catch (const std::exception&) {
    }
    drain->finish(items);
  }
  recorder.close_session();
}

void Session::stop() noexcept {
  if (!impl_->forked()) impl_->end();
}

Session::~Session() {
  if (impl_ == nullptr) return;
  if (impl_->forked()) {
    // The parent's thread and locks were copied in an unknown state: leave them alone.
    (void)impl_.release();
    return;
  }
  impl_->end();
  std::error_code error;
  if (impl_->has_file && !impl_->keep) fs::remove(impl_->path, error);
}

fs::path Session::path() const { return impl_->has_file && !impl_->forked() ? impl_->path : fs::path(); }

Result<void> Session::save(const fs::path& target) {
  Impl& s = *impl_;
  if (s.forked()) return Error{"cannot save " + target.string() + ": the recording belongs to the parent process"};
  const std::lock_guard lock(s.mutex);
  if (!s.ended)
    return Error{"cannot save " + target.string() + ": it is still being recorded; stop the recording first"};
  if (!s.has_file) {
    return Error{"cannot save " + target.string() + ": nothing was recorded" +
                 (s.losses.empty() ? std::string() : " (" + s.losses.front().reason + ")")};
  }
  std::error_code error;
  if (fs::equivalent(s.path, target, error)) {
    s.keep = true;
    return {};
  }
  error.clear();
  if (!s.keep) {
    fs::rename(s.path, target, error);
    if (!error) {
      s.path = target;
      s.keep = true;
      return {};
    }
  }
  error.clear();
  fs::copy_file(s.path, target, fs::copy_options::overwrite_existing, error);
  if (error)
    return Error{"cannot save " + target.string() + ": " + error.message() + "; the recording is still at " +
                 s.path.string()};
  return {};
}

}  // namespace firelane::record
