// SPDX-License-Identifier: Apache-2.0
//
// Copies between memory of GPUs and of the host, for one model instance.
//
// Who waits for whom: what a caller is handed in a GPU's memory (a request's input, an engine's
// output) is complete; what is copied here is complete after Wait. Copies go through a stream of
// the instance's own on each GPU, so that no instance waits for another one.

#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cuda_driver.h"
#include "engine/engine.h"

namespace triton_jax {

// What the driver aligns allocations to, which is enough for XLA.
constexpr size_t kGpuAlignment = 256;

// Memory of a GPU, by its number, or of the host, where that is negative.
struct Place {
  char* data = nullptr;
  int gpu = -1;

  Place operator+(size_t bytes) const { return {data + bytes, gpu}; }
};

// All members throw StatusError: one that is fatal where the GPU is lost.
class GpuMemory {
 public:
  // Null where there is no driver, or no GPU.
  static std::unique_ptr<GpuMemory> Open();

  ~GpuMemory();
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  // Between memory of a GPU and of the host, or of GPUs.
  void Copy(const Place& from, const Place& to, size_t bytes);
  // As CopyRegion of region.h.
  void CopyRegion(const Place& from, const Dims& from_dims, const Place& to, const Dims& to_dims,
                  const Dims& dims, size_t element_bytes);
  void Clear(const Place& to, size_t bytes);
  // Until all that was begun is done.
  void Wait();

  // `bytes` bytes of a GPU's memory, aligned to kGpuAlignment, that stay until more are asked for
  // under the same number. Null where the GPU has no more.
  char* Buffer(int gpu, size_t number, size_t bytes);
  // `bytes` bytes of the host's memory, which the GPU copies to without a step in between; they
  // stay until more are asked for.
  char* Staging(int gpu, size_t bytes) { return Pinned(gpu, 0, bytes); }
  // All bytes of an engine's output on the host: copied once until Forget.
  const char* OnHost(const OutputBuffer& output);
  void Forget() { on_host_.clear(); }

 private:
  struct Device {
    CudaDevice device = 0;
    CudaContext context = nullptr;
    CudaStream stream = nullptr;
    bool busy = false;
  };
  struct Allocation {
    char* data = nullptr;
    size_t bytes = 0;
  };
  class Current;  // a GPU's context, on this thread, for its lifetime

  explicit GpuMemory(const CudaDriver& driver) : driver_(driver) {}

  Device& On(int gpu);
  void Check(CudaResult result, const char* doing, int gpu) const;
  char* Pinned(int gpu, size_t number, size_t bytes);
  void CopyRows(const Place& from, size_t from_pitch, const Place& to, size_t to_pitch,
                size_t width, size_t height);
  void CopyAxis(const Place& from, const Dims& from_dims, const Place& to, const Dims& to_dims,
                const Dims& dims, size_t element_bytes, size_t axis);

  const CudaDriver driver_;
  std::map<int, Device> devices_;
  std::map<std::pair<int, size_t>, Allocation> buffers_;
  std::vector<Allocation> pinned_;              // of the host
  std::map<const char*, const char*> on_host_;  // by where an output is on its GPU
};

}  // namespace triton_jax
