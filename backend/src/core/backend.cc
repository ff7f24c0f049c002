// SPDX-License-Identifier: Apache-2.0

#include "backend.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "engine/python_loader/python_engine_loader.h"
#include "message.h"
#include "triton_status.h"

namespace triton_jax {
namespace {

// Values in Triton's backend configuration are strings, whatever they mean.
int64_t IntegerSetting(const std::string& key, const std::string& value) {
  int64_t number = -1;
  const char* end = value.data() + value.size();
  const std::from_chars_result parsed = std::from_chars(value.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end || number < 0) {
    throw StatusError(Code::kInvalidArg, "backend configuration: " + key +
                                             " must be an integer >= 0, got '" + value + "'");
  }
  return number;
}

}  // namespace

BackendConfig ParseBackendConfig(const std::string& json) {
  BackendConfig config;
  const nlohmann::json root = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded() || !root.is_object()) {
    throw StatusError(Code::kInvalidArg, "backend configuration is not a JSON object: " + json);
  }
  const auto settings = root.find("cmdline");
  if (settings == root.end() || !settings->is_object()) {
    return config;
  }
  config.settings = settings->dump();
  for (const auto& [key, value] : settings->items()) {
    if (!value.is_string()) {
      throw StatusError(Code::kInvalidArg,
                        "backend configuration: " + key + " must be a string, got " + value.dump());
    }
    if (key == "env") {
      config.environment = value.get<std::string>();
    } else if (key == "default-max-batch-size") {
      config.default_max_batch_size = IntegerSetting(key, value.get<std::string>());
    }
  }
  return config;
}

Backend::Backend(TRITONBACKEND_Backend* backend) {
  TRITONBACKEND_ArtifactType type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
  const char* location = nullptr;
  ThrowIfError(TRITONBACKEND_BackendArtifacts(backend, &type, &location));
  directory_ = location;

  TRITONSERVER_Message* message = nullptr;  // stays Triton's
  ThrowIfError(TRITONBACKEND_BackendConfig(backend, &message));
  config_ = ParseBackendConfig(MessageText(message));
}

Engine& Backend::engine() {
  const std::lock_guard<std::mutex> lock(engine_mutex_);
  if (engine_ == nullptr) {
    PythonEngineSpec spec;
    spec.backend_directory = directory_;
    spec.environment = config_.environment.empty() ? directory_ + "/env" : config_.environment;
    spec.settings = config_.settings;
    engine_ = LoadPythonEngine(spec, &host_);
  }
  return *engine_;
}

}  // namespace triton_jax
