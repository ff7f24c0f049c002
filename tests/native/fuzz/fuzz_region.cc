// SPDX-License-Identifier: Apache-2.0
//
// Any corner of any tensors: CopyRegion copies it, and touches nothing else.

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "fuzz_choices.h"
#include "region.h"

namespace {

using triton_jax::Dims;

size_t Count(const Dims& dims) {
  size_t count = 1;
  for (const int64_t dim : dims) {
    count *= static_cast<size_t>(dim);
  }
  return count;
}

// Where the element with these indices lies, in elements.
size_t Place(const Dims& dims, const Dims& indices) {
  size_t place = 0;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    place = place * static_cast<size_t>(dims[axis]) + static_cast<size_t>(indices[axis]);
  }
  return place;
}

// The indices of element number `place`; whether they are below `limits`.
bool IndicesBelow(size_t place, const Dims& dims, const Dims& limits, Dims* indices) {
  bool below = true;
  indices->assign(dims.size(), 0);
  for (size_t axis = dims.size(); axis-- > 0;) {
    (*indices)[axis] = static_cast<int64_t>(place % static_cast<size_t>(dims[axis]));
    place /= static_cast<size_t>(dims[axis]);
    below = below && (*indices)[axis] < limits[axis];
  }
  return below;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  stand_in::FuzzChoices choices(data, size);
  const size_t element_bytes = size_t{1} << choices.Pick(0, 3);
  Dims dims;
  Dims source_dims;
  Dims destination_dims;
  for (int64_t rank = choices.Pick(0, 5); rank > 0; --rank) {
    dims.push_back(choices.Pick(0, 5));
    source_dims.push_back(dims.back() + choices.Pick(0, 2));
    destination_dims.push_back(dims.back() + choices.Pick(0, 2));
  }
  std::vector<char> source(Count(source_dims) * element_bytes);
  for (size_t i = 0; i < source.size(); ++i) {
    source[i] = static_cast<char>(1 + i % 127);
  }
  std::vector<char> destination(Count(destination_dims) * element_bytes, '\0');
  triton_jax::CopyRegion(source.data(), source_dims, destination.data(), destination_dims, dims,
                         element_bytes);
  Dims indices;
  for (size_t place = 0; place < Count(destination_dims); ++place) {
    const bool copied = IndicesBelow(place, destination_dims, dims, &indices);
    for (size_t byte = 0; byte < element_bytes; ++byte) {
      const char expected =
          copied ? source[Place(source_dims, indices) * element_bytes + byte] : '\0';
      if (destination[place * element_bytes + byte] != expected) {
        std::abort();
      }
    }
  }
  return 0;
}
