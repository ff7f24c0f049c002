// SPDX-License-Identifier: Apache-2.0
//
// BYTES tensors as Triton lays them out: each element is its length in 4 little-endian bytes, and
// then its bytes.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/engine.h"

namespace triton_jax {

// The least that elements of a tensor of `dims` take, or nothing where a dimension is negative or
// the product overflows.
std::optional<size_t> ElementsBytes(const Dims& dims);

// Whether `bytes` bytes at `data` are exactly `count` elements. If not, *valid_elements says how
// many were whole.
bool AreElements(const char* data, size_t bytes, size_t count, size_t* valid_elements);

// Elements of a tensor, as places in its bytes, and what they take together.
struct ElementRanges {
  std::vector<size_t> begins;
  std::vector<size_t> ends;
  size_t bytes = 0;
};

// Finds the elements at indices below `dims` in the rows from `first_row` on. `source` is what
// those rows are: it has `dims`' rank, and is nowhere smaller. `offsets` has where each element of
// the whole tensor begins, and the end of the last one. Throws StatusError if it has too few.
ElementRanges RangesOf(const std::vector<size_t>& offsets, int64_t first_row, const Dims& source,
                       const Dims& dims);

// Writes `ranges.bytes` bytes to `destination`.
void CopyElements(const char* source, const ElementRanges& ranges, char* destination);

// Appends `count` empty elements.
void AppendEmptyElements(size_t count, std::vector<char>* elements);

}  // namespace triton_jax
