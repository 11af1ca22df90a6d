#include "record/python/module_hook.h"

#include <structmember.h>

#include <cstddef>
#include <exception>

#include "record/core/thread_buffer.h"
#include "record/python/module_names.h"
#include "record/python/owned.h"

namespace firelane {
namespace {

constexpr uint64_t kModuleKey = uint64_t{3} << 60;  // apart from addresses and from frames.cc's keys

// Stands in for nn.Module.__call__.
struct ModuleCall {
  PyObject_HEAD PyObject* original;
  vectorcallfunc vectorcall;
};

PyObject* g_type = nullptr;   // of ModuleCall; kept for ever once made
PyObject* g_class = nullptr;  // nn.Module, while on
PyObject* g_call = nullptr;   // the stand-in, while on
uint64_t g_run = 0;

PyObject* original_of(PyObject* self) { return reinterpret_cast<ModuleCall*>(self)->original; }

[[gnu::noinline]] const ModuleName* new_name(PyObject* module) noexcept {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  const ModuleName* name = nullptr;
  try {
    module_names().add_tree(module, "");
    name = module_names().find(module);
  } catch (const std::exception&) {  // no memory: the slice goes without
  }
  PyErr_Clear();
  PyErr_Restore(type, value, traceback);
  return name;
}

void begin_module(PyObject* module) noexcept {
  // Before the buffer is asked for: naming runs Python code, which may be recorded itself.
  const ModuleName* name = is_recording() ? module_names().find(module) : nullptr;
  if (name == nullptr && is_recording()) name = new_name(module);
  ThreadBuffer* b = recording_thread_for_begin();
  if (b == nullptr) return;
  TextSlot slot = kNoSlot;
  if (name != nullptr) {
    slot = b->find(kModuleKey | name->id);
    if (slot == kNoSlot) slot = b->define_key(kModuleKey | name->id, name->text);
  }
  b->begin(now_ticks(), slot, Scope::kModule);
}

PyObject* call(PyObject* self, PyObject* const* args, size_t count, PyObject* keywords) {
  if (PyVectorcall_NARGS(count) == 0) return PyObject_Vectorcall(original_of(self), args, count, keywords);
  const uint64_t run = g_run;
  begin_module(args[0]);
  const Owned original(Py_NewRef(original_of(self)));
  PyObject* result = PyObject_Vectorcall(original.get(), args, count, keywords);
  // A call that outlives its recording has nothing to end.
  if (run == g_run) {
    if (ThreadBuffer* b = recording_thread_for_end()) b->end(now_ticks(), ScopeGroup::kModule);
  }
  return result;
}

PyObject* bind(PyObject* self, PyObject* object, PyObject*) {
  if (object == nullptr || object == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, object);
}

// Whoever asks for more (__code__, __signature__, __doc__) asks the original.
PyObject* get_attribute(PyObject* self, PyObject* name) { return PyObject_GetAttr(original_of(self), name); }

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(original_of(self));
  Py_VISIT(Py_TYPE(self));
  return 0;
}

int clear(PyObject* self) {
  Py_CLEAR(reinterpret_cast<ModuleCall*>(self)->original);
  return 0;
}

void destroy(PyObject* self) {
  PyObject_GC_UnTrack(self);
  clear(self);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

PyMemberDef g_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(ModuleCall, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyType_Slot g_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_descr_get, reinterpret_cast<void*>(bind)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_getattro, reinterpret_cast<void*>(get_attribute)},
    {Py_tp_members, g_members},
    {0, nullptr},
};
PyType_Spec g_spec = {"firelane._ModuleCall", sizeof(ModuleCall), 0,
                      static_cast<unsigned>(Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                                            Py_TPFLAGS_METHOD_DESCRIPTOR),
                      g_slots};

Owned make_call(PyObject* original) {
  if (g_type == nullptr) g_type = PyType_FromSpec(&g_spec);
  if (g_type == nullptr) return Owned();
  auto* made = PyObject_GC_New(ModuleCall, reinterpret_cast<PyTypeObject*>(g_type));
  if (made == nullptr) return Owned();
  made->original = Py_NewRef(original);
  made->vectorcall = call;
  PyObject_GC_Track(reinterpret_cast<PyObject*>(made));
  return Owned(reinterpret_cast<PyObject*>(made));
}

// The class's own attribute, not one it inherits. Borrowed; null when there is none.
PyObject* own_call(PyObject* module_class) {
  return PyDict_GetItemString(reinterpret_cast<PyTypeObject*>(module_class)->tp_dict, "__call__");
}

}  // namespace

bool module_hook_is_on() noexcept { return g_call != nullptr; }

bool start_module_hook(PyObject* module_class, std::string& reason) {
  if (g_call != nullptr) return true;
  PyObject* original = PyType_Check(module_class) ? own_call(module_class) : nullptr;
  Owned made = original != nullptr ? make_call(original) : Owned();
  if (!made || PyObject_SetAttrString(module_class, "__call__", made.get()) != 0) {
    PyErr_Clear();
    reason = "modules: this torch.nn.Module has no __call__ that could be stood in for";
    return false;
  }
  ++g_run;
  g_class = Py_NewRef(module_class);
  g_call = made.release();
  return true;
}

void stop_module_hook() {
  if (g_call == nullptr) return;
  ++g_run;
  // Somebody who wrapped ours after us stays; ours passes through then.
  if (own_call(g_class) == g_call) PyObject_SetAttrString(g_class, "__call__", original_of(g_call));
  PyErr_Clear();
  Py_CLEAR(g_call);
  Py_CLEAR(g_class);
  module_names().clear();
}

bool name_modules(PyObject* root, const std::string& name) { return module_names().add_tree(root, name); }

}  // namespace firelane
