// SPDX-License-Identifier: Apache-2.0
//
// What the tests of the core share. Every test is held to the ledger: nothing is left alive, and
// nothing was done that a server would not forgive.

#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cuda_stand_in.h"
#include "engine_stand_in.h"
#include "random_case.h"
#include "triton_stand_in.h"

namespace stand_in {

struct CleanLedger {
  CleanLedger() {
    TheSettings() = {};
    TakeLog();
  }
  CleanLedger(const CleanLedger&) = delete;
  CleanLedger& operator=(const CleanLedger&) = delete;
  ~CleanLedger() {
    FailToStart({});
    SetGpus(0);
    for (const std::string& violation : TakeCudaViolations()) {
      FAIL_CHECK(violation);
    }
    for (const auto& [kind, count] : CudaAlive()) {
      FAIL_CHECK(kind << " of a GPU left over: " << count);
    }
    for (const std::string& violation : TakeViolations()) {
      FAIL_CHECK(violation);
    }
    for (const auto& [kind, count] : Alive()) {
      FAIL_CHECK(kind << " left over: " << count);
    }
  }
};

class RandomChoices : public Choices {
 public:
  explicit RandomChoices(unsigned seed) : generator_(seed) {}
  int64_t Pick(int64_t low, int64_t high) override {
    return std::uniform_int_distribution<int64_t>(low, high)(generator_);
  }

 private:
  std::mt19937 generator_;
};

inline bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline Tensor Floats(std::vector<int64_t> shape, const std::vector<float>& values) {
  Tensor tensor;
  tensor.dtype = TRITONSERVER_TYPE_FP32;
  tensor.shape = std::move(shape);
  tensor.bytes.resize(values.size() * sizeof(float));
  if (!values.empty()) {
    std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  }
  return tensor;
}

inline Tensor Strings(std::vector<int64_t> shape, const std::vector<std::string>& values) {
  Tensor tensor;
  tensor.dtype = TRITONSERVER_TYPE_BYTES;
  tensor.shape = std::move(shape);
  for (const std::string& value : values) {
    for (unsigned shift = 0; shift < 32; shift += 8) {
      tensor.bytes.push_back(static_cast<char>((value.size() >> shift) & 0xffU));
    }
    tensor.bytes.insert(tensor.bytes.end(), value.begin(), value.end());
  }
  return tensor;
}

// A model "x" -> "y" of one dimension.
inline std::shared_ptr<Script> OneDimension(triton_jax::DataType dtype, int64_t dim,
                                            int64_t max_batch_size = 8) {
  auto script = std::make_shared<Script>();
  triton_jax::TensorSpec x;
  x.name = "x";
  x.dtype = dtype;
  x.dims = {dim};
  triton_jax::TensorSpec y = x;
  y.name = "y";
  y.follows = {dim < 0 ? 0 : -1};
  script->description.max_batch_size = max_batch_size;
  script->description.config_json = "{}";
  script->description.inputs = {x};
  script->description.outputs = {y};
  return script;
}

// One model of a script of its own, with one instance.
struct Served {
  explicit Served(std::shared_ptr<Script> behaviour, const std::string& name = "m") {
    script = std::move(behaviour);
    Define(name, script);
    model = std::make_unique<Model>(&backend, name);
    REQUIRE_MESSAGE(model->status().ok(), model->status().message());
    instance = std::make_unique<Instance>(model.get());
    REQUIRE_MESSAGE(instance->status().ok(), instance->status().message());
  }

  Backend backend;
  std::shared_ptr<Script> script;
  std::unique_ptr<Model> model;
  std::unique_ptr<Instance> instance;
};

}  // namespace stand_in
