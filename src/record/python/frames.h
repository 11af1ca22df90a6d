// The stack of traced frames of each thread, and the names of code objects and C functions.
//
// The hot path is a table lookup by the code object's address and one record. Code objects seen while tracing
// are kept alive until the end of it, so that an address never changes its meaning.
#pragma once

#include <Python.h>

#include <cstdint>

#include "record/python/call_site.h"

namespace firelane::python_hooks {

// A new tracing run: threads write the frames that are open already before their first event.
void begin_frames_run();
// Forgets everything kept alive.
void end_frames_run();

// `frame`: the frame that calls, or is entered; for the walk on a thread's first event. May be null: asked for.
void enter_python(PyCodeObject* code, PyFrameObject* frame) noexcept;
void leave_python(PyFrameObject* frame) noexcept;
// `site`: of the call.
void enter_c(PyObject* function, PyObject* first_argument, PyFrameObject* frame, CallSite site) noexcept;
void leave_c() noexcept;
// Is this what the tracer calls a C call: a builtin function or a method of a C type?
inline bool is_c_function(PyObject* callable) noexcept {
  return PyCFunction_Check(callable) || Py_IS_TYPE(callable, &PyMethodDescr_Type);
}

// A pause of the garbage collector on this thread.
void enter_gc(int generation) noexcept;
void leave_gc() noexcept;

}  // namespace firelane::python_hooks
