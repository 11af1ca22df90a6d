// The Python module of the recorder. python/firelane/_record.pyi says what each name does.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "base/environment.h"
#include "bind/record/fast_op.h"
#include "bind/record/recorder.h"
#include "record/core/ranges.h"
#include "record/core/thread_buffer.h"
#include "record/library/library.h"
#include "record/python/module_frames.h"
#include "record/python/module_hook.h"
#include "record/python/tracer.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace firelane::bind_record {
namespace {

constexpr const char* kPhaseNames[] = {"unrecorded", "warmup", "recorded", "light"};

format::StepPhase phase_of(std::string_view name) {
  for (size_t i = 0; i < std::size(kPhaseNames); ++i) {
    if (name == kPhaseNames[i]) return static_cast<format::StepPhase>(i);
  }
  throw nb::value_error("phase: 'unrecorded', 'warmup', 'recorded' or 'light'");
}

const char* state_name(record::SessionState state) {
  switch (state) {
    case record::SessionState::kRecording: return "recording";
    case record::SessionState::kPaused: return "paused";
    case record::SessionState::kFailed: return "failed";
    case record::SessionState::kStopped: return "stopped";
    case record::SessionState::kForked: return "forked";
  }
  return "";
}

std::string path_text(nb::handle path) {
  return nb::cast<std::string>(nb::module_::import_("os").attr("fspath")(path));
}

// library::StepTimer, owned.
struct StepTimer {
  std::unique_ptr<library::StepTimer> timer;
};

std::vector<std::tuple<int64_t, const char*, int64_t>> step_samples(const StepTimer& self) {
  std::vector<std::tuple<int64_t, const char*, int64_t>> samples;
  for (const record::StepSample& s : self.timer->samples()) {
    const double ns = static_cast<double>(s.duration_ticks) * 1e9 / ticks_per_second();
    samples.emplace_back(s.number, kPhaseNames[static_cast<size_t>(s.phase)], static_cast<int64_t>(ns));
  }
  return samples;
}

// The same with start in Unix time and time on the device (-1: unknown), and forgets them.
std::vector<std::tuple<int64_t, const char*, int64_t, int64_t, int64_t>> take_steps(StepTimer& self) {
  std::vector<std::tuple<int64_t, const char*, int64_t, int64_t, int64_t>> steps;
  const ClockPair now = read_clock_pair();
  const double ns_per_tick = 1e9 / ticks_per_second();
  for (const record::StepSample& s : self.timer->take()) {
    const double ago_ns = static_cast<double>(static_cast<int64_t>(now.ticks - s.start_ticks)) * ns_per_tick;
    const double ns = static_cast<double>(s.duration_ticks) * ns_per_tick;
    steps.emplace_back(s.number, kPhaseNames[static_cast<size_t>(s.phase)], now.unix_ns - static_cast<int64_t>(ago_ns),
                       static_cast<int64_t>(ns), s.device_ns);
  }
  return steps;
}

// `with Range("load batch"):`
struct RangeScope {
  std::string name;
  std::string args;
  uint64_t id = 0;
};

record::Parts parts_without(const std::vector<std::string>& names) {
  record::Parts parts;
  for (const std::string& name : names) {
    bool known = false;
#define FL_LEAVE_OUT(part) \
  if (name == #part) {     \
    parts.part = false;    \
    known = true;          \
  }
    FL_PARTS(FL_LEAVE_OUT)
#undef FL_LEAVE_OUT
    if (!known) throw nb::value_error(("without: no part is called " + name).c_str());
  }
  return parts;
}

// What a recorder library hands out: losses, costs.
template <typename Add>
class TextsInto final : public library::Text {
 public:
  explicit TextsInto(Add add) : add_(std::move(add)) {}
  void take(std::string_view text, double number) override { add_(text, number); }

