// SPDX-License-Identifier: Apache-2.0

#include "log.h"

namespace triton_jax {
namespace {

TRITONSERVER_LogLevel ToTriton(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo:
      return TRITONSERVER_LOG_INFO;
    case LogLevel::kWarning:
      return TRITONSERVER_LOG_WARN;
    case LogLevel::kError:
      return TRITONSERVER_LOG_ERROR;
    case LogLevel::kVerbose:
      return TRITONSERVER_LOG_VERBOSE;
  }
  return TRITONSERVER_LOG_ERROR;
}

}  // namespace

bool LogIsEnabled(LogLevel level) { return TRITONSERVER_LogIsEnabled(ToTriton(level)); }

void Log(LogLevel level, const char* file, int line, const std::string& message) {
  TRITONSERVER_Error* error = TRITONSERVER_LogMessage(ToTriton(level), file, line, message.c_str());
  if (error != nullptr) {
    TRITONSERVER_ErrorDelete(error);  // the logger itself failed: there is nowhere left to say so
  }
}

void LogIfError(TRITONSERVER_Error* error, const char* file, int line, const std::string& doing) {
  const Status status = FromTriton(error);
  if (!status.ok()) {
    Log(LogLevel::kError, file, line, "jax: " + doing + ": " + status.message());
  }
}

}  // namespace triton_jax
