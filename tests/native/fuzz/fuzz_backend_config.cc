// SPDX-License-Identifier: Apache-2.0
//
// Any text as the backend's configuration: it is read, or refused with INVALID_ARG.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "backend.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string json(reinterpret_cast<const char*>(data), size);
  triton_jax::BackendConfig config;
  const triton_jax::Status status =
      triton_jax::CatchStatus([&] { config = triton_jax::ParseBackendConfig(json); });
  if (!status.ok() && status.code() != triton_jax::Code::kInvalidArg) {
    std::abort();
  }
  if (status.ok() && (config.default_max_batch_size < 0 || config.settings.empty())) {
    std::abort();
  }
  return 0;
}
