// SPDX-License-Identifier: Apache-2.0
//
// For ThreadSanitizer: what a server does at the same time.

#include <atomic>
#include <thread>

#include "fixture.h"

namespace {

using stand_in::Backend;
using stand_in::CleanLedger;
using stand_in::Floats;
using stand_in::Instance;
using stand_in::Model;
using stand_in::OneDimension;
using stand_in::Request;
using triton_jax::Code;
using triton_jax::DataType;
using triton_jax::Status;

// doctest's assertions take a lock, which would order the threads: these count, and the test
// compares in the end. What is counted all the time is relaxed for the same reason.
struct Counts {
  std::atomic<int> wrong{0};
  std::atomic<int> refused{0};
  std::atomic<int> answered{0};
};

void ExecuteOften(Instance* instance, int times, int seed, Counts* counts) {
  stand_in::RandomChoices choices(static_cast<unsigned>(seed));
  for (int round = 0; round < times; ++round) {
    std::vector<std::unique_ptr<Request>> requests;
    std::vector<Request*> handed;
    for (int64_t i = choices.Pick(1, 4); i > 0; --i) {
      auto request = std::make_unique<Request>();
      const int64_t rows = choices.Pick(1, 3);
      std::vector<float> values(static_cast<size_t>(rows),
                                static_cast<float>(choices.Pick(0, 1000)));
      const bool broken = choices.OneIn(8);
      request->Add("x", Floats({broken ? rows + 1 : rows, 1}, values));
      handed.push_back(request.get());
      requests.push_back(std::move(request));
    }
    if (!instance->Execute(handed).ok()) {
      ++counts->wrong;
    }
    for (const auto& request : requests) {
      const stand_in::Answer& answer = request->answer();
      const TRITONBACKEND_Input& input = request->inputs.at("x");
      const bool whole =
          input.pieces.front().size() == static_cast<size_t>(input.shape[0]) * sizeof(float);
      if (whole && answer.status.ok()) {
        counts->answered.fetch_add(1, std::memory_order_relaxed);
        if (answer.outputs.at("y").bytes != input.pieces.front()) {
          ++counts->wrong;
        }
      } else {
        counts->refused.fetch_add(1, std::memory_order_relaxed);
        const Code code = answer.status.code();
        if (code != Code::kUnavailable && (whole || code != Code::kInvalidArg)) {
          ++counts->wrong;
        }
      }
    }
  }
}

TEST_CASE_FIXTURE(CleanLedger, "instances execute while models of the same names come and go") {
  constexpr int kModels = 2;
  constexpr int kInstances = 4;
  Backend backend;
  std::vector<std::unique_ptr<Model>> models;
  std::vector<std::unique_ptr<Instance>> instances;
  for (int m = 0; m < kModels; ++m) {
    const std::string name = "model_" + std::to_string(m);
    stand_in::Define(name, OneDimension(DataType::kFp32, 1));
    models.push_back(std::make_unique<Model>(&backend, name));
    for (int i = 0; i < kInstances; ++i) {
      instances.push_back(std::make_unique<Instance>(models.back().get()));
    }
  }
  Counts counts;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < instances.size(); ++i) {
    threads.emplace_back(ExecuteOften, instances[i].get(), 150, static_cast<int>(i), &counts);
  }
  for (int loader = 0; loader < 3; ++loader) {
    threads.emplace_back([&, loader] {
      for (int round = 0; round < 60; ++round) {
        // The third loader's model has nobody else.
        Model model(&backend, "model_" + std::to_string(loader % 2), loader < 2 ? 1 : 7);
        Instance instance(&model);
        if (!model.status().ok() || !instance.status().ok()) {
          ++counts.wrong;
        }
        ExecuteOften(&instance, 1, 1000 + round, &counts);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(counts.wrong == 0);
  CHECK(counts.answered > 1000);
  CHECK(counts.refused > 100);
  CHECK(stand_in::MetricValue("jax_predict_calls", "model=model_0,version=7,device=cpu:0") == -1);
}

TEST_CASE_FIXTURE(CleanLedger, "a device is lost while all instances of a model execute") {
  Backend backend;
  auto script = OneDimension(DataType::kFp32, 1);
  std::atomic<int> left{200};
  script->run = [&](const stand_in::Prepared&) {
    return left.fetch_sub(1, std::memory_order_relaxed) <= 0 ? Status::Fatal("the device is lost")
                                                             : Status();
  };
  stand_in::Define("m", script);
  Model model(&backend, "m");
  std::vector<std::unique_ptr<Instance>> instances;
  std::vector<std::thread> threads;
  Counts counts;
  for (int i = 0; i < 8; ++i) {
    instances.push_back(std::make_unique<Instance>(&model));
    threads.emplace_back(ExecuteOften, instances.back().get(), 60, i, &counts);
  }
  std::atomic<bool> done{false};
  std::thread prober([&] {
    while (!done) {
      for (const auto& instance : instances) {
        const Status status = instance->Ready();
        counts.wrong += status.ok() || status.code() == Code::kUnavailable ? 0 : 1;
      }
    }
  });
  for (std::thread& thread : threads) {
    thread.join();
  }
  done = true;
  prober.join();
  CHECK(counts.wrong == 0);
  CHECK(counts.answered > 0);
  for (const auto& instance : instances) {
    CHECK(instance->Ready().code() == Code::kUnavailable);
  }
  // The model says it once, however many met it.
  int said = 0;
  for (const std::string& line : stand_in::TakeLog()) {
    said += stand_in::Contains(line, "not ready until it is reloaded") ? 1 : 0;
  }
  CHECK(said == 1);
}

TEST_CASE_FIXTURE(CleanLedger, "requests are cancelled while they wait and while they stream") {
  Backend backend;
  auto script = OneDimension(DataType::kFp32, 1);
  script->description.decoupled = true;
  script->description.config_json = R"({"model_transaction_policy":{"decoupled":true}})";
  script->responses = 50;
  stand_in::Define("m", script);
  Model model(&backend, "m");
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      Instance instance(&model);
      for (int round = 0; round < 20; ++round) {
        Request request;
        request.Add("x", Floats({1, 1}, {1}));
        std::thread client([&] { request.cancelled = true; });
        if (!instance.Execute({&request}).ok()) {
          ++wrong;
        }
        client.join();
        const Status& last = request.answers.back().status;
        wrong += last.ok() || last.code() == Code::kCancelled ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(wrong == 0);
}

}  // namespace
