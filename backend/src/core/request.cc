// SPDX-License-Identifier: Apache-2.0

#include "request.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "bytes_elements.h"
#include "data_type.h"
#include "log.h"
#include "optional_api.h"
#include "region.h"
#include "triton_status.h"

namespace triton_jax {
namespace {

// No output is as long: what follows such a dimension is left as it is.
constexpr int64_t kNotCut = std::numeric_limits<int64_t>::max();

}  // namespace

Request::Request(TRITONBACKEND_Request* request, const ModelDescription& model,
                 GpuMemory* gpu_memory)
    : model_(model), gpu_memory_(gpu_memory), request_(request) {
  if (model_.decoupled) {
    Fail(FromTriton(TRITONBACKEND_ResponseFactoryNew(&factory_, request_)));
  } else {
    Fail(FromTriton(TRITONBACKEND_ResponseNew(&response_, request_)));
  }
  if (ok()) {
    Fail(CatchStatus([&] {
      ReadInputs();
      ReadRequestedOutputs();
      if (model_.HasState()) {
        // A sequence's id is text, or a number other than 0.
        uint64_t id = 1;
        const Status numeric = FromTriton(TRITONBACKEND_RequestCorrelationId(request_, &id));
        placeholder_ = numeric.ok() && id == 0;
      }
    }));
  }
}

Request::Request(Request&& other) noexcept
    : times(other.times),
      model_(other.model_),
      gpu_memory_(other.gpu_memory_),
      request_(std::exchange(other.request_, nullptr)),
      response_(std::exchange(other.response_, nullptr)),
      factory_(std::exchange(other.factory_, nullptr)),
      status_(std::move(other.status_)),
      rows_(other.rows_),
      has_rows_(other.has_rows_),
      placeholder_(other.placeholder_),
      inputs_(std::move(other.inputs_)),
      shapes_(std::move(other.shapes_)),
      varying_(std::move(other.varying_)),
      output_wanted_(std::move(other.output_wanted_)) {}

Request::~Request() {
  if (factory_ != nullptr) {
    TRITON_JAX_LOG_IF_ERROR(TRITONBACKEND_ResponseFactoryDelete(factory_),
                            "deleting a response factory");
  }
}

void Request::Fail(const Status& status) {
  if (status_.ok()) {
    status_ = status;
  }
}

void Request::FailIfCancelled() {
  bool cancelled = false;
  if (factory_ != nullptr && Optional().response_factory_is_cancelled != nullptr) {
    Fail(FromTriton(Optional().response_factory_is_cancelled(factory_, &cancelled)));
  } else if (factory_ == nullptr && Optional().request_is_cancelled != nullptr) {
    Fail(FromTriton(Optional().request_is_cancelled(request_, &cancelled)));
  }
  if (cancelled) {
    Fail({Code::kCancelled, "the client cancelled the request"});
  }
}

void Request::ReadInputs() {
  inputs_.reserve(model_.inputs.size());
  shapes_.reserve(model_.inputs.size());
  for (const TensorSpec& spec : model_.inputs) {
    if (!ReadInput(spec)) {
      inputs_.push_back(nullptr);
      shapes_.push_back({false, {}});
      varying_.insert(varying_.end(),
                      static_cast<size_t>(std::count(spec.dims.begin(), spec.dims.end(), -1)),
                      kNotCut);
    }
  }
}

bool Request::ReadInput(const TensorSpec& spec) {
  TRITONBACKEND_Input* input = nullptr;
  const Status found = FromTriton(TRITONBACKEND_RequestInput(request_, spec.name.c_str(), &input));
  if (!found.ok()) {
    if (spec.optional) {
      return false;
    }
    throw StatusError(Code::kInvalidArg, "input '" + spec.name + "' is missing");
  }
  TRITONSERVER_DataType dtype = TRITONSERVER_TYPE_INVALID;
  const int64_t* shape = nullptr;
  uint32_t dims_count = 0;
  ThrowIfError(
      TRITONBACKEND_InputProperties(input, nullptr, &dtype, &shape, &dims_count, nullptr, nullptr));
  if (static_cast<DataType>(dtype) != spec.dtype) {
    throw StatusError(Code::kInvalidArg, "input '" + spec.name + "': expected data type " +
                                             DataTypeName(spec.dtype) + ", got " +
                                             DataTypeName(static_cast<DataType>(dtype)));
  }

  const Dims got(shape, shape + dims_count);
  const bool batching = model_.max_batch_size > 0;
  const size_t batch_dims = batching ? 1 : 0;
  bool fits = got.size() == spec.dims.size() + batch_dims;
  for (size_t i = 0; fits && i < spec.dims.size(); ++i) {
    fits = spec.dims[i] < 0 ? got[i + batch_dims] >= 0 : spec.dims[i] == got[i + batch_dims];
  }
  if (!fits) {
    Dims expected = spec.dims;
    if (batching) {
      expected.insert(expected.begin(), -1);
    }
    throw StatusError(Code::kInvalidArg, "input '" + spec.name + "': expected shape " +
                                             DimsText(expected) +
                                             (batching ? " (the batch dimension first)" : "") +
                                             ", got " + DimsText(got));
  }
  if (batching) {
    if (!has_rows_) {
      rows_ = got[0];
      has_rows_ = true;
      if (rows_ < 0 || rows_ > model_.max_batch_size) {
        throw StatusError(Code::kInvalidArg, "input '" + spec.name + "': batch of " +
                                                 std::to_string(rows_) + " rows, allowed are " +
                                                 std::to_string(model_.max_batch_size));
      }
    } else if (got[0] != rows_) {
      throw StatusError(Code::kInvalidArg,
                        "input '" + spec.name + "': batch of " + std::to_string(got[0]) +
                            " rows, but the inputs before it have " + std::to_string(rows_));
    }
  }
  const Dims dims(got.begin() + static_cast<std::ptrdiff_t>(batch_dims), got.end());
  for (size_t i = 0; i < dims.size(); ++i) {
    if (spec.dims[i] >= 0) {
      continue;
    }
    if (!spec.lengths.empty() && dims[i] > spec.lengths.back()) {
      throw StatusError(Code::kInvalidArg,
                        "input '" + spec.name + "': dimension " + std::to_string(i + batch_dims) +
                            " is " + std::to_string(dims[i]) + ", the longest allowed is " +
                            std::to_string(spec.lengths.back()));
    }
    varying_.push_back(spec.ragged || !spec.lengths.empty() ? dims[i] : kNotCut);
  }
  CheckSize(spec, input, got);
  inputs_.push_back(input);
  shapes_.push_back({true, dims});
  return true;
}

void Request::CheckSize(const TensorSpec& spec, TRITONBACKEND_Input* input, const Dims& dims) {
  uint64_t bytes = 0;
  ThrowIfError(
      TRITONBACKEND_InputProperties(input, nullptr, nullptr, nullptr, nullptr, &bytes, nullptr));
  const bool strings = spec.dtype == DataType::kBytes;
  const std::optional<size_t> needed =
      strings ? ElementsBytes(dims) : TensorBytes(spec.dtype, dims);
  if (!needed || (strings ? bytes < *needed : bytes != *needed)) {
    throw StatusError(Code::kInvalidArg,
                      "input '" + spec.name + "': " +
                          (needed ? std::string("expected ") + (strings ? "at least " : "") +
                                        std::to_string(*needed) + " bytes"
                                  : "no memory can hold a tensor") +
                          " for shape " + DimsText(dims) + ", got " + std::to_string(bytes) +
                          " bytes");
  }
}

void Request::ReadRequestedOutputs() {
  uint32_t count = 0;
  ThrowIfError(TRITONBACKEND_RequestOutputCount(request_, &count));
  output_wanted_.assign(model_.outputs.size(), count == 0);  // none named: all are wanted
  for (uint32_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    ThrowIfError(TRITONBACKEND_RequestOutputName(request_, i, &name));
    for (size_t index = 0; index < model_.outputs.size(); ++index) {
      if (model_.outputs[index].name == name) {
        output_wanted_[index] = true;
      }
    }
  }
  for (size_t index = 0; index < model_.outputs.size(); ++index) {
    if (model_.outputs[index].state) {
      output_wanted_[index] = true;
    }
  }
}

size_t Request::Bytes(size_t index) const {
  uint64_t bytes = 0;
  ThrowIfError(TRITONBACKEND_InputProperties(inputs_[index], nullptr, nullptr, nullptr, nullptr,
                                             &bytes, nullptr));
  return bytes;
}

const char* Request::Data(size_t index, size_t bytes, std::vector<char>* scratch) {
  const std::string& name = model_.inputs[index].name;
  uint32_t buffer_count = 0;
  ThrowIfError(TRITONBACKEND_InputProperties(inputs_[index], nullptr, nullptr, nullptr, nullptr,
                                             nullptr, &buffer_count));
  const char* only = nullptr;
  size_t found = 0;
  for (uint32_t i = 0; i < buffer_count; ++i) {
    const void* buffer = nullptr;
    uint64_t buffer_bytes = 0;
    TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_CPU;
    int64_t memory_type_id = 0;
    ThrowIfError(TRITONBACKEND_InputBuffer(inputs_[index], i, &buffer, &buffer_bytes, &memory_type,
                                           &memory_type_id));
    if (memory_type == TRITONSERVER_MEMORY_GPU) {
      return DataFromGpu(index, bytes);
    }
    const auto* data = static_cast<const char*>(buffer);
    if (buffer_count == 1) {
      only = data;
    } else {
      scratch->insert(scratch->end(), data, data + buffer_bytes);
    }
    found += buffer_bytes;
  }
  if (found != bytes) {
    throw StatusError(Code::kInvalidArg, "input '" + name + "': expected " + std::to_string(bytes) +
                                             " bytes, got " + std::to_string(found));
  }
  return buffer_count == 1 ? only : scratch->data();
}

void Request::CopyInput(size_t index, const Dims& padded, char* destination) noexcept {
  if (!ok() || !shapes_[index].present) {
    return;
  }
  Fail(CatchStatus([&] {
    const TensorSpec& spec = model_.inputs[index];
    Dims dims = shapes_[index].dims;
    Dims room = padded;
    dims.insert(dims.begin(), rows_);
    room.insert(room.begin(), rows_);
    const std::optional<size_t> bytes = TensorBytes(spec.dtype, dims);
    if (!bytes) {
      throw StatusError(Code::kInvalidArg,
                        "input '" + spec.name + "': shape " + DimsText(dims) + " is too large");
    }
    std::vector<char> scratch;
    const char* data = Data(index, *bytes, &scratch);
    CopyRegion(data, dims, destination, room, dims, ElementBytes(spec.dtype));
  }));
}

void Request::AppendElements(size_t index, std::vector<char>* elements) {
  if (!shapes_[index].present) {
    return;
  }
  const TensorSpec& spec = model_.inputs[index];
  auto count = static_cast<size_t>(rows_);
  for (const int64_t dim : shapes_[index].dims) {
    count *= static_cast<size_t>(dim);  // which CheckSize has compared with what was sent
  }
  if (ok()) {
    Fail(CatchStatus([&] {
      std::vector<char> scratch;
      const size_t bytes = Bytes(index);
      const char* data = Data(index, bytes, &scratch);
      size_t valid = 0;
      if (!AreElements(data, bytes, count, &valid)) {
        throw StatusError(
            Code::kInvalidArg,
            "input '" + spec.name + "': expected " + std::to_string(count) +
                " BYTES elements, each a 4-byte little-endian length and that many bytes, in " +
                std::to_string(bytes) + " bytes; got " + std::to_string(valid) + " whole elements" +
                (valid == count ? " and bytes after them" : ""));
      }
      elements->insert(elements->end(), data, data + bytes);
    }));
  }
  if (!ok()) {
    AppendEmptyElements(count, elements);
  }
}

void Request::AddOutputs(const std::vector<OutputBuffer>& outputs, int64_t first_row) noexcept {
  if (placeholder_) {
    return;
  }
  Fail(CatchStatus([&] {
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (output_wanted_[i]) {
        AddOutput(model_.outputs[i], outputs[i], first_row);
      }
    }
  }));
  if (gpu_memory_ != nullptr) {
    // Also after a failure: nothing may be written to what is given back with the response.
    Fail(CatchStatus([&] { gpu_memory_->Wait(); }));
  }
}

