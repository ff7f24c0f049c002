// SPDX-License-Identifier: Apache-2.0
//
// What the Python runtime may call in the server, as Python callables.

#pragma once

#include "engine/engine.h"
#include "py_ref.h"

namespace triton_jax {

// log(level: int, file: str, line: int, message: str) -> None. `host` must outlive the callable.
PyRef LogFunction(Host* host);

// observe(event: int, device: str, value: float) -> None. `observer` must outlive the callable.
PyRef ObserveFunction(ModelObserver* observer);

}  // namespace triton_jax
