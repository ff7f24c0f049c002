// SPDX-License-Identifier: Apache-2.0
//
// One inference request on its way through an execution: what came in, what goes out.

#pragma once

#include <cstdint>
#include <vector>

#include "engine/engine.h"
#include "engine/status.h"
#include "triton_c_api.h"

namespace triton_jax {

struct RequestTimes {
  uint64_t execute_start_ns = 0;
  uint64_t compute_start_ns = 0;
  uint64_t compute_end_ns = 0;
  uint64_t execute_end_ns = 0;
};

class Request {
 public:
  // Takes over `request`: from here on it ends in Respond and Release, whatever is wrong with it.
  Request(TRITONBACKEND_Request* request, const ModelDescription& model);

  bool ok() const { return status_.ok(); }
  // Keeps the first failure only.
  void Fail(const Status& status);

  // 1 where the model has no batch dimension.
  int64_t rows() const { return rows_; }
  // Of each input of the model, without the batch dimension.
  const std::vector<Dims>& input_dims() const { return input_dims_; }

  // Copies input number `index` to `destination`, where `bytes` bytes are expected.
  void CopyInput(size_t index, char* destination, size_t bytes) noexcept;

  // Adds `rows` rows of every output that the client asked for, from row `first_row` on.
  void AddOutputs(const std::vector<OutputBuffer>& outputs, int64_t first_row) noexcept;

  void Respond() noexcept;
  void Release(TRITONBACKEND_ModelInstance* instance) noexcept;

  RequestTimes times;

 private:
  void ReadInputs();
  void ReadRequestedOutputs();
  void AddOutput(const TensorSpec& spec, const OutputBuffer& output, int64_t first_row);

  const ModelDescription& model_;
  TRITONBACKEND_Request* request_;
  TRITONBACKEND_Response* response_ = nullptr;
  Status status_;
  int64_t rows_ = 1;
  std::vector<TRITONBACKEND_Input*> inputs_;
  std::vector<Dims> input_dims_;
  std::vector<bool> output_wanted_;
};

}  // namespace triton_jax
