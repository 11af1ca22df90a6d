#include "record/python/tracer.h"

#include <algorithm>

#include "base/clock.h"
#include "record/python/frames.h"
#include "record/python/hooks.h"
#include "record/python/owned.h"

namespace firelane::python_hooks {
namespace {

bool g_on = false;
bool g_gc_only = false;

// The current exception as text; clears it.
std::string take_exception() {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  const Owned text(value != nullptr ? PyObject_Str(value) : nullptr);
  const char* bytes = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  std::string result = bytes != nullptr ? bytes : "unknown reason";
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  PyErr_Clear();
  return result;
}

}  // namespace

bool start_python_tracer(std::string& reason) {
#ifdef Py_GIL_DISABLED
  reason = "Python frames: free-threaded builds of Python are not supported";
  return false;
#endif
  if (g_on) return true;
  begin_frames_run();
  if (!install_frame_hook() || !install_gc_hook(GcHook::kWithFrames)) {
    reason = "Python frames: " + take_exception();
    std::string loss;
    remove_frame_hook(loss);
    remove_gc_hook();
    end_frames_run();
    return false;
  }
  g_on = true;
  return true;
}

void stop_python_tracer(std::string& loss) {
  if (!g_on) return;
  g_on = false;
  remove_frame_hook(loss);
  remove_gc_hook();
  end_frames_run();
}

void trace_this_thread() noexcept {
  if (g_on) hook_this_thread();
}

void start_gc_tracer() {
#ifndef Py_GIL_DISABLED
  if (g_on || g_gc_only) return;
  g_gc_only = install_gc_hook(GcHook::kAlone);
  PyErr_Clear();
#endif
}

void stop_gc_tracer() {
  if (!g_gc_only) return;
  g_gc_only = false;
  remove_gc_hook();
}

double measure_python_cost() {
  constexpr int kCalls = 512;
  constexpr int kRounds = 5;
  const Owned globals(PyDict_New());
  const Owned defined(globals ? PyRun_String("def call(n):\n"
                                             "    def f(): pass\n"
                                             "    for _ in range(n): f()\n",
                                             Py_file_input, globals.get(), globals.get())
                              : nullptr);
  PyObject* call = defined ? PyDict_GetItemString(globals.get(), "call") : nullptr;  // borrowed
  const auto run_ns = [&] {
    const uint64_t start = now_ticks();
    const Owned done(call != nullptr ? PyObject_CallFunction(call, "i", kCalls) : nullptr);
    return static_cast<double>(now_ticks() - start) * 1e9 / ticks_per_second() / kCalls;
  };
  double best_without = 1e9;
  double best_with = 1e9;
  for (int i = 0; i < kRounds; ++i) {
    best_without = std::min(best_without, run_ns());
    std::string ignored;
    if (!start_python_tracer(ignored)) return 0;
    best_with = std::min(best_with, run_ns());
    stop_python_tracer(ignored);
  }
  PyErr_Clear();
  return std::max(0.0, best_with - best_without);
}

}  // namespace firelane::python_hooks
