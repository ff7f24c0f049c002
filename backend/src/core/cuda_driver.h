// SPDX-License-Identifier: Apache-2.0
//
// The part of the CUDA driver's C API that copies between memory of GPUs and of the host, declared
// by us: names, types and values of the binary interface. The driver's library is looked for at run
// time: nothing is linked with CUDA, and without a driver the backend serves from the host's
// memory.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace triton_jax {

using CudaResult = int;
using CudaDevice = int;
using CudaPointer = unsigned long long;  // in memory of a GPU
using CudaContext = struct CudaContextOpaque*;
using CudaStream = struct CudaStreamOpaque*;

constexpr CudaResult kCudaSuccess = 0;
constexpr CudaResult kCudaOutOfMemory = 2;
constexpr unsigned int kCudaStreamNonBlocking = 1;

enum class CudaMemoryType : unsigned int { kHost = 1, kDevice = 2 };

// One end of a copy of rows: bytes `x` to `x` + width of each, `pitch` bytes apart.
struct CudaRowsEnd {
  size_t x_bytes = 0;
  size_t y = 0;
  CudaMemoryType type = CudaMemoryType::kHost;
  void* host = nullptr;
  CudaPointer device = 0;
  void* array = nullptr;
  size_t pitch = 0;
};

// CUDA_MEMCPY2D of version 2.
struct CudaCopyRows {
  CudaRowsEnd source;
  CudaRowsEnd destination;
  size_t width_bytes = 0;
  size_t height = 0;
};

struct CudaDriver {
  CudaResult (*init)(unsigned int flags) = nullptr;
  CudaResult (*device_count)(int* count) = nullptr;
  CudaResult (*device_get)(CudaDevice* device, int ordinal) = nullptr;
  CudaResult (*context_retain)(CudaContext* context, CudaDevice device) = nullptr;
  CudaResult (*context_release)(CudaDevice device) = nullptr;
  CudaResult (*context_push)(CudaContext context) = nullptr;
  CudaResult (*context_pop)(CudaContext* context) = nullptr;
  CudaResult (*stream_create)(CudaStream* stream, unsigned int flags) = nullptr;
  CudaResult (*stream_destroy)(CudaStream stream) = nullptr;
  CudaResult (*stream_wait)(CudaStream stream) = nullptr;
  CudaResult (*allocate)(CudaPointer* pointer, size_t bytes) = nullptr;
  CudaResult (*free)(CudaPointer pointer) = nullptr;
  CudaResult (*allocate_pinned)(void** pointer, size_t bytes) = nullptr;
  CudaResult (*free_pinned)(void* pointer) = nullptr;
  CudaResult (*copy_to_device)(CudaPointer to, const void* from, size_t bytes,
                               CudaStream stream) = nullptr;
  CudaResult (*copy_to_host)(void* to, CudaPointer from, size_t bytes, CudaStream stream) = nullptr;
  CudaResult (*copy_on_device)(CudaPointer to, CudaPointer from, size_t bytes,
                               CudaStream stream) = nullptr;
  CudaResult (*copy_rows)(const CudaCopyRows* rows, CudaStream stream) = nullptr;
  CudaResult (*fill)(CudaPointer to, unsigned char byte, size_t bytes, CudaStream stream) = nullptr;
  CudaResult (*error_name)(CudaResult result, const char** name) = nullptr;
};

// Opens the driver's library and finds its functions. False, with the reason, where it is not
// there, lacks one of them, or has no GPU. Never closed: the driver keeps threads.
bool OpenCudaDriver(const char* library, CudaDriver* driver, std::string* reason);

}  // namespace triton_jax
