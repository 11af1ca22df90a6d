#include "record/python/module_names.h"

#include <string_view>
#include <utility>

#include "record/python/owned.h"

namespace firelane::python_hooks {
namespace {

std::string_view class_name(PyObject* object) {
  const std::string_view name = Py_TYPE(object)->tp_name;
  return name.substr(name.rfind('.') + 1);
}

// The name of a variable of `variables` that holds `object`; "self" and private names say nothing.
std::string variable_in(PyObject* variables, PyObject* object) {
  if (variables == nullptr) return {};
  const Owned items(PyMapping_Items(variables));
  for (Py_ssize_t i = 0; items && i < PyList_GET_SIZE(items.get()); ++i) {
    PyObject* item = PyList_GET_ITEM(items.get(), i);
    if (!PyTuple_Check(item) || PyTuple_GET_SIZE(item) != 2 || PyTuple_GET_ITEM(item, 1) != object) continue;
    const char* name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(item, 0));
    if (name != nullptr && name[0] != '_' && std::string_view(name) != "self") return name;
  }
  return {};
}

std::string variable_of(PyObject* object) {
  const Owned frame(reinterpret_cast<PyObject*>(PyThreadState_GetFrame(PyThreadState_Get())));
  std::string name;
  for (const char* scope : {"f_locals", "f_globals"}) {
    if (!frame || !name.empty()) break;
    const Owned variables(PyObject_GetAttrString(frame.get(), scope));
    name = variable_in(variables.get(), object);
  }
  PyErr_Clear();
  return name;
}

// The callback of a module's weak reference; `self` is a capsule of the module's address.
PyObject* on_module_gone(PyObject* self, PyObject*) {
  if (void* module = PyCapsule_GetPointer(self, nullptr)) module_names().forget(static_cast<PyObject*>(module));
  PyErr_Clear();
  Py_RETURN_NONE;
}

PyMethodDef g_on_module_gone = {"firelane_module_gone", on_module_gone, METH_O, nullptr};

}  // namespace

ModuleNames& module_names() {
  static auto* const names = new ModuleNames();
  return *names;
}

bool ModuleNames::add(PyObject* module, const std::string& path) {
  if (names_.contains(module)) return true;
  const Owned address(PyCapsule_New(module, nullptr, nullptr));
  const Owned callback(address ? PyCFunction_New(&g_on_module_gone, address.get()) : nullptr);
  Owned weakref(callback ? PyWeakref_NewRef(module, callback.get()) : nullptr);
  if (!weakref) return false;
  std::string text = path;
  if (path.empty()) {
    text = class_name(module);
  } else {
    text.append(" (").append(class_name(module)).append(")");
  }
  names_.emplace(module, ModuleName{next_id_++, std::move(text), weakref.release()});
  return true;
}

bool ModuleNames::add_tree(PyObject* root, std::string name) {
  if (name.empty()) name = variable_of(root);
  if (!add(root, name)) return false;
  const Owned modules(PyObject_CallMethod(root, "named_modules", nullptr));
  const Owned items(modules ? PySequence_List(modules.get()) : nullptr);
  if (!items) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    PyObject* item = PyList_GET_ITEM(items.get(), i);
    if (!PyTuple_Check(item) || PyTuple_GET_SIZE(item) != 2) continue;
    const char* path = PyUnicode_AsUTF8(PyTuple_GET_ITEM(item, 0));
    if (path == nullptr) return false;
    if (path[0] != '\0' && !add(PyTuple_GET_ITEM(item, 1), name.empty() ? path : name + "." + path)) return false;
  }
  return true;
}

void ModuleNames::forget(PyObject* module) {
  const auto it = names_.find(module);
  if (it == names_.end()) return;
  PyObject* weakref = it->second.weakref;
  names_.erase(it);
  Py_XDECREF(weakref);
}

void ModuleNames::clear() {
  std::unordered_map<PyObject*, ModuleName> names;
  names.swap(names_);
  for (auto& [module, name] : names) Py_XDECREF(name.weakref);
}

}  // namespace firelane::python_hooks
