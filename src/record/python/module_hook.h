// A slice per call of an nn.Module, named by where the module sits: "model.layers.3.attn.q_proj (Linear)".
//
// While recording, the class's __call__ is a callable of ours that writes begin and end around the original; it
// stands for the original in every other respect. No module hooks are registered: those would send every module
// through torch's slow path and make torch.compile compile anew.
//
// Names come from named_modules() of the outermost module, walked once when it is first called; it is named
// after the variable that holds it in the calling frame. Modules are only referred to weakly.
//
// All functions need the GIL.
#pragma once

#include <Python.h>

#include <string>

namespace firelane {

// `module_class`: torch.nn.Module. False when Python refused; `reason` says why, no exception is left set.
bool start_module_hook(PyObject* module_class, std::string& reason);
void stop_module_hook();  // idempotent
bool module_hook_is_on() noexcept;

// Names `root` and all modules below it. False with an exception set.
bool name_modules(PyObject* root, const std::string& name);

}  // namespace firelane
