// SPDX-License-Identifier: Apache-2.0

#include "bytes_elements.h"

namespace triton_jax {
namespace {

constexpr size_t kPrefix = 4;

size_t ReadLength(const char* data) {
  size_t length = 0;
  for (size_t i = 0; i < kPrefix; ++i) {
    length |= static_cast<size_t>(static_cast<unsigned char>(data[i])) << (8 * i);
  }
  return length;
}

}  // namespace

bool AreElements(const char* data, size_t bytes, size_t count, size_t* valid_elements) {
  size_t position = 0;
  for (*valid_elements = 0; *valid_elements < count; ++*valid_elements) {
    if (bytes - position < kPrefix) {
      return false;
    }
    const size_t length = ReadLength(data + position);
    position += kPrefix;
    if (bytes - position < length) {
      return false;
    }
    position += length;
  }
  return position == bytes;
}

void AppendEmptyElements(size_t count, std::vector<char>* elements) {
  elements->insert(elements->end(), kPrefix * count, '\0');
}

}  // namespace triton_jax
