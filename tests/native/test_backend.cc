// SPDX-License-Identifier: Apache-2.0

#include "backend.h"
#include "fixture.h"

namespace {

using stand_in::Contains;
using triton_jax::BackendConfig;
using triton_jax::Code;
using triton_jax::ParseBackendConfig;
using triton_jax::Status;

Status Refusal(const std::string& json) {
  return triton_jax::CatchStatus([&] { ParseBackendConfig(json); });
}

TEST_CASE("the configuration of the backend") {
  const BackendConfig config = ParseBackendConfig(
      R"({"cmdline":{"env":"/opt/env","default-max-batch-size":"4","log-detail":"quiet"}})");
  CHECK(config.environment == "/opt/env");
  CHECK(config.default_max_batch_size == 4);
  CHECK(Contains(config.settings, R"("log-detail":"quiet")"));
  for (const char* json : {"{}", R"({"cmdline":{}})", R"({"cmdline":null})"}) {
    CHECK(ParseBackendConfig(json).environment.empty());
    CHECK(ParseBackendConfig(json).settings == "{}");
  }
}

TEST_CASE("a configuration that is wrong is refused with the setting's name") {
  for (const char* json : {"", "[]", "{", "nonsense", "{\"a\":\"\xff\"}"}) {
    CHECK(Refusal(json).code() == Code::kInvalidArg);
    CHECK(Contains(Refusal(json).message(), "not a JSON object"));
  }
  for (const char* value : {"", "x", "1.5", "-1", " ", "1 ", " 1", "+1", "99999999999999999999"}) {
    const Status status =
        Refusal(std::string(R"({"cmdline":{"default-max-batch-size":")") + value + "\"}}");
    CHECK(status.code() == Code::kInvalidArg);
    CHECK_MESSAGE(
        Contains(status.message(), std::string("default-max-batch-size must be an integer "
                                               ">= 0, got '") +
                                       value + "'"),
        status.message());
  }
  CHECK(Contains(Refusal(R"({"cmdline":{"env":{"a":1}}})").message(), R"(env must be a string)"));
}

TEST_CASE_FIXTURE(stand_in::CleanLedger, "a backend begins and ends") {
  const stand_in::Backend backend;
  CHECK(backend.status().ok());
  CHECK(backend.handle.policy == TRITONBACKEND_EXECUTION_BLOCKING);
}

TEST_CASE_FIXTURE(stand_in::CleanLedger, "a backend that cannot begin says why, and can end") {
  SUBCASE("an older server") {
    stand_in::TheSettings().api_minor = 11;
    const stand_in::Backend backend;
    CHECK(backend.status().code() == Code::kUnsupported);
    CHECK(Contains(backend.status().message(), "this server has 1.11"));
  }
  SUBCASE("a setting") {
    stand_in::TheSettings().backend_config = R"({"cmdline":{"default-max-batch-size":"many"}})";
    const stand_in::Backend backend;
    CHECK(backend.status().code() == Code::kInvalidArg);
  }
}

TEST_CASE_FIXTURE(stand_in::CleanLedger,
                  "an engine that does not start fails the load, not later ones") {
  stand_in::Backend backend;
  stand_in::Define("m", stand_in::OneDimension(triton_jax::DataType::kFp32, 2));
  stand_in::FailToStart({Code::kUnavailable, "there is no environment"});
  for (int i = 0; i < 2; ++i) {
    const stand_in::Model model(&backend, "m");
    CHECK(model.status().code() == Code::kUnavailable);
    CHECK(model.status().message() == "there is no environment");
  }
  stand_in::FailToStart({});
  const stand_in::Model model(&backend, "m");
  CHECK(model.status().ok());
}

}  // namespace
