#include "bind/record/recorder.h"

#include <stdexcept>

#include "base/clock.h"
#include "record/python/call_lines.h"
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

// The last text that was given.
class TextInside final : public library::Text {
 public:
  void take(std::string_view text, double) override { value = text; }
  std::string value;
};

// "2.11.0" of torch.__version__, without what says how it was built.
std::string running_torch_version() {
  const python_hooks::Owned torch(PyImport_ImportModule("torch"));
  const python_hooks::Owned version(torch ? PyObject_GetAttrString(torch.get(), "__version__") : nullptr);
  const python_hooks::Owned text(version ? PyObject_Str(version.get()) : nullptr);
  const char* bytes = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  const std::string whole = bytes != nullptr ? bytes : "";
  PyErr_Clear();
  return whole.substr(0, whole.find('+'));
}

void hook_modules(library::Recording& recording) {
  const python_hooks::Owned torch(PyImport_ImportModule("torch.nn"));
  const python_hooks::Owned module_class(torch ? PyObject_GetAttrString(torch.get(), "Module") : nullptr);
  std::string reason = "modules: torch.nn cannot be imported";
  if (!module_class || !python_hooks::start_module_hook(module_class.get(), reason)) recording.add_loss(reason, 0);
  PyErr_Clear();
}

}  // namespace

PythonRecorder::PythonRecorder(const record::RecordOptions& options) : options_(options) {
  library::Options wanted;
  library::copy_options(options, wanted);
  const std::string output = options.output.string();
  wanted.output = output;
  wanted.metric_names = options.metric_names;
  const std::string torch_version = running_torch_version();
  wanted.torch_version = torch_version;
  if (options.stacks) wanted.python_cost = python_hooks::measure_python_cost;
  if (options.lines && !options.stacks) {  // stacks say more
    wanted.call_lines = python_hooks::call_lines();
    if (wanted.call_lines.find != nullptr) wanted.line_cost = python_hooks::measure_line_cost;
  }
  TextInside error;
  recording_.reset(firelane_recorder_library()->start(wanted, error));
  if (recording_ == nullptr) throw std::runtime_error(error.value);
  if (options.lines && !options.stacks && wanted.call_lines.find == nullptr)
    recording_->add_loss("lines: where this version of Python keeps its frames is not known", 0);
  start_unix_ns_ = read_clock_pair().unix_ns;
  light_ = options.start_light;
  if (light_) {
    python_hooks::start_gc_tracer();
  } else {
    hook_python();
  }
}

void PythonRecorder::hook_python() noexcept {
  if (options_.modules) hook_modules(*recording_);
  if (!options_.stacks) {
    python_hooks::start_gc_tracer();  // collections stop the program, and cost next to nothing to note
    return;
  }
  std::string reason;
  if (!python_hooks::start_python_tracer(reason)) recording_->add_loss(reason, 0);
}

void PythonRecorder::begin_full() noexcept {
  if (!light_ || recording_->is_stopped()) return;
  light_ = false;
  if (options_.stacks) python_hooks::stop_gc_tracer();  // the tracer has its own
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
  if (!loss.empty()) recording_->add_loss(loss, 0);
  const ReleaseGil released;
  recording_->stop();
}

void PythonRecorder::save(const std::string& path) {
  TextInside error;
  bool saved = false;
  {
    const ReleaseGil released;
    saved = recording_->save(path, error);
  }
  if (!saved) throw std::runtime_error(error.value);
}

void after_fork_in_child() noexcept {
  std::string loss;
  python_hooks::stop_gc_tracer();
  python_hooks::stop_python_tracer(loss);
  python_hooks::stop_module_hook();
}

}  // namespace firelane::bind_record
