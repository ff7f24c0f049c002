// SPDX-License-Identifier: Apache-2.0

#include "bytes_elements.h"
#include "fixture.h"

namespace {

using stand_in::Bytes;
using stand_in::Strings;
using triton_jax::AreElements;

TEST_CASE("AreElements takes exactly the elements that were counted") {
  const Bytes bytes = Strings({3}, {"", "abc", std::string("\0\xff", 2)}).bytes;
  for (size_t count = 0; count < 6; ++count) {
    size_t valid = 99;
    CHECK(AreElements(bytes.data(), bytes.size(), count, &valid) == (count == 3));
    CHECK(valid == std::min<size_t>(count, 3));
  }
}

TEST_CASE("AreElements refuses every piece of a tensor but the whole") {
  const Bytes whole = Strings({2}, {"abc", "de"}).bytes;
  for (size_t size = 0; size < whole.size(); ++size) {
    const Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    size_t valid = 0;
    CHECK_FALSE(AreElements(part.data(), part.size(), 2, &valid));
    CHECK(valid == (size >= 7 ? 1 : 0));
  }
}

TEST_CASE("AreElements believes no length that is larger than the tensor") {
  for (const char top : {'\x01', '\x7f', '\x80', '\xff'}) {
    Bytes bytes = Strings({1}, {"abcd"}).bytes;
    bytes[3] = top;
    size_t valid = 0;
    CHECK_FALSE(AreElements(bytes.data(), bytes.size(), 1, &valid));
    CHECK(valid == 0);
  }
}

TEST_CASE("no elements in no bytes") {
  size_t valid = 0;
  CHECK(AreElements(nullptr, 0, 0, &valid));
  CHECK_FALSE(AreElements(nullptr, 0, 1, &valid));
}

}  // namespace
