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
  // protocol; where it is in memory of a GPU, a tuple of its address, its bytes, its dimensions,
  // the number of the GPU and what holds it; or, for BYTES, a tuple of a flat list of bytes objects
  // (or text, which goes as UTF-8) and dimensions, or of a matrix of bytes, dimensions and int32
  // lengths, a row and a length for each string.
  void Take(PyRef results, const ModelDescription& model, std::vector<OutputBuffer>* outputs);
  void Release();

 private:
  struct Element {
    const char* data;
    size_t bytes;
  };

  void TakeArray(PyObject* result, OutputBuffer* output);
  static void TakeGpuArray(PyObject* result, OutputBuffer* output);
  static void TakeDims(PyObject* dims, OutputBuffer* output);
  void TakeElements(PyObject* result, const std::string& name, OutputBuffer* output);
  static std::vector<Element> ElementsOfList(PyObject* list, const std::string& name);
  std::vector<Element> ElementsOfMatrix(PyObject* matrix, PyObject* lengths);
  // As Triton has them: the place of each is known from their lengths, and each is copied once.
  void Write(const std::vector<Element>& elements, OutputBuffer* output);

  PyRef results_;
  std::vector<Py_buffer> views_;
  std::vector<std::unique_ptr<char[]>> elements_;
};

}  // namespace triton_jax
