// SPDX-License-Identifier: Apache-2.0
//
// Faults for the sanitizers to find: that they are at work is tested too. Skipped unless asked for.

#include <limits>
#include <memory>
#include <thread>

#include "fixture.h"

namespace {

TEST_CASE("fault: a race" * doctest::skip()) {
  int shared = 0;
  std::thread other([&] { ++shared; });
  ++shared;
  other.join();
  CHECK(shared > 0);
}

TEST_CASE("fault: one byte too many" * doctest::skip()) {
  const auto bytes = std::make_unique<char[]>(8);
  const volatile size_t beyond = 8;
  CHECK(bytes[beyond] == bytes[beyond]);
}

TEST_CASE("fault: a leak" * doctest::skip()) {
  static char* volatile lost = nullptr;
  lost = new char[24];
  CHECK(lost != nullptr);
  lost = nullptr;
}

TEST_CASE("fault: an overflow" * doctest::skip()) {
  volatile int largest = std::numeric_limits<int>::max();
  const int more = largest + 1;
  CHECK(more != 0);
}

}  // namespace
