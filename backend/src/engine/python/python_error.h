// SPDX-License-Identifier: Apache-2.0
//
// Python exceptions as StatusError.

#pragma once

#include "engine/status.h"
#include "py_ref.h"

namespace triton_jax {

// Throws the pending Python exception as a StatusError, as the runtime describes it (which also
// logs a traceback where a person needs one). Needs the GIL and a pending exception.
[[noreturn]] void ThrowPythonError();

// `result`, or the pending exception if it is null.
inline PyRef CheckPython(PyObject* result) {
  if (result == nullptr) {
    ThrowPythonError();
  }
  return PyRef(result);
}

}  // namespace triton_jax
