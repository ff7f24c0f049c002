// SPDX-License-Identifier: Apache-2.0
//
// Memory of GPUs. What stands in for it cannot be touched by the host, and copies late.

#include <array>

#include "cuda_driver.h"
#include "fixture.h"

namespace {

using stand_in::CleanLedger;
using stand_in::Contains;
using stand_in::CudaCalls;
using stand_in::FailCuda;
using stand_in::Floats;
using stand_in::OneDimension;
using stand_in::Prepared;
using stand_in::Request;
using stand_in::Script;
using stand_in::Served;
using stand_in::Strings;
using stand_in::Tensor;
using triton_jax::Code;
using triton_jax::DataType;
using triton_jax::Status;

constexpr int kIllegalAddress = 700;

// Puts the piece of an input into memory of a GPU, `offset` bytes into an allocation, for its
// lifetime.
class OnGpu {
 public:
  OnGpu(TRITONBACKEND_Input* input, size_t piece, int gpu, size_t offset = 0) {
    const stand_in::Bytes& bytes = input->pieces.at(piece);
    allocation_ = stand_in::GpuAllocate(gpu, std::max<size_t>(offset + bytes.size(), 1));
    stand_in::GpuWrite(allocation_ + offset, bytes.data(), bytes.size());
    input->on_gpu[piece] = {allocation_ + offset, gpu};
  }
  OnGpu(OnGpu&& other) noexcept : allocation_(std::exchange(other.allocation_, nullptr)) {}
  OnGpu& operator=(OnGpu&&) = delete;
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;
  ~OnGpu() {
    if (allocation_ != nullptr) {
      stand_in::GpuFree(allocation_);
    }
  }

 private:
  char* allocation_;
};

struct TwoGpus : CleanLedger {
  TwoGpus() { stand_in::SetGpus(2); }
};

void Cut(TRITONBACKEND_Input* input, std::ptrdiff_t at) {
  const stand_in::Bytes whole = input->pieces.front();
  input->pieces = {{whole.begin(), whole.begin() + at}, {whole.begin() + at, whole.end()}};
}

std::shared_ptr<Script> OnFirstGpu(std::shared_ptr<Script> script) {
  script->gpu = 0;
  script->device = "gpu:0";
  return script;
}

TEST_CASE("a driver that is not there is told from one that is") {
  triton_jax::CudaDriver driver;
  std::string reason;
  CHECK_FALSE(triton_jax::OpenCudaDriver("libnot_there.so.1", &driver, &reason));
  CHECK(Contains(reason, "libnot_there.so.1"));
  CHECK_FALSE(triton_jax::OpenCudaDriver("libc.so.6", &driver, &reason));
  CHECK(reason == "libc.so.6 has no cuInit");
  stand_in::SetGpus(0);
  CHECK_FALSE(triton_jax::OpenCudaDriver("libcuda.so.1", &driver, &reason));
  CHECK(reason == "libcuda.so.1 finds no GPU");
  stand_in::SetGpus(1);
  CHECK(triton_jax::OpenCudaDriver("libcuda.so.1", &driver, &reason));
  stand_in::SetGpus(0);
}

TEST_CASE_FIXTURE(TwoGpus, "an instance on the CPU takes and gives what is on GPUs") {
  Served served(OneDimension(DataType::kFp32, 2));
  CHECK(served.script->gpu_memory);
  std::array<Request, 4> requests;
  for (Request& request : requests) {
    request.Add("x", Floats({2, 2}, {1, 2, 3, 4}));
  }
  TRITONBACKEND_Input& pieces = requests[1].inputs.at("x");
  Cut(&pieces, 5);
  const OnGpu whole(&requests[0].inputs.at("x"), 0, 0);
  const OnGpu end(&pieces, 1, 1, 3);
  requests[2].output_memory = TRITONSERVER_MEMORY_GPU;
  requests[2].output_gpu = 1;
  CHECK(served.instance->Execute({&requests[0], &requests[1], &requests[2], &requests[3]}).ok());
  for (const Request& request : requests) {
    CHECK(request.answer().status.message() == "");
    CHECK(request.answer().outputs.at("y") == Floats({2, 2}, {1, 2, 3, 4}));
  }
  CHECK(served.script->runs == 1);
}

TEST_CASE_FIXTURE(TwoGpus, "strings and streams go through memory of GPUs too") {
  Served served(OneDimension(DataType::kBytes, -1));
  std::array<Request, 2> requests;
  for (Request& request : requests) {
    request.Add("x", Strings({1, 2}, {"a", std::string("\0\xff", 2)}));
  }
  const OnGpu first(&requests[0].inputs.at("x"), 0, 0);
  requests[0].output_memory = TRITONSERVER_MEMORY_GPU;
  CHECK(served.instance->Execute({&requests[0], &requests[1]}).ok());
  for (const Request& request : requests) {
    CHECK(request.answer().outputs.at("y") == Strings({1, 2}, {"a", std::string("\0\xff", 2)}));
  }

  auto script = OneDimension(DataType::kFp32, 1);
  script->description.decoupled = true;
  script->description.config_json = R"({"model_transaction_policy":{"decoupled":true}})";
  script->responses = 3;
  Served stream(script, "stream");
  Request request;
  request.Add("x", Floats({1, 1}, {7}));
  const OnGpu input(&request.inputs.at("x"), 0, 0);
  request.output_memory = TRITONSERVER_MEMORY_GPU;
  CHECK(stream.instance->Execute({&request}).ok());
  REQUIRE(request.answers.size() == 4);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(request.answers[i].outputs.at("y") == Floats({1, 1}, {7}));
  }
}

