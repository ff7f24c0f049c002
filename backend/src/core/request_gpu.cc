// SPDX-License-Identifier: Apache-2.0
//
// What a request does with memory of GPUs.

#include <algorithm>
#include <optional>
#include <string>

#include "data_type.h"
#include "region.h"
#include "request.h"
#include "triton_status.h"

namespace triton_jax {

bool Request::IsOnGpu(size_t index) const {
  uint32_t count = 0;
  if (!ok() || !shapes_[index].present ||
      !FromTriton(TRITONBACKEND_InputProperties(inputs_[index], nullptr, nullptr, nullptr, nullptr,
                                                nullptr, &count))
           .ok()) {
    return false;
  }
  for (uint32_t i = 0; i < count; ++i) {
    const void* buffer = nullptr;
    uint64_t bytes = 0;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    int64_t type_id = 0;
    const Status status =
        FromTriton(TRITONBACKEND_InputBuffer(inputs_[index], i, &buffer, &bytes, &type, &type_id));
    if (status.ok() && type == TRITONSERVER_MEMORY_GPU) {
      return true;
    }
  }
  return false;
}

const char* Request::InPlace(size_t index, const Dims& dims, size_t bytes, int gpu,
                             size_t alignment) const {
  const std::vector<InputPiece> pieces = Pieces(index);
  if (pieces.size() != 1 || pieces.front().place.gpu != gpu || pieces.front().bytes != bytes ||
      shapes_[index].dims != dims) {
    return nullptr;
  }
  const char* data = pieces.front().place.data;
  return reinterpret_cast<uintptr_t>(data) % alignment == 0 ? data : nullptr;
}

std::vector<InputPiece> Request::Pieces(size_t index) const {
  const std::string& name = model_.inputs[index].name;
  const size_t expected = Bytes(index);
  uint32_t count = 0;
  ThrowIfError(TRITONBACKEND_InputProperties(inputs_[index], nullptr, nullptr, nullptr, nullptr,
                                             nullptr, &count));
  std::vector<InputPiece> pieces;
  size_t found = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const void* buffer = nullptr;
    uint64_t bytes = 0;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    int64_t type_id = 0;
    ThrowIfError(TRITONBACKEND_InputBuffer(inputs_[index], i, &buffer, &bytes, &type, &type_id));
    const bool on_gpu = type == TRITONSERVER_MEMORY_GPU;
    if (on_gpu && gpu_memory_ == nullptr) {
      throw StatusError(Code::kUnsupported,
                        "input '" + name +
                            "' is in GPU memory, but the server has no GPU that the jax backend "
                            "can read: send it in the request or in system shared memory");
    }
    pieces.push_back({{static_cast<char*>(const_cast<void*>(buffer)),  // which is only read
                       on_gpu ? static_cast<int>(type_id) : -1},
                      bytes});
    found += bytes;
  }
  if (found != expected) {
    throw StatusError(Code::kInvalidArg, "input '" + name + "': expected " +
                                             std::to_string(expected) + " bytes, got " +
                                             std::to_string(found));
  }
  return pieces;
}

const char* Request::DataFromGpu(size_t index, size_t bytes) {
  const std::vector<InputPiece> pieces = Pieces(index);
  const auto first = std::find_if(pieces.begin(), pieces.end(),
                                  [](const InputPiece& piece) { return piece.place.gpu >= 0; });
  char* staging = gpu_memory_->Staging(first->place.gpu, bytes);
  size_t position = 0;
  for (const InputPiece& piece : pieces) {
    gpu_memory_->Copy(piece.place, {staging + position, -1}, piece.bytes);
    position += piece.bytes;
  }
  gpu_memory_->Wait();
  return staging;
}

void Request::CopyInputToGpu(size_t index, const Dims& padded, const Place& destination) noexcept {
  if (!ok() || !shapes_[index].present) {
    return;
  }
  Fail(CatchStatus([&] {
    std::vector<InputPiece> pieces = Pieces(index);
    const TensorSpec& spec = model_.inputs[index];
    Dims dims = shapes_[index].dims;
    Dims room = padded;
    dims.insert(dims.begin(), rows_);
    room.insert(room.begin(), rows_);
    Place whole = destination;
    const bool in_pieces = pieces.size() != 1 && dims != room;
    if (in_pieces) {
      // Put together first, in memory beside that of the inputs themselves.
      whole.data = gpu_memory_->Buffer(destination.gpu, model_.inputs.size() + index, Bytes(index));
      if (whole.data == nullptr) {
        throw StatusError(Code::kUnavailable, "input '" + spec.name + "': GPU " +
                                                  std::to_string(destination.gpu) +
                                                  " has no memory left");
      }
    }
    if (pieces.size() != 1 || dims == room) {
      size_t position = 0;
      for (const InputPiece& piece : pieces) {
        gpu_memory_->Copy(piece.place, whole + position, piece.bytes);
        position += piece.bytes;
      }
    } else {
      whole = pieces.front().place;
    }
    if (dims != room) {
      gpu_memory_->CopyRegion(whole, dims, destination, room, dims, ElementBytes(spec.dtype));
    }
  }));
}

void Request::CopyOutputByGpu(const TensorSpec& spec, const OutputBuffer& output, size_t offset,
                              const Dims& source, const Place& destination, const Dims& dims) {
  const size_t element_bytes = ElementBytes(spec.dtype);
  if (destination.gpu < 0) {
    // One copy for all requests of the batch, and the rest on the host: many small ones cost more.
    CopyRegion(gpu_memory_->OnHost(output) + offset, source, destination.data, dims, dims,
               element_bytes);
    return;
  }
  const Place from{const_cast<char*>(output.data), output.gpu};  // which is only read
  gpu_memory_->CopyRegion(from + offset, source, destination, dims, dims, element_bytes);
}

}  // namespace triton_jax
