// SPDX-License-Identifier: Apache-2.0

#include "python_model.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "gil.h"
#include "host_functions.h"
#include "python_error.h"

namespace triton_jax {
namespace {

// A model with variable dimensions can ask for any number of plans; past this many they are made
// anew, which costs time, not memory.
constexpr size_t kMaxPlans = 256;

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
    spec.optional = tensor.at("optional").get<bool>();
    spec.ragged = tensor.at("ragged").get<bool>();
    spec.lengths = tensor.at("lengths").get<Dims>();
    spec.state = tensor.at("state").get<bool>();
    spec.follows = tensor.at("follows").get<std::vector<int>>();
  }
  return specs;
}

void Append(PyObject* list, const PyRef& item) {
  if (PyList_Append(list, item.get()) != 0) {
    ThrowPythonError();
  }
}

// A list with the dimensions of each input, or None for one that is not there.
PyRef ShapesList(const std::vector<InputShape>& shapes) {
  PyRef list = CheckPython(PyList_New(0));
  for (const InputShape& shape : shapes) {
    if (!shape.present) {
      Append(list.get(), PyRef::Borrowed(Py_None));
      continue;
    }
    const PyRef dims = CheckPython(PyList_New(0));
    for (const int64_t dim : shape.dims) {
      Append(dims.get(), CheckPython(PyLong_FromLongLong(dim)));
    }
    Append(list.get(), dims);
  }
  return list;
}

size_t ElementCount(int64_t rows, const InputShape& shape) {
  auto count = static_cast<size_t>(rows);
  for (const int64_t dim : shape.dims) {
    count *= static_cast<size_t>(dim);
  }
  return shape.present ? count : 0;
}

// Reads elements that the core has checked.
PyRef BytesList(const InputBuffer& input, size_t count) {
  PyRef list = CheckPython(PyList_New(0));
  const auto* next = reinterpret_cast<const unsigned char*>(input.data);
  for (size_t i = 0; i < count; ++i) {
    size_t length = 0;
    for (unsigned int byte = 0; byte < 4; ++byte) {
      length |= static_cast<size_t>(next[byte]) << (8U * byte);
    }
    Append(list.get(),
           CheckPython(PyBytes_FromStringAndSize(reinterpret_cast<const char*>(next + 4),
                                                 static_cast<Py_ssize_t>(length))));
    next += 4 + length;
  }
  return list;
}

PyRef Attribute(const PyRef& object, const char* name) {
  return CheckPython(PyObject_GetAttrString(object.get(), name));
}

void Ignore(PyObject* result) {
  if (result == nullptr) {
    PyErr_Clear();
  }
  Py_XDECREF(result);
}

}  // namespace

void ForgetUnloadedModels(PyObject* runtime) {
  Ignore(PyObject_CallMethod(runtime, "forget_unloaded_models", nullptr));
}

PythonInstance::PythonInstance(PyRef instance, const ModelDescription& model)
    : instance_(std::move(instance)), model_(model) {
  device_ = Text(Attribute(instance_, "device_name").get());
  gpu_ = static_cast<int>(PyLong_AsLong(Attribute(instance_, "gpu").get()));
  takes_elements_ =
      std::any_of(model_.inputs.begin(), model_.inputs.end(),
                  [](const TensorSpec& spec) { return spec.dtype == DataType::kBytes; });
}

PythonInstance::~PythonInstance() {
  const Gil gil;
  outputs_.Release();
  responses_.reset();
  plans_.clear();
  Ignore(PyObject_CallMethod(instance_.get(), "close", nullptr));
  instance_.reset();
}

Status PythonInstance::Prepare(int64_t rows, const std::vector<InputShape>& shapes,
                               std::vector<InputBuffer>* inputs) {
  return CatchStatus([&] {
    PlanKey key(rows, shapes);
    auto found = plans_.find(key);
    if (found == plans_.end()) {
      const Gil gil;
      if (plans_.size() >= kMaxPlans) {
        plans_.clear();
      }
      found = plans_.emplace(std::move(key), MakePlan(rows, shapes)).first;
    }
    plan_ = found->second.get();
    *inputs = plan_->inputs;
  });
}

std::unique_ptr<PythonInstance::Plan> PythonInstance::MakePlan(
    int64_t rows, const std::vector<InputShape>& shapes) {
  auto plan = std::make_unique<Plan>();
  const PyRef made = CheckPython(PyObject_CallMethod(
      instance_.get(), "plan", "LO", static_cast<long long>(rows), ShapesList(shapes).get()));
  plan->call = Attribute(made, "call");
  plan->call_in_place = Attribute(made, "call_in_place");
  const bool takes_in_place = gpu_ < 0 && plan->call_in_place.get() != Py_None;
  plan->padded_rows = PyLong_AsLongLong(Attribute(made, "padded_rows").get());
  const PyRef buffers = Attribute(made, "buffers");
  const PyRef lengths = Attribute(made, "lengths");
  for (size_t i = 0; i < shapes.size(); ++i) {
    const auto index = static_cast<Py_ssize_t>(i);
    AddInput(PyTuple_GetItem(buffers.get(), index), PyTuple_GetItem(lengths.get(), index),
             plan.get());
    plan->inputs.back().takes_in_place = takes_in_place;
    plan->element_counts.push_back(
        model_.inputs[i].dtype == DataType::kBytes ? ElementCount(rows, shapes[i]) : 0);
  }
  if (PyErr_Occurred() != nullptr) {
    ThrowPythonError();
  }
  return plan;
}

