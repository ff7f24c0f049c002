// SPDX-License-Identifier: Apache-2.0
//
// The time as Triton's statistics want it.

#pragma once

#include <chrono>
#include <cstdint>

namespace triton_jax {

// Triton compares these with its own timestamps, which are steady_clock's.
inline uint64_t NowNs() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

}  // namespace triton_jax
