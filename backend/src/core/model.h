// SPDX-License-Identifier: Apache-2.0
//
// One version of a model, for as long as Triton keeps it.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "backend.h"
#include "engine/engine.h"
#include "metrics.h"
#include "triton_c_api.h"

namespace triton_jax {

class TritonModel {
 public:
  // Loads the model into the engine and hands Triton the completed configuration.
  explicit TritonModel(TRITONBACKEND_Model* model);

  const std::string& name() const { return name_; }
  const ModelDescription& description() const { return model_->Description(); }
  Model& engine_model() { return *model_; }
  ModelMetrics& metrics() { return *metrics_; }

  // OK until SetFatal; then why, until the model is reloaded. Thread-safe.
  Status Health() const;
  // After a failure that leaves the device useless: from now on every request is refused at once.
  void SetFatal(const Status& status);

 private:
  // That the server took over what it would run the model wrongly without. Older ones do not take
  // everything.
  void CheckTakenOver(TRITONBACKEND_Model* model) const;

  std::string name_;
  // Before model_, which reports to it until its own end.
  std::shared_ptr<ModelMetrics> metrics_;
  std::unique_ptr<Model> model_;
  std::atomic<bool> healthy_{true};
  mutable std::mutex health_mutex_;
  Status health_;
};

}  // namespace triton_jax
