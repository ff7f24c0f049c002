// SPDX-License-Identifier: Apache-2.0

#include "host_functions.h"

#include "python_error.h"

namespace triton_jax {
namespace {

constexpr const char* kHostCapsule = "triton_jax.Host";
constexpr const char* kObserverCapsule = "triton_jax.ModelObserver";

PyObject* LogCall(PyObject* capsule, PyObject* arguments) {
  int level = 0;
  const char* file = nullptr;
  int line = 0;
  const char* message = nullptr;
  if (PyArg_ParseTuple(arguments, "isis:log", &level, &file, &line, &message) == 0) {
    return nullptr;
  }
  auto* host = static_cast<Host*>(PyCapsule_GetPointer(capsule, kHostCapsule));
  if (host == nullptr) {
    return nullptr;
  }
  const auto log_level = static_cast<LogLevel>(level);
  if (host->LogIsEnabled(log_level)) {
    host->Log(log_level, file, line, message);
  }
  Py_INCREF(Py_None);
  return Py_None;
}

PyObject* ObserveCall(PyObject* capsule, PyObject* arguments) {
  int event = 0;
  const char* device = nullptr;
  double value = 0;
  if (PyArg_ParseTuple(arguments, "isd:observe", &event, &device, &value) == 0) {
    return nullptr;
  }
  auto* observer = static_cast<ModelObserver*>(PyCapsule_GetPointer(capsule, kObserverCapsule));
  if (observer == nullptr) {
    return nullptr;
  }
  observer->Observe(static_cast<Event>(event), device, value);
  Py_INCREF(Py_None);
  return Py_None;
}

PyMethodDef log_method{"log", LogCall, METH_VARARGS, "Writes a line to Triton's log."};
PyMethodDef observe_method{"observe", ObserveCall, METH_VARARGS, "Counts an event of a model."};

PyRef Bind(PyMethodDef* method, void* pointer, const char* name) {
  const PyRef capsule = CheckPython(PyCapsule_New(pointer, name, nullptr));
  return CheckPython(PyCFunction_New(method, capsule.get()));
}

}  // namespace

PyRef LogFunction(Host* host) { return Bind(&log_method, host, kHostCapsule); }

PyRef ObserveFunction(ModelObserver* observer) {
  return Bind(&observe_method, observer, kObserverCapsule);
}

}  // namespace triton_jax
