// SPDX-License-Identifier: Apache-2.0
//
// One input of a batch, gathered in memory of the GPU that it is run on.

#pragma once

#include <cstddef>
#include <vector>

#include "engine/engine.h"
#include "gpu_memory.h"
#include "request.h"

namespace triton_jax {

// Where a part of input number `index` is on a GPU: sets `buffer->in_place` to all of it, in memory
// of GPU `gpu`, padded to rows of `row_bytes` bytes and dimensions `dims` as an engine wants it.
// What a request has there as it is wanted, is not copied at all. Returns false, having done
// nothing, where no part of it is on a GPU, or the GPU has no memory left.
bool GatherOnGpu(GpuMemory* memory, int gpu, const std::vector<Request*>& requests, size_t index,
                 const Dims& dims, size_t row_bytes, InputBuffer* buffer);

}  // namespace triton_jax
