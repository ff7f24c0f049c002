// SPDX-License-Identifier: Apache-2.0

#include "request.h"

#include <cstring>
#include <string>

#include "data_type.h"
#include "log.h"
#include "triton_status.h"

namespace triton_jax {

Request::Request(TRITONBACKEND_Request* request, const ModelDescription& model)
    : model_(model), request_(request) {
  Fail(FromTriton(TRITONBACKEND_ResponseNew(&response_, request_)));
  if (ok()) {
    Fail(CatchStatus([&] {
      ReadInputs();
      ReadRequestedOutputs();
    }));
  }
}

void Request::Fail(const Status& status) {
  if (status_.ok()) {
    status_ = status;
  }
}

void Request::ReadInputs() {
  const bool batching = model_.max_batch_size > 0;
  inputs_.reserve(model_.inputs.size());
  input_dims_.reserve(model_.inputs.size());
  for (const TensorSpec& spec : model_.inputs) {
    TRITONBACKEND_Input* input = nullptr;
    ThrowIfError(TRITONBACKEND_RequestInput(request_, spec.name.c_str(), &input));
    TRITONSERVER_DataType dtype = TRITONSERVER_TYPE_INVALID;
    const int64_t* shape = nullptr;
    uint32_t dims_count = 0;
    ThrowIfError(TRITONBACKEND_InputProperties(input, nullptr, &dtype, &shape, &dims_count, nullptr,
                                               nullptr));
    if (static_cast<DataType>(dtype) != spec.dtype) {
      throw StatusError(Code::kInvalidArg, "input '" + spec.name + "': expected data type " +
                                               DataTypeName(spec.dtype) + ", got " +
                                               DataTypeName(static_cast<DataType>(dtype)));
    }

    const Dims got(shape, shape + dims_count);
    const size_t batch_dims = batching ? 1 : 0;
    bool fits = got.size() == spec.dims.size() + batch_dims;
    for (size_t i = 0; fits && i < spec.dims.size(); ++i) {
      fits = spec.dims[i] < 0 || spec.dims[i] == got[i + batch_dims];
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
      if (inputs_.empty()) {
        rows_ = got[0];
        if (rows_ < 0 || rows_ > model_.max_batch_size) {
          throw StatusError(Code::kInvalidArg, "input '" + spec.name + "': batch of " +
                                                   std::to_string(rows_) + " rows, allowed are " +
                                                   std::to_string(model_.max_batch_size));
        }
      } else if (got[0] != rows_) {
        throw StatusError(Code::kInvalidArg, "input '" + spec.name + "': batch of " +
                                                 std::to_string(got[0]) + " rows, but input '" +
                                                 model_.inputs[0].name + "' has " +
                                                 std::to_string(rows_));
      }
    }
    inputs_.push_back(input);
    input_dims_.emplace_back(got.begin() + static_cast<std::ptrdiff_t>(batch_dims), got.end());
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
}

void Request::CopyInput(size_t index, char* destination, size_t bytes) noexcept {
  if (!ok()) {
    std::memset(destination, 0, bytes);
    return;
  }
  const TensorSpec& spec = model_.inputs[index];
  Fail(CatchStatus([&] {
    uint32_t buffer_count = 0;
    uint64_t got = 0;
    ThrowIfError(TRITONBACKEND_InputProperties(inputs_[index], nullptr, nullptr, nullptr, nullptr,
                                               &got, &buffer_count));
    if (got != bytes) {
      std::memset(destination, 0, bytes);
      throw StatusError(Code::kInvalidArg, "input '" + spec.name + "': expected " +
                                               std::to_string(bytes) + " bytes, got " +
                                               std::to_string(got));
    }
    size_t copied = 0;
    for (uint32_t i = 0; i < buffer_count; ++i) {
      const void* buffer = nullptr;
      uint64_t buffer_bytes = 0;
      TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_CPU;
      int64_t memory_type_id = 0;
      ThrowIfError(TRITONBACKEND_InputBuffer(inputs_[index], i, &buffer, &buffer_bytes,
                                             &memory_type, &memory_type_id));
      if (memory_type == TRITONSERVER_MEMORY_GPU) {
        throw StatusError(Code::kUnsupported,
                          "input '" + spec.name +
                              "' is in GPU memory, which the jax backend does not read yet: send "
                              "it in the request or in system shared memory");
      }
      if (buffer_bytes > bytes - copied) {
        throw StatusError(Code::kInternal, "input '" + spec.name +
                                               "': its buffers hold more than " +
                                               std::to_string(bytes) + " bytes");
      }
      std::memcpy(destination + copied, buffer, buffer_bytes);
      copied += buffer_bytes;
    }
    if (copied != bytes) {
      throw StatusError(Code::kInternal, "input '" + spec.name + "': its buffers hold " +
                                             std::to_string(copied) + " bytes, expected " +
                                             std::to_string(bytes));
    }
  }));
}

void Request::AddOutputs(const std::vector<OutputBuffer>& outputs, int64_t first_row) noexcept {
  Fail(CatchStatus([&] {
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (output_wanted_[i]) {
        AddOutput(model_.outputs[i], outputs[i], first_row);
      }
    }
  }));
}

void Request::AddOutput(const TensorSpec& spec, const OutputBuffer& output, int64_t first_row) {
  Dims dims = output.dims;
  const char* data = output.data;
  size_t bytes = output.bytes;
  if (model_.max_batch_size > 0) {
    if (dims.empty() || dims[0] < first_row + rows_) {
      throw StatusError(Code::kInternal, "output '" + spec.name + "' has shape " + DimsText(dims) +
                                             ", but the batch has at least " +
                                             std::to_string(first_row + rows_) + " rows");
    }
    const size_t row_bytes = dims[0] == 0 ? 0 : output.bytes / static_cast<size_t>(dims[0]);
    data += static_cast<size_t>(first_row) * row_bytes;
    bytes = static_cast<size_t>(rows_) * row_bytes;
    dims[0] = rows_;
  }
  TRITONBACKEND_Output* triton_output = nullptr;
  ThrowIfError(TRITONBACKEND_ResponseOutput(response_, &triton_output, spec.name.c_str(),
                                            static_cast<TRITONSERVER_DataType>(spec.dtype),
                                            dims.data(), static_cast<uint32_t>(dims.size())));
  void* buffer = nullptr;
  TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_CPU;
  int64_t memory_type_id = 0;
  ThrowIfError(
      TRITONBACKEND_OutputBuffer(triton_output, &buffer, bytes, &memory_type, &memory_type_id));
  if (memory_type == TRITONSERVER_MEMORY_GPU) {
    throw StatusError(Code::kUnsupported,
                      "output '" + spec.name +
                          "' is wanted in GPU memory, which the jax backend does not write yet: "
                          "take it from the response or through system shared memory");
  }
  if (bytes > 0) {
    std::memcpy(buffer, data, bytes);
  }
}

void Request::Respond() noexcept {
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

void Request::Release(TRITONBACKEND_ModelInstance* instance) noexcept {
  TRITON_JAX_LOG_IF_ERROR(TRITONBACKEND_ModelInstanceReportStatistics(
                              instance, request_, ok(), times.execute_start_ns,
                              times.compute_start_ns, times.compute_end_ns, times.execute_end_ns),
                          "reporting the statistics of a request");
  TRITON_JAX_LOG_IF_ERROR(TRITONBACKEND_RequestRelease(request_, TRITONSERVER_REQUEST_RELEASE_ALL),
                          "releasing a request");
}

}  // namespace triton_jax