void PythonInstance::AddInput(PyObject* buffer, PyObject* lengths, Plan* plan) const {
  // What the plan calls owns the memory, which outlives these views.
  const auto view_of = [](PyObject* object, Py_buffer* view) {
    if (object == nullptr || PyObject_GetBuffer(object, view, PyBUF_WRITABLE) != 0) {
      ThrowPythonError();
    }
    PyBuffer_Release(view);
  };
  InputBuffer& input = plan->inputs.emplace_back();
  Py_buffer view{};
  if (buffer != Py_None) {
    view_of(buffer, &view);
    input.data = static_cast<char*>(view.buf);
    input.bytes = static_cast<size_t>(view.len);
  }
  if (lengths != Py_None) {
    view_of(lengths, &view);
    input.lengths = static_cast<int32_t*>(view.buf);
    input.length_count = static_cast<size_t>(view.len) / sizeof(int32_t);
  }
}

// The elements of each BYTES input, as one positional argument each.
PyRef PythonInstance::Arguments(const std::vector<InputBuffer>& inputs) const {
  const PyRef arguments = CheckPython(PyList_New(0));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (model_.inputs[i].dtype == DataType::kBytes) {
      Append(arguments.get(), BytesList(inputs[i], plan_->element_counts[i]));
    }
  }
  return CheckPython(PyList_AsTuple(arguments.get()));
}

// The address of each input that is used where it is goes first; 0 for the others.
PyRef PythonInstance::Call(const std::vector<InputBuffer>& inputs) const {
  if (std::none_of(inputs.begin(), inputs.end(),
                   [](const InputBuffer& input) { return input.in_place != nullptr; })) {
    const PyRef elements = takes_elements_ ? Arguments(inputs) : PyRef();
    return CheckPython(PyObject_CallObject(plan_->call.get(), elements.get()));
  }
  const PyRef elements = Arguments(inputs);
  const PyRef addresses = CheckPython(PyList_New(0));
  for (const InputBuffer& input : inputs) {
    Append(addresses.get(),
           CheckPython(PyLong_FromUnsignedLongLong(reinterpret_cast<uintptr_t>(input.in_place))));
  }
  return CheckPython(PyObject_CallFunctionObjArgs(plan_->call_in_place.get(), addresses.get(),
                                                  elements.get(), nullptr));
}

Status PythonInstance::Run(const std::vector<InputBuffer>& inputs,
                           std::vector<OutputBuffer>* outputs) {
  return CatchStatus([&] {
    const Gil gil;
    ran_ = true;
    PyRef results = Call(inputs);
    outputs_.Take(std::move(results), model_, outputs);
  });
}

Status PythonInstance::Start(const std::vector<InputBuffer>& inputs) {
  return CatchStatus([&] {
    const Gil gil;
    ran_ = true;
    responses_ = CheckPython(PyObject_CallObject(plan_->call.get(), Arguments(inputs).get()));
  });
}

Status PythonInstance::Next(std::vector<OutputBuffer>* outputs, bool* end) {
  return CatchStatus([&] {
    const Gil gil;
    outputs_.Release();
    PyRef results(PyIter_Next(responses_.get()));
    *end = !results;
    if (results) {
      outputs_.Take(std::move(results), model_, outputs);
    } else if (PyErr_Occurred() != nullptr) {
      ThrowPythonError();
    }
  });
}

void PythonInstance::Finish() {
  if (!ran_) {
    plan_ = nullptr;
    return;
  }
  const Gil gil;
  ran_ = false;
  outputs_.Release();
  responses_.reset();  // ends a generator that was not read to its end
  plan_ = nullptr;
}

PythonModel::PythonModel(PyObject* runtime, const ModelSpec& spec, ModelObserver* observer)
    : runtime_(runtime) {
  const nlohmann::json request = {
      {"name", spec.name},
      {"version", spec.version},
      {"directory", spec.directory},
      {"config", spec.config_json},
      {"complete_config", spec.complete_config},
      {"default_max_batch_size", spec.default_max_batch_size},
  };
  const PyRef observe = ObserveFunction(observer);
  model_ = CheckPython(
      PyObject_CallMethod(runtime, "load_model", "sO", request.dump().c_str(), observe.get()));
  const PyRef described = CheckPython(PyObject_CallMethod(model_.get(), "description", nullptr));
  const nlohmann::json description = nlohmann::json::parse(Text(described.get()));
  description_.config_json = description.at("config").dump();
  description_.max_batch_size = description.at("max_batch_size").get<int64_t>();
  description_.inputs = TensorSpecs(description.at("inputs"));
  description_.outputs = TensorSpecs(description.at("outputs"));
  description_.decoupled = description.at("decoupled").get<bool>();
  description_.phase_times = description.at("phase_times").get<bool>();
}

PythonModel::~PythonModel() {
  const Gil gil;
  Ignore(PyObject_CallMethod(model_.get(), "close", nullptr));
  model_.reset();
  ForgetUnloadedModels(runtime_);
}

Status PythonModel::CreateInstance(const InstanceSpec& spec, std::unique_ptr<Instance>* instance) {
  return CatchStatus([&] {
    const Gil gil;
    PyRef made = CheckPython(PyObject_CallMethod(
        model_.get(), "create_instance", "siii", spec.name.c_str(), static_cast<int>(spec.kind),
        static_cast<int>(spec.device_id), static_cast<int>(spec.gpu_memory)));
    *instance = std::make_unique<PythonInstance>(std::move(made), description_);
  });
}

}  // namespace triton_jax
