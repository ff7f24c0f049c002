// SPDX-License-Identifier: Apache-2.0

#include "gpu_memory.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string>

#include "log.h"

namespace triton_jax {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";

// After these, every later call on the GPU fails too.
constexpr std::array<CudaResult, 10> kGpuLost{46, 214, 700, 710, 714, 715, 716, 718, 719, 802};

// Distances between rows that the driver takes.
constexpr size_t kMaxPitch = std::numeric_limits<int32_t>::max();

CudaPointer PointerOf(const Place& place) { return reinterpret_cast<CudaPointer>(place.data); }

size_t Stride(const Dims& dims, size_t axis, size_t element_bytes) {
  size_t stride = element_bytes;
  for (size_t i = axis + 1; i < dims.size(); ++i) {
    stride *= static_cast<size_t>(dims[i]);
  }
  return stride;
}

// Whether what is to be copied is in one piece on both sides, from `axis` on.
bool InOnePiece(const Dims& from_dims, const Dims& to_dims, const Dims& dims, size_t axis) {
  for (size_t i = axis + 1; i < dims.size(); ++i) {
    if (from_dims[i] != dims[i] || to_dims[i] != dims[i]) {
      return false;
    }
  }
  return true;
}

CudaRowsEnd RowsEnd(const Place& place, size_t pitch) {
  CudaRowsEnd end;
  end.pitch = pitch;
  if (place.gpu < 0) {
    end.host = place.data;
  } else {
    end.type = CudaMemoryType::kDevice;
    end.device = PointerOf(place);
  }
  return end;
}

}  // namespace

class GpuMemory::Current {
 public:
  Current(const GpuMemory& memory, const Device& device, int gpu) : driver_(memory.driver_) {
    memory.Check(driver_.context_push(device.context), "using it", gpu);
  }
  ~Current() {
    CudaContext context = nullptr;
    driver_.context_pop(&context);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  const CudaDriver& driver_;
};

std::unique_ptr<GpuMemory> GpuMemory::Open() {
  CudaDriver driver;
  std::string reason;
  if (!OpenCudaDriver(kLibrary, &driver, &reason)) {
    TRITON_JAX_LOG(kVerbose, "jax: memory of GPUs is not used: " + reason);
    return nullptr;
  }
  return std::unique_ptr<GpuMemory>(new GpuMemory(driver));
}

GpuMemory::~GpuMemory() {
  // What fails here has nobody to be told, and ends with the process.
  for (auto& [gpu, device] : devices_) {
    if (driver_.context_push(device.context) != kCudaSuccess) {
      continue;
    }
    driver_.stream_wait(device.stream);
    driver_.stream_destroy(device.stream);
    for (const auto& [key, buffer] : buffers_) {
      if (key.first == gpu && buffer.data != nullptr) {
        driver_.free(PointerOf({buffer.data, gpu}));
      }
    }
    for (const Allocation& block : std::exchange(pinned_, {})) {
      if (block.data != nullptr) {
        driver_.free_pinned(block.data);
      }
    }
    CudaContext context = nullptr;
    driver_.context_pop(&context);
    driver_.context_release(device.device);
  }
}

void GpuMemory::Check(CudaResult result, const char* doing, int gpu) const {
  if (result == kCudaSuccess) {
    return;
  }
  const char* name = nullptr;
  std::string message = "GPU " + std::to_string(gpu) + ": " + doing + ": ";
  if (driver_.error_name(result, &name) == kCudaSuccess && name != nullptr) {
    message += name;
  } else {
    message += "error " + std::to_string(result) + " of CUDA";
  }
  if (std::find(kGpuLost.begin(), kGpuLost.end(), result) != kGpuLost.end()) {
    throw StatusError(Status::Fatal(message));
  }
  throw StatusError(result == kCudaOutOfMemory ? Code::kUnavailable : Code::kInternal, message);
}

GpuMemory::Device& GpuMemory::On(int gpu) {
  const auto found = devices_.find(gpu);
  if (found != devices_.end()) {
    return found->second;
  }
  Device device;
  Check(driver_.device_get(&device.device, gpu), "looking for it", gpu);
  // The one context that CUDA's runtime, Triton and JAX share.
  Check(driver_.context_retain(&device.context, device.device), "opening it", gpu);
  try {
    const Current current(*this, device, gpu);
    Check(driver_.stream_create(&device.stream, kCudaStreamNonBlocking), "making a stream", gpu);
  } catch (...) {
    driver_.context_release(device.device);
    throw;
  }
  return devices_.emplace(gpu, device).first->second;
}

void GpuMemory::Copy(const Place& from, const Place& to, size_t bytes) {
  if (bytes == 0) {
    return;
  }
  if (from.gpu < 0 && to.gpu < 0) {
    std::memcpy(to.data, from.data, bytes);
    return;
  }
  const int gpu = to.gpu >= 0 ? to.gpu : from.gpu;
  Device& device = On(gpu);
  const Current current(*this, device, gpu);
  device.busy = true;
  if (to.gpu < 0) {
    Check(driver_.copy_to_host(to.data, PointerOf(from), bytes, device.stream),
          "copying to the host", gpu);
  } else if (from.gpu < 0) {
    Check(driver_.copy_to_device(PointerOf(to), from.data, bytes, device.stream),
          "copying from the host", gpu);
  } else {
    Check(driver_.copy_on_device(PointerOf(to), PointerOf(from), bytes, device.stream),
          "copying on the device", gpu);
  }
}

void GpuMemory::CopyRows(const Place& from, size_t from_pitch, const Place& to, size_t to_pitch,
                         size_t width, size_t height) {
  if (std::max(from_pitch, to_pitch) > kMaxPitch || (from.gpu < 0 && to.gpu < 0)) {
    for (size_t row = 0; row < height; ++row) {
      Copy(from + row * from_pitch, to + row * to_pitch, width);
    }
    return;
  }
  const int gpu = to.gpu >= 0 ? to.gpu : from.gpu;
  Device& device = On(gpu);
  const Current current(*this, device, gpu);
  device.busy = true;
  const CudaCopyRows rows{RowsEnd(from, from_pitch), RowsEnd(to, to_pitch), width, height};
  Check(driver_.copy_rows(&rows, device.stream), "copying rows", gpu);
}

void GpuMemory::CopyRegion(const Place& from, const Dims& from_dims, const Place& to,
                           const Dims& to_dims, const Dims& dims, size_t element_bytes) {
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) {
    return;
  }
  if (dims.empty()) {
    Copy(from, to, element_bytes);
    return;
  }
  CopyAxis(from, from_dims, to, to_dims, dims, element_bytes, 0);
}

