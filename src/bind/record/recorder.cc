#include "bind/record/recorder.h"

#include <functional>
#include <map>
#include <stdexcept>

#include "record/python/module_hook.h"
#include "record/python/owned.h"
#include "record/python/tracer.h"

namespace firelane::bind_record {
namespace {

class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() { PyEval_RestoreThread(state_); }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

void hook_modules(record::Session& session) {
  const python_hooks::Owned torch(PyImport_ImportModule("torch.nn"));
  const python_hooks::Owned module_class(torch ? PyObject_GetAttrString(torch.get(), "Module") : nullptr);
  std::string reason = "modules: torch.nn cannot be imported";
  if (!module_class || !python_hooks::start_module_hook(module_class.get(), reason)) session.add_loss(reason, 0);
  PyErr_Clear();
}

}  // namespace

Recorder::Recorder(const record::RecordOptions& options) {
  std::map<std::string, std::function<double()>> more_costs;
  if (options.python_stacks) more_costs["python"] = python_hooks::measure_python_cost;
  auto started = torch_hooks::Recording::start(options, more_costs);
  if (!started.ok()) throw std::runtime_error(started.error().message);
  recording_ = std::move(started).value();
  start_unix_ns_ = read_clock_pair().unix_ns;
  if (options.modules) hook_modules(session());
  std::string reason;
  if (options.python_stacks && !python_hooks::start_python_tracer(reason)) session().add_loss(reason, 0);
}

Recorder::~Recorder() { stop(); }

void Recorder::pause() noexcept { recording_->pause(); }
void Recorder::resume() noexcept { recording_->resume(); }

void Recorder::pause_device() noexcept {
  const WithoutGil without;
  recording_->pause_device();
}

void Recorder::resume_device() noexcept {
  const WithoutGil without;
  recording_->resume_device();
}

void Recorder::stop_device() noexcept {
  const WithoutGil without;
  recording_->stop_device();
}

void Recorder::stop() noexcept {
  if (recording_->is_stopped()) return;
  std::string loss;
  python_hooks::stop_python_tracer(loss);
  python_hooks::stop_module_hook();
  if (!loss.empty()) session().add_loss(loss, 0);
  const WithoutGil without;
  recording_->stop();
}

void Recorder::save(const std::string& path) {
  Result<void> saved;
  {
    const WithoutGil without;
    saved = session().save(path);
  }
  if (!saved.ok()) throw std::runtime_error(saved.error().message);
}

void after_fork_in_child() noexcept {
  std::string loss;
  python_hooks::stop_python_tracer(loss);
  python_hooks::stop_module_hook();
}

}  // namespace firelane::bind_record
