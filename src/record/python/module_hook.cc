#include "record/python/module_hook.h"

#include <exception>

#include "record/core/thread_buffer.h"
#include "record/python/module_names.h"
#include "record/python/owned.h"

namespace firelane::python_hooks {
namespace {

constexpr uint64_t kModuleKey = uint64_t{3} << 60;  // apart from addresses and from frames.cc's keys

PyFunctionObject* g_function = nullptr;  // nn.Module.__call__, while on
vectorcallfunc g_original = nullptr;     // how it is called without us; never reset, late callers may need it
uint64_t g_module_run = 0;

[[gnu::noinline]] const ModuleName* new_name(PyObject* module) noexcept {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  const ModuleName* name = nullptr;
  try {
    module_names().add_tree(module, "");
    name = module_names().find(module);
  } catch (const std::exception&) {  // no memory: the slice has no name
  }
  PyErr_Clear();
  PyErr_Restore(type, value, traceback);
  return name;
}

void begin_module(PyObject* module) noexcept {
  // Before the buffer is asked for: naming runs Python code, which may be recorded itself.
  const ModuleName* name = record::is_recording() ? module_names().find(module) : nullptr;
  if (name == nullptr && record::is_recording()) name = new_name(module);
  record::ThreadBuffer* b = record::recording_thread_for_begin();
  if (b == nullptr) return;
  record::TextSlot slot = record::kNoSlot;
  if (name != nullptr) {
    slot = b->find(kModuleKey | name->id);
    if (slot == record::kNoSlot) slot = b->define_key(kModuleKey | name->id, name->text);
  }
  b->begin(now_ticks(), slot, format::Scope::kModule);
}

PyObject* call(PyObject* function, PyObject* const* args, size_t count, PyObject* keywords) {
  if (PyVectorcall_NARGS(count) == 0) return g_original(function, args, count, keywords);
  const uint64_t run = g_module_run;
  begin_module(args[0]);
  PyObject* result = g_original(function, args, count, keywords);
  // A call that outlives its recording has nothing to end.
  if (run == g_module_run) {
    if (record::ThreadBuffer* b = record::recording_thread_for_end()) b->end(now_ticks(), format::ScopeGroup::kModule);
  }
  return result;
}

void set_vectorcall(PyFunctionObject* function, vectorcallfunc how) {
#if PY_VERSION_HEX >= 0x030C0000
  PyFunction_SetVectorcall(function, how);
#else
  function->vectorcall = how;
#endif
}

}  // namespace

bool start_module_hook(PyObject* module_class, std::string& reason) {
  if (g_function != nullptr) return true;
  const Owned function(PyObject_GetAttrString(module_class, "__call__"));
  PyErr_Clear();
  if (!function || !PyFunction_Check(function.get())) {
    reason = "modules: torch.nn.Module.__call__ is not a Python function";
    return false;
  }
  ++g_module_run;
  g_function = reinterpret_cast<PyFunctionObject*>(Py_NewRef(function.get()));
  g_original = g_function->vectorcall;
  set_vectorcall(g_function, call);
  return true;
}

void stop_module_hook() {
  if (g_function == nullptr) return;
  ++g_module_run;
  // A function that was set after ours stays; ours then only forwards calls.
  if (g_function->vectorcall == call) set_vectorcall(g_function, g_original);
  Py_CLEAR(g_function);
  module_names().clear();
}

bool name_modules(PyObject* root, const std::string& name) { return module_names().add_tree(root, name); }

}  // namespace firelane::python_hooks