TEST_CASE_FIXTURE(TwoGpus, "what one request has as it is wanted is not copied") {
  Served served(OnFirstGpu(OneDimension(DataType::kFp32, 2)));
  const char* given = nullptr;
  served.script->run = [&](const Prepared& prepared) {
    given = prepared.inputs[0].in_place;
    return Status();
  };
  const auto run = [&](Tensor tensor, int gpu, size_t offset) {
    Request request;
    request.Add("x", tensor);
    const OnGpu input(&request.inputs.at("x"), 0, gpu, offset);
    request.output_where_asked = true;
    CHECK(served.instance->Execute({&request}).ok());
    CHECK(request.answer().status.message() == "");
    CHECK(request.answer().outputs.at("y") == tensor);
    REQUIRE(given != nullptr);
    return given == request.inputs.at("x").on_gpu.at(0).first;
  };
  CHECK(run(Floats({2, 2}, {1, 2, 3, 4}), 0, 0));
  CHECK(run(Floats({2, 2}, {1, 2, 3, 4}), 0, 512));
  // One copy each, from device to device: the output.
  CHECK(CudaCalls("cuMemcpyDtoDAsync_v2") == 2);
  CHECK(CudaCalls("cuMemcpyHtoDAsync_v2") + CudaCalls("cuMemcpyDtoHAsync_v2") == 0);
  CHECK_FALSE(run(Floats({2, 2}, {1, 2, 3, 4}), 0, 4));        // not aligned
  CHECK_FALSE(run(Floats({2, 2}, {1, 2, 3, 4}), 1, 0));        // another GPU
  CHECK_FALSE(run(Floats({3, 2}, {1, 2, 3, 4, 5, 6}), 0, 0));  // has to be padded
  CHECK(CudaCalls("cuMemcpyHtoDAsync_v2") + CudaCalls("cuMemcpyDtoHAsync_v2") == 0);
}

TEST_CASE_FIXTURE(TwoGpus, "requests are gathered on the GPU, and each gets its rows there") {
  Served served(OnFirstGpu(OneDimension(DataType::kFp32, 2, 64)));
  std::array<Request, 4> requests;
  requests[0].Add("x", Floats({2, 2}, {1, 1, 2, 2}));
  requests[1].Add("x", Floats({1, 2}, {3, 3}));  // on the host
  requests[2].Add("x", Floats({16, 2}, std::vector<float>(32, 4.5F)));
  requests[3].Add("x", Floats({2, 2}, {5, 5, 6, 6}));
  Cut(&requests[3].inputs.at("x"), 7);
  const OnGpu first(&requests[0].inputs.at("x"), 0, 0);
  const OnGpu third(&requests[2].inputs.at("x"), 0, 1);
  const OnGpu fourth(&requests[3].inputs.at("x"), 1, 0);
  requests[0].output_where_asked = true;
  requests[1].output_memory = TRITONSERVER_MEMORY_CPU_PINNED;
  requests[2].output_memory = TRITONSERVER_MEMORY_GPU;
  requests[2].output_gpu = 1;
  CHECK(served.instance->Execute({&requests[0], &requests[1], &requests[2], &requests[3]}).ok());
  for (const Request& request : requests) {
    CHECK(request.answer().status.message() == "");
    CHECK(request.answer().outputs.at("y").shape == request.inputs.at("x").shape);
    CHECK(request.statistics_success);
  }
  CHECK(requests[0].answer().outputs.at("y").bytes == requests[0].inputs.at("x").pieces[0]);
  CHECK(requests[1].answer().outputs.at("y").bytes == requests[1].inputs.at("x").pieces[0]);
  CHECK(requests[2].answer().outputs.at("y").bytes == requests[2].inputs.at("x").pieces[0]);
  CHECK(requests[3].answer().outputs.at("y") == Floats({2, 2}, {5, 5, 6, 6}));
  CHECK(served.script->runs == 1);
  // To the host go the outputs of the whole batch, once; 21 rows are padded to 32 by doubling.
  CHECK(CudaCalls("cuMemcpyDtoHAsync_v2") == 1);
  CHECK(CudaCalls("cuMemcpyDtoDAsync_v2") == 3 + 4 + 2);

  // What is on the host alone is not sent over beforehand.
  Request host;
  host.Add("x", Floats({1, 2}, {7, 7}));
  const int64_t sent = CudaCalls("cuMemcpyHtoDAsync_v2");
  CHECK(served.instance->Execute({&host}).ok());
  CHECK(host.answer().outputs.at("y") == Floats({1, 2}, {7, 7}));
  CHECK(CudaCalls("cuMemcpyHtoDAsync_v2") == sent);
}

