// SPDX-License-Identifier: Apache-2.0

#include "gpu_gather.h"

#include <algorithm>

namespace triton_jax {
namespace {

// Fills up with copies of the last of the `filled` bytes' rows; with zeros if there is none.
void RepeatLastRow(GpuMemory* memory, const Place& data, size_t filled, size_t bytes,
                   size_t row_bytes) {
  if (filled == 0 || row_bytes == 0) {
    memory->Clear(data, bytes);
    return;
  }
  // Each copy doubles what there is to copy.
  size_t repeated = row_bytes;
  const size_t first = filled - row_bytes;
  while (first + repeated < bytes) {
    const size_t count = std::min(repeated, bytes - first - repeated);
    memory->Copy(data + first, data + (first + repeated), count);
    repeated += count;
  }
}

}  // namespace

bool GatherOnGpu(GpuMemory* memory, int gpu, const std::vector<Request*>& requests, size_t index,
                 const Dims& dims, size_t row_bytes, InputBuffer* buffer) {
  if (buffer->bytes == 0 || std::none_of(requests.begin(), requests.end(), [&](Request* request) {
        return request->IsOnGpu(index);
      })) {
    return false;
  }
  if (requests.size() == 1) {
    buffer->in_place = requests.front()->InPlace(index, dims, buffer->bytes, gpu, kGpuAlignment);
    if (buffer->in_place != nullptr) {
      return true;
    }
  }
  const Place data{memory->Buffer(gpu, index, buffer->bytes), gpu};
  if (data.data == nullptr) {
    return false;
  }
  size_t filled = 0;
  for (Request* request : requests) {
    const size_t bytes = row_bytes * static_cast<size_t>(request->rows());
    const Place destination = data + filled;
    // Beyond what the request has, zeros: never what an earlier one left there.
    if (!request->ok() || request->shapes()[index].dims != dims) {
      memory->Clear(destination, bytes);
    }
    request->CopyInputToGpu(index, dims, destination);
    filled += bytes;
  }
  RepeatLastRow(memory, data, filled, buffer->bytes, row_bytes);
  memory->Wait();
  buffer->in_place = data.data;
  return true;
}

}  // namespace triton_jax
