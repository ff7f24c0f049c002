// SPDX-License-Identifier: Apache-2.0
//
// Compiled without the limited API: our structures against Python's own.

#include <Python.h>

#include "python_init_abi.h"

namespace triton_jax {

#define TRITON_JAX_SAME_PLACE(OURS, FIELD, THEIRS, THEIR_FIELD)           \
  static_assert(offsetof(OURS, FIELD) == offsetof(THEIRS, THEIR_FIELD) && \
                    sizeof(OURS::FIELD) == sizeof(THEIRS::THEIR_FIELD),   \
                #THEIRS "." #THEIR_FIELD " is elsewhere in this version of Python")

TRITON_JAX_SAME_PLACE(PreConfig, isolated, PyPreConfig, isolated);
TRITON_JAX_SAME_PLACE(PreConfig, use_environment, PyPreConfig, use_environment);
TRITON_JAX_SAME_PLACE(PreConfig, utf8_mode, PyPreConfig, utf8_mode);
TRITON_JAX_SAME_PLACE(PreConfig, allocator, PyPreConfig, allocator);
static_assert(sizeof(PreConfig) >= sizeof(PyPreConfig), "PyPreConfig has outgrown its room");

TRITON_JAX_SAME_PLACE(InitStatus, type, PyStatus, _type);
TRITON_JAX_SAME_PLACE(InitStatus, message, PyStatus, err_msg);
static_assert(sizeof(InitStatus) == sizeof(PyStatus), "PyStatus is returned by value");

static_assert(sizeof(OpaqueConfig) >= sizeof(PyConfig), "PyConfig has outgrown its room");

}  // namespace triton_jax
