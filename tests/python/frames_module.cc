// record/python alone in a Python module, without torch: test_python_versions.py builds it for every CPython it finds.
//   start(path, module_class or None); stop() -> what was lost, as text
//   line() -> the line that calls it, found without the GIL; None if this Python's frames are not known
#include <Python.h>

#include <array>
#include <memory>
#include <string>

#include "record/core/session.h"
#include "record/python/call_lines.h"
#include "record/python/module_hook.h"
#include "record/python/tracer.h"

namespace {

std::unique_ptr<firelane::record::Session> g_session;

PyObject* fail(const std::string& text) {
  PyErr_SetString(PyExc_RuntimeError, text.c_str());
  return nullptr;
}

PyObject* start(PyObject*, PyObject* args) {
  const char* path = nullptr;
  PyObject* module_class = nullptr;
  if (PyArg_ParseTuple(args, "sO", &path, &module_class) == 0) return nullptr;
  firelane::record::RecordOptions options;
  options.output = path;
  options.keep = true;
  auto session = firelane::record::Session::start(options);
  if (!session.ok()) return fail(session.error().message);
  g_session = std::move(session).value();
  std::string reason;
  if (module_class != Py_None && !firelane::python_hooks::start_module_hook(module_class, reason)) return fail(reason);
  if (!firelane::python_hooks::start_python_tracer(reason)) return fail(reason);
  Py_RETURN_NONE;
}

PyObject* stop(PyObject*, PyObject*) {
  std::string loss;
  firelane::python_hooks::stop_python_tracer(loss);
  firelane::python_hooks::stop_module_hook();
  g_session->stop();
  g_session.reset();
  return PyUnicode_FromString(loss.c_str());
}

PyObject* line(PyObject*, PyObject*) {
  static const firelane::record::CallLines lines = firelane::python_hooks::call_lines();
  if (lines.find == nullptr) Py_RETURN_NONE;
  std::array<char, 2048> text;
  size_t size = 0;
  uint64_t found = 0;
  uint64_t again = 0;
  Py_BEGIN_ALLOW_THREADS;
  uint64_t position = 0;
  found = lines.find(position);
  size = lines.describe(text.data(), text.size());
  again = lines.find(position);  // where the thread is already
  Py_END_ALLOW_THREADS;
  if (found == 0 || again != 0) return fail("a line is found once at each position");
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(size));
}

PyMethodDef g_methods[] = {{"start", start, METH_VARARGS, nullptr},
                           {"stop", stop, METH_NOARGS, nullptr},
                           {"line", line, METH_NOARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};
PyModuleDef g_module = {
    PyModuleDef_HEAD_INIT, "frames_module", nullptr, -1, g_methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_frames_module() { return PyModule_Create(&g_module); }
