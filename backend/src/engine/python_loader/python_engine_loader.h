// SPDX-License-Identifier: Apache-2.0
//
// Starts the engine that embeds Python, without being linked against Python: finds the
// environment's libpython, opens it for the whole process, and only then opens
// libtriton_jax_python.so, which has undefined Python symbols.

#pragma once

#include <memory>
#include <string>

#include "engine/engine.h"

namespace triton_jax {

struct PythonEngineSpec {
  std::string backend_directory;  // where libtriton_jax_python.so is
  std::string environment;        // of Python, made by scripts/setup_env.sh
  std::string settings;           // what the server was started with, by key, as JSON
};

// Throws StatusError saying what is wrong with the environment and what to do about it. `host` must
// outlive the engine. May be called again after a failure.
std::shared_ptr<Engine> LoadPythonEngine(const PythonEngineSpec& spec, Host* host);

}  // namespace triton_jax
