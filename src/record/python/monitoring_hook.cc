// CPython 3.12 on: sys.monitoring with callbacks in C. It is per interpreter, so threads started later are seen
// too, and each tool has its own id, so cProfile, coverage and debuggers are not disturbed.
#include <Python.h>

#if PY_VERSION_HEX >= 0x030C0000
#include <array>

#include "record/python/frames.h"
#include "record/python/hooks.h"
#include "record/python/owned.h"

namespace firelane::python_hooks {
namespace {

// Ids without an assigned use; 0 to 2 and 5 are meant for debuggers, coverage, profilers, optimizers.
constexpr std::array kToolIds = {4, 3, 2};
int g_tool = -1;

PyObject* on_enter(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count >= 1 && PyCode_Check(args[0])) enter_python(reinterpret_cast<PyCodeObject*>(args[0]), nullptr);
  Py_RETURN_NONE;
}

PyObject* on_leave(PyObject*, PyObject* const*, Py_ssize_t) {
  leave_python(nullptr);
  Py_RETURN_NONE;
}

// code, offset, callable, first argument
PyObject* on_call(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count >= 4 && PyCode_Check(args[0]) && is_c_function(args[2])) {
    const auto offset = static_cast<int>(PyLong_AsLong(args[1]));
    enter_c(args[2], args[3], nullptr, {.code = reinterpret_cast<PyCodeObject*>(args[0]), .offset = offset});
  }
  Py_RETURN_NONE;
}

PyObject* on_c_leave(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count >= 3 && is_c_function(args[2])) leave_c();
  Py_RETURN_NONE;
}

PyCFunction fast(PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

struct Event {
  const char* name;
  PyMethodDef method;
};
std::array<Event, 9> g_events = {{
    {"PY_START", {"firelane_enter", fast(on_enter), METH_FASTCALL, nullptr}},
    {"PY_RESUME", {"firelane_enter", fast(on_enter), METH_FASTCALL, nullptr}},
    {"PY_THROW", {"firelane_enter", fast(on_enter), METH_FASTCALL, nullptr}},
    {"PY_RETURN", {"firelane_leave", fast(on_leave), METH_FASTCALL, nullptr}},
    {"PY_YIELD", {"firelane_leave", fast(on_leave), METH_FASTCALL, nullptr}},
    {"PY_UNWIND", {"firelane_leave", fast(on_leave), METH_FASTCALL, nullptr}},
    {"CALL", {"firelane_call", fast(on_call), METH_FASTCALL, nullptr}},
    {"C_RETURN", {"firelane_c_leave", fast(on_c_leave), METH_FASTCALL, nullptr}},
    {"C_RAISE", {"firelane_c_leave", fast(on_c_leave), METH_FASTCALL, nullptr}},
}};

Owned monitoring() {
  PyObject* sys_monitoring = PySys_GetObject("monitoring");  // borrowed
  Py_XINCREF(sys_monitoring);
  if (sys_monitoring == nullptr) PyErr_SetString(PyExc_RuntimeError, "this Python has no sys.monitoring");
  return Owned(sys_monitoring);
}

bool take_tool(PyObject* mon) {
  for (const int id : kToolIds) {
    const Owned taken(PyObject_CallMethod(mon, "use_tool_id", "is", id, "firelane"));
    if (taken) {
      g_tool = id;
      return true;
    }
    if (!PyErr_ExceptionMatches(PyExc_ValueError)) return false;
    PyErr_Clear();
  }
  PyErr_SetString(PyExc_RuntimeError, "all of sys.monitoring's tool ids are in use");
  return false;
}

bool set_events(PyObject* mon, long events) {
  return static_cast<bool>(Owned(PyObject_CallMethod(mon, "set_events", "il", g_tool, events)));
}

}  // namespace

bool install_frame_hook() {
  const Owned mon = monitoring();
  if (!mon || !take_tool(mon.get())) return false;
  const Owned names(PyObject_GetAttrString(mon.get(), "events"));
  long mask = 0;
  for (Event& event : g_events) {
    const Owned number(names ? PyObject_GetAttrString(names.get(), event.name) : nullptr);
    const long bit = number ? PyLong_AsLong(number.get()) : -1;
    const Owned callback(PyCFunction_New(&event.method, nullptr));
    if (bit < 0 || !callback) return false;
    const Owned old(PyObject_CallMethod(mon.get(), "register_callback", "ilO", g_tool, bit, callback.get()));
    if (!old) return false;
    // C_RETURN and C_RAISE come with CALL and cannot be asked for alone.
    if (event.name[0] != 'C' || event.name[1] != '_') mask |= bit;
  }
  return set_events(mon.get(), mask);
}

void hook_this_thread() noexcept {}  // sys.monitoring is the interpreter's, not a thread's

void remove_frame_hook(std::string&) {
  if (g_tool < 0) return;
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  if (const Owned mon = monitoring()) {
    set_events(mon.get(), 0);
    PyErr_Clear();
    const Owned names(PyObject_GetAttrString(mon.get(), "events"));
    for (const Event& event : g_events) {
      const Owned number(names ? PyObject_GetAttrString(names.get(), event.name) : nullptr);
      const Owned old(number ? PyObject_CallMethod(mon.get(), "register_callback", "iOO", g_tool, number.get(), Py_None)
                             : nullptr);
      PyErr_Clear();
    }
    const Owned freed(PyObject_CallMethod(mon.get(), "free_tool_id", "i", g_tool));
  }
  g_tool = -1;
  PyErr_Clear();
  PyErr_Restore(type, value, traceback);
}

}  // namespace firelane::python_hooks
#endif
