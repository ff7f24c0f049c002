// SPDX-License-Identifier: Apache-2.0
//
// One inference request on its way through an execution: what came in, what goes out.

#pragma once

#include <cstdint>
#include <vector>

#include "engine/engine.h"
#include "engine/status.h"
#include "gpu_memory.h"
#include "triton_c_api.h"

namespace triton_jax {

struct RequestTimes {
  uint64_t execute_start_ns = 0;
  uint64_t compute_start_ns = 0;
  uint64_t compute_end_ns = 0;
  uint64_t execute_end_ns = 0;
};

// One of the buffers that an input is in.
struct InputPiece {
  Place place;
  size_t bytes = 0;
};

class Request {
 public:
  // Takes over `request`: from here on it ends in Respond and Release, whatever is wrong with it.
  // `gpu_memory` is null where the server has no GPU.
  Request(TRITONBACKEND_Request* request, const ModelDescription& model, GpuMemory* gpu_memory);
  ~Request();
  Request(Request&& other) noexcept;
  Request& operator=(Request&&) = delete;
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  const Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }
  // Keeps the first failure only.
  void Fail(const Status& status);
  // Fails the request if its client has given it up.
  void FailIfCancelled();

  // Whether Triton made it up to fill the slot of a sequence that has no request now: it is run,
  // for the slots of the others, and nobody waits for it.
  bool placeholder() const { return placeholder_; }
  // Whether Release was called.
  bool ended() const { return request_ == nullptr; }

  // 1 where the model has no batch dimension.
  int64_t rows() const { return rows_; }
  // Of each input of the model, without the batch dimension, as the request has it.
  const std::vector<InputShape>& shapes() const { return shapes_; }

  // Where input number `index` is, if it is as an engine wants it: one piece of `bytes` bytes of
  // dimensions `dims`, aligned, in memory of GPU `gpu`, or of the host, where that is negative; or
  // null.
  const char* InPlace(size_t index, const Dims& dims, size_t bytes, int gpu,
                      size_t alignment) const;
  // Copies input number `index` to `destination`, which has room for rows() rows of dimensions
  // `padded` and is zero wherever the request has nothing.
  void CopyInput(size_t index, const Dims& padded, char* destination) noexcept;
  // Whether a part of input number `index` is in memory of a GPU.
  bool IsOnGpu(size_t index) const;
  // The buffers that input number `index` is in. Throws StatusError where they are not as long as
  // its shape.
  std::vector<InputPiece> Pieces(size_t index) const;
  // As CopyInput, to memory of a GPU. The copy is complete after gpu_memory's Wait.
  void CopyInputToGpu(size_t index, const Dims& padded, const Place& destination) noexcept;
  // Appends the elements of BYTES input number `index`, or as many empty ones if they are not
  // right.
  void AppendElements(size_t index, std::vector<char>* elements);

  // Adds rows() rows of every output that the client asked for, from row `first_row` on, and
  // updates the sequence's state. Dimensions that follow an input's are cut to that input's length.
  void AddOutputs(const std::vector<OutputBuffer>& outputs, int64_t first_row) noexcept;

  // Sends the response, or the failure.
  void Respond() noexcept;

  // A decoupled model's responses: any number of these, and Respond as the last.
  void RespondOnce(const std::vector<OutputBuffer>& outputs) noexcept;

  // Reports the request's statistics, and gives it back to Triton.
  void Release(TRITONBACKEND_ModelInstance* instance) noexcept;

  RequestTimes times;

 private:
  void ReadInputs();
  bool ReadInput(const TensorSpec& spec);
  // Before anything is done for a shape, because what is done for a large one costs a lot.
  static void CheckSize(const TensorSpec& spec, TRITONBACKEND_Input* input, const Dims& dims);
  void ReadRequestedOutputs();
  // The whole input in one piece, of `bytes` bytes; copied to `scratch` if it is not.
  const char* Data(size_t index, size_t bytes, std::vector<char>* scratch);
  const char* DataFromGpu(size_t index, size_t bytes);
  size_t Bytes(size_t index) const;
  void AddOutput(const TensorSpec& spec, const OutputBuffer& output, int64_t first_row);
  // Where an output goes. A state is to be handed to TRITONBACKEND_StateUpdate once it is filled.
  struct OutputMemory {
    Place place;
    TRITONBACKEND_State* state = nullptr;
  };
  // `gpu` is where the output is now; what is asked for decides where it goes.
  OutputMemory Allocate(const TensorSpec& spec, const Dims& dims, size_t bytes, int gpu);
  // Copies an output whose source or destination is in memory of a GPU.
  void CopyOutputByGpu(const TensorSpec& spec, const OutputBuffer& output, size_t offset,
                       const Dims& source, const Place& destination, const Dims& dims);
  Dims RealDims(const TensorSpec& spec, const OutputBuffer& output) const;

  const ModelDescription& model_;
  GpuMemory* gpu_memory_;
  TRITONBACKEND_Request* request_;
  TRITONBACKEND_Response* response_ = nullptr;
  TRITONBACKEND_ResponseFactory* factory_ = nullptr;  // of a decoupled model
  Status status_;
  int64_t rows_ = 1;
  bool has_rows_ = false;
  bool placeholder_ = false;
  std::vector<TRITONBACKEND_Input*> inputs_;
  std::vector<InputShape> shapes_;
  // The real size of each dimension that varies and is padded; kNotCut for the others.
  Dims varying_;
  std::vector<bool> output_wanted_;
};

}  // namespace triton_jax
