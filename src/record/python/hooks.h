// How the tracer gets its events from this version of CPython: profile_hook.cc up to 3.11, monitoring_hook.cc from
// 3.12 on; and the collector's callback, which all versions share. Used by tracer.cc only.
#pragma once

#include <Python.h>

#include <string>

namespace firelane::python_hooks {

// False with a Python exception set.
bool install_frame_hook();
// For a thread that has a new thread state since: C code that enters Python again and again makes one each time. Cheap.
void hook_this_thread() noexcept;
// Leaves no exception set. `loss` is filled if another tool replaced our hook in the meantime.
void remove_frame_hook(std::string& loss);

enum class GcHook { kWithFrames, kAlone };
bool install_gc_hook(GcHook hook);
void remove_gc_hook();

}  // namespace firelane::python_hooks
