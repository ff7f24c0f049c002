// SPDX-License-Identifier: Apache-2.0
//
// Requests that run together.

#pragma once

#include <cstdint>
#include <vector>

#include "engine/engine.h"
#include "request.h"

namespace triton_jax {

class Batch {
 public:
  explicit Batch(const ModelDescription& model) : model_(model) {}

  // Whether the request can run with those that are here already.
  bool Takes(const Request& request) const;
  void Add(Request* request);

  int64_t rows() const { return rows_; }
  const std::vector<Request*>& requests() const { return requests_; }

  // What the inputs are padded to.
  std::vector<InputShape> Shapes() const;

  // Fills `buffers`, as Instance::Prepare made them for Shapes(). What is in memory of a GPU stays
  // there for an instance on GPU `gpu`, which is negative for any other.
  void Gather(const std::vector<InputShape>& shapes, std::vector<InputBuffer>* buffers,
              GpuMemory* gpu_memory, int gpu);

 private:
  void FillLengths(size_t index, const InputBuffer& buffer) const;

  const ModelDescription& model_;
  std::vector<Request*> requests_;
  std::vector<InputShape> shapes_;           // the largest of each dimension so far
  std::vector<size_t> apart_;                // bytes of the requests' ragged inputs, if run apart
  std::vector<std::vector<char>> elements_;  // of BYTES inputs
  int64_t rows_ = 0;
};

// Arranges the requests that are well into batches of at most max_batch_size rows, in order.
std::vector<Batch> FormBatches(const ModelDescription& model, std::vector<Request>* requests);

}  // namespace triton_jax
