// SPDX-License-Identifier: Apache-2.0

#include "cuda_stand_in.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "cuda_driver.h"

struct triton_jax::CudaContextOpaque {
  int gpu = 0;
};

struct triton_jax::CudaStreamOpaque {
  int gpu = 0;
  std::vector<std::function<void()>> work;
};

namespace {

using triton_jax::CudaContext;
using triton_jax::CudaCopyRows;
using triton_jax::CudaMemoryType;
using triton_jax::CudaPointer;
using triton_jax::CudaResult;
using triton_jax::CudaRowsEnd;
using triton_jax::CudaStream;

constexpr CudaResult kInvalidValue = 1;
constexpr CudaResult kNoDevice = 100;
constexpr CudaResult kInvalidDevice = 101;
constexpr CudaResult kInvalidContext = 201;

// The same pages twice: at the address that everyone sees nothing can be read or written.
struct Allocation {
  char* kept = nullptr;
  size_t bytes = 0;
  size_t mapped = 0;
  int gpu = 0;
};

struct Failing {
  CudaResult result = 0;
  int after = 1;
};

struct Gpus {
  std::mutex mutex;
  int count = 0;
  std::map<uintptr_t, Allocation> allocations;
  std::map<int, int64_t> retained;
  std::map<int, std::unique_ptr<triton_jax::CudaContextOpaque>> contexts;
  int64_t streams = 0;
  int64_t pinned = 0;
  std::map<std::string, Failing> failing;
  std::map<std::string, int64_t> calls;
  std::vector<std::string> violations;
};

Gpus& TheGpus() {
  static Gpus gpus;
  return gpus;
}

thread_local std::vector<CudaContext> current;

// What follows needs the mutex.

void Violate(const std::string& what) { TheGpus().violations.push_back("CUDA: " + what); }

// The result of a call, before it does anything.
CudaResult Enter(const char* function, bool needs_context = true) {
  Gpus& gpus = TheGpus();
  ++gpus.calls[function];
  if (needs_context && current.empty()) {
    Violate(std::string(function) + " without a context");
    return kInvalidContext;
  }
  const auto found = gpus.failing.find(function);
  return found != gpus.failing.end() && --found->second.after <= 0 ? found->second.result : 0;
}

uintptr_t Allocate(int gpu, size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  Allocation made;
  made.bytes = bytes;
  made.mapped = (bytes + page - 1) / page * page;
  made.gpu = gpu;
  const int file = memfd_create("gpu", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(made.mapped)) != 0) {
    std::abort();
  }
  void* kept = mmap(nullptr, made.mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  void* seen = mmap(nullptr, made.mapped, PROT_NONE, MAP_SHARED, file, 0);
  close(file);
  if (kept == MAP_FAILED || seen == MAP_FAILED) {
    std::abort();
  }
  std::memset(kept, 0xd7, made.mapped);
  made.kept = static_cast<char*>(kept);
  TheGpus().allocations[reinterpret_cast<uintptr_t>(seen)] = made;
  return reinterpret_cast<uintptr_t>(seen);
}

bool Free(uintptr_t address) {
  auto& allocations = TheGpus().allocations;
  const auto found = allocations.find(address);
  if (found == allocations.end()) {
    Violate("memory freed that was not allocated");
    return false;
  }
  munmap(found->second.kept, found->second.mapped);
  munmap(reinterpret_cast<void*>(address), found->second.mapped);
  allocations.erase(found);
  return true;
}

// Where `bytes` bytes at an address are kept. Null where they are not all in one allocation.
char* Kept(uintptr_t address, size_t bytes) {
  auto& allocations = TheGpus().allocations;
  auto found = allocations.upper_bound(address);
  if (found == allocations.begin()) {
    Violate("an address that is not on a GPU");
    return nullptr;
  }
  --found;
  const size_t offset = address - found->first;
  if (offset > found->second.bytes || bytes > found->second.bytes - offset) {
    Violate("a copy of " + std::to_string(bytes) + " bytes leaves its allocation");
    return nullptr;
  }
  return found->second.kept + offset;
}

// Does `work` when the stream is waited for.
CudaResult Later(const char* function, CudaStream stream, std::function<void()> work) {
  if (const CudaResult failed = Enter(function); failed != 0) {
    return failed;
  }
  if (stream == nullptr || stream->gpu != current.back()->gpu) {
    Violate(std::string(function) + " on the stream of another GPU");
    return kInvalidContext;
  }
  stream->work.push_back(std::move(work));
  return 0;
}

void Move(char* to, const char* from, size_t bytes) {
  if (to != nullptr && from != nullptr) {
    std::memcpy(to, from, bytes);
  }
}

char* RowOf(const CudaRowsEnd& end, size_t row, size_t width) {
  const size_t offset = (end.y + row) * end.pitch + end.x_bytes;
  if (width > end.pitch) {
    Violate("rows longer than the distance between them");
    return nullptr;
  }
  return end.type == CudaMemoryType::kHost ? static_cast<char*>(end.host) + offset
                                           : Kept(end.device + offset, width);
}

using Lock = std::lock_guard<std::mutex>;

}  // namespace

