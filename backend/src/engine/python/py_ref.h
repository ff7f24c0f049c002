// SPDX-License-Identifier: Apache-2.0
//
// An owned reference to a Python object. Needs the GIL wherever it is copied, reset or destroyed
// while it holds an object.

#pragma once

#include <Python.h>

#include <utility>

namespace triton_jax {

class PyRef {
 public:
  PyRef() = default;
  explicit PyRef(PyObject* owned) : object_(owned) {}
  PyRef(const PyRef& other) : object_(other.object_) { Py_XINCREF(object_); }
  PyRef(PyRef&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  PyRef& operator=(PyRef other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~PyRef() { Py_XDECREF(object_); }

  static PyRef Borrowed(PyObject* borrowed) {
    Py_XINCREF(borrowed);
    return PyRef(borrowed);
  }

  PyObject* get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  void reset() { *this = PyRef(); }

 private:
  PyObject* object_ = nullptr;
};

}  // namespace triton_jax
