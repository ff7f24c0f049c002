// SPDX-License-Identifier: Apache-2.0
//
// A model and its instances, as the Python runtime (tritonserver_jax.runtime) loads and runs them.

#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "py_ref.h"

namespace triton_jax {

class PythonInstance : public Instance {
 public:
  // `instance` is a tritonserver_jax.runtime.instance.Instance.
  PythonInstance(PyRef instance, ModelObserver* observer, size_t output_count);
  ~PythonInstance() override;

  Status Prepare(int64_t rows, const std::vector<Dims>& dims,
                 std::vector<InputBuffer>* inputs) override;
  Status Run(std::vector<OutputBuffer>* outputs) override;
  void Finish() override;

 private:
  // How to run one batch size of one set of dimensions: a tritonserver_jax.runtime.instance.Plan.
  struct Plan {
    PyRef call;
    std::vector<InputBuffer> inputs;
    // The arrays that own the input memory, and how many references each has when nobody but the
    // runtime holds it.
    std::vector<std::pair<PyRef, Py_ssize_t>> arrays;
  };
  using PlanKey = std::pair<int64_t, std::vector<Dims>>;

  std::unique_ptr<Plan> MakePlan(int64_t rows, const std::vector<Dims>& dims);
  bool SomebodyKeptAnInput() const;
  void DropPlans();

  PyRef instance_;
  ModelObserver* observer_;
  size_t output_count_;
  std::map<PlanKey, std::unique_ptr<Plan>> plans_;
  Plan* plan_ = nullptr;  // of the run between Prepare and Finish
  PyRef results_;
  std::vector<Py_buffer> views_;
};

class PythonModel : public Model {
 public:
  // `runtime` is the module tritonserver_jax.runtime.entry. Needs the GIL.
  PythonModel(PyObject* runtime, const ModelSpec& spec, ModelObserver* observer);
  ~PythonModel() override;

  const ModelDescription& Description() const override { return description_; }
  Status CreateInstance(const InstanceSpec& spec, std::unique_ptr<Instance>* instance) override;

 private:
  ModelObserver* observer_;
  PyRef model_;
  ModelDescription description_;
};

}  // namespace triton_jax
