// SPDX-License-Identifier: Apache-2.0

#include "model.h"

#include <nlohmann/json.hpp>

#include "log.h"
#include "message.h"
#include "triton_status.h"

namespace triton_jax {

TritonModel::TritonModel(TRITONBACKEND_Model* model) {
  const char* name = nullptr;
  ThrowIfError(TRITONBACKEND_ModelName(model, &name));
  name_ = name;

  ModelSpec spec;
  spec.name = name_;
  ThrowIfError(TRITONBACKEND_ModelVersion(model, &spec.version));
  TRITONBACKEND_ArtifactType type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
  const char* location = nullptr;
  ThrowIfError(TRITONBACKEND_ModelRepository(model, &type, &location));
  if (type != TRITONBACKEND_ARTIFACT_FILESYSTEM) {
    throw StatusError(Code::kUnsupported, "model " + name_ +
                                              " is not in a file system, which is the only kind "
                                              "of model repository that the jax backend can read");
  }
  spec.directory = location;
  ThrowIfError(TRITONBACKEND_ModelAutoCompleteConfig(model, &spec.complete_config));
  OwnedMessage config;
  ThrowIfError(TRITONBACKEND_ModelConfig(model, 1 /* config version */, config.out()));
  spec.config_json = MessageText(config.get());

  TRITONBACKEND_Backend* triton_backend = nullptr;
  ThrowIfError(TRITONBACKEND_ModelBackend(model, &triton_backend));
  void* state = nullptr;
  ThrowIfError(TRITONBACKEND_BackendState(triton_backend, &state));
  Backend& backend = *static_cast<Backend*>(state);
  spec.default_max_batch_size = backend.config().default_max_batch_size;

  metrics_ = backend.metrics().ForModel(name_, spec.version);
  ThrowIfError(backend.engine().LoadModel(spec, metrics_.get(), &model_));

  if (spec.complete_config) {
    const OwnedMessage completed(description().config_json);
    ThrowIfError(TRITONBACKEND_ModelSetConfig(model, 1 /* config version */, completed.get()));
    CheckTakenOver(model);
  }
}

void TritonModel::CheckTakenOver(TRITONBACKEND_Model* model) const {
  if (!description().decoupled) {
    return;
  }
  OwnedMessage message;
  ThrowIfError(TRITONBACKEND_ModelConfig(model, 1 /* config version */, message.out()));
  const nlohmann::json config = nlohmann::json::parse(MessageText(message.get()));
  const auto policy = config.find("model_transaction_policy");
  if (policy == config.end() || !policy->value("decoupled", false)) {
    throw StatusError(Code::kUnsupported,
                      "model '" + name_ +
                          "' has a stream of responses, which this server does not let a backend "
                          "say; add model_transaction_policy { decoupled: true } to config.pbtxt");
  }
}

Status TritonModel::Health() const {
  if (healthy_.load(std::memory_order_acquire)) {
    return {};
  }
  const std::lock_guard<std::mutex> lock(health_mutex_);
  return health_;
}

void TritonModel::SetFatal(const Status& status) {
  const std::lock_guard<std::mutex> lock(health_mutex_);
  if (health_.ok()) {
    health_ = {Code::kUnavailable, "model '" + name_ +
                                       "' is not ready until it is reloaded, after a failure of "
                                       "its device: " +
                                       status.message()};
    healthy_.store(false, std::memory_order_release);
    TRITON_JAX_LOG(kError, "jax: " + health_.message());
  }
}

}  // namespace triton_jax
