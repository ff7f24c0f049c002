// SPDX-License-Identifier: Apache-2.0
//
// Python's own start, in the one way that depends on no Python version: PyConfig has another layout
// in each minor version and is not in the limited API, so it is only ever handled as bytes here.

#pragma once

#include "engine/status.h"

namespace triton_jax {

// Initialises Python on the calling thread as `executable` would with -I and -X utf8: the
// environment's variables and the user's site are ignored, no signal handler is installed. Leaves
// the GIL held. Throws StatusError with Python's own reason.
void InitializePython(const char* executable);

}  // namespace triton_jax
