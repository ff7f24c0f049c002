// SPDX-License-Identifier: Apache-2.0
//
// The one symbol of libtriton_jax_python.so.

#pragma once

#include "engine/engine.h"

namespace triton_jax {

struct PythonEngineOptions {
  const char* executable;  // of the environment's Python
  const char* prefix;      // that the embedded interpreter must have
  const char* settings;    // what the server was started with, by key, as JSON
};

}  // namespace triton_jax

extern "C" {

// Starts Python in this process if it does not run yet, imports the runtime, and makes an engine,
// which the caller deletes through its virtual destructor. On failure *engine stays null and
// *status says why.
using TritonJaxPythonEngine = void(const triton_jax::PythonEngineOptions* options,
                                   triton_jax::Host* host, triton_jax::Engine** engine,
                                   triton_jax::Status* status);

__attribute__((visibility("default"))) TritonJaxPythonEngine triton_jax_python_engine;
}
