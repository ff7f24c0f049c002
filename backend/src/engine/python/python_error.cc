// SPDX-License-Identifier: Apache-2.0

#include "python_error.h"

#include <string>

namespace triton_jax {
namespace {

std::string Utf8(PyObject* text) {
  Py_ssize_t size = 0;
  const char* data = text == nullptr ? nullptr : PyUnicode_AsUTF8AndSize(text, &size);
  if (data == nullptr) {
    PyErr_Clear();
    return "(not text)";
  }
  return {data, static_cast<size_t>(size)};
}

PyRef TakePendingException() {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (value != nullptr && traceback != nullptr) {
    PyException_SetTraceback(value, traceback);
  }
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  return PyRef(value);
}

// Without the runtime: it may be what could not be imported.
Status DescribePlainly(PyObject* exception) {
  const PyRef text(PyObject_Str(exception));
  if (!text) {
    PyErr_Clear();
  }
  const PyRef name(
      PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(exception)), "__name__"));
  if (!name) {
    PyErr_Clear();
  }
  return {Code::kInternal, Utf8(name.get()) + ": " + Utf8(text.get())};
}

}  // namespace

void ThrowPythonError() {
  const PyRef exception = TakePendingException();
  if (!exception) {
    throw StatusError(Code::kInternal, "Python reported an error without an exception");
  }
  const PyRef module(PyImport_ImportModule("tritonserver_jax.runtime.errors"));
  PyRef described;
  if (module) {
    described = PyRef(PyObject_CallMethod(module.get(), "describe", "O", exception.get()));
  }
  int code = 0;
  const char* message = nullptr;
  int fatal = 0;
  if (!described || PyArg_ParseTuple(described.get(), "isp", &code, &message, &fatal) == 0) {
    PyErr_Clear();
    throw StatusError(DescribePlainly(exception.get()));
  }
  throw StatusError(fatal != 0 ? Status::Fatal(message) : Status(static_cast<Code>(code), message));
}

}  // namespace triton_jax
