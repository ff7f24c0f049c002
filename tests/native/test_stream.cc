// SPDX-License-Identifier: Apache-2.0

#include <array>

#include "fixture.h"

namespace {

using stand_in::CleanLedger;
using stand_in::Floats;
using stand_in::OneDimension;
using stand_in::Request;
using stand_in::Served;
using triton_jax::Code;
using triton_jax::DataType;
using triton_jax::Status;

std::shared_ptr<stand_in::Script> Stream(int responses) {
  auto script = OneDimension(DataType::kFp32, 1);
  script->description.decoupled = true;
  script->description.config_json = R"({"model_transaction_policy":{"decoupled":true}})";
  script->responses = responses;
  return script;
}

TEST_CASE_FIXTURE(CleanLedger, "a stream of responses ends with one that is final and empty") {
  for (const int responses : {0, 1, 20}) {
    Served served(Stream(responses));
    std::array<Request, 2> requests;
    for (Request& request : requests) {
      request.Add("x", Floats({1, 1}, {7}));
    }
    CHECK(served.instance->Execute({&requests[0], &requests[1]}).ok());
    for (const Request& request : requests) {
      REQUIRE(request.answers.size() == static_cast<size_t>(responses) + 1);
      for (int i = 0; i < responses; ++i) {
        CHECK(request.answers[static_cast<size_t>(i)].outputs.at("y") == Floats({1, 1}, {7}));
        CHECK_FALSE(request.answers[static_cast<size_t>(i)].final);
      }
      CHECK(request.answers.back().final);
      CHECK(request.answers.back().outputs.empty());
      CHECK(request.answers.back().status.ok());
    }
  }
}

TEST_CASE_FIXTURE(CleanLedger, "a stream that fails ends with the failure") {
  auto script = Stream(5);
  script->next = [](int response) {
    return response == 2 ? Status(Code::kInternal, "model.py:3: stop here") : Status();
  };
  Served served(script);
  Request request;
  request.Add("x", Floats({1, 1}, {7}));
  CHECK(served.instance->Execute({&request}).ok());
  REQUIRE(request.answers.size() == 3);
  CHECK(request.answers[1].status.ok());
  CHECK(request.answers[2].status.message() == "model.py:3: stop here");
  CHECK(request.answers[2].final);
  CHECK_FALSE(request.statistics_success);
}

TEST_CASE_FIXTURE(CleanLedger, "a stream that its client gives up ends") {
  Served served(Stream(1000));
  Request request;
  request.Add("x", Floats({1, 1}, {7}));
  request.cancel_after = 3;
  CHECK(served.instance->Execute({&request}).ok());
  REQUIRE(request.answers.size() == 4);
  CHECK(request.answers[3].status.code() == Code::kCancelled);
}

TEST_CASE_FIXTURE(CleanLedger, "a stream whose request is wrong, or cannot be answered") {
  Served served(Stream(2));
  std::array<Request, 3> requests;
  requests[0].Add("x", Floats({1, 2}, {7, 8}));
  requests[1].Add("x", Floats({1, 1}, {7}));
  requests[1].failing = {"TRITONBACKEND_ResponseFactoryNew"};
  requests[2].Add("x", Floats({1, 1}, {7}));
  requests[2].failing = {"TRITONBACKEND_OutputBuffer"};
  CHECK(served.instance->Execute({&requests[0], &requests[1], &requests[2]}).ok());
  CHECK(requests[0].answer().status.code() == Code::kInvalidArg);
  CHECK(requests[1].answers.empty());
  CHECK(requests[2].answer().status.code() == Code::kInternal);
  CHECK(requests[2].answer().final);
}

TEST_CASE_FIXTURE(CleanLedger, "a fatal failure in a stream is the model's") {
  auto script = Stream(5);
  script->next = [](int response) {
    return response == 1 ? Status::Fatal("the device is lost") : Status();
  };
  Served served(script);
  std::array<Request, 2> requests;
  for (Request& request : requests) {
    request.Add("x", Floats({1, 1}, {7}));
  }
  CHECK(served.instance->Execute({&requests[0], &requests[1]}).ok());
  CHECK(requests[0].answers.size() == 2);
  CHECK(requests[0].answers.back().status.code() == Code::kUnavailable);
  CHECK(requests[1].answer().status.code() == Code::kUnavailable);
  CHECK(script->runs == 1);
  CHECK_FALSE(served.instance->Ready().ok());
}

}  // namespace
