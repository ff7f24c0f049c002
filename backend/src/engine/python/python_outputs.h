// SPDX-License-Identifier: Apache-2.0
//
// What the Python runtime returns from a call, as memory that can be read without the GIL.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "py_ref.h"

namespace triton_jax {

// All members need the GIL.
class PythonOutputs {
 public:
  // Takes the sequence `results`, one item per output of the model: an object with the buffer
  // protocol; where it is in memory of a GPU, a tuple of its address, its bytes, its dimensions, the
  // number of the GPU and what holds it; or, for BYTES, a pair of a flat list of bytes objects and a
  // tuple of dimensions.
  void Take(PyRef results, const ModelDescription& model, std::vector<OutputBuffer>* outputs);
  void Release();

 private:
  void TakeArray(PyObject* result, OutputBuffer* output);
  static void TakeGpuArray(PyObject* result, OutputBuffer* output);
  static void TakeDims(PyObject* dims, OutputBuffer* output);
  void TakeElements(PyObject* result, const std::string& name, OutputBuffer* output);

  PyRef results_;
  std::vector<Py_buffer> views_;
  std::vector<std::unique_ptr<char[]>> elements_;
};

}  // namespace triton_jax
