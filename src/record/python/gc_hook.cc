// Pauses of the garbage collector: a callable in gc.callbacks.
#include <algorithm>
#include <array>

#include "base/clock.h"
#include "record/core/thread_buffer.h"
#include "record/python/frames.h"
#include "record/python/hooks.h"
#include "record/python/owned.h"

namespace firelane::python_hooks {
namespace {

PyObject* g_callback = nullptr;  // ours in gc.callbacks, while installed
GcHook g_hook = GcHook::kWithFrames;

// Without a tracer, whose frames a collection lies in.
void enter_alone(int generation) noexcept {
  static constexpr std::array kNames = {"gc: generation 0", "gc: generation 1", "gc: generation 2"};
  if (record::ThreadBuffer* b = record::recording_thread_for_begin()) {
    const record::TextSlot name = b->stable_name(kNames[static_cast<size_t>(std::clamp(generation, 0, 2))]);
    b->begin(now_ticks(), name, format::Scope::kPythonGc);
  }
}

void leave_alone() noexcept {
  if (record::ThreadBuffer* b = record::recording_thread_for_end()) b->end(now_ticks(), format::ScopeGroup::kPython);
}

PyObject* on_gc(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count == 2 && PyUnicode_Check(args[0])) {
    if (PyUnicode_CompareWithASCIIString(args[0], "start") == 0) {
      PyObject* generation = PyDict_Check(args[1]) ? PyDict_GetItemString(args[1], "generation") : nullptr;
      const int number = generation != nullptr ? static_cast<int>(PyLong_AsLong(generation)) : 0;
      g_hook == GcHook::kAlone ? enter_alone(number) : enter_gc(number);
    } else {
      g_hook == GcHook::kAlone ? leave_alone() : leave_gc();
    }
  }
  PyErr_Clear();
  Py_RETURN_NONE;
}

PyMethodDef g_on_gc = {"firelane_gc", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(on_gc)), METH_FASTCALL,
                       nullptr};

Owned gc_callbacks() {
  const Owned gc(PyImport_ImportModule("gc"));
  return gc ? Owned(PyObject_GetAttrString(gc.get(), "callbacks")) : Owned();
}

}  // namespace

bool install_gc_hook(GcHook hook) {
  g_hook = hook;
  const Owned list = gc_callbacks();
  if (!list || !PyList_Check(list.get())) return false;
  Owned callback(PyCFunction_New(&g_on_gc, nullptr));
  if (!callback || PyList_Append(list.get(), callback.get()) != 0) return false;
  g_callback = callback.release();
  return true;
}

void remove_gc_hook() {
  if (g_callback == nullptr) return;
  if (const Owned list = gc_callbacks(); list && PyList_Check(list.get())) {
    for (Py_ssize_t i = PyList_GET_SIZE(list.get()); i-- > 0;) {
      if (PyList_GET_ITEM(list.get(), i) == g_callback) PyList_SetSlice(list.get(), i, i + 1, nullptr);
    }
  }
  PyErr_Clear();
  Py_CLEAR(g_callback);
}

}  // namespace firelane::python_hooks
