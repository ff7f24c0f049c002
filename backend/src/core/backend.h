// SPDX-License-Identifier: Apache-2.0
//
// The backend as a whole: one object per server process.

#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "engine/engine.h"
#include "log.h"
#include "metrics.h"
#include "triton_c_api.h"

namespace triton_jax {

// What the server was started with: --backend-config=jax,key=value, and Triton's own defaults.
struct BackendConfig {
  std::string environment;  // directory of the Python environment; empty: <backend dir>/env
  int64_t default_max_batch_size = 0;
  std::string settings = "{}";  // all of it, by key, as JSON: for the engine
};

// Reads the JSON that Triton hands to a backend. Throws StatusError with INVALID_ARG naming the
// setting.
BackendConfig ParseBackendConfig(const std::string& json);

class Backend {
 public:
  explicit Backend(TRITONBACKEND_Backend* backend);

  // The engine that runs models. It is started with the first model; when that fails, the reason
  // goes to that model's load, and the next load tries again, so that an operator can repair the
  // environment without a restart.
  Engine& engine();

  MetricRegistry& metrics() { return metrics_; }
  const BackendConfig& config() const { return config_; }

 private:
  std::string directory_;
  BackendConfig config_;
  TritonHost host_;
  MetricRegistry metrics_;
  std::mutex engine_mutex_;
  std::shared_ptr<Engine> engine_;
};

}  // namespace triton_jax
