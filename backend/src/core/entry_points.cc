// SPDX-License-Identifier: Apache-2.0
//
// The functions that Triton calls. Each turns whatever is thrown below it into a
// TRITONSERVER_Error: nothing may leave a C function as an exception.

#include <memory>
#include <string>

#include "backend.h"
#include "engine/status.h"
#include "log.h"
#include "model.h"
#include "model_instance.h"
#include "triton_c_api.h"
#include "triton_status.h"

namespace triton_jax {
namespace {

void CheckApiVersion() {
  uint32_t major = 0;
  uint32_t minor = 0;
  ThrowIfError(TRITONBACKEND_ApiVersion(&major, &minor));
  if (major != TRITON_JAX_BACKEND_API_MAJOR || minor < TRITON_JAX_BACKEND_API_MINOR) {
    const std::string needed = std::to_string(TRITON_JAX_BACKEND_API_MAJOR) + "." +
                               std::to_string(TRITON_JAX_BACKEND_API_MINOR);
    throw StatusError(Code::kUnsupported,
                      "the jax backend needs Triton's backend API " + needed +
                          " or a later minor version of it (release 23.04 or newer); this server "
                          "has " +
                          std::to_string(major) + "." + std::to_string(minor));
  }
}

}  // namespace
}  // namespace triton_jax

using triton_jax::EntryPoint;
using triton_jax::ThrowIfError;

extern "C" {

TRITONSERVER_Error* TRITONBACKEND_Initialize(TRITONBACKEND_Backend* backend) {
  return EntryPoint([&] {
    triton_jax::CheckApiVersion();
    auto state = std::make_unique<triton_jax::Backend>(backend);
    // Executes block until their outputs are on the host, so each instance gets a thread of its
    // own.
    ThrowIfError(
        TRITONBACKEND_BackendSetExecutionPolicy(backend, TRITONBACKEND_EXECUTION_BLOCKING));
    ThrowIfError(TRITONBACKEND_BackendSetState(backend, state.get()));
    state.release();
    TRITON_JAX_LOG(kInfo, std::string("jax: backend ") + TRITON_JAX_VERSION);
  });
}

TRITONSERVER_Error* TRITONBACKEND_Finalize(TRITONBACKEND_Backend* backend) {
  return EntryPoint([&] {
    void* state = nullptr;
    ThrowIfError(TRITONBACKEND_BackendState(backend, &state));
    delete static_cast<triton_jax::Backend*>(state);
    ThrowIfError(TRITONBACKEND_BackendSetState(backend, nullptr));
  });
}

TRITONSERVER_Error* TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model* model) {
  return EntryPoint([&] {
    auto state = std::make_unique<triton_jax::TritonModel>(model);
    ThrowIfError(TRITONBACKEND_ModelSetState(model, state.get()));
    state.release();
  });
}

TRITONSERVER_Error* TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model* model) {
  return EntryPoint([&] {
    void* state = nullptr;
    ThrowIfError(TRITONBACKEND_ModelState(model, &state));
    delete static_cast<triton_jax::TritonModel*>(state);
    ThrowIfError(TRITONBACKEND_ModelSetState(model, nullptr));
  });
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance* instance) {
  return EntryPoint([&] {
    auto state = std::make_unique<triton_jax::TritonModelInstance>(instance);
    ThrowIfError(TRITONBACKEND_ModelInstanceSetState(instance, state.get()));
    state.release();
  });
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance* instance) {
  return EntryPoint([&] {
    void* state = nullptr;
    ThrowIfError(TRITONBACKEND_ModelInstanceState(instance, &state));
    delete static_cast<triton_jax::TritonModelInstance*>(state);
    ThrowIfError(TRITONBACKEND_ModelInstanceSetState(instance, nullptr));
  });
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance* instance,
                                                       TRITONBACKEND_Request** requests,
                                                       const uint32_t request_count) {
  return EntryPoint([&] {
    void* state = nullptr;
    // Until here a failure leaves the requests Triton's; from Execute on they are ours.
    ThrowIfError(TRITONBACKEND_ModelInstanceState(instance, &state));
    static_cast<triton_jax::TritonModelInstance*>(state)->Execute(requests, request_count);
  });
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReady(TRITONBACKEND_ModelInstance* instance) {
  return EntryPoint([&] {
    void* state = nullptr;
    ThrowIfError(TRITONBACKEND_ModelInstanceState(instance, &state));
    ThrowIfError(static_cast<triton_jax::TritonModelInstance*>(state)->Ready());
  });
}

}  // extern "C"