TEST_CASE_FIXTURE(TwoGpus, "ragged requests are padded on the GPU, and their outputs cut there") {
  auto script = OnFirstGpu(OneDimension(DataType::kFp32, -1));
  for (triton_jax::TensorSpec* spec :
       {&script->description.inputs[0], &script->description.outputs[0]}) {
    spec->dims = {-1, -1, -1};
    spec->ragged = true;
  }
  script->description.outputs[0].follows = {0, 1, 2};
  Served served(script);
  std::array<Request, 3> requests;
  const std::array<std::vector<int64_t>, 3> shapes{{{2, 2, 3, 2}, {1, 3, 1, 4}, {1, 1, 2, 0}}};
  std::vector<OnGpu> placed;
  for (size_t i = 0; i < requests.size(); ++i) {
    size_t count = 1;
    for (const int64_t dim : shapes[i]) {
      count *= static_cast<size_t>(dim);
    }
    std::vector<float> values(count);
    for (size_t v = 0; v < count; ++v) {
      values[v] = static_cast<float>(100 * i + v);
    }
    requests[i].Add("x", Floats(shapes[i], values));
    placed.emplace_back(&requests[i].inputs.at("x"), 0, 0);
    requests[i].output_where_asked = i != 1;
  }
  // Has to be put together first.
  Cut(&requests[1].inputs.at("x"), 9);
  placed.emplace_back(&requests[1].inputs.at("x"), 0, 0);
  CHECK(served.instance->Execute({&requests[0], &requests[1], &requests[2]}).ok());
  CHECK(script->runs == 1);
  for (Request& request : requests) {
    CHECK(request.answer().status.message() == "");
    stand_in::Bytes sent;
    for (const stand_in::Bytes& piece : request.inputs.at("x").pieces) {
      sent.insert(sent.end(), piece.begin(), piece.end());
    }
    CHECK(request.answer().outputs.at("y").bytes == sent);
  }
  CHECK(CudaCalls("cuMemcpy2DAsync_v2") > 0);
}

TEST_CASE_FIXTURE(TwoGpus, "a GPU without memory left has its batch gathered on the host") {
  Served served(OnFirstGpu(OneDimension(DataType::kFp32, 1)));
  std::array<Request, 2> requests;
  requests[0].Add("x", Floats({1, 1}, {1}));
  requests[1].Add("x", Floats({2, 1}, {2, 3}));
  const OnGpu first(&requests[0].inputs.at("x"), 0, 0);
  FailCuda("cuMemAlloc_v2", triton_jax::kCudaOutOfMemory);
  CHECK(served.instance->Execute({&requests[0], &requests[1]}).ok());
  CHECK(requests[0].answer().outputs.at("y") == Floats({1, 1}, {1}));
  CHECK(requests[1].answer().outputs.at("y") == Floats({2, 1}, {2, 3}));
  CHECK(CudaCalls("cuMemAlloc_v2") == 1);
}

TEST_CASE_FIXTURE(TwoGpus, "a copy that fails is its request's failure alone") {
  for (const int gpu : {-1, 0}) {
    auto script = OneDimension(DataType::kFp32, 1);
    script->gpu = gpu;
    Served served(script);
    std::array<Request, 3> requests;
    for (Request& request : requests) {
      request.Add("x", Floats({1, 1}, {1}));
    }
    const OnGpu right(&requests[0].inputs.at("x"), 0, 0);
    const OnGpu wrong(&requests[1].inputs.at("x"), 0, 0);
    requests[1].inputs.at("x").on_gpu[0].second = 7;  // there is none
    requests[2].output_memory = TRITONSERVER_MEMORY_GPU;
    requests[2].output_gpu = 7;
    if (gpu < 0) {
      CHECK(served.instance->Execute({&requests[0], &requests[1], &requests[2]}).ok());
      CHECK(requests[1].answer().status.code() == Code::kInternal);
      CHECK(Contains(requests[1].answer().status.message(),
                     "GPU 7: looking for it: CUDA_ERROR_INVALID_DEVICE"));
    } else {
      // Addresses say where they are, for a copy between GPUs.
      CHECK(served.instance->Execute({&requests[0], &requests[2]}).ok());
    }
    CHECK(requests[0].answer().outputs.at("y") == Floats({1, 1}, {1}));
    CHECK(requests[2].answer().status.code() == Code::kInternal);
    CHECK(Contains(requests[2].answer().status.message(), "GPU 7: looking for it"));
    CHECK(served.instance->Ready().ok());
  }
}

