#include "bind/record/recorder.h"

#include <functional>
#include <map>
#include <stdexcept>

#include "record/python/module_hook.h"
#include "record/python/owned.h"
#include "record/python/tracer.h"

namespace firelane::bind_record {
namespace {

class ReleaseGil {
 public:
  ReleaseGil() : state_(PyEval_SaveThread()) {}
  ~ReleaseGil() { PyEval_RestoreThread(state_); }
  ReleaseGil(const ReleaseGil&) = delete;
  ReleaseGil& operator=(const ReleaseGil&) = delete;

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

PythonRecorder::PythonRecorder(const record::RecordOptions& options) {
  std::map<std::string, std::function<double()>> more_costs;
  if (options.stacks) more_costs["python"] = python_hooks::measure_python_cost;
  auto started = torch_hooks::Recording::start(options, more_costs);
  if (!started.ok()) throw std::runtime_error(started.error().message);
  recording_ = std::move(started).value();
  start_unix_ns_ = read_clock_pair().unix_ns;
  light_ = options.start_light;
  if (light_) {
    python_hooks::start_gc_tracer();
  } else {
    hook_python();
  }
}

void PythonRecorder::hook_python() noexcept {
  const record::RecordOptions& options = session().options();
  if (options.modules) hook_modules(session());
  std::string reason;
  if (options.stacks && !python_hooks::start_python_tracer(reason)) session().add_loss(reason, 0);
}

void PythonRecorder::begin_full() noexcept {
  if (!light_ || recording_->is_stopped()) return;
  light_ = false;
  if (session().options().stacks) python_hooks::stop_gc_tracer();  // the tracer has its own
  recording_->begin_full();
  hook_python();
}

PythonRecorder::~PythonRecorder() { stop(); }

void PythonRecorder::pause() noexcept { recording_->pause(); }
void PythonRecorder::resume() noexcept {
  python_hooks::trace_this_thread();
  recording_->resume();
}

void PythonRecorder::pause_device() noexcept {
  const ReleaseGil released;
  recording_->pause_device();
}

void PythonRecorder::resume_device() noexcept {
  const ReleaseGil released;
  recording_->resume_device();
}

void PythonRecorder::stop_device() noexcept {
  const ReleaseGil released;
  recording_->stop_device();
}

void PythonRecorder::stop() noexcept {
  if (recording_->is_stopped()) return;
  std::string loss;
  python_hooks::stop_gc_tracer();
  python_hooks::stop_python_tracer(loss);
  python_hooks::stop_module_hook();
  if (!loss.empty()) session().add_loss(loss, 0);
  const ReleaseGil released;
  recording_->stop();
}

void PythonRecorder::save(const std::string& path) {
  Result<void> saved;
  {
    const ReleaseGil released;
    saved = session().save(path);
  }
  if (!saved.ok()) throw std::runtime_error(saved.error().message);
}

void after_fork_in_child() noexcept {
  std::string loss;
  python_hooks::stop_gc_tracer();
  python_hooks::stop_python_tracer(loss);
  python_hooks::stop_module_hook();
}

}  // namespace firelane::bind_record
