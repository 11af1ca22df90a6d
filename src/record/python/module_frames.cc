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
PyCodeObject* g_optimizer_step = nullptr;

namespace {

struct Seen {
  std::unordered_map<PyObject*, std::unique_ptr<ModuleFrame>>
      modules;  // not kept alive: an address may change its type
  std::unordered_map<PyTypeObject*, uint64_t> counts;
  std::vector<std::unique_ptr<ModuleFrame>> gone;   // of modules whose address another one took
  std::unordered_map<PyObject*, Owned> optimizers;  // described
  uint64_t last_id = 0;
};
Seen* g_seen = nullptr;
PyObject* g_describe = nullptr;
PyObject* g_owners = nullptr;  // a list

// Errors of the program that run meanwhile stay what they are.
class KeptError {
 public:
  KeptError() { PyErr_Fetch(&type_, &value_, &traceback_); }
  ~KeptError() {
    PyErr_Clear();
    PyErr_Restore(type_, value_, traceback_);
  }
  KeptError(const KeptError&) = delete;
  KeptError& operator=(const KeptError&) = delete;

 private:
  PyObject* type_ = nullptr;
  PyObject* value_ = nullptr;
  PyObject* traceback_ = nullptr;
};

// The code object of `name` of a class in `module`; null where the program has not imported that. A new reference.
PyCodeObject* code_of(const char* module, const char* class_name, const char* name) {
  PyObject* modules = PyImport_GetModuleDict();                                            // borrowed
  PyObject* found = modules != nullptr ? PyDict_GetItemString(modules, module) : nullptr;  // borrowed
  const Owned owner(found != nullptr ? PyObject_GetAttrString(found, class_name) : nullptr);
  const Owned function(owner ? PyObject_GetAttrString(owner.get(), name) : nullptr);
  PyErr_Clear();
  if (!function || !PyFunction_Check(function.get())) return nullptr;
  return reinterpret_cast<PyCodeObject*>(Py_NewRef(PyFunction_GetCode(function.get())));
}

void add_owner(PyObject* name, PyObject* description) {
  if (g_owners == nullptr) g_owners = PyList_New(0);
  const Owned pair(PyTuple_Pack(2, name, description));
  if (g_owners != nullptr && pair) PyList_Append(g_owners, pair.get());
}

void describe_module(PyObject* self, const std::string& slices) {
  if (g_describe == nullptr) return;
  const Owned description(PyObject_CallOneArg(g_describe, self));
  const Owned name(PyUnicode_DecodeUTF8(slices.data(), static_cast<Py_ssize_t>(slices.size()), "replace"));
  if (description && name) add_owner(name.get(), description.get());
  PyErr_Clear();
}

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
  const ModuleFrame* frame = known.get();  // describing may call other modules
  describe_module(self, frame->name);
  return frame;
}

}  // namespace

void describe_owners(PyObject* describe) noexcept {
  Py_XSETREF(g_describe, describe == nullptr || describe == Py_None ? nullptr : Py_NewRef(describe));
}

PyObject* take_owners() noexcept { return std::exchange(g_owners, nullptr); }

void begin_module_frames() noexcept {
  end_module_frames();
  try {
    g_seen = new Seen();
  } catch (const std::exception&) {  // no memory: modules are frames like others
    return;
  }
  Py_CLEAR(g_owners);
  g_module_call = code_of("torch.nn.modules.module", "Module", "__call__");
  if (g_describe != nullptr) g_optimizer_step = code_of("torch.optim.optimizer", "Optimizer", "_optimizer_step_code");
}

void end_module_frames() noexcept {
  delete g_seen;
  g_seen = nullptr;
  Py_CLEAR(g_module_call);
  Py_CLEAR(g_optimizer_step);
}

void note_optimizer(PyFrameObject* frame) noexcept {
  if (g_seen == nullptr || g_describe == nullptr) return;
  const KeptError kept;
  try {
    const Owned self = self_of(frame);
    if (!self) return;
    Owned& description = g_seen->optimizers[self.get()];
    if (!description) description = Owned(PyObject_CallOneArg(g_describe, self.get()));
    if (description) add_owner(Py_None, description.get());
  } catch (const std::exception&) {  // no memory
  }
}

const ModuleFrame* module_of_frame(PyFrameObject* frame) noexcept {
  if (g_seen == nullptr) return nullptr;
  const KeptError kept;
  try {
    if (const Owned self = self_of(frame)) return frame_of(self.get());
  } catch (const std::exception&) {  // no memory
  }
  return nullptr;
}

}  // namespace firelane::python_hooks