 private:
  Add add_;
};

std::vector<record::Loss> losses_of(const library::Recording& recording) {
  std::vector<record::Loss> losses;
  TextsInto into([&](std::string_view reason, double count) {
    losses.push_back({std::string(reason), static_cast<uint64_t>(count)});
  });
  recording.losses(into);
  return losses;
}

record::SessionStatus status_of(const library::Recording& recording) {
  const library::Status status = recording.status();
  return {.state = static_cast<record::SessionState>(status.state),
          .losses = losses_of(recording),
          .event_count = status.event_count,
          .dropped_count = status.dropped_count,
          .file_bytes = status.file_bytes,
          .in_flight_bytes = status.in_flight_bytes,
          .thread_count = status.thread_count};
}

std::string path_of(const library::Recording& recording) {
  std::string path;
  TextsInto into([&](std::string_view text, double) { path = text; });
  recording.path(into);
  return path;
}

std::map<std::string, double> costs() {
  std::map<std::string, double> known;
  TextsInto into([&](std::string_view kind, double ns) { known.emplace(kind, ns); });
  firelane_recorder_library()->costs(into);
  return known;
}

void bind_options(nb::module_& m) {
  nb::class_<record::RecordOptions>(m, "RecordOptions")
      .def(
          "__init__",
#define FL_PARAMETER(name, on, key, help) bool name,
#define FL_SET(name, on, key, help) self->name = name;
#define FL_KEYWORD(name, on, key, help) nb::arg(#name) = on,
#define FL_ATTRIBUTE(name, on, key, help) .def_rw(#name, &record::RecordOptions::name)
          [](record::RecordOptions* self, FL_RECORD_OPTIONS(FL_PARAMETER) std::string_view metric_names,
             double metric_interval_ms, bool flops, bool cuda_detach, bool concrete_inputs, bool tensors,
             const std::vector<std::string>& without, bool start_paused, bool start_light, nb::handle output,
             bool keep) {
            if (const std::string wrong = format::wrong_metric_interval(metric_interval_ms); !wrong.empty())
              throw nb::value_error(wrong.c_str());
            new (self) record::RecordOptions();
            FL_RECORD_OPTIONS(FL_SET)
            self->metric_names = metric_names;
            self->metric_interval_ns = static_cast<uint64_t>(std::llround(metric_interval_ms * 1e6));
            self->flops = flops;
            self->cuda_detach = cuda_detach;
            self->concrete_inputs = concrete_inputs;
            self->tensors = tensors;
            self->parts = parts_without(without);
            self->start_paused = start_paused;
            self->start_light = start_light;
            self->output = path_text(output);
            self->keep = keep;
          },
          nb::kw_only(), FL_RECORD_OPTIONS(FL_KEYWORD) "metric_names"_a = "", "metric_interval_ms"_a = 1.0,
          "flops"_a = false, "cuda_detach"_a = true, "concrete_inputs"_a = true, "tensors"_a = false,
          "without"_a = std::vector<std::string>(), "start_paused"_a = false, "start_light"_a = false, "output"_a = "",
          "keep"_a = false) FL_RECORD_OPTIONS(FL_ATTRIBUTE)
#undef FL_PARAMETER
#undef FL_SET
#undef FL_KEYWORD
#undef FL_ATTRIBUTE
      .def_rw("metric_names", &record::RecordOptions::metric_names)
      .def_prop_ro("metric_interval_ms",
                   [](const record::RecordOptions& self) { return static_cast<double>(self.metric_interval_ns) / 1e6; })
      .def_rw("flops", &record::RecordOptions::flops)
      .def_rw("cuda_detach", &record::RecordOptions::cuda_detach)
      .def_rw("concrete_inputs", &record::RecordOptions::concrete_inputs)
      .def_rw("tensors", &record::RecordOptions::tensors)
      .def_rw("start_paused", &record::RecordOptions::start_paused)
      .def_rw("start_light", &record::RecordOptions::start_light)
      .def_prop_rw(
          "output", [](const record::RecordOptions& self) { return self.output.string(); },
          [](record::RecordOptions& self, nb::handle path) { self.output = path_text(path); })
      .def_rw("keep", &record::RecordOptions::keep);

  nb::list options;
  for (const format::RecordOption& o : format::kRecordOptions) {
    options.append(nb::make_tuple(o.name, o.is_on_by_default, o.key, o.help));
  }
  m.attr("OPTIONS") = nb::tuple(options);
  nb::list variables;
  for (const environment::Variable& v : environment::kAll) {
    variables.append(nb::make_tuple(v.name, v.when_unset, v.meaning));
  }
  m.attr("ENVIRONMENT") = nb::tuple(variables);
}

void bind_status(nb::module_& m) {
  nb::class_<record::Loss>(m, "Loss")
      .def_ro("reason", &record::Loss::reason)
      .def_ro("count", &record::Loss::count)
      .def("__repr__", [](const record::Loss& self) {
        return "Loss(" + self.reason + (self.count > 0 ? ", " + std::to_string(self.count) : "") + ")";
      });
  nb::class_<record::SessionStatus>(m, "Status")
      .def_prop_ro("state", [](const record::SessionStatus& self) { return state_name(self.state); })
      .def_ro("losses", &record::SessionStatus::losses)
      .def_ro("event_count", &record::SessionStatus::event_count)
      .def_ro("dropped_count", &record::SessionStatus::dropped_count)
      .def_ro("file_bytes", &record::SessionStatus::file_bytes)
      .def_ro("in_flight_bytes", &record::SessionStatus::in_flight_bytes)
      .def_ro("thread_count", &record::SessionStatus::thread_count);
}

void bind_recorder(nb::module_& m) {
  nb::class_<PythonRecorder>(m, "Recorder")
      .def("pause", &PythonRecorder::pause)
      .def("resume", &PythonRecorder::resume)
      .def("begin_full", &PythonRecorder::begin_full)
      .def("pause_device", &PythonRecorder::pause_device)
      .def("resume_device", &PythonRecorder::resume_device)
      .def("stop_device", &PythonRecorder::stop_device)
      .def("stop", &PythonRecorder::stop)
      .def(
          "save",
          [](PythonRecorder& self, nb::handle path) {
            try {
              self.save(path_text(path));
            } catch (const std::runtime_error& error) {
              PyErr_SetString(PyExc_OSError, error.what());
              throw nb::python_error();
            }
          },
          "path"_a)
      .def_prop_ro("path", [](PythonRecorder& self) { return path_of(self.recording()); })
      .def("status", [](PythonRecorder& self) { return status_of(self.recording()); })
      .def_prop_ro("losses", [](PythonRecorder& self) { return losses_of(self.recording()); })
      .def_prop_ro("start_unix_ns", &PythonRecorder::start_unix_ns)
      .def(
          "add_metadata",
          [](PythonRecorder& self, std::string_view key, std::string_view json) {
            self.recording().add_metadata(key, json);
          },
          "key"_a, "json"_a)
      .def(
          "add_steps", [](PythonRecorder& self, StepTimer& timer) { self.recording().add_steps(timer.timer->take()); },
          "timer"_a)
      .def(
          "add_loss",
          [](PythonRecorder& self, std::string_view reason, uint64_t count) {
            self.recording().add_loss(reason, count);
          },
          "reason"_a, "count"_a = 0);
  m.def(
      "start", [](const record::RecordOptions& options) { return new PythonRecorder(options); }, "options"_a,
      nb::rv_policy::take_ownership);
  m.def("is_recording", &record::is_recording);
}

void bind_steps(nb::module_& m) {
  nb::class_<StepTimer>(m, "StepTimer")
      .def(
          "__init__",
          [](StepTimer* self, bool on_device) {
            new (self)
                StepTimer{std::unique_ptr<library::StepTimer>(firelane_recorder_library()->new_step_timer(on_device))};
          },
          "on_device"_a = false)
      .def(
          "step",
          [](StepTimer& self, int64_t number, std::string_view phase) { self.timer->step(number, phase_of(phase)); },
          "number"_a, "phase"_a)
      .def(
          "raise_phase", [](StepTimer& self, std::string_view phase) { self.timer->raise_phase(phase_of(phase)); },
          "phase"_a)
      .def("finish", [](StepTimer& self) { self.timer->finish(); })
      .def_prop_ro("samples", step_samples)
      .def("take", take_steps);
}

void bind_ranges(nb::module_& m) {
  m.def(
      "begin_range",
      [](std::string_view name, std::string_view args) {
        python_hooks::trace_this_thread();
        return record::begin_range(name, args);
      },
      "name"_a, "args"_a = "");
  m.def("end_range", &record::end_range, "id"_a);
  m.def("instant", &record::mark_instant, "name"_a);
  m.def("counter", &record::mark_counter, "name"_a, "value"_a);
  m.def("name_thread", &record::name_thread, "name"_a);
  nb::class_<RangeScope>(m, "Range")
      .def(
          "__init__",
          [](RangeScope* self, std::string name, std::string args) {
            new (self) RangeScope{std::move(name), std::move(args)};
          },
          "name"_a, "args"_a = "")
      .def("__enter__",
           [](nb::object self) {
             RangeScope& range = nb::cast<RangeScope&>(self);
             range.id = record::begin_range(range.name, range.args);
             return self;
           })
      .def("__exit__", [](RangeScope& self, nb::args) { record::end_range(self.id); });
}

}  // namespace
}  // namespace firelane::bind_record

