// An owned reference to a Python object, released by the destructor.
#pragma once

#include <Python.h>

#include <utility>

namespace firelane::python_hooks {

class Owned {
 public:
  Owned() = default;
  explicit Owned(PyObject* object) : object_(object) {}  // takes over the reference
  Owned(Owned&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Owned() { Py_XDECREF(object_); }

  PyObject* get() const noexcept { return object_; }
  PyObject* release() noexcept { return std::exchange(object_, nullptr); }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

}  // namespace firelane::python_hooks
