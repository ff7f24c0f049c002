// SPDX-License-Identifier: Apache-2.0
//
// Triton's logger.

#pragma once

#include <string>

#include "engine/engine.h"
#include "triton_status.h"

namespace triton_jax {

bool LogIsEnabled(LogLevel level);
void Log(LogLevel level, const char* file, int line, const std::string& message);

// Logs an error that there is nobody to return to, and frees it. Does nothing for nullptr.
void LogIfError(TRITONSERVER_Error* error, const char* file, int line, const std::string& doing);

// Gives engines Triton's logger.
class TritonHost : public Host {
 public:
  bool LogIsEnabled(LogLevel level) override { return triton_jax::LogIsEnabled(level); }
  void Log(LogLevel level, const char* file, int line, const char* message) override {
    triton_jax::Log(level, file, line, message);
  }
};

}  // namespace triton_jax

#define TRITON_JAX_LOG(LEVEL, MESSAGE)                                                 \
  do {                                                                                 \
    if (::triton_jax::LogIsEnabled(::triton_jax::LogLevel::LEVEL)) {                   \
      ::triton_jax::Log(::triton_jax::LogLevel::LEVEL, __FILE__, __LINE__, (MESSAGE)); \
    }                                                                                  \
  } while (false)

#define TRITON_JAX_LOG_IF_ERROR(CALL, DOING) \
  ::triton_jax::LogIfError((CALL), __FILE__, __LINE__, (DOING))
