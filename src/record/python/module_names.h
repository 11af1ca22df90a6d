// What each nn.Module is called: built from named_modules() once per outermost module. Guarded by the GIL.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string>
#include <unordered_map>

namespace firelane::python_hooks {

struct ModuleName {
  uint64_t id = 0;  // never used twice in a process, unlike the module's address
  std::string text;
  PyObject* weakref = nullptr;  // owned; its callback forgets the module
};

class ModuleNames {
 public:
  // Null when `module` has no name yet.
  const ModuleName* find(PyObject* module) const {
    const auto it = names_.find(module);
    return it == names_.end() ? nullptr : &it->second;
  }
  // Names `root` and its sub-modules; those that have a name keep it. An empty name: that of the variable which
  // holds `root` in the calling Python frame, otherwise just the class. False with an exception set.
  bool add_tree(PyObject* root, std::string name);
  void forget(PyObject* module);
  void clear();

 private:
  bool add(PyObject* module, const std::string& path);

  std::unordered_map<PyObject*, ModuleName> names_;
  uint64_t next_id_ = 1;
};

ModuleNames& module_names();

}  // namespace firelane::python_hooks
