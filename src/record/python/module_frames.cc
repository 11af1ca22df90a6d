#include "record/python/module_frames.h"

#include <frameobject.h>

#include <exception>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "record/python/owned.h"

namespace firelane::python_hooks {

PyCodeObject* g_module_call = nullptr;

namespace {

struct Seen {
  std::unordered_map<PyObject*, std::unique_ptr<ModuleFrame>>
      modules;  // not kept alive: an address may change its type
  std::unordered_map<PyTypeObject*, uint64_t> counts;
  std::vector<std::unique_ptr<ModuleFrame>> gone;  // of modules whose address another one took
  uint64_t last_id = 0;
};
Seen* g_seen = nullptr;

Owned self_of(PyFrameObject* frame) {
#if PY_VERSION_HEX >= 0x030C0000
  if (frame == nullptr) frame = PyEval_GetFrame();  // borrowed
  return frame != nullptr ? Owned(PyFrame_GetVarString(frame, "self")) : Owned();
#else
  const Owned locals(frame != nullptr ? PyObject_GetAttrString(reinterpret_cast<PyObject*>(frame), "f_locals")
                                      : nullptr);
  PyObject* self = locals && PyDict_Check(locals.get()) ? PyDict_GetItemString(locals.get(), "self") : nullptr;
  return Owned(Py_XNewRef(self));
#endif
}

const ModuleFrame* frame_of(PyObject* self) {
  std::unique_ptr<ModuleFrame>& known = g_seen->modules[self];
  PyTypeObject* type = Py_TYPE(self);
  if (known != nullptr && known->type == type) return known.get();
  if (known != nullptr) g_seen->gone.push_back(std::move(known));
  known = std::make_unique<ModuleFrame>();
  known->type = type;
  known->id = ++g_seen->last_id;
  const std::string_view path = type->tp_name;
  known->name =
      "nn.Module: " + std::string(path.substr(path.rfind('.') + 1)) + "_" + std::to_string(g_seen->counts[type]++);
  return known.get();
}

}  // namespace

void begin_module_frames() noexcept {
  end_module_frames();
  PyObject* modules = PyImport_GetModuleDict();                                                            // borrowed
  PyObject* nn = modules != nullptr ? PyDict_GetItemString(modules, "torch.nn.modules.module") : nullptr;  // borrowed
  const Owned module_class(nn != nullptr ? PyObject_GetAttrString(nn, "Module") : nullptr);
  const Owned call(module_class ? PyObject_GetAttrString(module_class.get(), "__call__") : nullptr);
  PyErr_Clear();
  if (!call || !PyFunction_Check(call.get())) return;
  try {
    g_seen = new Seen();
    g_module_call = reinterpret_cast<PyCodeObject*>(Py_NewRef(PyFunction_GetCode(call.get())));
  } catch (const std::exception&) {  // no memory: modules are frames like others
  }
}

void end_module_frames() noexcept {
  delete g_seen;
  g_seen = nullptr;
  Py_CLEAR(g_module_call);
}

const ModuleFrame* module_of_frame(PyFrameObject* frame) noexcept {
  if (g_seen == nullptr) return nullptr;
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  const ModuleFrame* found = nullptr;
  try {
    if (const Owned self = self_of(frame)) found = frame_of(self.get());
  } catch (const std::exception&) {  // no memory
  }
  PyErr_Clear();
  PyErr_Restore(type, value, traceback);
  return found;
}

}  // namespace firelane::python_hooks
