// SPDX-License-Identifier: Apache-2.0

#include "bytes_elements.h"

#include <cstring>
#include <string>

#include "data_type.h"
#include "region.h"

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

std::optional<size_t> ElementsBytes(const Dims& dims) {
  static_assert(kPrefix == ElementBytes(DataType::kUint32));  // empty elements are their prefixes
  return TensorBytes(DataType::kUint32, dims);
}

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

ElementRanges RangesOf(const std::vector<size_t>& offsets, int64_t first_row, const Dims& source,
                       const Dims& dims) {
  size_t row_elements = 1;
  for (size_t i = 1; i < source.size(); ++i) {
    row_elements *= static_cast<size_t>(source[i]);
  }
  const size_t first = static_cast<size_t>(first_row) * row_elements;
  const size_t count = source.empty() ? 1 : row_elements * static_cast<size_t>(source[0]);
  if (offsets.size() <= first + count) {
    throw StatusError(Code::kInternal, "expected the places of " + std::to_string(first + count) +
                                           " elements, got " + std::to_string(offsets.size()));
  }
  ElementRanges ranges;
  if (dims == source) {
    ranges.begins = {offsets[first]};
    ranges.ends = {offsets[first + count]};
  } else {
    const size_t taken = ElementsBytes(dims).value_or(0) / kPrefix;
    ranges.begins.resize(taken);
    ranges.ends.resize(taken);
    const auto* begins = reinterpret_cast<const char*>(&offsets[first]);
    CopyRegion(begins, source, reinterpret_cast<char*>(ranges.begins.data()), dims, dims,
               sizeof(size_t));
    CopyRegion(begins + sizeof(size_t), source, reinterpret_cast<char*>(ranges.ends.data()), dims,
               dims, sizeof(size_t));
  }
  for (size_t i = 0; i < ranges.begins.size(); ++i) {
    ranges.bytes += ranges.ends[i] - ranges.begins[i];
  }
  return ranges;
}

void CopyElements(const char* source, const ElementRanges& ranges, char* destination) {
  for (size_t i = 0; i < ranges.begins.size(); ++i) {
    const size_t bytes = ranges.ends[i] - ranges.begins[i];
    if (bytes > 0) {
      std::memcpy(destination, source + ranges.begins[i], bytes);
      destination += bytes;
    }
  }
}

void AppendEmptyElements(size_t count, std::vector<char>* elements) {
  elements->insert(elements->end(), kPrefix * count, '\0');
}

}  // namespace triton_jax
