// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace triton_jax {

struct ProcessResult {
  int exit_status = -1;  // of waitpid; -1: the process did not end in time and was killed
  std::string standard_output;
  std::string standard_error;
};

// Runs a program with no standard input and waits for it. Throws StatusError(UNAVAILABLE) if it
// cannot be started.
ProcessResult RunProcess(const std::vector<std::string>& arguments,
                         std::chrono::milliseconds timeout);

}  // namespace triton_jax
