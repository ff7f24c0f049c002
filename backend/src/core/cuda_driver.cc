// SPDX-License-Identifier: Apache-2.0

#include "cuda_driver.h"

#include <dlfcn.h>

namespace triton_jax {
namespace {

// CUDA_MEMCPY2D is 16 words on a 64-bit platform.
static_assert(sizeof(CudaCopyRows) == 128, "as the driver has it");
static_assert(offsetof(CudaCopyRows, width_bytes) == 112, "as the driver has it");

class Finder {
 public:
  explicit Finder(void* library) : library_(library) {}

  template <typename Function>
  void operator()(const char* name, Function** function) {
    *function = reinterpret_cast<Function*>(dlsym(library_, name));
    if (*function == nullptr && missing_.empty()) {
      missing_ = name;
    }
  }

  const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string missing_;
};

}  // namespace

bool OpenCudaDriver(const char* library, CudaDriver* driver, std::string* reason) {
  void* opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    const char* error = dlerror();
    *reason = error == nullptr ? "no driver" : error;
    return false;
  }
  Finder find(opened);
  find("cuInit", &driver->init);
  find("cuDeviceGetCount", &driver->device_count);
  find("cuDeviceGet", &driver->device_get);
  find("cuDevicePrimaryCtxRetain", &driver->context_retain);
  find("cuDevicePrimaryCtxRelease_v2", &driver->context_release);
  find("cuCtxPushCurrent_v2", &driver->context_push);
  find("cuCtxPopCurrent_v2", &driver->context_pop);
  find("cuStreamCreate", &driver->stream_create);
  find("cuStreamDestroy_v2", &driver->stream_destroy);
  find("cuStreamSynchronize", &driver->stream_wait);
  find("cuMemAlloc_v2", &driver->allocate);
  find("cuMemFree_v2", &driver->free);
  find("cuMemAllocHost_v2", &driver->allocate_pinned);
  find("cuMemFreeHost", &driver->free_pinned);
  find("cuMemcpyHtoDAsync_v2", &driver->copy_to_device);
  find("cuMemcpyDtoHAsync_v2", &driver->copy_to_host);
  find("cuMemcpyDtoDAsync_v2", &driver->copy_on_device);
  find("cuMemcpy2DAsync_v2", &driver->copy_rows);
  find("cuMemsetD8Async", &driver->fill);
  find("cuGetErrorName", &driver->error_name);
  if (!find.missing().empty()) {
    *reason = std::string(library) + " has no " + find.missing();
    return false;
  }
  int count = 0;
  if (driver->init(0) != kCudaSuccess || driver->device_count(&count) != kCudaSuccess ||
      count == 0) {
    *reason = std::string(library) + " finds no GPU";
    return false;
  }
  return true;
}

}  // namespace triton_jax
