// SPDX-License-Identifier: Apache-2.0
//
// One version of a model, for as long as Triton keeps it.

#pragma once

#include <cstdint>
#include <memory>
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

 private:
  std::string name_;
  // Before model_, which reports to it until its own end.
  std::shared_ptr<ModelMetrics> metrics_;
  std::unique_ptr<Model> model_;
};

}  // namespace triton_jax
