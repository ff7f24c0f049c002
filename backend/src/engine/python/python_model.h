// SPDX-License-Identifier: Apache-2.0
//
// A model and its instances, as the Python runtime (tritonserver_jax.runtime) loads and runs them.

#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "py_ref.h"
#include "python_outputs.h"

namespace triton_jax {

class PythonInstance : public Instance {
 public:
  // `instance` is a tritonserver_jax.runtime.instance.Instance. Needs the GIL.
  PythonInstance(PyRef instance, const ModelDescription& model);
  ~PythonInstance() override;

  const std::string& Device() const override { return device_; }
  int Gpu() const override { return gpu_; }
  Status Prepare(int64_t rows, const std::vector<InputShape>& shapes,
                 std::vector<InputBuffer>* inputs) override;
  int64_t PaddedRows() const override { return plan_ == nullptr ? 0 : plan_->padded_rows; }
  Status Run(const std::vector<InputBuffer>& inputs, std::vector<OutputBuffer>* outputs) override;
  Status Start(const std::vector<InputBuffer>& inputs) override;
  Status Next(std::vector<OutputBuffer>* outputs, bool* end) override;
  void Finish() override;

 private:
  // How to run one batch size of one set of shapes: a tritonserver_jax.runtime.instance.Plan.
  struct Plan {
    PyRef call;
    PyRef call_in_place;
    int64_t padded_rows = 0;
    std::vector<InputBuffer> inputs;
    std::vector<size_t> element_counts;  // of BYTES inputs
  };
  using PlanKey = std::pair<int64_t, std::vector<InputShape>>;

  std::unique_ptr<Plan> MakePlan(int64_t rows, const std::vector<InputShape>& shapes);
  void AddInput(PyObject* buffer, PyObject* lengths, Plan* plan) const;
  PyRef Arguments(const std::vector<InputBuffer>& inputs) const;
  PyRef Call(const std::vector<InputBuffer>& inputs) const;

  PyRef instance_;
  const ModelDescription& model_;
  std::string device_;
  int gpu_ = -1;
  std::map<PlanKey, std::unique_ptr<Plan>> plans_;
  bool takes_elements_ = false;  // whether an input is of BYTES
  Plan* plan_ = nullptr;         // of the run between Prepare and Finish
  bool ran_ = false;
  PyRef responses_;  // of a decoupled model: an iterator
  PythonOutputs outputs_;
};

// Frees what models held that are unloaded or failed to load. `runtime` is the module
// tritonserver_jax.runtime.entry. Needs the GIL.
void ForgetUnloadedModels(PyObject* runtime);

class PythonModel : public Model {
 public:
  // `runtime` is the module tritonserver_jax.runtime.entry, and outlives the model. Needs the GIL.
  PythonModel(PyObject* runtime, const ModelSpec& spec, ModelObserver* observer);
  ~PythonModel() override;

  const ModelDescription& Description() const override { return description_; }
  Status CreateInstance(const InstanceSpec& spec, std::unique_ptr<Instance>* instance) override;

 private:
  PyObject* const runtime_;
  PyRef model_;
  ModelDescription description_;
};

}  // namespace triton_jax
