// SPDX-License-Identifier: Apache-2.0
//
// Compiled only when TRITON_SDK_DIR names an SDK: the official headers of that release and our own
// declaration in one translation unit. The compiler then refuses any function declared with another
// signature, and static_assert any enumerator with another value.

#include "triton/core/tritonbackend.h"
#include "triton/core/tritonserver.h"

#define TRITON_JAX_CHECK_AGAINST_SDK
#include "triton_c_api.h"

static_assert(TRITONBACKEND_API_VERSION_MAJOR == TRITON_JAX_BACKEND_API_MAJOR,
              "the SDK has another major version of the backend API");
static_assert(TRITONBACKEND_API_VERSION_MINOR >= TRITON_JAX_BACKEND_API_MINOR,
              "the SDK is older than the oldest release that this backend supports (23.04)");
