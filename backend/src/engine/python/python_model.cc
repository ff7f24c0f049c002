// SPDX-License-Identifier: Apache-2.0

#include "python_model.h"

#include <nlohmann/json.hpp>
#include <string>

#include "gil.h"
#include "host_functions.h"
#include "python_error.h"

namespace triton_jax {
namespace {

// A model with variable dimensions can ask for any number of plans; past this many they are made
// anew, which costs time, not memory.
constexpr size_t kMaxPlans = 1024;

std::string Text(PyObject* text) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(text, &size);
  if (data == nullptr) {
    ThrowPythonError();
  }
  return {data, static_cast<size_t>(size)};
}

std::vector<TensorSpec> TensorSpecs(const nlohmann::json& tensors) {
  std::vector<TensorSpec> specs;
  for (const auto& tensor : tensors) {
    TensorSpec& spec = specs.emplace_back();
    spec.name = tensor.at("name").get<std::string>();
    spec.dtype = static_cast<DataType>(tensor.at("dtype").get<int>());
    spec.dims = tensor.at("dims").get<Dims>();
  }
  return specs;
}

PyRef DimsList(const std::vector<Dims>& dims) {
  PyRef outer = CheckPython(PyList_New(0));
  for (const Dims& one : dims) {
    const PyRef inner = CheckPython(PyList_New(0));
    for (const int64_t dim : one) {
      const PyRef number = CheckPython(PyLong_FromLongLong(dim));
      if (PyList_Append(inner.get(), number.get()) != 0) {
        ThrowPythonError();
      }
    }
    if (PyList_Append(outer.get(), inner.get()) != 0) {
      ThrowPythonError();
    }
  }
  return outer;
}

}  // namespace

PythonInstance::PythonInstance(PyRef instance, ModelObserver* observer, size_t output_count)
    : instance_(std::move(instance)), observer_(observer), output_count_(output_count) {}

PythonInstance::~PythonInstance() {
  const Gil gil;
  DropPlans();
  PyRef closed(PyObject_CallMethod(instance_.get(), "close", nullptr));
  if (!closed) {
    PyErr_Clear();
  }
  instance_.reset();
}

Status PythonInstance::Prepare(int64_t rows, const std::vector<Dims>& dims,
                               std::vector<InputBuffer>* inputs) {
  return CatchStatus([&] {
    PlanKey key(rows, dims);
    auto found = plans_.find(key);
    if (found == plans_.end()) {
      const Gil gil;
      if (plans_.size() >= kMaxPlans) {
        DropPlans();
      }
      found = plans_.emplace(std::move(key), MakePlan(rows, dims)).first;
    }
    plan_ = found->second.get();
    *inputs = plan_->inputs;
  });
}

std::unique_ptr<PythonInstance::Plan> PythonInstance::MakePlan(int64_t rows,
                                                               const std::vector<Dims>& dims) {
  auto plan = std::make_unique<Plan>();
  const PyRef made = CheckPython(PyObject_CallMethod(
      instance_.get(), "plan", "LO", static_cast<long long>(rows), DimsList(dims).get()));
  plan->call = CheckPython(PyObject_GetAttrString(made.get(), "call"));
  const PyRef buffers = CheckPython(PyObject_GetAttrString(made.get(), "buffers"));
  const PyRef arrays = CheckPython(PyObject_GetAttrString(made.get(), "arrays"));
  const Py_ssize_t count = PyTuple_Size(buffers.get());
  if (count < 0 || PyTuple_Size(arrays.get()) < 0) {
    ThrowPythonError();
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    Py_buffer view;
    if (PyObject_GetBuffer(PyTuple_GetItem(buffers.get(), i), &view, PyBUF_WRITABLE) != 0) {
      ThrowPythonError();
    }
    plan->inputs.push_back({static_cast<char*>(view.buf), static_cast<size_t>(view.len)});
    PyBuffer_Release(&view);  // the array, which the plan keeps, owns the memory
  }
  for (Py_ssize_t i = 0; i < PyTuple_Size(arrays.get()); ++i) {
    PyRef array = PyRef::Borrowed(PyTuple_GetItem(arrays.get(), i));
    const Py_ssize_t references = Py_REFCNT(array.get());
    plan->arrays.emplace_back(std::move(array), references);
  }
  return plan;
}

