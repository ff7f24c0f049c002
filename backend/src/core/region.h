// SPDX-License-Identifier: Apache-2.0
//
// Copies between a tensor and the corner of a larger one, which is what padding comes to.

#pragma once

#include <cstddef>

#include "engine/engine.h"

namespace triton_jax {

// Copies the elements at indices below `dims` from a row-major tensor of dimensions `source_dims`
// to one of `destination_dims`. All have the same rank, and `dims` is nowhere larger than the
// others.
void CopyRegion(const char* source, const Dims& source_dims, char* destination,
                const Dims& destination_dims, const Dims& dims, size_t element_bytes);

}  // namespace triton_jax