TEST_CASE_FIXTURE(TwoGpus, "without pinned memory a request is refused, and the next one served") {
  Served served(OneDimension(DataType::kFp32, 1));
  for (const bool fails : {true, false}) {
    Request request;
    request.Add("x", Floats({1, 1}, {1}));
    const OnGpu input(&request.inputs.at("x"), 0, 0);
    FailCuda("cuMemAllocHost_v2", fails ? triton_jax::kCudaOutOfMemory : 0);
    CHECK(served.instance->Execute({&request}).ok());
    CHECK(request.answer().status.ok() == !fails);
    if (fails) {
      CHECK(request.answer().status.code() == Code::kUnavailable);
      CHECK(Contains(request.answer().status.message(), "CUDA_ERROR_OUT_OF_MEMORY"));
    }
  }
  CHECK(served.instance->Ready().ok());
}

TEST_CASE_FIXTURE(TwoGpus, "a GPU that is lost is the end of the model until it is new") {
  for (const char* function :
       {"cuStreamSynchronize", "cuMemcpyDtoDAsync_v2", "cuCtxPushCurrent_v2"}) {
    INFO(function);
    Served served(OnFirstGpu(OneDimension(DataType::kFp32, 1)));
    std::array<Request, 3> requests;
    for (Request& request : requests) {
      request.Add("x", Floats({1, 1}, {1}));
    }
    const OnGpu first(&requests[0].inputs.at("x"), 0, 0);
    const OnGpu second(&requests[1].inputs.at("x"), 0, 0);
    requests[0].output_where_asked = true;
    FailCuda(function, kIllegalAddress);
    CHECK(served.instance->Execute({&requests[0], &requests[1]}).ok());
    FailCuda(function, 0);
    CHECK(requests[0].answer().status.code() == Code::kUnavailable);
    CHECK(Contains(requests[0].answer().status.message(), "CUDA_ERROR_ILLEGAL_ADDRESS"));
    CHECK_FALSE(served.instance->Ready().ok());
    CHECK(served.instance->Execute({&requests[2]}).ok());
    CHECK(Contains(requests[2].answer().status.message(), "is not ready until it is reloaded"));
  }
}

TEST_CASE_FIXTURE(TwoGpus, "any requests, with anything on any GPU: each gets what is its own") {
  stand_in::Backend backend;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    INFO("seed ", seed);
    stand_in::RandomChoices choices(seed);
    stand_in::Case made = stand_in::MakeCase(&choices, 6);
    made.script->gpu =
        made.script->description.decoupled ? -1 : static_cast<int>(choices.Pick(-1, 1));
    std::vector<OnGpu> placed;
    std::vector<Request*> requests;
    for (size_t i = 0; i < made.requests.size(); ++i) {
      Request& request = *made.requests[i];
      requests.push_back(&request);
      if (made.expected[i].status.code() == Code::kUnsupported) {
        made.expected[i].status = {};  // which it is not where there are GPUs
      }
      request.output_where_asked = choices.OneIn(3);
      request.output_gpu = static_cast<int>(choices.Pick(0, 1));
      for (auto& [name, input] : request.inputs) {
        const bool all = input.memory == TRITONSERVER_MEMORY_GPU;
        for (size_t piece = 0; piece < input.pieces.size(); ++piece) {
          if (all || choices.OneIn(3)) {
            const auto gpu = static_cast<int>(choices.Pick(0, 1));
            const auto offset = static_cast<size_t>(choices.OneIn(2) ? 0 : choices.Pick(1, 9));
            placed.emplace_back(&input, piece, gpu, offset);
          }
        }
      }
    }
    stand_in::Define("random", made.script);
    stand_in::Model model(&backend, "random");
    stand_in::Instance instance(&model);
    REQUIRE(instance.Execute(requests).ok());
    REQUIRE(made.Wrong() == "");
    REQUIRE(stand_in::TakeViolations() == std::vector<std::string>{});
    REQUIRE(stand_in::TakeCudaViolations() == std::vector<std::string>{});
  }
}

}  // namespace
