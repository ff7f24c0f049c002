// SPDX-License-Identifier: Apache-2.0

#include "fixture.h"
#include "region.h"

namespace {

using stand_in::Bytes;
using triton_jax::Dims;

size_t Count(const Dims& dims) {
  size_t count = 1;
  for (const int64_t dim : dims) {
    count *= static_cast<size_t>(dim);
  }
  return count;
}

// Element by element, as anybody would write it.
void CopySlowly(const Bytes& source, const Dims& source_dims, Bytes* destination,
                const Dims& destination_dims, const Dims& dims, size_t element_bytes) {
  for (size_t number = 0; number < Count(dims); ++number) {
    size_t rest = number;
    size_t from = 0;
    size_t to = 0;
    size_t from_stride = element_bytes;
    size_t to_stride = element_bytes;
    for (size_t axis = dims.size(); axis-- > 0;) {
      const size_t index = rest % static_cast<size_t>(dims[axis]);
      rest /= static_cast<size_t>(dims[axis]);
      from += index * from_stride;
      to += index * to_stride;
      from_stride *= static_cast<size_t>(source_dims[axis]);
      to_stride *= static_cast<size_t>(destination_dims[axis]);
    }
    std::memcpy(destination->data() + to, source.data() + from, element_bytes);
  }
}

TEST_CASE("CopyRegion copies what a copy of each element copies, and nothing else") {
  stand_in::RandomChoices choices(1);
  for (int round = 0; round < 3000; ++round) {
    const auto rank = choices.Pick(0, 5);
    const size_t element_bytes = size_t{1} << choices.Pick(0, 3);
    Dims source_dims;
    Dims destination_dims;
    Dims dims;
    for (int64_t axis = 0; axis < rank; ++axis) {
      dims.push_back(choices.Pick(choices.OneIn(20) ? 0 : 1, 4));
      source_dims.push_back(dims.back() + (choices.OneIn(3) ? choices.Pick(0, 2) : 0));
      destination_dims.push_back(dims.back() + (choices.OneIn(3) ? choices.Pick(0, 2) : 0));
    }
    Bytes source;
    for (size_t i = 0; i < Count(source_dims) * element_bytes; ++i) {
      source.push_back(static_cast<char>(choices.Pick(1, 255)));
    }
    Bytes expected(Count(destination_dims) * element_bytes, '\0');
    Bytes got = expected;
    CopySlowly(source, source_dims, &expected, destination_dims, dims, element_bytes);
    triton_jax::CopyRegion(source.data(), source_dims, got.data(), destination_dims, dims,
                           element_bytes);
    REQUIRE(got == expected);
  }
}

}  // namespace
