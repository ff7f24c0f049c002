// SPDX-License-Identifier: Apache-2.0
//
// The structures of Python's initialisation API (PEP 587) as far as this engine touches them. They
// are not in the limited API; python_init_abi_check.cc compares them with the headers of the Python
// that the build uses.

#pragma once

#include <array>
#include <cstddef>

namespace triton_jax {

// PyPreConfig: the same in Python 3.8 to 3.14. The room after it is for fields yet to come.
struct PreConfig {
  int config_init;
  int parse_argv;
  int isolated;
  int use_environment;
  int configure_locale;
  int coerce_c_locale;
  int coerce_c_locale_warn;
  int utf8_mode;
  int dev_mode;
  int allocator;
  std::array<int, 64> reserve;
};

// PyStatus.
struct InitStatus {
  int type;  // 0: success
  const char* function;
  const char* message;
  int exit_code;
};

// PyConfig, which has another layout in each minor version and takes about 450 bytes in 3.11 to
// 3.14: room enough for it, and never looked into.
struct OpaqueConfig {
  alignas(std::max_align_t) std::array<std::byte, 16384> bytes;
};

}  // namespace triton_jax
