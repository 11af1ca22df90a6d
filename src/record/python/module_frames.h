// nn.Module calls among Python's frames: named "nn.Module: Linear_0", as torch.profiler does, where other functions are
// named by their file and line. The number counts the modules of a class in the order in which they were first called.
// Guarded by the GIL.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string>

namespace firelane::python_hooks {

struct ModuleFrame {
  PyTypeObject* type = nullptr;  // with the object's address: which module it is
  uint64_t id = 0;
  std::string name;
};

// Called with each nn.Module, when it is first called in a run, and each Optimizer, when it has first made a step: what
// holds tensors. None or null: nobody wants to know. What it returned is in take_owners(). `describe` runs no traced
// code.
void describe_owners(PyObject* describe) noexcept;
// (name of the module's slices, what describe() returned) in order; (None, the same) for each step of an optimizer. A
// new reference, or null; forgets them.
PyObject* take_owners() noexcept;

// Finds nn.Module.__call__ if the program has imported torch.nn.
void begin_module_frames() noexcept;
void end_module_frames() noexcept;

extern PyCodeObject* g_module_call;  // null: no module can be called
inline bool is_module_call(const PyCodeObject* code) noexcept { return code == g_module_call; }
extern PyCodeObject* g_optimizer_step;  // what torch calls after a step for profilers to see; null: not wanted
inline bool is_optimizer_step(const PyCodeObject* code) noexcept { return code == g_optimizer_step; }
void note_optimizer(PyFrameObject* frame) noexcept;

// The module whose call `frame` is (null: the current frame); null if that cannot be told. Good until the run ends.
const ModuleFrame* module_of_frame(PyFrameObject* frame) noexcept;

}  // namespace firelane::python_hooks