void GpuMemory::CopyAxis(const Place& from, const Dims& from_dims, const Place& to,
                         const Dims& to_dims, const Dims& dims, size_t element_bytes, size_t axis) {
  const size_t from_stride = Stride(from_dims, axis, element_bytes);
  const size_t to_stride = Stride(to_dims, axis, element_bytes);
  const auto count = static_cast<size_t>(dims[axis]);
  if (InOnePiece(from_dims, to_dims, dims, axis)) {
    Copy(from, to, count * from_stride);
  } else if (InOnePiece(from_dims, to_dims, dims, axis + 1)) {
    const size_t width =
        static_cast<size_t>(dims[axis + 1]) * Stride(from_dims, axis + 1, element_bytes);
    CopyRows(from, from_stride, to, to_stride, width, count);
  } else {
    for (size_t i = 0; i < count; ++i) {
      CopyAxis(from + i * from_stride, from_dims, to + i * to_stride, to_dims, dims, element_bytes,
               axis + 1);
    }
  }
}

void GpuMemory::Clear(const Place& to, size_t bytes) {
  if (bytes == 0) {
    return;
  }
  Device& device = On(to.gpu);
  const Current current(*this, device, to.gpu);
  device.busy = true;
  Check(driver_.fill(PointerOf(to), 0, bytes, device.stream), "clearing memory", to.gpu);
}

void GpuMemory::Wait() {
  for (auto& [gpu, device] : devices_) {
    if (std::exchange(device.busy, false)) {
      const Current current(*this, device, gpu);
      Check(driver_.stream_wait(device.stream), "waiting for copies", gpu);
    }
  }
}

char* GpuMemory::Buffer(int gpu, size_t number, size_t bytes) {
  Allocation& buffer = buffers_[{gpu, number}];
  if (buffer.bytes < bytes) {
    const Current current(*this, On(gpu), gpu);
    if (buffer.data != nullptr) {
      buffer.bytes = 0;
      Check(driver_.free(PointerOf({std::exchange(buffer.data, nullptr), gpu})), "freeing memory",
            gpu);
    }
    CudaPointer pointer = 0;
    const CudaResult result = driver_.allocate(&pointer, bytes);
    if (result == kCudaOutOfMemory) {
      return nullptr;
    }
    Check(result, "allocating memory", gpu);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): it is how the driver says where memory is
    buffer = {reinterpret_cast<char*>(pointer), bytes};
  }
  return buffer.data;
}

char* GpuMemory::Pinned(int gpu, size_t number, size_t bytes) {
  if (pinned_.size() <= number) {
    pinned_.resize(number + 1);
  }
  Allocation& block = pinned_[number];
  if (block.bytes < bytes) {
    const Current current(*this, On(gpu), gpu);
    if (block.data != nullptr) {
      block.bytes = 0;
      Check(driver_.free_pinned(std::exchange(block.data, nullptr)), "freeing host memory", gpu);
    }
    void* data = nullptr;
    Check(driver_.allocate_pinned(&data, bytes), "allocating host memory", gpu);
    block = {static_cast<char*>(data), bytes};
  }
  return block.data;
}

const char* GpuMemory::OnHost(const OutputBuffer& output) {
  const auto found = on_host_.find(output.data);
  if (found != on_host_.end()) {
    return found->second;
  }
  char* data = Pinned(output.gpu, on_host_.size() + 1, output.bytes);
  Copy({const_cast<char*>(output.data), output.gpu}, {data, -1}, output.bytes);
  Wait();
  on_host_.emplace(output.data, data);
  return data;
}

}  // namespace triton_jax
