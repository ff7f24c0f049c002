// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a BYTES tensor: AreElements agrees with a reader that takes one element at a time,
// and what is taken can be cut to a corner of it.
//
// The first two bytes are the dimensions that are claimed, the rest is the tensor.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "bytes_elements.h"

namespace {

// The elements of a tensor that is right; false if it is not.
bool ReadElements(std::vector<char> bytes, size_t count, std::vector<std::string>* elements) {
  for (size_t i = 0; i < count; ++i) {
    uint32_t length = 0;
    if (bytes.size() < sizeof length) {
      return false;
    }
    std::memcpy(&length, bytes.data(), sizeof length);
    bytes.erase(bytes.begin(), bytes.begin() + sizeof length);
    if (bytes.size() < length) {
      return false;
    }
    elements->emplace_back(bytes.begin(), bytes.begin() + length);
    bytes.erase(bytes.begin(), bytes.begin() + length);
  }
  return bytes.empty();
}

void Require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) {
    return 0;
  }
  const int64_t rows = data[0] % 8;
  const int64_t columns = data[1] % 8;
  const auto count = static_cast<size_t>(rows * columns);
  const std::vector<char> bytes(data + 2, data + size);
  std::vector<std::string> elements;
  const bool right = ReadElements(bytes, count, &elements);
  size_t valid = 0;
  Require(triton_jax::AreElements(bytes.data(), bytes.size(), count, &valid) == right);
  Require(valid == elements.size());
  if (!right) {
    return 0;
  }
  std::vector<size_t> offsets{0};
  for (const std::string& element : elements) {
    offsets.push_back(offsets.back() + sizeof(uint32_t) + element.size());
  }
  for (int64_t first = 0; first < rows; ++first) {
    for (int64_t width = 0; width <= columns; ++width) {
      const triton_jax::Dims source{rows - first, columns};
      const triton_jax::ElementRanges ranges =
          triton_jax::RangesOf(offsets, first, source, {rows - first, width});
      std::vector<char> cut(ranges.bytes);
      triton_jax::CopyElements(bytes.data(), ranges, cut.data());
      std::vector<std::string> got;
      Require(ReadElements(cut, static_cast<size_t>((rows - first) * width), &got));
      size_t next = 0;
      for (int64_t row = first; row < rows; ++row) {
        for (int64_t column = 0; column < width; ++column) {
          Require(got[next++] == elements[static_cast<size_t>(row * columns + column)]);
        }
      }
    }
  }
  return 0;
}
