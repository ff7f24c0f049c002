// SPDX-License-Identifier: Apache-2.0

#include "fixture.h"

namespace {

using stand_in::Backend;
using stand_in::CleanLedger;
using stand_in::Floats;
using stand_in::Instance;
using stand_in::MetricValue;
using stand_in::Model;
using stand_in::OneDimension;
using stand_in::Request;
using triton_jax::DataType;

constexpr const char* kLabels = "model=m,version=1,device=cpu:0";

void RunOnce(Instance* instance) {
  Request request;
  request.Add("x", Floats({1, 1}, {1}));
  CHECK(instance->Execute({&request}).ok());
  CHECK(request.answer().status.ok());
}

TEST_CASE_FIXTURE(CleanLedger, "metrics go on over a reload, and end with the last of a version") {
  Backend backend;
  stand_in::Define("m", OneDimension(DataType::kFp32, 1));
  auto first = std::make_unique<Model>(&backend, "m");
  auto first_instance = std::make_unique<Instance>(first.get());
  RunOnce(first_instance.get());
  CHECK(MetricValue("jax_predict_calls", kLabels) == 1);
  CHECK(MetricValue("jax_xla_compilations", kLabels) == 1);
  CHECK(MetricValue("jax_xla_compilation_time", kLabels) == 0.25);
  CHECK(MetricValue("jax_xla_compilations_in_traffic", kLabels) == 1);

  auto second = std::make_unique<Model>(&backend, "m");
  auto second_instance = std::make_unique<Instance>(second.get());
  RunOnce(second_instance.get());
  RunOnce(first_instance.get());
  first_instance.reset();
  first.reset();
  RunOnce(second_instance.get());
  CHECK(MetricValue("jax_predict_calls", kLabels) == 4);
  CHECK(MetricValue("jax_xla_compilations", kLabels) == 2);

  second_instance.reset();
  second.reset();
  CHECK(MetricValue("jax_predict_calls", kLabels) == -1);
  const Model third(&backend, "m");
  CHECK(MetricValue("jax_predict_calls", kLabels) == -1);
}

TEST_CASE_FIXTURE(CleanLedger, "each version and each device has metrics of its own") {
  Backend backend;
  auto script = OneDimension(DataType::kFp32, 1);
  stand_in::Define("m", script);
  Model first(&backend, "m", 1);
  Model second(&backend, "m", 2);
  Instance here(&first);
  script->device = "cpu:1";
  Instance there(&second);
  RunOnce(&here);
  RunOnce(&there);
  RunOnce(&there);
  CHECK(MetricValue("jax_predict_calls", kLabels) == 1);
  CHECK(MetricValue("jax_predict_calls", "model=m,version=2,device=cpu:1") == 2);
  CHECK(MetricValue("jax_batch_rows", "model=m,version=2,device=cpu:1") == 2);
}

TEST_CASE_FIXTURE(CleanLedger, "the phases of an execution are timed where the model asks for it") {
  Backend backend;
  auto script = OneDimension(DataType::kFp32, 1);
  stand_in::Define("m", script);
  Model model(&backend, "m");
  Instance instance(&model);
  RunOnce(&instance);
  CHECK(MetricValue("jax_phase_time", std::string(kLabels) + ",phase=run") == -1);

  script->description.phase_times = true;
  Model timed(&backend, "m", 2);
  Instance first(&timed);
  Instance second(&timed);  // shares the first one's metrics
  RunOnce(&first);
  RunOnce(&second);
  for (const char* phase : {"read", "gather", "run", "scatter", "send", "finish"}) {
    const std::string labels = std::string("model=m,version=2,device=cpu:0,phase=") + phase;
    CHECK_MESSAGE(MetricValue("jax_phase_time", labels) > 0, phase);
  }
}

TEST_CASE_FIXTURE(CleanLedger, "a server without metrics is served all the same") {
  stand_in::TheSettings().metrics = false;
  Backend backend;
  stand_in::Define("m", OneDimension(DataType::kFp32, 1));
  Model model(&backend, "m");
  Instance instance(&model);
  RunOnce(&instance);
  Request request;
  CHECK(instance.Execute({&request}).ok());
  CHECK_FALSE(request.answer().status.ok());
}

}  // namespace
