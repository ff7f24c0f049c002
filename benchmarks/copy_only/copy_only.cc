// SPDX-License-Identifier: Apache-2.0
//
// The least that a backend can do with a batch: copy its inputs into one buffer, and answer each
// request with the beginning of its own rows. What it reaches is what Triton's front end and
// scheduler allow, and so the limit for a backend that computes something.
//
// For models with max_batch_size > 0, one input, and outputs that are no longer than it.

#include <cstdint>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "now.h"
#include "triton_c_api.h"
#include "triton_status.h"

namespace {

using triton_jax::Code;
using triton_jax::EntryPoint;
using triton_jax::NowNs;
using triton_jax::StatusError;
using triton_jax::ThrowIfError;

constexpr uint64_t kFp32Bytes = 4;

struct Tensor {
  std::string name;
  std::vector<int64_t> shape;  // with the batch dimension, to be filled in
  uint64_t row_bytes = kFp32Bytes;
};

Tensor ParseTensor(const nlohmann::json& config) {
  Tensor tensor;
  tensor.name = config.at("name").get<std::string>();
  if (config.at("data_type") != "TYPE_FP32") {
    throw StatusError(Code::kUnsupported, "copy_only: '" + tensor.name + "' must be TYPE_FP32");
  }
  tensor.shape.push_back(0);
  for (const auto& dim : config.at("dims")) {
    // Triton writes 64-bit integers as strings or as numbers.
    const int64_t size = dim.is_string() ? std::stoll(dim.get<std::string>()) : dim.get<int64_t>();
    if (size <= 0) {
      throw StatusError(Code::kUnsupported,
                        "copy_only: '" + tensor.name + "' must have fixed dims");
    }
    tensor.shape.push_back(size);
    tensor.row_bytes *= static_cast<uint64_t>(size);
  }
  return tensor;
}

class Model {
 public:
  explicit Model(TRITONBACKEND_Model* model) {
    TRITONSERVER_Message* message = nullptr;
    ThrowIfError(TRITONBACKEND_ModelConfig(model, 1, &message));
    const char* text = nullptr;
    size_t size = 0;
    ThrowIfError(TRITONSERVER_MessageSerializeToJson(message, &text, &size));
    const auto config = nlohmann::json::parse(text, text + size);
    ThrowIfError(TRITONSERVER_MessageDelete(message));
    max_batch_ = config.at("max_batch_size").get<uint64_t>();
    if (max_batch_ == 0 || config.at("input").size() != 1) {
      throw StatusError(Code::kUnsupported, "copy_only: needs max_batch_size > 0 and one input");
    }
    input_ = ParseTensor(config.at("input").at(0));
    for (const auto& output : config.at("output")) {
      outputs_.push_back(ParseTensor(output));
      if (outputs_.back().row_bytes > input_.row_bytes) {
        throw StatusError(Code::kUnsupported, "copy_only: '" + outputs_.back().name +
                                                  "' must not be longer than the input");
      }
    }
  }

  uint64_t max_batch() const { return max_batch_; }
  const Tensor& input() const { return input_; }
  const std::vector<Tensor>& outputs() const { return outputs_; }

 private:
  uint64_t max_batch_ = 0;
  Tensor input_;
  std::vector<Tensor> outputs_;
};

class Instance {
 public:
  explicit Instance(TRITONBACKEND_ModelInstance* instance) : instance_(instance) {
    TRITONBACKEND_Model* model = nullptr;
    ThrowIfError(TRITONBACKEND_ModelInstanceModel(instance, &model));
    void* state = nullptr;
    ThrowIfError(TRITONBACKEND_ModelState(model, &state));
    model_ = static_cast<const Model*>(state);
    batch_.resize(model_->max_batch() * model_->input().row_bytes);
    outputs_ = model_->outputs();
  }

  void Execute(TRITONBACKEND_Request** requests, uint32_t count) {
    const uint64_t start_ns = NowNs();
    rows_.clear();
    uint64_t filled = 0;
    for (uint32_t i = 0; i < count; ++i) {
      const uint64_t bytes = Gather(requests[i], batch_.data() + filled);
      rows_.push_back(bytes / model_->input().row_bytes);
      filled += bytes;
    }
    const uint64_t gathered_ns = NowNs();
    const char* source = batch_.data();
    uint64_t all_rows = 0;
    for (uint32_t i = 0; i < count; ++i) {
      Answer(requests[i], rows_[i], source);
      source += rows_[i] * model_->input().row_bytes;
      all_rows += rows_[i];
    }
    const uint64_t end_ns = NowNs();
    for (uint32_t i = 0; i < count; ++i) {
      ThrowIfError(TRITONBACKEND_ModelInstanceReportStatistics(
          instance_, requests[i], true, start_ns, gathered_ns, gathered_ns, end_ns));
      ThrowIfError(TRITONBACKEND_RequestRelease(requests[i], TRITONSERVER_REQUEST_RELEASE_ALL));
    }
    ThrowIfError(TRITONBACKEND_ModelInstanceReportBatchStatistics(
        instance_, all_rows, start_ns, gathered_ns, gathered_ns, end_ns));
  }