NB_MODULE(_recorder, m) {
  using namespace firelane;
  using namespace firelane::bind_record;
  nb::set_leak_warnings(false);  // a profiler object that lives until exit is normal
  const library::Library& library = *firelane_recorder_library();
  if (library.interface_number() != library::kInterface) {
    throw nb::import_error(
        "the recorder library belongs to another firelane version; run `firelane build-recorder` again");
  }
  m.attr("TORCH_VERSION") = library.torch_version();
  m.attr("HAS_CUPTI") = library.has_cupti();
  bind_options(m);
  bind_status(m);
  bind_recorder(m);
  bind_steps(m);
  bind_ranges(m);
  bind_fast_op(m);
  m.def(
      "name_modules",
      [](nb::handle root, const std::string& name) {
        if (!python_hooks::name_modules(root.ptr(), name)) throw nb::python_error();
      },
      "root"_a, "name"_a = "");
  m.def(
      "describe_owners", [](nb::handle describe) { python_hooks::describe_owners(describe.ptr()); },
      "describe"_a.none());
  m.def("take_owners", [] {
    PyObject* owners = python_hooks::take_owners();
    return owners != nullptr ? nb::steal<nb::list>(owners) : nb::list();
  });
  m.def("costs", costs);
  nb::module_::import_("os").attr("register_at_fork")("after_in_child"_a = nb::cpp_function(&after_fork_in_child));
}
