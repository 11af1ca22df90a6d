// CPython 3.10 and 3.11: a C profile function on every thread state.
#include <Python.h>

#if PY_VERSION_HEX < 0x030C0000
#include <exception>
#include <unordered_set>

#include "record/python/frames.h"
#include "record/python/hooks.h"
#include "record/python/owned.h"

namespace firelane::python_hooks {
namespace {

// The profile function's argument, one per thread: what was set before ours.
struct Place {
  PyObject_HEAD Py_tracefunc function;
  PyObject* argument;
};

void delete_place(PyObject* self) {
  Py_XDECREF(reinterpret_cast<Place*>(self)->argument);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

PyType_Slot g_place_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(delete_place)}, {0, nullptr}};
PyType_Spec g_place_spec = {"firelane._ProfilePlace", sizeof(Place), 0, Py_TPFLAGS_DEFAULT, g_place_slots};

PyObject* g_place_type = nullptr;                  // never freed
PyObject* g_threading = nullptr;                   // the module, while installed
PyObject* g_bootstrap = nullptr;                   // threading's hook for new threads, while installed
PyObject* g_old_bootstrap = nullptr;               // the one that was there
std::unordered_set<uint64_t>* g_hooked = nullptr;  // ids of the thread states that got ours; null: not installed

int on_event(PyObject* self, PyFrameObject* frame, int what, PyObject* argument) {
  switch (what) {
    case PyTrace_CALL: {
      PyCodeObject* code = PyFrame_GetCode(frame);
      enter_python(code, frame);
      Py_DECREF(code);
      break;
    }
    case PyTrace_RETURN: leave_python(frame); break;
    case PyTrace_C_CALL:
      if (is_c_function(argument)) enter_c(argument, nullptr, frame, site_of(frame));
      break;
    case PyTrace_C_RETURN:
    case PyTrace_C_EXCEPTION: leave_c(); break;
    default: break;
  }
  const auto* place = reinterpret_cast<Place*>(self);
  return place->function == nullptr ? 0 : place->function(place->argument, frame, what, argument);
}

bool install_on(PyThreadState* thread) {
  auto* place = PyObject_New(Place, reinterpret_cast<PyTypeObject*>(g_place_type));
  if (place == nullptr) return false;
  place->function = thread->c_profilefunc;
  place->argument = thread->c_profileobj;
  Py_XINCREF(place->argument);
  const Owned owner(reinterpret_cast<PyObject*>(place));
  if (_PyEval_SetProfile(thread, on_event, owner.get()) != 0) return false;
  try {
    g_hooked->insert(thread->id);
  } catch (const std::exception&) {  // no memory: whoever replaces ours is not told of
  }
  return true;
}

// Called as the profile function of a new thread, by its first event: puts the real one in place.
PyObject* bootstrap(PyObject*, PyObject*) {
  // What would have been this thread's profile function without us.
  const Owned sys(PyImport_ImportModule("sys"));
  PyObject* old = g_old_bootstrap != nullptr ? g_old_bootstrap : Py_None;
  const Owned done(sys ? PyObject_CallMethod(sys.get(), "setprofile", "O", old) : nullptr);
  if (done && g_hooked != nullptr) install_on(PyThreadState_Get());
  PyErr_Clear();
  Py_RETURN_NONE;
}

PyMethodDef g_bootstrap_method = {"firelane_profile", bootstrap, METH_VARARGS, nullptr};

bool install_bootstrap() {
  g_threading = PyImport_ImportModule("threading");
  if (g_threading == nullptr) return false;
  g_old_bootstrap = PyObject_GetAttrString(g_threading, "_profile_hook");
  if (g_old_bootstrap == nullptr) return false;
  g_bootstrap = PyCFunction_New(&g_bootstrap_method, nullptr);
  return g_bootstrap != nullptr && PyObject_SetAttrString(g_threading, "_profile_hook", g_bootstrap) == 0;
}

void remove_bootstrap() {
  if (g_threading != nullptr && g_bootstrap != nullptr) {
    const Owned now(PyObject_GetAttrString(g_threading, "_profile_hook"));
    if (now.get() == g_bootstrap) PyObject_SetAttrString(g_threading, "_profile_hook", g_old_bootstrap);
  }
  PyErr_Clear();
  Py_CLEAR(g_bootstrap);
  Py_CLEAR(g_old_bootstrap);
  Py_CLEAR(g_threading);
}

template <typename Visit>
void each_thread(Visit&& visit) {
  PyThreadState* thread = PyInterpreterState_ThreadHead(PyThreadState_Get()->interp);
  for (; thread != nullptr; thread = PyThreadState_Next(thread)) visit(thread);
}

}  // namespace

bool install_frame_hook() {
  if (g_place_type == nullptr) g_place_type = PyType_FromSpec(&g_place_spec);
  if (g_place_type == nullptr || !install_bootstrap()) return false;
  if (g_hooked == nullptr) g_hooked = new std::unordered_set<uint64_t>();
  bool done = true;
  each_thread([&](PyThreadState* thread) { done = done && install_on(thread); });
  return done;
}

void hook_this_thread() noexcept {
  PyThreadState* thread = PyThreadState_Get();
  if (g_hooked == nullptr || thread->c_profilefunc != nullptr) return;
  if (!g_hooked->contains(thread->id)) install_on(thread);
  PyErr_Clear();
}

void remove_frame_hook(std::string& loss) {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* const ours = g_bootstrap;
  each_thread([&](PyThreadState* thread) {
    if (thread->c_profilefunc == on_event) {
      const auto* place = reinterpret_cast<Place*>(thread->c_profileobj);
      const Py_tracefunc function = place->function;
      PyObject* argument = place->argument;
      Py_XINCREF(argument);  // setting the new one frees the place
      _PyEval_SetProfile(thread, function, argument);
      Py_XDECREF(argument);
    } else if (ours != nullptr && thread->c_profileobj == ours) {
      _PyEval_SetProfile(thread, nullptr, nullptr);
    } else if (g_hooked != nullptr && g_hooked->contains(thread->id)) {
      loss =
          "Python frames: another profile function (cProfile, sys.setprofile) took over on a thread; "
          "start it before the recording so that both see everything";
    }
  });
  remove_bootstrap();
  delete g_hooked;
  g_hooked = nullptr;
  PyErr_Restore(type, value, traceback);
}

}  // namespace firelane::python_hooks
#endif
