// SPDX-License-Identifier: Apache-2.0
//
// One instance of a model: turns the requests that Triton hands over into batches, runs them, and
// gives each request its rows back.

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/engine.h"
#include "model.h"
#include "request.h"
#include "triton_c_api.h"

namespace triton_jax {

class TritonModelInstance {
 public:
  explicit TritonModelInstance(TRITONBACKEND_ModelInstance* instance);

  // Answers and releases every request. Throws only before it has taken over any of them.
  void Execute(TRITONBACKEND_Request** requests, uint32_t count);

 private:
  // Requests that run together: same dimensions, and no more rows than the model allows.
  struct Batch {
    std::vector<Request*> requests;
    int64_t rows = 0;
  };

  std::vector<Batch> FormBatches(std::vector<Request>& requests) const;
  void Run(Batch& batch);
  void Gather(Batch& batch, const std::vector<InputBuffer>& inputs) const;

  TRITONBACKEND_ModelInstance* triton_instance_;
  TritonModel* model_ = nullptr;
  std::unique_ptr<Instance> engine_instance_;
};

}  // namespace triton_jax
