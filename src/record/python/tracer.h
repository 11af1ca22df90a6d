// Python frames, C calls and garbage collections as slices, on all threads, for CPython 3.10 to 3.14.
//
// 3.10 and 3.11: PyEval_SetProfile on every thread state, and threading.setprofile's hook for threads started
// later. An existing profile function (cProfile, coverage, a debugger) is called from ours and restored at the end.
// 3.12 on: sys.monitoring, which is cheaper (no frame object per call), covers every thread, and leaves
// profile functions alone.
//
// All functions need the GIL. One tracer per process; free-threaded builds are not supported.
#pragma once

#include <Python.h>

#include <string>

namespace firelane::python_hooks {

// False if Python refused; `reason` says why, no exception is left set.
bool start_python_tracer(std::string& reason);
// Idempotent. `loss` is filled if another profile function replaced ours in the meantime.
void stop_python_tracer(std::string& loss);

// The current thread, too, if C code made it: it has a new thread state each time that C enters Python, and 3.11 does
// not say so. Where the program calls the profiler.
void trace_this_thread() noexcept;

// Garbage collections alone, which cost next to nothing. Not beside the tracer, which has them, too. Both idempotent.
void start_gc_tracer();
void stop_gc_tracer();

// ns that one traced call of a Python function adds, measured now (about 1 ms).
// REQUIRES: a session records and the tracer is off.
double measure_python_cost();

}  // namespace firelane::python_hooks
