// SPDX-License-Identifier: Apache-2.0

#include "python_outputs.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "python_error.h"

namespace triton_jax {
namespace {

// The length before each element: 4 bytes, little-endian, as is every platform of Triton.
constexpr size_t kPrefixBytes = sizeof(uint32_t);
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "lengths are copied as they are");

struct Element {
  const char* data;
  size_t bytes;
};

// The bytes of a bytes object, which is borrowed and keeps them.
Element ElementOf(PyObject* object, const std::string& name) {
  char* data = nullptr;
  Py_ssize_t bytes = 0;
  if (PyBytes_AsStringAndSize(object, &data, &bytes) != 0) {
    PyErr_Clear();
    const PyRef type(PyObject_Repr(reinterpret_cast<PyObject*>(Py_TYPE(object))));
    const char* text = type ? PyUnicode_AsUTF8AndSize(type.get(), nullptr) : nullptr;
    PyErr_Clear();
    throw StatusError(Code::kInternal, "output '" + name + "': expected elements of type bytes, got " +
                                           (text == nullptr ? "another type" : text));
  }
  if (static_cast<uint64_t>(bytes) > std::numeric_limits<uint32_t>::max()) {
    throw StatusError(Code::kInternal, "output '" + name + "': an element has " +
                                           std::to_string(bytes) +
                                           " bytes, more than a BYTES tensor can hold");
  }
  return {data, static_cast<size_t>(bytes)};
}

}  // namespace

void PythonOutputs::Take(PyRef results, const ModelDescription& model,
                         std::vector<OutputBuffer>* outputs) {
  Release();
  results_ = std::move(results);
  const Py_ssize_t count = PySequence_Size(results_.get());
  if (count < 0) {
    ThrowPythonError();
  }
  if (static_cast<size_t>(count) != model.outputs.size()) {
    throw StatusError(Code::kInternal, "the model returned " + std::to_string(count) +
                                           " outputs, expected " +
                                           std::to_string(model.outputs.size()));
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    const TensorSpec& spec = model.outputs[static_cast<size_t>(i)];
    const PyRef result = CheckPython(PySequence_GetItem(results_.get(), i));
    OutputBuffer& output = outputs->emplace_back();
    if (spec.dtype == DataType::kBytes) {
      TakeElements(result.get(), spec.name, &output);
    } else if (PyTuple_Check(result.get())) {
      TakeGpuArray(result.get(), &output);
    } else {
      TakeArray(result.get(), &output);
    }
  }
}

void PythonOutputs::TakeArray(PyObject* result, OutputBuffer* output) {
  Py_buffer view;
  if (PyObject_GetBuffer(result, &view, PyBUF_ND | PyBUF_C_CONTIGUOUS) != 0) {
    ThrowPythonError();
  }
  views_.push_back(view);
  output->data = static_cast<const char*>(view.buf);
  output->bytes = static_cast<size_t>(view.len);
  output->dims = view.ndim == 0 ? Dims{1} : Dims(view.shape, view.shape + view.ndim);
}

void PythonOutputs::TakeGpuArray(PyObject* result, OutputBuffer* output) {
  unsigned long long address = 0;
  unsigned long long bytes = 0;
  PyObject* dims = nullptr;
  PyObject* holder = nullptr;  // which lives as long as results_
  if (PyArg_ParseTuple(result, "KKO!iO", &address, &bytes, &PyTuple_Type, &dims, &output->gpu,
                       &holder) == 0) {
    ThrowPythonError();
  }
  output->data = reinterpret_cast<const char*>(static_cast<uintptr_t>(address));
  output->bytes = bytes;
  TakeDims(dims, output);
}

void PythonOutputs::TakeDims(PyObject* dims, OutputBuffer* output) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(dims); ++i) {
    output->dims.push_back(PyLong_AsLongLong(PyTuple_GetItem(dims, i)));
  }
  if (PyErr_Occurred() != nullptr) {
    ThrowPythonError();
  }
  if (output->dims.empty()) {
    output->dims.push_back(1);
  }
}

void PythonOutputs::TakeElements(PyObject* result, const std::string& name, OutputBuffer* output) {
  PyObject* list = nullptr;
  PyObject* dims = nullptr;
  if (PyArg_ParseTuple(result, "O!O!", &PyList_Type, &list, &PyTuple_Type, &dims) == 0) {
    ThrowPythonError();
  }
  TakeDims(dims, output);
  // First how long all of it is, and where it comes from; then one copy of each into its place.
  const Py_ssize_t count = PyList_Size(list);
  std::vector<Element> elements;
  elements.reserve(static_cast<size_t>(count));
  output->offsets.reserve(static_cast<size_t>(count) + 1);
  size_t total = 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    const Element& element = elements.emplace_back(ElementOf(PyList_GetItem(list, i), name));
    output->offsets.push_back(total);
    total += kPrefixBytes + element.bytes;
  }
  output->offsets.push_back(total);
  // Without zeros beforehand, which a vector would write.
  char* next = elements_.emplace_back(new char[total]).get();
  output->data = next;
  output->bytes = total;
  for (const Element& element : elements) {
    const auto length = static_cast<uint32_t>(element.bytes);
    std::memcpy(next, &length, kPrefixBytes);
    std::memcpy(next + kPrefixBytes, element.data, element.bytes);
    next += kPrefixBytes + element.bytes;
  }
}

void PythonOutputs::Release() {
  for (Py_buffer& view : views_) {
    PyBuffer_Release(&view);
  }
  views_.clear();
  elements_.clear();
  results_.reset();
}

}  // namespace triton_jax
