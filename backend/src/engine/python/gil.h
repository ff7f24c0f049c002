// SPDX-License-Identifier: Apache-2.0
//
// The GIL on threads that Python did not make.

#pragma once

#include <Python.h>

namespace triton_jax {

// Holds the GIL for its lifetime. Each thread keeps one Python thread state from its first use to
// its end: making one per use would be slow, and extension modules cache what they keep per state.
class Gil {
 public:
  Gil();
  ~Gil();
  Gil(const Gil&) = delete;
  Gil& operator=(const Gil&) = delete;

 private:
  bool nested_;
};

// After this, ending threads leave their thread states alone.
void CloseGil();

}  // namespace triton_jax
