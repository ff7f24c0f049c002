// SPDX-License-Identifier: Apache-2.0

#include "python_outputs.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "python_error.h"

namespace triton_jax {
namespace {

// The length before each element: 4 bytes, little-endian, as is every platform of Triton.
constexpr size_t kPrefixBytes = sizeof(uint32_t);
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "lengths are copied as they are");

// The bytes of a bytes object, or of text as UTF-8; the object, which is borrowed, keeps them.
std::pair<const char*, size_t> BytesOf(PyObject* object, const std::string& name) {
  char* data = nullptr;
  const char* text = nullptr;
  Py_ssize_t bytes = 0;
  if (PyUnicode_Check(object)) {
    text = PyUnicode_AsUTF8AndSize(object, &bytes);
    if (text == nullptr) {
      ThrowPythonError();
    }
  } else if (PyBytes_AsStringAndSize(object, &data, &bytes) != 0) {
    PyErr_Clear();
    const PyRef type(PyObject_Repr(reinterpret_cast<PyObject*>(Py_TYPE(object))));
    const char* got = type ? PyUnicode_AsUTF8AndSize(type.get(), nullptr) : nullptr;
    PyErr_Clear();
    throw StatusError(Code::kInternal, "output '" + name +
                                           "': expected elements of type bytes, got " +
                                           (got == nullptr ? "another type" : got));
  }
  if (static_cast<uint64_t>(bytes) > std::numeric_limits<uint32_t>::max()) {
    throw StatusError(Code::kInternal, "output '" + name + "': an element has " +
                                           std::to_string(bytes) +
                                           " bytes, more than a BYTES tensor can hold");
  }
  return {text == nullptr ? data : text, static_cast<size_t>(bytes)};
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
  // NOLINTNEXTLINE(performance-no-int-to-ptr): it is how Python says where memory is
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
  PyObject* strings = nullptr;
  PyObject* dims = nullptr;
  PyObject* lengths = nullptr;
  if (PyArg_ParseTuple(result, "OO!|O", &strings, &PyTuple_Type, &dims, &lengths) == 0) {
    ThrowPythonError();
  }
  TakeDims(dims, output);
  Write(lengths == nullptr ? ElementsOfList(strings, name) : ElementsOfMatrix(strings, lengths),
        output);
}

std::vector<PythonOutputs::Element> PythonOutputs::ElementsOfList(PyObject* list,
                                                                  const std::string& name) {
  const Py_ssize_t count = PyList_Size(list);
  if (count < 0) {
    ThrowPythonError();
  }
  std::vector<Element> elements;
  elements.reserve(static_cast<size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    const auto [data, bytes] = BytesOf(PyList_GetItem(list, i), name);
    elements.push_back({data, bytes});
  }
  return elements;
}

std::vector<PythonOutputs::Element> PythonOutputs::ElementsOfMatrix(PyObject* matrix,
                                                                    PyObject* lengths) {
  const auto view_of = [this](PyObject* object) {
    Py_buffer& view = views_.emplace_back();
    if (PyObject_GetBuffer(object, &view, PyBUF_ND | PyBUF_C_CONTIGUOUS) != 0) {
      views_.pop_back();
      ThrowPythonError();
    }
    return view;
  };
  const Py_buffer rows = view_of(matrix);
  const Py_buffer ends = view_of(lengths);
  const auto count = static_cast<size_t>(ends.len) / sizeof(int32_t);
  const size_t width = count == 0 ? 0 : static_cast<size_t>(rows.len) / count;
  const char* row = static_cast<const char*>(rows.buf);
  const auto* length = static_cast<const int32_t*>(ends.buf);
  std::vector<Element> elements;
  elements.reserve(count);
  for (size_t i = 0; i < count; ++i, row += width) {
    // Whatever a model makes of them, no string reaches into the next one's bytes.
    elements.push_back({row, std::min(static_cast<size_t>(std::max(length[i], 0)), width)});
  }
  return elements;
}

void PythonOutputs::Write(const std::vector<Element>& elements, OutputBuffer* output) {
  output->offsets.reserve(elements.size() + 1);
  size_t total = 0;
  for (const Element& element : elements) {
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