Status PythonInstance::Run(std::vector<OutputBuffer>* outputs) {
  return CatchStatus([&] {
    const Gil gil;
    results_ = CheckPython(PyObject_CallObject(plan_->call.get(), nullptr));
    observer_->Predicted();
    const Py_ssize_t count = PySequence_Size(results_.get());
    if (count < 0) {
      ThrowPythonError();
    }
    if (static_cast<size_t>(count) != output_count_) {
      throw StatusError(Code::kInternal, "the model returned " + std::to_string(count) +
                                             " outputs, expected " + std::to_string(output_count_));
    }
    for (Py_ssize_t i = 0; i < count; ++i) {
      const PyRef result = CheckPython(PySequence_GetItem(results_.get(), i));
      Py_buffer view;
      if (PyObject_GetBuffer(result.get(), &view, PyBUF_ND | PyBUF_C_CONTIGUOUS) != 0) {
        ThrowPythonError();
      }
      views_.push_back(view);
      outputs->push_back({static_cast<const char*>(view.buf), static_cast<size_t>(view.len),
                          view.ndim == 0 ? Dims{1} : Dims(view.shape, view.shape + view.ndim)});
    }
  });
}

void PythonInstance::Finish() {
  if (plan_ == nullptr || !results_) {
    plan_ = nullptr;
    return;
  }
  const Gil gil;
  for (Py_buffer& view : views_) {
    PyBuffer_Release(&view);
  }
  views_.clear();
  results_.reset();
  // A model may keep an array that is a view of the batch: then the memory is its to keep, and the
  // next batch gets memory of its own.
  if (SomebodyKeptAnInput()) {
    DropPlans();
  }
  plan_ = nullptr;
}

bool PythonInstance::SomebodyKeptAnInput() const {
  for (const auto& [array, references] : plan_->arrays) {
    if (Py_REFCNT(array.get()) != references) {
      return true;
    }
  }
  return false;
}

void PythonInstance::DropPlans() {
  plans_.clear();
  const PyRef dropped(PyObject_CallMethod(instance_.get(), "drop_buffers", nullptr));
  if (!dropped) {
    PyErr_Clear();
  }
}

PythonModel::PythonModel(PyObject* runtime, const ModelSpec& spec, ModelObserver* observer)
    : observer_(observer) {
  const nlohmann::json request = {
      {"name", spec.name},
      {"version", spec.version},
      {"directory", spec.directory},
      {"config", spec.config_json},
      {"complete_config", spec.complete_config},
      {"default_max_batch_size", spec.default_max_batch_size},
  };
  const PyRef compiled = CompiledFunction(observer);
  model_ = CheckPython(
      PyObject_CallMethod(runtime, "load_model", "sO", request.dump().c_str(), compiled.get()));
  const PyRef described = CheckPython(PyObject_CallMethod(model_.get(), "description", nullptr));
  const nlohmann::json description = nlohmann::json::parse(Text(described.get()));
  description_.config_json = description.at("config").dump();
  description_.max_batch_size = description.at("max_batch_size").get<int64_t>();
  description_.inputs = TensorSpecs(description.at("inputs"));
  description_.outputs = TensorSpecs(description.at("outputs"));
}

PythonModel::~PythonModel() {
  const Gil gil;
  const PyRef closed(PyObject_CallMethod(model_.get(), "close", nullptr));
  if (!closed) {
    PyErr_Clear();
  }
  model_.reset();
}

Status PythonModel::CreateInstance(const InstanceSpec& spec, std::unique_ptr<Instance>* instance) {
  return CatchStatus([&] {
    const Gil gil;
    PyRef made = CheckPython(PyObject_CallMethod(model_.get(), "create_instance", "sii",
                                                 spec.name.c_str(), static_cast<int>(spec.kind),
                                                 static_cast<int>(spec.device_id)));
    *instance =
        std::make_unique<PythonInstance>(std::move(made), observer_, description_.outputs.size());
  });
}

}  // namespace triton_jax