Dims Request::RealDims(const TensorSpec& spec, const OutputBuffer& output) const {
  Dims dims = output.dims;
  const size_t batch_dims = model_.max_batch_size > 0 ? 1 : 0;
  for (size_t i = 0; i < spec.follows.size() && i + batch_dims < dims.size(); ++i) {
    if (spec.follows[i] >= 0) {
      dims[i + batch_dims] =
          std::min(dims[i + batch_dims], varying_[static_cast<size_t>(spec.follows[i])]);
    }
  }
  if (batch_dims > 0) {
    dims[0] = rows_;
  }
  return dims;
}

Request::OutputMemory Request::Allocate(const TensorSpec& spec, const Dims& dims, size_t bytes,
                                        int gpu) {
  const auto dtype = static_cast<TRITONSERVER_DataType>(spec.dtype);
  const auto dims_count = static_cast<uint32_t>(dims.size());
  OutputMemory memory;
  void* buffer = nullptr;
  TRITONSERVER_MemoryType memory_type =
      gpu >= 0 ? TRITONSERVER_MEMORY_GPU : TRITONSERVER_MEMORY_CPU;
  int64_t memory_type_id = std::max(gpu, 0);
  if (spec.state) {
    ThrowIfError(TRITONBACKEND_StateNew(&memory.state, request_, spec.name.c_str(), dtype,
                                        dims.data(), dims_count));
    ThrowIfError(
        TRITONBACKEND_StateBuffer(memory.state, &buffer, bytes, &memory_type, &memory_type_id));
  } else {
    TRITONBACKEND_Output* triton_output = nullptr;
    ThrowIfError(TRITONBACKEND_ResponseOutput(response_, &triton_output, spec.name.c_str(), dtype,
                                              dims.data(), dims_count));
    ThrowIfError(
        TRITONBACKEND_OutputBuffer(triton_output, &buffer, bytes, &memory_type, &memory_type_id));
  }
  memory.place.data = static_cast<char*>(buffer);
  if (memory_type == TRITONSERVER_MEMORY_GPU) {
    memory.place.gpu = static_cast<int>(memory_type_id);
    if (gpu_memory_ == nullptr) {
      throw StatusError(Code::kUnsupported,
                        "output '" + spec.name +
                            "' is wanted in GPU memory, but the server has no GPU that the jax "
                            "backend can write to: take it from the response or through system "
                            "shared memory");
    }
  }
  return memory;
}

