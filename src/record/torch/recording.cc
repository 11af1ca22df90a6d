#include "record/torch/recording.h"

#include <exception>
#include <string>
#include <string_view>

#include "base/environment.h"
#include "record/core/thread_buffer.h"
#include "record/torch/cost.h"
#include "record/torch/cpu_memory.h"
#include "record/torch/op_hook.h"
#include "record/torch/settings.h"
#include "record/torch/tensor_words.h"

namespace firelane::torch_hooks {
namespace {

OpDetail detail_of(const record::RecordOptions& options) {
  if (!options.shapes) return OpDetail::kPlain;
  return options.concrete_inputs ? OpDetail::kShapesAndValues : OpDetail::kShapes;
}

}  // namespace

Result<std::unique_ptr<Recording>> Recording::start(record::RecordOptions options,
                                                    const std::map<std::string, std::function<double()>>& more_costs) {
  if (options.flops) options.shapes = true;
  options.cuda = options.cuda && has_gpu();
  const char* teardown = environment::value_of(environment::kTeardownCupti);
  if (teardown != nullptr && std::string_view(teardown) == "0") options.cuda_detach = false;
  if (hooks_are_inherited()) park_hooks_in_child();
  if (!record::is_recording())
    measure_costs({.detail = detail_of(options), .memory = options.memory, .more = more_costs});
  FL_TRY(std::unique_ptr<record::Session> session, record::Session::start(options));
  std::unique_ptr<Recording> recording(new Recording());
  recording->session_ = std::move(session);
  recording->session_->add_metadata("torch", settings_json());
  for (const auto& [kind, ns] : known_costs()) recording->session_->add_cost(kind, ns);
  if (options.tensors && !prepare_to_hold_tensors())
    recording->session_->add_loss("tensors: no address space for the table of tensors", 0);
  recording->light_ = options.start_light;
  if (!recording->light_) recording->hook_memory();
  if (options.cuda) recording->device_ = DeviceRecording::start(*recording->session_);
  if (options.metrics && !options.cuda)
    recording->session_->add_loss("GPU metrics: no NVIDIA GPU is recorded here; they need one, and the option cuda", 0);
  if (!options.start_paused) {
    if (!recording->light_) recording->hook_ops();
    recording->resume_device();
    if (recording->device_ != nullptr) recording->device_->begin_counts(!recording->light_);
  }
  return recording;
}

Recording::~Recording() { stop(); }

void Recording::hook_ops() noexcept {
  try {
    const record::RecordOptions& options = session_->options();
    enable_op_hook(detail_of(options), {.ops = options.parts.ops,
                                        .ranges = options.parts.ranges,
                                        .tensors = options.tensors && options.shapes,
                                        .lines = options.lines ? options.call_lines : record::CallLines{},
                                        .script = {.lines = options.stacks, .modules = options.modules}});
  } catch (const std::exception& error) {
    session_->add_loss(std::string("ops: torch did not accept the callback: ") + error.what(), 0);
  }
}

void Recording::hook_memory() noexcept {
  const char* reason = nullptr;
  if (session_->options().memory && !enable_cpu_memory_hook(reason)) session_->add_loss(reason, 0);
}

void Recording::begin_full() noexcept {
  const record::SessionState state = session_->status().state;
  if (stopped_ || !light_ || state == record::SessionState::kForked) return;
  light_ = false;
  hook_memory();
  session_->note_level(format::RecordLevel::kFull);
  if (state != record::SessionState::kRecording) return;
  hook_ops();
  if (device_ != nullptr) device_->begin_counts(true);
}

void Recording::pause() noexcept {
  if (stopped_) return;
  session_->pause();
  disable_op_hook();
}

void Recording::resume() noexcept {
  if (stopped_ || session_->status().state == record::SessionState::kForked) return;
  if (!light_) hook_ops();
  session_->resume();
  if (device_ != nullptr) device_->begin_counts(!light_);
}

void Recording::pause_device() noexcept {
  if (!stopped_ && device_ != nullptr && session_->status().state != record::SessionState::kForked) device_->pause();
}

void Recording::resume_device() noexcept {
  if (!stopped_ && device_ != nullptr && session_->status().state != record::SessionState::kForked)
    device_->open_window();
}

void Recording::stop_device() noexcept {
  if (!stopped_ && device_ != nullptr && session_->status().state != record::SessionState::kForked) device_->stop();
}

void Recording::stop() noexcept {
  if (stopped_) return;
  stopped_ = true;
  if (session_->status().state == record::SessionState::kForked) return;
  disable_op_hook();
  disable_cpu_memory_hook();
  if (session_->options().tensors) {
    release_tensors();
    if (const uint64_t count = tensors_not_held(); count > 0)
      session_->add_loss("tensors: more than 200,000 were seen, so some addresses refer to several", count);
  }
  if (device_ != nullptr) device_->stop();
  if (const uint64_t count = cpu_memory_untracked(); count > 0 && session_->options().memory) {
    session_->add_loss("CPU memory: frees of blocks while more than 131,072 blocks were alive", count);
  }
  session_->stop();
  device_.reset();
}

}  // namespace firelane::torch_hooks
