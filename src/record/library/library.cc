#include "record/library/library.h"

#include <ATen/record_function.h>
#include <torch/version.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "record/torch/cost.h"
#include "record/torch/recording.h"
#include "record/torch/settings.h"
#include "record/torch/step_timer.h"

namespace firelane::library {
namespace {

class TimerInside final : public StepTimer {
 public:
  explicit TimerInside(bool on_device) : timer_(on_device) {}
  void step(int64_t number, format::StepPhase phase) noexcept override { timer_.step(number, phase); }
  void raise_phase(format::StepPhase phase) noexcept override { timer_.raise_phase(phase); }
  void finish() noexcept override { timer_.finish(); }
  const std::vector<record::StepSample>& samples() const noexcept override { return timer_.samples(); }
  std::vector<record::StepSample> take() noexcept override { return timer_.take(); }

 private:
  torch_hooks::TorchStepTimer timer_;
};

class OpInside final : public Op {
 public:
  OpInside(std::string_view name, bool is_user_range)
      : name_(name), scope_(is_user_range ? at::RecordScope::USER_SCOPE : at::RecordScope::FUNCTION) {}
  bool begin() override {
    op_.emplace(scope_);
    if (!op_->isActive()) return false;
    op_->before(name_);
    return true;
  }
  void end() noexcept override { op_.reset(); }

 private:
  std::string name_;
  at::RecordScope scope_;
  std::optional<at::RecordFunction> op_;
};

class RecordingInside final : public Recording {
 public:
  explicit RecordingInside(std::unique_ptr<torch_hooks::Recording> recording) : recording_(std::move(recording)) {}

  void pause() noexcept override { recording_->pause(); }
  void resume() noexcept override { recording_->resume(); }
  void begin_full() noexcept override { recording_->begin_full(); }
  void pause_device() noexcept override { recording_->pause_device(); }
  void resume_device() noexcept override { recording_->resume_device(); }
  void stop_device() noexcept override { recording_->stop_device(); }
  void stop() noexcept override { recording_->stop(); }
  bool is_stopped() const noexcept override { return recording_->is_stopped(); }

  bool save(std::string_view path, Text& error) override {
    const Result<void> saved = session().save(std::string(path));
    if (!saved.ok()) error.take(saved.error().message, 0);
    return saved.ok();
  }
  void path(Text& out) const override { out.take(session().path().string(), 0); }
  Status status() const override {
    const record::SessionStatus status = session().status();
    return {.state = static_cast<uint8_t>(status.state),
            .event_count = status.event_count,
            .dropped_count = status.dropped_count,
            .file_bytes = status.file_bytes,
            .in_flight_bytes = status.in_flight_bytes,
            .thread_count = status.thread_count};
  }
  void losses(Text& out) const override {
    for (const record::Loss& loss : session().status().losses) out.take(loss.reason, static_cast<double>(loss.count));
  }
  void add_metadata(std::string_view key, std::string_view json) noexcept override {
    session().add_metadata(key, json);
  }
  void add_steps(const std::vector<record::StepSample>& steps) noexcept override { session().add_steps(steps); }
  void add_loss(std::string_view reason, uint64_t count) noexcept override { session().add_loss(reason, count); }

 private:
  record::Session& session() const noexcept { return recording_->session(); }

  std::unique_ptr<torch_hooks::Recording> recording_;
};

class LibraryInside final : public Library {
 public:
  uint32_t interface_number() const noexcept override { return kInterface; }
  std::string_view torch_version() const noexcept override { return TORCH_VERSION; }
  bool has_cupti() const noexcept override {
#if FIRELANE_CUPTI
    return true;
#else
    return false;
#endif
  }

  Recording* start(const Options& options, Text& error) const override {
    record::RecordOptions wanted;
    copy_options(options, wanted);
    wanted.metric_names = std::string(options.metric_names);
    wanted.output = std::string(options.output);
    if (!options.torch_version.empty()) torch_hooks::set_torch_version(options.torch_version);
    std::map<std::string, std::function<double()>> more_costs;
    if (options.python_cost != nullptr) more_costs["python"] = options.python_cost;
    if (options.line_cost != nullptr) more_costs["line"] = options.line_cost;
    auto started = torch_hooks::Recording::start(wanted, more_costs);
    if (started.ok()) return new RecordingInside(std::move(started).value());
    error.take(started.error().message, 0);
    return nullptr;
  }
  StepTimer* new_step_timer(bool on_device) const override { return new TimerInside(on_device); }
  Op* new_op(std::string_view name, bool is_user_range) const override { return new OpInside(name, is_user_range); }
  void costs(Text& out) const override {
    for (const auto& [kind, ns] : torch_hooks::known_costs()) out.take(kind, ns);
  }
};

}  // namespace
}  // namespace firelane::library

const firelane::library::Library* firelane_recorder_library() noexcept {
  static const firelane::library::LibraryInside kLibrary;
  return &kLibrary;
}
