// SPDX-License-Identifier: Apache-2.0

#include "random_case.h"

#include <algorithm>
#include <cstring>

#include "data_type.h"

namespace stand_in {
namespace {

using triton_jax::Code;
using triton_jax::DataType;
using triton_jax::Dims;
using triton_jax::ModelDescription;
using triton_jax::TensorSpec;

TensorSpec MakeInput(Choices* choices, const std::string& name, bool batching) {
  TensorSpec spec;
  spec.name = name;
  spec.dtype = static_cast<DataType>(choices->Pick(1, 14));
  // A tensor without any dimension is no tensor to a server.
  const int64_t rank = choices->Pick(batching ? 0 : 1, 3);
  for (int64_t axis = 0; axis < rank; ++axis) {
    spec.dims.push_back(choices->Pick(-2, 3));
    spec.dims.back() = std::max<int64_t>(spec.dims.back(), -1);
  }
  spec.optional = choices->OneIn(4);
  if (spec.dtype != DataType::kBytes) {
    spec.ragged = choices->OneIn(3);
    if (choices->OneIn(3)) {
      spec.lengths = choices->OneIn(2) ? Dims{2, 4} : Dims{3};
    }
  }
  return spec;
}

ModelDescription MakeModel(Choices* choices) {
  ModelDescription model;
  model.max_batch_size = choices->OneIn(5) ? 0 : choices->Pick(1, 8);
  const int64_t count = choices->Pick(1, 3);
  int varying = 0;
  for (int64_t i = 0; i < count; ++i) {
    TensorSpec input =
        MakeInput(choices, "in" + std::to_string(i), /*batching=*/model.max_batch_size > 0);
    TensorSpec output;
    output.name = "out" + std::to_string(i);
    output.dtype = input.dtype;
    output.dims = input.dims;
    for (const int64_t dim : input.dims) {
      output.follows.push_back(dim < 0 ? varying++ : -1);
    }
    model.inputs.push_back(std::move(input));
    model.outputs.push_back(std::move(output));
  }
  return model;
}

size_t ElementCount(const Dims& shape) {
  size_t count = 1;
  for (const int64_t dim : shape) {
    count *= static_cast<size_t>(dim);
  }
  return count;
}

Bytes MakeBytes(Choices* choices, DataType dtype, const Dims& shape) {
  const size_t count = ElementCount(shape);
  Bytes bytes;
  if (dtype == DataType::kBytes) {
    for (size_t i = 0; i < count; ++i) {
      const auto length = static_cast<uint32_t>(choices->Pick(0, 5));
      const char* prefix = reinterpret_cast<const char*>(&length);
      bytes.insert(bytes.end(), prefix, prefix + sizeof length);
      bytes.insert(bytes.end(), length, static_cast<char>(choices->Pick(0, 255)));
    }
    return bytes;
  }
  // Every byte its own, from a few choices.
  auto value = static_cast<unsigned>(choices->Pick(0, 255));
  for (size_t i = 0; i < count * triton_jax::ElementBytes(dtype); ++i) {
    value = value * 1664525U + 1013904223U;
    bytes.push_back(static_cast<char>(value >> 24U));
  }
  return bytes;
}

// Cuts one piece into several, some of them empty.
void Cut(Choices* choices, TRITONBACKEND_Input* input) {
  const Bytes whole = std::move(input->pieces.front());
  input->pieces.clear();
  size_t begin = 0;
  while (begin < whole.size() || input->pieces.empty()) {
    const auto left = static_cast<int64_t>(whole.size() - begin);
    const auto bytes = static_cast<size_t>(choices->Pick(0, std::min<int64_t>(left, 64)));
    const bool last = choices->OneIn(3) || input->pieces.size() == 7;
    const size_t end = last ? whole.size() : begin + bytes;
    input->pieces.emplace_back(whole.begin() + static_cast<std::ptrdiff_t>(begin),
                               whole.begin() + static_cast<std::ptrdiff_t>(end));
    begin = end;
  }
}

// Makes an input that was right wrong, and returns how it has to be refused: OK if it is not.
triton_jax::Status Break(Choices* choices, const ModelDescription& model, const TensorSpec& spec,
                         Request* request) {
  TRITONBACKEND_Input& input = request->inputs.at(spec.name);
  const size_t batch_dims = model.max_batch_size > 0 ? 1 : 0;
  const triton_jax::Status invalid(Code::kInvalidArg, "input '" + spec.name + "'");
  switch (choices->Pick(0, 8)) {
    case 0:
      input.dtype = static_cast<TRITONSERVER_DataType>((static_cast<int>(input.dtype) + 1) % 15);
      return invalid;
    case 1:
      input.shape.push_back(1);
      return invalid;
    case 2: {
      // A dimension that is huge, and may be more than there is memory for.
      if (input.shape.empty()) {
        return {};
      }
      const auto axis =
          static_cast<size_t>(choices->Pick(0, static_cast<int64_t>(input.shape.size()) - 1));
      const bool free = axis >= batch_dims && spec.dims[axis - batch_dims] < 0;
      input.shape[axis] = int64_t{1} << choices->Pick(4, 62);
      // With nothing in the other dimensions, it is as empty as before.
      if (free && spec.lengths.empty() &&
          std::count(input.shape.begin(), input.shape.end(), 0) > 0) {
        input.shape[axis] = -1;
      }
      return invalid;
    }
    case 3:
      input.pieces.back().push_back('\0');
      return invalid;
    case 4:
      if (input.pieces.back().empty()) {
        return {};
      }
      input.pieces.back().pop_back();
      return invalid;
    case 5:
      request->inputs.erase(spec.name);
      return spec.optional ? triton_jax::Status() : invalid;
    case 6:
      input.memory = TRITONSERVER_MEMORY_GPU;
      return {Code::kUnsupported, "GPU memory"};
    case 7:
      if (spec.dtype != DataType::kBytes || input.pieces.front().size() < 4) {
        return {};
      }
      input.pieces.front()[3] = '\x7f';
      return invalid;
    default:
      if (batch_dims == 0) {
        return {};
      }
      input.shape[0] = model.max_batch_size + 1;
      return invalid;
  }
}

}  // namespace

Case MakeCase(Choices* choices, int64_t requests) {
  Case made;
  made.script = std::make_shared<Script>();
  made.script->description = MakeModel(choices);
  const ModelDescription& model = made.script->description;
  const bool batching = model.max_batch_size > 0;
  const int64_t count = choices->Pick(1, requests);
  for (int64_t number = 0; number < count; ++number) {
    auto request = std::make_unique<Request>();
    Expected expected;
    const int64_t rows = batching ? choices->Pick(0, model.max_batch_size) : 1;
    std::vector<bool> present;
    for (const TensorSpec& spec : model.inputs) {
      present.push_back(!spec.optional || choices->OneIn(2));
    }
    const bool any = std::find(present.begin(), present.end(), true) != present.end();
    for (size_t i = 0; i < model.inputs.size(); ++i) {
      const TensorSpec& spec = model.inputs[i];
      Tensor tensor;
      tensor.dtype = static_cast<TRITONSERVER_DataType>(spec.dtype);
      // Without any input there is nothing to tell the rows from.
      tensor.shape = batching ? Dims{any ? rows : 1} : Dims{};
      for (const int64_t dim : spec.dims) {
        const int64_t longest = spec.lengths.empty() ? 4 : spec.lengths.back();
        tensor.shape.push_back(dim >= 0 ? dim : present[i] ? choices->Pick(0, longest) : 0);
      }
      if (present[i]) {
        tensor.bytes = MakeBytes(choices, spec.dtype, tensor.shape);
        request->Add(spec.name, tensor);
      } else {
        const size_t element_bytes =
            spec.dtype == DataType::kBytes ? 4 : triton_jax::ElementBytes(spec.dtype);
        tensor.bytes.assign(ElementCount(tensor.shape) * element_bytes, '\0');
      }
      expected.outputs[model.outputs[i].name] = std::move(tensor);
    }
    if (any && choices->OneIn(4)) {
      std::vector<size_t> candidates;
      for (size_t i = 0; i < present.size(); ++i) {
        if (present[i]) {
          candidates.push_back(i);
        }
      }
      const size_t broken = candidates[static_cast<size_t>(
          choices->Pick(0, static_cast<int64_t>(candidates.size()) - 1))];
      expected.status = Break(choices, model, model.inputs[broken], request.get());
      if (expected.status.ok() && request->inputs.count(model.inputs[broken].name) == 0) {
        // It was optional: what it is without it is another case.
        request->cancelled = true;
      }
    } else if (choices->OneIn(8)) {
      request->cancelled = true;
    } else if (choices->OneIn(8)) {
      request->output_memory = TRITONSERVER_MEMORY_GPU;
      expected.status = {Code::kUnsupported, "GPU memory"};
    }
    if (request->cancelled) {
      expected.status = {Code::kCancelled, "cancelled"};
    }
    if (choices->OneIn(3)) {
      const auto wanted =
          static_cast<size_t>(choices->Pick(0, static_cast<int64_t>(model.outputs.size()) - 1));
      request->wanted = {model.outputs[wanted].name};
      Tensors only;
      only[request->wanted.front()] = expected.outputs[request->wanted.front()];
      expected.outputs = std::move(only);
    }
    for (auto& [name, input] : request->inputs) {
      if (choices->OneIn(3)) {
        Cut(choices, &input);
      }
    }
    made.requests.push_back(std::move(request));
    made.expected.push_back(std::move(expected));
  }
  return made;
}

std::string Case::Wrong() const {
  for (size_t i = 0; i < requests.size(); ++i) {
    const std::string which = "request " + std::to_string(i) + ": ";
    const Answer& answer = requests[i]->answer();
    const triton_jax::Status& status = expected[i].status;
    if (status.ok() != answer.status.ok() ||
        (!status.ok() && status.code() != answer.status.code())) {
      return which + "expected " + (status.ok() ? "an answer" : "a refusal: " + status.message()) +
             ", got " + (answer.status.ok() ? "an answer" : answer.status.message());
    }
    if (!status.ok() && answer.status.message().find(status.message()) == std::string::npos) {
      return which + "expected '" + status.message() + "' in '" + answer.status.message() + "'";
    }
    if (status.ok() && !(answer.outputs == expected[i].outputs)) {
      return which + "other outputs than expected";
    }
  }
  return "";
}

}  // namespace stand_in
