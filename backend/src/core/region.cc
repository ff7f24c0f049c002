// SPDX-License-Identifier: Apache-2.0

#include "region.h"

#include <cstring>

namespace triton_jax {
namespace {

size_t Stride(const Dims& dims, size_t axis, size_t element_bytes) {
  size_t stride = element_bytes;
  for (size_t i = axis + 1; i < dims.size(); ++i) {
    stride *= static_cast<size_t>(dims[i]);
  }
  return stride;
}

void CopyAxis(const char* source, const Dims& source_dims, char* destination,
              const Dims& destination_dims, const Dims& dims, size_t element_bytes, size_t axis) {
  // From here on, what is to be copied is contiguous in both if no inner dimension is cut.
  bool contiguous = true;
  for (size_t i = axis + 1; i < dims.size(); ++i) {
    contiguous = contiguous && source_dims[i] == dims[i] && destination_dims[i] == dims[i];
  }
  const size_t source_stride = Stride(source_dims, axis, element_bytes);
  const auto count = static_cast<size_t>(dims[axis]);
  if (contiguous) {
    std::memcpy(destination, source, count * source_stride);
    return;
  }
  const size_t destination_stride = Stride(destination_dims, axis, element_bytes);
  for (size_t i = 0; i < count; ++i) {
    CopyAxis(source + i * source_stride, source_dims, destination + i * destination_stride,
             destination_dims, dims, element_bytes, axis + 1);
  }
}

}  // namespace

void CopyRegion(const char* source, const Dims& source_dims, char* destination,
                const Dims& destination_dims, const Dims& dims, size_t element_bytes) {
  for (const int64_t dim : dims) {
    if (dim == 0) {
      return;
    }
  }
  if (dims.empty()) {
    std::memcpy(destination, source, element_bytes);
    return;
  }
  CopyAxis(source, source_dims, destination, destination_dims, dims, element_bytes, 0);
}

}  // namespace triton_jax
