// Where a function was called: an instruction of its caller's code.
//
// From 3.12 on it is read from the frames themselves (frame_layout.h), after prepare_call_sites() has compared what is
// read so with what Python's API says. Where they differ, and before 3.12, the API is used.
#pragma once

#include <Python.h>

namespace firelane::python_hooks {

// In bytes from the code's begin; negative: not known. `code` is borrowed: it lives as long as the caller runs.
struct CallSite {
  PyCodeObject* code = nullptr;
  int offset = -1;
};

// Once for each run, with the GIL.
void prepare_call_sites() noexcept;

// Where a frame is in its code now.
CallSite site_of(PyFrameObject* frame) noexcept;

// Where the function that is entered now was called. `frame`: its own; may be null: asked for.
CallSite site_of_caller(PyFrameObject* frame) noexcept;

}  // namespace firelane::python_hooks