void Request::AddOutput(const TensorSpec& spec, const OutputBuffer& output, int64_t first_row) {
  const bool batching = model_.max_batch_size > 0;
  if (batching && (output.dims.empty() || output.dims[0] < first_row + rows_)) {
    throw StatusError(Code::kInternal, "output '" + spec.name + "' has shape " +
                                           DimsText(output.dims) + ", but the batch has at least " +
                                           std::to_string(first_row + rows_) + " rows");
  }
  const Dims dims = RealDims(spec, output);
  OutputMemory memory;
  Dims source = output.dims;
  if (spec.dtype == DataType::kBytes) {
    if (batching) {
      source[0] = rows_;
    }
    const ElementRanges elements = RangesOf(output.offsets, first_row, source, dims);
    memory = Allocate(spec, dims, elements.bytes, output.gpu);
    if (memory.place.gpu >= 0) {
      std::vector<char> serialized(elements.bytes);
      CopyElements(output.data, elements, serialized.data());
      gpu_memory_->Copy({serialized.data(), -1}, memory.place, elements.bytes);
      gpu_memory_->Wait();
    } else {
      CopyElements(output.data, elements, memory.place.data);
    }
  } else {
    size_t offset = 0;
    if (batching && output.dims[0] > 0) {
      offset =
          static_cast<size_t>(first_row) * (output.bytes / static_cast<size_t>(output.dims[0]));
      source[0] = rows_;
    }
    const std::optional<size_t> bytes = TensorBytes(spec.dtype, dims);
    memory = Allocate(spec, dims, bytes.value_or(0), output.gpu);
    if (output.gpu >= 0 || memory.place.gpu >= 0) {
      CopyOutputByGpu(spec, output, offset, source, memory.place, dims);
    } else {
      CopyRegion(output.data + offset, source, memory.place.data, dims, dims,
                 ElementBytes(spec.dtype));
    }
  }
  if (memory.state != nullptr) {
    ThrowIfError(TRITONBACKEND_StateUpdate(memory.state));
  }
}

