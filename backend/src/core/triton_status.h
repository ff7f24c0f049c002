// SPDX-License-Identifier: Apache-2.0
//
// Between our Status and Triton's TRITONSERVER_Error.

#pragma once

#include <utility>

#include "engine/status.h"
#include "triton_c_api.h"

namespace triton_jax {

// A new error for Triton to own, or nullptr if the status is OK.
inline TRITONSERVER_Error* ToTriton(const Status& status) {
  if (status.ok()) {
    return nullptr;
  }
  return TRITONSERVER_ErrorNew(static_cast<TRITONSERVER_Error_Code>(status.code()),
                               status.message().c_str());
}

// Takes ownership of `error`.
inline Status FromTriton(TRITONSERVER_Error* error) {
  if (error == nullptr) {
    return {};
  }
  Status status(static_cast<Code>(TRITONSERVER_ErrorCode(error)), TRITONSERVER_ErrorMessage(error));
  TRITONSERVER_ErrorDelete(error);
  return status;
}

// Takes ownership of `error` and throws it as a StatusError.
inline void ThrowIfError(TRITONSERVER_Error* error) {
  if (error != nullptr) {
    throw StatusError(FromTriton(error));
  }
}

// Runs the body of a function that Triton calls, and returns what went wrong as Triton wants it.
template <typename Body>
TRITONSERVER_Error* EntryPoint(Body&& body) {
  return ToTriton(CatchStatus(std::forward<Body>(body)));
}

}  // namespace triton_jax
