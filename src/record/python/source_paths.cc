#include "record/python/source_paths.h"

#include <Python.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <memory>

#include "record/python/owned.h"

namespace firelane::python_hooks {
namespace {

std::atomic<const SourcePaths*> g_current{nullptr};  // what is replaced is not freed: sys.path seldom changes

std::string text_of(PyObject* text) {
  Py_ssize_t size = 0;
  const char* bytes = text != nullptr && PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, &size) : nullptr;
  PyErr_Clear();
  return bytes == nullptr ? std::string() : std::string(bytes, static_cast<size_t>(size));
}

// "/usr/lib/python3.11/" of a module's __file__; "" if it is not imported.
std::string folder_of_module(const char* name) {
  PyObject* modules = PyImport_GetModuleDict();  // borrowed
  PyObject* module = modules != nullptr ? PyDict_GetItemString(modules, name) : nullptr;
  const Owned file(module != nullptr ? PyObject_GetAttrString(module, "__file__") : nullptr);
  PyErr_Clear();
  const std::string path = text_of(file.get());
  return path.substr(0, path.rfind('/') + 1);
}

bool is_installed(std::string_view path) {
  return path.find("/site-packages/") != std::string_view::npos ||
         path.find("/dist-packages/") != std::string_view::npos;
}

}  // namespace

const SourcePaths* SourcePaths::current() noexcept { return g_current.load(std::memory_order_acquire); }

void SourcePaths::refresh() noexcept {
  try {
    auto paths = std::make_unique<SourcePaths>();
    PyObject* path = PySys_GetObject("path");  // borrowed
    for (Py_ssize_t i = 0; path != nullptr && PyList_Check(path) && i < PyList_GET_SIZE(path); ++i) {
      const std::string entry = text_of(PyList_GET_ITEM(path, i));
      if (entry.size() > 1) paths->prefixes_.push_back(entry + "/");
    }
    std::stable_sort(paths->prefixes_.begin(), paths->prefixes_.end(),
                     [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
    for (const char* name : {"torch", "torchgen", "functorch", "triton", "firelane"}) {
      if (std::string folder = folder_of_module(name); !folder.empty()) paths->internal_.push_back(std::move(folder));
    }
    paths->standard_library_ = folder_of_module("os");
    const SourcePaths* before = current();
    if (before == nullptr || *before != *paths) g_current.store(paths.release(), std::memory_order_release);
  } catch (const std::exception&) {  // no memory: what was known before stays
  }
  if (current() == nullptr) {
    static const SourcePaths kNothing;
    g_current.store(&kNothing, std::memory_order_release);
  }
}

SourceOwner SourcePaths::owner_of(std::string_view path) const noexcept {
  // "<frozen importlib._bootstrap>", torch.fx's "<eval_with_key>"; but "<stdin>", "<string>" and a notebook's cells are
  // programs.
  constexpr std::array kMade = {"<frozen ", "<eval_with_key>", "<attrs ", "<__array_function__"};
  for (const std::string_view made : kMade) {
    if (path.starts_with(made)) return SourceOwner::kInternal;
  }
  if (path.find("/torchinductor_") != std::string_view::npos) return SourceOwner::kInternal;
  for (const std::string& folder : internal_) {
    if (path.starts_with(folder)) return SourceOwner::kInternal;
  }
  // PyTorch Geometric writes functions of its layers into the temporary folder.
  if (is_installed(path) || path.find("/torch_geometric.") != std::string_view::npos) return SourceOwner::kLibrary;
  return !standard_library_.empty() && path.starts_with(standard_library_) ? SourceOwner::kInternal
                                                                           : SourceOwner::kProgram;
}

std::string_view SourcePaths::shortened(std::string_view path) const noexcept {
  for (const std::string& prefix : prefixes_) {
    if (path.size() > prefix.size() && path.starts_with(prefix)) return path.substr(prefix.size());
  }
  return path;
}

}  // namespace firelane::python_hooks
