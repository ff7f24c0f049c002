// SPDX-License-Identifier: Apache-2.0
//
// BYTES tensors as Triton lays them out: each element is its length in 4 little-endian bytes, and
// then its bytes.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace triton_jax {

// Whether `bytes` bytes at `data` are exactly `count` elements. If not, *valid_elements says how
// many were whole.
bool AreElements(const char* data, size_t bytes, size_t count, size_t* valid_elements);

// Appends `count` empty elements.
void AppendEmptyElements(size_t count, std::vector<char>* elements);

}  // namespace triton_jax
