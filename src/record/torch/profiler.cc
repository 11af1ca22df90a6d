// The C++ front: include/firelane/profiler.h.
#include <firelane/profiler.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "record/core/ranges.h"
#include "record/torch/recording.h"
#include "record/torch/step_timer.h"

namespace firelane {
namespace {

format::StepPhase phase_of(ProfilerAction action) {
  switch (action) {
    case ProfilerAction::kNone: return format::StepPhase::kUnrecorded;
    case ProfilerAction::kWarmup: return format::StepPhase::kWarmup;
    case ProfilerAction::kRecord:
    case ProfilerAction::kRecordAndSave: return format::StepPhase::kRecorded;
  }
  return format::StepPhase::kUnrecorded;
}

}  // namespace

ProfilerSchedule schedule(const ScheduleOptions& options) {
  ScheduleOptions o = options;
  o.active = std::max<int64_t>(o.active, 1);
  return [o](int64_t step) {
    if (step < o.skip_first) return ProfilerAction::kNone;
    step -= o.skip_first;
    const int64_t cycle = o.wait + o.warmup + o.active;
    if (o.repeat > 0 && step / cycle >= o.repeat) return ProfilerAction::kNone;
    const int64_t at = step % cycle;
    if (at < o.wait) return ProfilerAction::kNone;
    if (at < o.wait + o.warmup) return ProfilerAction::kWarmup;
    return at < cycle - 1 ? ProfilerAction::kRecord : ProfilerAction::kRecordAndSave;
  };
}

struct Profiler::Impl {
  ProfilerOptions options;
  torch_hooks::TorchStepTimer timer;
  std::unique_ptr<torch_hooks::Recording> recording;  // under way, or the newest complete one
  std::vector<std::string> start_losses;
  int64_t number = 0;
  uint64_t step_range = 0;
  ProfilerAction action = ProfilerAction::kNone;
  bool stopped = false;

  bool is_under_way() const { return recording != nullptr && !recording->is_stopped(); }

  void begin_step() {
    action = options.schedule ? options.schedule(number) : ProfilerAction::kRecord;
    const format::StepPhase phase = phase_of(action);
    if (phase != format::StepPhase::kUnrecorded && !is_under_way()) start(phase == format::StepPhase::kWarmup);
    if (phase == format::StepPhase::kRecorded && is_under_way() &&
        recording->session().status().state == record::SessionState::kPaused) {
      recording->resume_device();
      recording->resume();
    }
    const bool is_cold =
        number == 0 && phase == format::StepPhase::kUnrecorded;  // the first step is not part of the baseline
    timer.step(number, is_cold ? format::StepPhase::kWarmup : phase);
    step_range = record::begin_range("ProfilerStep#" + std::to_string(number), "");
  }
  // True if the current trace ends with this step.
  bool end_step() {
    record::end_range(step_range);
    timer.finish();
    return action == ProfilerAction::kRecordAndSave;
  }
  // The recording ends inside a step: that step is not timed, and its range is not a step.
  void cut_off_step() {
    if (is_under_way() && phase_of(action) == format::StepPhase::kRecorded) {
      recording->session().add_metadata("unfinished_step", std::to_string(number));
    }
    record::end_range(step_range);
  }
  void start(bool paused) {
    record::RecordOptions record;
    record.shapes = options.shapes;
    record.memory = options.memory;
    record.cuda = options.cuda;
    record.cuda_sync = options.cuda_sync;
    record.metric_names = options.metric_names;
    // Nothing here throws: with an interval that is none, the rest is recorded.
    const std::string wrong = options.metrics ? format::wrong_metric_interval(options.metric_interval_ms) : "";
    record.metrics = options.metrics && wrong.empty();
    if (record.metrics)
      record.metric_interval_ns = static_cast<uint64_t>(std::llround(options.metric_interval_ms * 1e6));
    record.start_paused = paused;
    record.output = options.output;
    auto started = torch_hooks::Recording::start(record);
    recording.reset();
    start_losses.clear();
    if (started.ok()) {
      recording = std::move(started).value();
      recording->session().add_metadata("front", "\"C++\"");
      if (!wrong.empty()) recording->session().add_loss("GPU metrics: " + wrong, 0);
    } else {
      start_losses.push_back(started.error().message);
    }
  }
  void complete(Profiler& self) {
    if (!is_under_way()) return;
    recording->session().add_steps(timer.take());
    recording->stop();
    if (options.on_trace_ready) options.on_trace_ready(self);
  }
};

Profiler::Profiler(ProfilerOptions options) : impl_(std::make_unique<Impl>()) {
  impl_->options = std::move(options);
  impl_->timer = torch_hooks::TorchStepTimer(impl_->options.cuda);
  impl_->begin_step();
}

Profiler::~Profiler() { stop(); }

void Profiler::step() {
  if (impl_->stopped) return;
  if (impl_->end_step()) impl_->complete(*this);
  ++impl_->number;
  impl_->begin_step();
}

void Profiler::stop() {
  if (impl_->stopped) return;
  impl_->stopped = true;
  impl_->cut_off_step();
  const bool kept_something = phase_of(impl_->action) == format::StepPhase::kRecorded;
  if (kept_something) return impl_->complete(*this);
  if (impl_->is_under_way()) impl_->recording->stop();
}

std::string Profiler::save(const std::string& path) {
  if (impl_->recording == nullptr) return "nothing was recorded";
  const Result<void> saved = impl_->recording->session().save(path);
  return saved.ok() ? std::string() : saved.error().message;
}

void Profiler::add_metadata(const std::string& key, const std::string& json) {
  if (impl_->is_under_way()) impl_->recording->session().add_metadata(key, json);
}

int64_t Profiler::step_number() const noexcept { return impl_->number; }

bool Profiler::is_recording() const noexcept {
  return impl_->is_under_way() && phase_of(impl_->action) == format::StepPhase::kRecorded;
}

std::vector<std::string> Profiler::losses() const {
  std::vector<std::string> result = impl_->start_losses;
  if (impl_->recording == nullptr) return result;
  for (const record::Loss& loss : impl_->recording->session().status().losses) result.push_back(loss.reason);
  return result;
}

ProfilerScope::ProfilerScope(const char* name) noexcept : id_(record::begin_range(name, "")) {}
ProfilerScope::~ProfilerScope() { record::end_range(id_); }

}  // namespace firelane