namespace stand_in {

void SetGpus(int count) {
  const Lock lock(TheGpus().mutex);
  TheGpus().count = count;
  TheGpus().failing.clear();
  TheGpus().calls.clear();
}

char* GpuAllocate(int gpu, size_t bytes) {
  const Lock lock(TheGpus().mutex);
  return reinterpret_cast<char*>(Allocate(gpu, bytes));
}

void GpuFree(char* address) {
  const Lock lock(TheGpus().mutex);
  Free(reinterpret_cast<uintptr_t>(address));
}

void GpuWrite(char* address, const void* data, size_t bytes) {
  const Lock lock(TheGpus().mutex);
  if (bytes > 0) {
    Move(Kept(reinterpret_cast<uintptr_t>(address), bytes), static_cast<const char*>(data), bytes);
  }
}

std::vector<char> GpuRead(const char* address, size_t bytes) {
  const Lock lock(TheGpus().mutex);
  std::vector<char> data(bytes);
  if (bytes > 0) {
    Move(data.data(), Kept(reinterpret_cast<uintptr_t>(address), bytes), bytes);
  }
  return data;
}

void FailCuda(const std::string& function, int result, int after) {
  const Lock lock(TheGpus().mutex);
  TheGpus().failing[function] = {result, after};
}

int64_t CudaCalls(const std::string& function) {
  const Lock lock(TheGpus().mutex);
  return TheGpus().calls[function];
}

std::map<std::string, int64_t> CudaAlive() {
  const Lock lock(TheGpus().mutex);
  const Gpus& gpus = TheGpus();
  int64_t retained = 0;
  for (const auto& [gpu, count] : gpus.retained) {
    retained += count;
  }
  std::map<std::string, int64_t> alive;
  for (const auto& [kind, count] :
       {std::pair<const char*, int64_t>{"allocation", gpus.allocations.size()},
        {"context", retained},
        {"stream", gpus.streams},
        {"pinned allocation", gpus.pinned}}) {
    if (count != 0) {
      alive[kind] = count;
    }
  }
  return alive;
}

std::vector<std::string> TakeCudaViolations() {
  const Lock lock(TheGpus().mutex);
  return std::exchange(TheGpus().violations, {});
}

}  // namespace stand_in

