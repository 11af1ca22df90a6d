// A slice per call of an nn.Module, named by its path: "model.layers.3.attn.q_proj (Linear)".
//
// While recording, the function nn.Module.__call__ is entered through one of ours (its vectorcall pointer), which
// writes begin and end around the original. The function object stays the same, so torch.compile, fx and
// code that compares or patches it see no difference. No module hooks are registered: those would send every module
// through torch's slow path and make torch.compile recompile. A class with its own __call__ that calls
// nn.Module's through super() is seen from 3.12 on.
//
// Names come from named_modules() of the outermost module, walked once when it is first called; it is named
// after the variable that holds it in the calling frame. Modules are only referenced weakly.
//
// All functions need the GIL.
#pragma once

#include <Python.h>

#include <string>

namespace firelane::python_hooks {

// `module_class`: torch.nn.Module. False if Python refused; `reason` says why, no exception is left set.
bool start_module_hook(PyObject* module_class, std::string& reason);
void stop_module_hook();  // idempotent

// Names `root` and all modules below it. False with an exception set.
bool name_modules(PyObject* root, const std::string& name);

}  // namespace firelane::python_hooks
