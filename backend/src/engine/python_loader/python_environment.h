// SPDX-License-Identifier: Apache-2.0
//
// What is in a Python environment, found out by asking its own interpreter in a process of its own:
// an environment that cannot even start must not take the server down with it.

#pragma once

#include <string>

namespace triton_jax {

struct PythonEnvironment {
  std::string executable;  // <environment>/bin/python
  std::string prefix;      // sys.prefix, to check the embedded interpreter against
  std::string libpython;   // absolute path of the shared library
};

// Throws StatusError(UNAVAILABLE) naming the environment, what was found, and what was expected.
PythonEnvironment ProbePythonEnvironment(const std::string& directory,
                                         const std::string& backend_directory);

}  // namespace triton_jax