extern "C" {

CudaResult cuInit(unsigned int /*flags*/) {
  const Lock lock(TheGpus().mutex);
  return TheGpus().count == 0 ? kNoDevice : Enter("cuInit", false);
}

CudaResult cuDeviceGetCount(int* count) {
  const Lock lock(TheGpus().mutex);
  *count = TheGpus().count;
  return 0;
}

CudaResult cuDeviceGet(int* device, int ordinal) {
  const Lock lock(TheGpus().mutex);
  *device = ordinal;
  return ordinal >= 0 && ordinal < TheGpus().count ? 0 : kInvalidDevice;
}

CudaResult cuDevicePrimaryCtxRetain(CudaContext* context, int device) {
  const Lock lock(TheGpus().mutex);
  if (const CudaResult failed = Enter("cuDevicePrimaryCtxRetain", false); failed != 0) {
    return failed;
  }
  auto& kept = TheGpus().contexts[device];
  if (kept == nullptr) {
    kept = std::make_unique<triton_jax::CudaContextOpaque>();
    kept->gpu = device;
  }
  ++TheGpus().retained[device];
  *context = kept.get();
  return 0;
}

CudaResult cuDevicePrimaryCtxRelease_v2(int device) {
  const Lock lock(TheGpus().mutex);
  --TheGpus().retained[device];
  return 0;
}

CudaResult cuCtxPushCurrent_v2(CudaContext context) {
  const Lock lock(TheGpus().mutex);
  if (const CudaResult failed = Enter("cuCtxPushCurrent_v2", false); failed != 0) {
    return failed;
  }
  current.push_back(context);
  return 0;
}

CudaResult cuCtxPopCurrent_v2(CudaContext* context) {
  const Lock lock(TheGpus().mutex);
  if (const CudaResult failed = Enter("cuCtxPopCurrent_v2"); failed != 0) {
    return failed;
  }
  *context = current.back();
  current.pop_back();
  return 0;
}

CudaResult cuStreamCreate(CudaStream* stream, unsigned int /*flags*/) {
  const Lock lock(TheGpus().mutex);
  if (const CudaResult failed = Enter("cuStreamCreate"); failed != 0) {
    return failed;
  }
  *stream = std::make_unique<triton_jax::CudaStreamOpaque>().release();
  (*stream)->gpu = current.back()->gpu;
  ++TheGpus().streams;
  return 0;
}

CudaResult cuStreamSynchronize(CudaStream stream) {
  const Lock lock(TheGpus().mutex);
  const CudaResult failed = Enter("cuStreamSynchronize");
  // Also where it is said to fail: what was begun may be done.
  for (const auto& work : std::exchange(stream->work, {})) {
    work();
  }
  return failed;
}

CudaResult cuStreamDestroy_v2(CudaStream stream) {
  const Lock lock(TheGpus().mutex);
  if (!stream->work.empty()) {
    Violate("a stream destroyed that was not waited for");
  }
  delete stream;
  --TheGpus().streams;
  return 0;
}

CudaResult cuMemAlloc_v2(CudaPointer* pointer, size_t bytes) {
  const Lock lock(TheGpus().mutex);
  if (const CudaResult failed = Enter("cuMemAlloc_v2"); failed != 0) {
    return failed;
  }
  *pointer = Allocate(current.back()->gpu, bytes);
  return 0;
}

CudaResult cuMemFree_v2(CudaPointer pointer) {
  const Lock lock(TheGpus().mutex);
  if (const CudaResult failed = Enter("cuMemFree_v2"); failed != 0) {
    return failed;
  }
  return Free(pointer) ? 0 : kInvalidValue;
}

CudaResult cuMemAllocHost_v2(void** pointer, size_t bytes) {
  const Lock lock(TheGpus().mutex);
  if (const CudaResult failed = Enter("cuMemAllocHost_v2"); failed != 0) {
    return failed;
  }
  *pointer = ::operator new(bytes);  // which AddressSanitizer watches
  ++TheGpus().pinned;
  return 0;
}

CudaResult cuMemFreeHost(void* pointer) {
  const Lock lock(TheGpus().mutex);
  if (pointer == nullptr) {
    Violate("host memory freed that was not allocated");
    return kInvalidValue;
  }
  ::operator delete(pointer);
  --TheGpus().pinned;
  return 0;
}

CudaResult cuMemcpyHtoDAsync_v2(CudaPointer to, const void* from, size_t bytes, CudaStream stream) {
  const Lock lock(TheGpus().mutex);
  return Later("cuMemcpyHtoDAsync_v2", stream,
               [=] { Move(Kept(to, bytes), static_cast<const char*>(from), bytes); });
}

CudaResult cuMemcpyDtoHAsync_v2(void* to, CudaPointer from, size_t bytes, CudaStream stream) {
  const Lock lock(TheGpus().mutex);
  return Later("cuMemcpyDtoHAsync_v2", stream,
               [=] { Move(static_cast<char*>(to), Kept(from, bytes), bytes); });
}

CudaResult cuMemcpyDtoDAsync_v2(CudaPointer to, CudaPointer from, size_t bytes, CudaStream stream) {
  const Lock lock(TheGpus().mutex);
  return Later("cuMemcpyDtoDAsync_v2", stream,
               [=] { Move(Kept(to, bytes), Kept(from, bytes), bytes); });
}

CudaResult cuMemcpy2DAsync_v2(const CudaCopyRows* given, CudaStream stream) {
  const Lock lock(TheGpus().mutex);
  const CudaCopyRows rows = *given;
  return Later("cuMemcpy2DAsync_v2", stream, [rows] {
    for (size_t row = 0; row < rows.height; ++row) {
      Move(RowOf(rows.destination, row, rows.width_bytes),
           RowOf(rows.source, row, rows.width_bytes), rows.width_bytes);
    }
  });
}

CudaResult cuMemsetD8Async(CudaPointer to, unsigned char byte, size_t bytes, CudaStream stream) {
  const Lock lock(TheGpus().mutex);
  return Later("cuMemsetD8Async", stream, [=] {
    if (char* kept = Kept(to, bytes)) {
      std::memset(kept, byte, bytes);
    }
  });
}

CudaResult cuGetErrorName(CudaResult result, const char** name) {
  static const std::map<CudaResult, const char*> names{{1, "CUDA_ERROR_INVALID_VALUE"},
                                                       {2, "CUDA_ERROR_OUT_OF_MEMORY"},
                                                       {101, "CUDA_ERROR_INVALID_DEVICE"},
                                                       {700, "CUDA_ERROR_ILLEGAL_ADDRESS"}};
  const auto found = names.find(result);
  if (found == names.end()) {
    return kInvalidValue;
  }
  *name = found->second;
  return 0;
}

}  // extern "C"
