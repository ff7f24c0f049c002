// SPDX-License-Identifier: Apache-2.0
//
// Stands in for the driver of NVIDIA's GPUs: a library by its name (libcuda.so.1) with the
// functions that the core uses. See triton_stand_in.h for why it is here.
//
// It is stricter than a GPU. Its memory cannot be touched by the host: at its addresses is nothing,
// and what is there is kept elsewhere. Every copy happens when its stream is waited for, and not
// before: what is read or given back too early is seen. A copy that leaves its allocation is a
// violation.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace stand_in {

// How many GPUs the driver finds from now on. None at the start.
void SetGpus(int count);

// Memory of a GPU, as another program may have it. Thread-safe, as all of this.
char* GpuAllocate(int gpu, size_t bytes);
void GpuFree(char* address);
void GpuWrite(char* address, const void* data, size_t bytes);
std::vector<char> GpuRead(const char* address, size_t bytes);

// Makes a function of the driver return `result` from its `after`th next call on; 0 ends it.
void FailCuda(const std::string& function, int result, int after = 1);
// How often a function was called since the last SetGpus.
int64_t CudaCalls(const std::string& function);

// What is not given back, by kind: empty after a clean end.
std::map<std::string, int64_t> CudaAlive();
// What was done wrong since the last call.
std::vector<std::string> TakeCudaViolations();

}  // namespace stand_in