 private:
  uint64_t Gather(TRITONBACKEND_Request* request, char* destination) const {
    TRITONBACKEND_Input* input = nullptr;
    ThrowIfError(TRITONBACKEND_RequestInput(request, model_->input().name.c_str(), &input));
    uint32_t buffers = 0;
    uint64_t bytes = 0;
    ThrowIfError(
        TRITONBACKEND_InputProperties(input, nullptr, nullptr, nullptr, nullptr, &bytes, &buffers));
    for (uint32_t i = 0; i < buffers; ++i) {
      const void* buffer = nullptr;
      uint64_t size = 0;
      TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
      int64_t memory_id = 0;
      ThrowIfError(TRITONBACKEND_InputBuffer(input, i, &buffer, &size, &memory, &memory_id));
      std::memcpy(destination, buffer, size);
      destination += size;
    }
    return bytes;
  }

  void Answer(TRITONBACKEND_Request* request, uint64_t rows, const char* source) {
    TRITONBACKEND_Response* response = nullptr;
    ThrowIfError(TRITONBACKEND_ResponseNew(&response, request));
    for (Tensor& tensor : outputs_) {
      TRITONBACKEND_Output* output = nullptr;
      tensor.shape[0] = static_cast<int64_t>(rows);
      ThrowIfError(TRITONBACKEND_ResponseOutput(response, &output, tensor.name.c_str(),
                                                TRITONSERVER_TYPE_FP32, tensor.shape.data(),
                                                static_cast<uint32_t>(tensor.shape.size())));
      void* buffer = nullptr;
      TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
      int64_t memory_id = 0;
      ThrowIfError(TRITONBACKEND_OutputBuffer(output, &buffer, rows * tensor.row_bytes, &memory,
                                              &memory_id));
      for (uint64_t row = 0; row < rows; ++row) {
        std::memcpy(static_cast<char*>(buffer) + row * tensor.row_bytes,
                    source + row * model_->input().row_bytes, tensor.row_bytes);
      }
    }
    ThrowIfError(
        TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, nullptr));
  }

  TRITONBACKEND_ModelInstance* instance_;
  const Model* model_ = nullptr;
  std::vector<char> batch_;
  std::vector<uint64_t> rows_;
  std::vector<Tensor> outputs_;
};

}  // namespace

extern "C" {

TRITONSERVER_Error* TRITONBACKEND_Initialize(TRITONBACKEND_Backend* backend) {
  return TRITONBACKEND_BackendSetExecutionPolicy(backend, TRITONBACKEND_EXECUTION_BLOCKING);
}

TRITONSERVER_Error* TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model* model) {
  return EntryPoint([&] {
    auto state = std::make_unique<Model>(model);
    ThrowIfError(TRITONBACKEND_ModelSetState(model, state.get()));
    state.release();
  });
}

TRITONSERVER_Error* TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model* model) {
  return EntryPoint([&] {
    void* state = nullptr;
    ThrowIfError(TRITONBACKEND_ModelState(model, &state));
    delete static_cast<Model*>(state);
  });
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance* instance) {
  return EntryPoint([&] {
    auto state = std::make_unique<Instance>(instance);
    ThrowIfError(TRITONBACKEND_ModelInstanceSetState(instance, state.get()));
    state.release();
  });
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance* instance) {
  return EntryPoint([&] {
    void* state = nullptr;
    ThrowIfError(TRITONBACKEND_ModelInstanceState(instance, &state));
    delete static_cast<Instance*>(state);
  });
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance* instance,
                                                       TRITONBACKEND_Request** requests,
                                                       const uint32_t request_count) {
  return EntryPoint([&] {
    void* state = nullptr;
    ThrowIfError(TRITONBACKEND_ModelInstanceState(instance, &state));
    static_cast<Instance*>(state)->Execute(requests, request_count);
  });
}

}  // extern "C"
