// SPDX-License-Identifier: Apache-2.0

#include "fixture.h"

namespace {

using stand_in::Backend;
using stand_in::CleanLedger;
using stand_in::Contains;
using stand_in::Instance;
using stand_in::Model;
using stand_in::OneDimension;
using triton_jax::Code;
using triton_jax::DataType;

TEST_CASE_FIXTURE(CleanLedger, "a model's completed configuration goes to the server") {
  Backend backend;
  auto script = OneDimension(DataType::kFp32, 2);
  script->description.config_json = R"({"max_batch_size":8})";
  stand_in::Define("m", script);
  const Model completed(&backend, "m");
  CHECK(completed.handle.config == R"({"max_batch_size":8})");
  const Model strict(&backend, "m", 2, /*complete=*/false);
  CHECK(strict.status().ok());
  CHECK(strict.handle.config == "{}");
}

TEST_CASE_FIXTURE(CleanLedger, "a model or an instance that fails to load leaves nothing behind") {
  Backend backend;
  auto script = OneDimension(DataType::kFp32, 2);
  script->load = {Code::kInvalidArg, "model.py has no predict"};
  stand_in::Define("m", script);
  {
    const Model model(&backend, "m");
    CHECK(model.status().code() == Code::kInvalidArg);
    CHECK(model.status().message() == "model.py has no predict");
  }
  script->load = {};
  script->instance = {Code::kUnavailable, "there is no GPU"};
  Model model(&backend, "m");
  CHECK(model.status().ok());
  const Instance instance(&model);
  CHECK(instance.status().code() == Code::kUnavailable);
}

TEST_CASE_FIXTURE(CleanLedger,
                  "a server that does not take a stream of responses over is told so") {
  auto script = OneDimension(DataType::kFp32, 2, 0);
  script->description.decoupled = true;
  script->description.config_json = R"({"model_transaction_policy":{"decoupled":true}})";
  stand_in::Define("m", script);
  Backend backend;
  {
    const Model model(&backend, "m");
    CHECK(model.status().ok());
  }
  stand_in::TheSettings().takes_decoupled = false;
  const Model model(&backend, "m");
  CHECK(model.status().code() == Code::kUnsupported);
  CHECK(Contains(model.status().message(), "decoupled: true"));
}

}  // namespace