void Request::Respond() noexcept {
  if (response_ == nullptr && factory_ != nullptr) {
    if (ok()) {
      TRITON_JAX_LOG_IF_ERROR(
          TRITONBACKEND_ResponseFactorySendFlags(factory_, TRITONSERVER_RESPONSE_COMPLETE_FINAL),
          "ending the responses of a request");
      return;
    }
    TRITON_JAX_LOG_IF_ERROR(TRITONBACKEND_ResponseNewFromFactory(&response_, factory_),
                            "making a response");
  }
  if (response_ == nullptr) {
    TRITON_JAX_LOG(kError, "jax: a request got no response: " + status_.message());
    return;
  }
  TRITONSERVER_Error* error = ToTriton(status_);
  TRITON_JAX_LOG_IF_ERROR(
      TRITONBACKEND_ResponseSend(response_, TRITONSERVER_RESPONSE_COMPLETE_FINAL, error),
      "sending a response");
  if (error != nullptr) {
    TRITONSERVER_ErrorDelete(error);
  }
  response_ = nullptr;
}

void Request::RespondOnce(const std::vector<OutputBuffer>& outputs) noexcept {
  Fail(FromTriton(TRITONBACKEND_ResponseNewFromFactory(&response_, factory_)));
  if (ok()) {
    AddOutputs(outputs, 0);
  }
  if (ok()) {
    TRITON_JAX_LOG_IF_ERROR(TRITONBACKEND_ResponseSend(response_, 0 /* more follow */, nullptr),
                            "sending a response");
    response_ = nullptr;
  }
}

void Request::Release(TRITONBACKEND_ModelInstance* instance) noexcept {
  TRITON_JAX_LOG_IF_ERROR(TRITONBACKEND_ModelInstanceReportStatistics(
                              instance, request_, ok(), times.execute_start_ns,
                              times.compute_start_ns, times.compute_end_ns, times.execute_end_ns),
                          "reporting the statistics of a request");
  TRITON_JAX_LOG_IF_ERROR(TRITONBACKEND_RequestRelease(request_, TRITONSERVER_REQUEST_RELEASE_ALL),
                          "releasing a request");
  request_ = nullptr;
}

}  // namespace triton_jax
