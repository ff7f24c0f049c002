// SPDX-License-Identifier: Apache-2.0

#include <array>
#include <mutex>

#include "fixture.h"

namespace {

using stand_in::CleanLedger;
using stand_in::Contains;
using stand_in::Floats;
using stand_in::OneDimension;
using stand_in::Prepared;
using stand_in::Request;
using stand_in::Script;
using stand_in::Served;
using stand_in::Strings;
using triton_jax::Code;
using triton_jax::DataType;
using triton_jax::Status;

// The first value of each row of the first input.
std::vector<float> FirstValues(const Prepared& prepared) {
  std::vector<float> values;
  const size_t row_bytes =
      prepared.inputs[0].bytes / static_cast<size_t>(std::max<int64_t>(prepared.padded_rows, 1));
  for (int64_t row = 0; row < prepared.padded_rows; ++row) {
    float value = 0;
    std::memcpy(&value, prepared.inputs[0].data + static_cast<size_t>(row) * row_bytes,
                sizeof value);
    values.push_back(value);
  }
  return values;
}

// Fails when any row begins with `value`.
std::function<Status(const Prepared&)> FailAt(float value, const Status& status) {
  return [=](const Prepared& prepared) {
    for (const float got : FirstValues(prepared)) {
      if (got == value) {
        return status;
      }
    }
    return Status();
  };
}

Status Refusal(Served* served, const std::string& input, stand_in::Tensor tensor) {
  Request request;
  request.Add(input, std::move(tensor));
  CHECK(served->instance->Execute({&request}).ok());
  return request.answer().status;
}

TEST_CASE_FIXTURE(CleanLedger, "a batch does not wait for the responses of the one before") {
  Served served(OneDimension(DataType::kFp32, 1));
  std::array<Request, 4> requests;
  for (Request& request : requests) {
    request.Add("x", Floats({1, 1}, {1}));
  }
  std::mutex sending;
  stand_in::TheSettings().sending = &sending;
  {
    const std::lock_guard<std::mutex> nobody_sends(sending);
    CHECK(served.instance->Start({&requests[0], &requests[1]}).ok());
    CHECK(served.instance->handle.batches == std::vector<uint64_t>{2});
    for (const Request& request : requests) {
      CHECK(request.releases == 0);
    }
  }
  stand_in::Instance::Await({&requests[0], &requests[1]});
  // What is handed over is sent also when the instance goes at once.
  CHECK(served.instance->Start({&requests[2], &requests[3]}).ok());
  served.instance.reset();
  for (const Request& request : requests) {
    CHECK(request.releases == 1);
    CHECK(request.answer().outputs.at("y").bytes == request.inputs.at("x").pieces.front());
  }
}

TEST_CASE_FIXTURE(CleanLedger, "requests run together and each gets its rows") {
  Served served(OneDimension(DataType::kFp32, 2));
  std::vector<std::vector<float>> batches;
  served.script->run = [&](const Prepared& prepared) {
    batches.push_back(FirstValues(prepared));
    return Status();
  };
  std::array<Request, 4> requests;
  requests[0].Add("x", Floats({2, 2}, {1, 1, 2, 2}));
  requests[1].Add("x", Floats({1, 2}, {3, 3}));
  requests[2].Add("x", Floats({6, 2}, {4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9}));
  requests[3].Add("x", Floats({2, 2}, {10, 10, 11, 11}));
  CHECK(served.instance->Execute({&requests[0], &requests[1], &requests[2], &requests[3]}).ok());
  for (const Request& request : requests) {
    CHECK(request.answer().status.ok());
    CHECK(request.answer().outputs.at("y").bytes == request.inputs.at("x").pieces.front());
    CHECK(request.answer().outputs.at("y").shape == request.inputs.at("x").shape);
    CHECK(request.statistics_success);
  }
  // The third does not fit beside the first two, the fourth does; padding repeats the last row.
  CHECK(batches ==
        std::vector<std::vector<float>>{{1, 2, 3, 10, 11, 11, 11, 11}, {4, 5, 6, 7, 8, 9, 9, 9}});
  CHECK(served.instance->handle.batches == std::vector<uint64_t>{5, 6});
  CHECK(stand_in::MetricValue("jax_real_rows", "model=m,version=1,device=cpu:0") == 11);
  CHECK(stand_in::MetricValue("jax_padded_rows", "model=m,version=1,device=cpu:0") == 5);
  CHECK(stand_in::MetricValue("jax_predict_calls", "model=m,version=1,device=cpu:0") == 2);
}

TEST_CASE_FIXTURE(CleanLedger, "a large input is used where it is, if it is as it is wanted") {
  constexpr int64_t kSize = 64 * 1024;
  auto script = OneDimension(DataType::kFp32, kSize);
  script->takes_in_place = true;
  Served served(script);
  const char* used = nullptr;
  served.script->run = [&](const Prepared& prepared) {
    used = prepared.inputs[0].in_place;
    return Status();
  };
  const auto tensor = [](int64_t rows, int64_t size) {
    std::vector<float> values(static_cast<size_t>(rows * size));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(i);
    }
    return Floats({rows, size}, values);
  };
  // Runs rows that lie `offset` bytes after a multiple of 64; returns whether they were left there.
  const auto left = [&](Served* with, const stand_in::Tensor& sent, size_t offset) {
    const stand_in::Bytes& bytes = sent.bytes;
    std::vector<char> memory(bytes.size() + 128);
    char* start = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) + offset;
    std::memcpy(start, bytes.data(), bytes.size());
    Request request;
    request.Add("x", sent);
    request.inputs.at("x").first_piece = start;
    CHECK(with->instance->Execute({&request}).ok());
    CHECK(request.answer().outputs.at("y").bytes == bytes);
    CHECK((used == nullptr || used == start));
    return used == start;
  };
  CHECK(left(&served, tensor(1, kSize), 0));
  CHECK(left(&served, tensor(4, kSize), 0));
  CHECK_FALSE(left(&served, tensor(3, kSize), 0));  // a row of padding is missing
  CHECK_FALSE(left(&served, tensor(1, kSize), 4));

  std::array<Request, 2> requests;
  for (Request& request : requests) {
    request.Add("x", tensor(1, kSize));
  }
  CHECK(served.instance->Execute({&requests[0], &requests[1]}).ok());
  CHECK(used == nullptr);
  for (const Request& request : requests) {
    CHECK(request.answer().outputs.at("y").bytes == request.inputs.at("x").pieces.front());
  }

  script = OneDimension(DataType::kFp32, 4);
  script->takes_in_place = true;
  Served small(script, "small");
  small.script->run = served.script->run;
  CHECK_FALSE(left(&small, tensor(1, 4), 0));

  script = OneDimension(DataType::kFp32, kSize);
  Served never(script, "never");
  never.script->run = served.script->run;
  CHECK_FALSE(left(&never, tensor(1, kSize), 0));
}

TEST_CASE_FIXTURE(CleanLedger, "lengths: padded together, cut for each") {
  auto script = OneDimension(DataType::kFp32, -1);
  script->description.inputs[0].lengths = {2, 4};
  Served served(script);
  std::vector<std::vector<int64_t>> shapes;
  served.script->run = [&](const Prepared& prepared) {
    shapes.push_back({prepared.rows, prepared.shapes[0].dims[0]});
    return Status();
  };
  std::array<Request, 4> requests;
  requests[0].Add("x", Floats({1, 3}, {1, 2, 3}));
  requests[1].Add("x", Floats({1, 1}, {4}));
  requests[2].Add("x", Floats({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}));
  requests[3].Add("x", Floats({1, 0}, {}));
  CHECK(served.instance->Execute({&requests[0], &requests[1], &requests[2], &requests[3]}).ok());
  for (const Request& request : requests) {
    CHECK(request.answer().outputs.at("y").bytes == request.inputs.at("x").pieces.front());
    CHECK(request.answer().outputs.at("y").shape == request.inputs.at("x").shape);
  }
  CHECK(shapes == std::vector<std::vector<int64_t>>{{3, 4}, {2, 2}});
  CHECK(Contains(Refusal(&served, "x", Floats({1, 5}, {1, 2, 3, 4, 5})).message(),
                 "input 'x': dimension 1 is 5, the longest allowed is 4"));
}

TEST_CASE_FIXTURE(CleanLedger, "ragged requests are one run") {
  auto script = OneDimension(DataType::kFp32, -1);
  script->description.inputs[0].ragged = true;
  Served served(script);
  std::array<Request, 3> requests;
  requests[0].Add("x", Floats({1, 3}, {1, 2, 3}));
  requests[1].Add("x", Floats({2, 1}, {4, 5}));
  requests[2].Add("x", Floats({1, 5}, {1, 2, 3, 4, 5}));
  CHECK(served.instance->Execute({&requests[0], &requests[1], &requests[2]}).ok());
  CHECK(script->runs == 1);
  for (const Request& request : requests) {
    CHECK(request.answer().outputs.at("y").bytes == request.inputs.at("x").pieces.front());
  }
}

TEST_CASE_FIXTURE(CleanLedger,
                  "ragged requests run apart where together they take far more memory") {
  auto script = OneDimension(DataType::kFp32, -1);
  for (triton_jax::TensorSpec* spec :
       {&script->description.inputs[0], &script->description.outputs[0]}) {
    spec->dims = {-1, -1};
    spec->ragged = true;
  }
  script->description.outputs[0].follows = {0, 1};
  Served served(script);
  const auto runs = [&](const std::vector<std::vector<int64_t>>& shapes) {
    script->runs = 0;
    std::vector<std::unique_ptr<Request>> requests;
    std::vector<Request*> handed;
    for (const std::vector<int64_t>& shape : shapes) {
      handed.push_back(requests.emplace_back(std::make_unique<Request>()).get());
      handed.back()->Add(
          "x", Floats(shape, std::vector<float>(static_cast<size_t>(shape[1] * shape[2]), 1)));
    }
    CHECK(served.instance->Execute(handed).ok());
    for (const Request* request : handed) {
      CHECK(request->answer().status.message() == "");
      CHECK(request->answer().outputs.at("y").bytes == request->inputs.at("x").pieces.front());
    }
    return script->runs.load();
  };
  // The product of the long ones is more than there is memory for, and more than size_t holds.
  CHECK(runs({{1, 1000000, 1}, {1, 1, 1000000}}) == 2);
  CHECK(runs({{1, 1000000, 1}, {1, 1, 1000000}, {1, 500000, 1}, {1, 1, 900000}}) == 2);
  CHECK(runs({{1, 100000, 4}, {1, 50000, 4}}) == 1);
  // A long one is not repeated for each of many short ones; a small one may be.
  CHECK(runs({{1, 300000, 1}, {1, 1, 1}, {1, 2, 1}, {1, 3, 1}}) == 1);
  CHECK(runs({{1, 300, 1}, {1, 1, 300}}) == 1);
}

TEST_CASE_FIXTURE(CleanLedger, "a string output that follows a padded input is cut to it") {
  auto script = OneDimension(DataType::kFp32, -1);
  script->description.inputs[0].lengths = {4};
  script->description.outputs[0].dtype = DataType::kBytes;
  std::string text;
  script->outputs = [&](std::vector<triton_jax::OutputBuffer>* outputs) {
    triton_jax::OutputBuffer& output = outputs->front();
    text.clear();
    output.offsets.clear();
    for (int64_t row = 0; row < output.dims[0]; ++row) {
      for (int64_t column = 0; column < output.dims[1]; ++column) {
        output.offsets.push_back(text.size());
        const std::string element(static_cast<size_t>(column), static_cast<char>('a' + row));
        const stand_in::Bytes encoded = Strings({1}, {element}).bytes;
        text.append(encoded.begin(), encoded.end());
      }
    }
    output.offsets.push_back(text.size());
    output.data = text.data();
    output.bytes = text.size();
  };
  Served served(script);
  std::array<Request, 2> requests;
  requests[0].Add("x", Floats({2, 2}, {1, 2, 3, 4}));
  requests[1].Add("x", Floats({1, 3}, {1, 2, 3}));
  CHECK(served.instance->Execute({&requests[0], &requests[1]}).ok());
  CHECK(requests[0].answer().outputs.at("y") == Strings({2, 2}, {"", "a", "", "b"}));
  CHECK(requests[1].answer().outputs.at("y") == Strings({1, 3}, {"", "c", "cc"}));
}

TEST_CASE_FIXTURE(CleanLedger, "a wrong request is refused in words and disturbs nobody") {
  Served served(OneDimension(DataType::kFp32, 2));
  const auto message = [&](stand_in::Tensor tensor) {
    const Status status = Refusal(&served, "x", std::move(tensor));
    CHECK(status.code() == Code::kInvalidArg);
    return status.message();
  };
  CHECK(message(Floats({2, 2}, {1, 2, 3})) ==
        "input 'x': expected 16 bytes for shape [2,2], got 12 bytes");
  CHECK(message(Floats({1, 2}, {1, 2, 3})) ==
        "input 'x': expected 8 bytes for shape [1,2], got 12 bytes");
  CHECK(message(Floats({1, 3}, {1, 2, 3})) ==
        "input 'x': expected shape [-1,2] (the batch dimension first), got [1,3]");
  CHECK(Contains(message(Floats({2}, {1, 2})), "expected shape [-1,2]"));
  CHECK(
      Contains(message(Floats({9, 2}, std::vector<float>(18))), "batch of 9 rows, allowed are 8"));
  CHECK(Contains(message(Floats({-1, 2}, {})), "batch of -1 rows"));
  CHECK(Contains(message(Strings({1, 2}, {"a", "b"})), "expected data type FP32, got BYTES"));
  CHECK(Refusal(&served, "z", Floats({1, 2}, {1, 2})).message() == "input 'x' is missing");
  CHECK(served.script->runs == 0);
  CHECK(served.instance->handle.batches.empty());
  CHECK(stand_in::MetricValue("jax_request_failures",
                              "model=m,version=1,device=cpu:0,code=INVALID_ARG") == 8);
}

TEST_CASE_FIXTURE(CleanLedger, "a shape that is larger than its bytes takes no memory") {
  Served numbers(OneDimension(DataType::kFp32, -1), "numbers");
  Served strings(OneDimension(DataType::kBytes, -1), "strings");
  for (const int shift : {10, 32, 40, 61, 62}) {
    const int64_t huge = int64_t{1} << shift;
    const Status number = Refusal(&numbers, "x", Floats({1, huge}, {1, 2}));
    CHECK(number.code() == Code::kInvalidArg);
    CHECK(Contains(number.message(), "input 'x'"));
    const Status string = Refusal(&strings, "x", Strings({8, huge}, {"a"}));
    CHECK(string.code() == Code::kInvalidArg);
    CHECK(Contains(string.message(), "input 'x'"));
  }
  CHECK(numbers.script->runs == 0);
  CHECK(strings.script->runs == 0);
}

TEST_CASE_FIXTURE(CleanLedger, "of strings, only the broken ones are refused") {
  Served served(OneDimension(DataType::kBytes, -1));
  std::array<Request, 4> requests;
  requests[0].Add("x", Strings({1, 2}, {"a", std::string("\0\xff", 2)}));
  requests[1].Add("x", Strings({2, 2}, {"b", "", "c", "d"}));
  requests[1].inputs.at("x").pieces.front()[0] = '\x7f';
  requests[2].Add("x", Strings({1, 2}, {"e", "f"}));
  requests[2].inputs.at("x").pieces.front().push_back('!');
  requests[3].Add("x", Strings({1, 2}, {"g", std::string(100000, 'h')}));
  CHECK(served.instance->Execute({&requests[0], &requests[1], &requests[2], &requests[3]}).ok());
  CHECK(requests[0].answer().outputs.at("y") == Strings({1, 2}, {"a", std::string("\0\xff", 2)}));
  CHECK(requests[3].answer().outputs.at("y") == Strings({1, 2}, {"g", std::string(100000, 'h')}));
  CHECK(Contains(requests[1].answer().status.message(), "expected 4 BYTES elements"));
  CHECK(Contains(requests[2].answer().status.message(), "2 whole elements and bytes after them"));
  CHECK(served.script->runs == 1);
}

TEST_CASE_FIXTURE(CleanLedger, "where no request of a batch is right, nothing runs") {
  Served served(OneDimension(DataType::kBytes, 1));
  Request request;
  request.Add("x", Strings({1, 1}, {"abc"}));
  request.inputs.at("x").pieces.front()[0] = '\x7f';
  CHECK(served.instance->Execute({&request}).ok());
  CHECK(request.answer().status.code() == Code::kInvalidArg);
  CHECK(served.script->runs == 0);
  CHECK(served.instance->handle.batches.empty());
}

TEST_CASE_FIXTURE(CleanLedger, "GPU memory is refused, for input and for output") {
  Served served(OneDimension(DataType::kFp32, 2));
  std::array<Request, 3> requests;
  for (Request& request : requests) {
    request.Add("x", Floats({1, 2}, {1, 2}));
  }
  requests[0].inputs.at("x").memory = TRITONSERVER_MEMORY_GPU;
  requests[1].output_memory = TRITONSERVER_MEMORY_GPU;
  CHECK(served.instance->Execute({&requests[0], &requests[1], &requests[2]}).ok());
  CHECK(requests[0].answer().status.code() == Code::kUnsupported);
  CHECK(Contains(requests[0].answer().status.message(), "input 'x' is in GPU memory"));
  CHECK(requests[1].answer().status.code() == Code::kUnsupported);
  CHECK(requests[2].answer().status.ok());
}

TEST_CASE_FIXTURE(CleanLedger, "one request's failure stays its own") {
  Served served(OneDimension(DataType::kFp32, 1));
  served.script->run = FailAt(-1, {Code::kInternal, "negative"});
  std::array<Request, 3> requests;
  requests[0].Add("x", Floats({2, 1}, {1, 2}));
  requests[1].Add("x", Floats({1, 1}, {-1}));
  requests[2].Add("x", Floats({1, 1}, {3}));
  CHECK(served.instance->Execute({&requests[0], &requests[1], &requests[2]}).ok());
  CHECK(requests[0].answer().outputs.at("y") == Floats({2, 1}, {1, 2}));
  CHECK(requests[1].answer().status.code() == Code::kInternal);
  CHECK(requests[1].answer().status.message() == "negative");
  CHECK(requests[2].answer().outputs.at("y") == Floats({1, 1}, {3}));
  CHECK(served.script->runs == 4);
  CHECK(served.instance->handle.batches == std::vector<uint64_t>{2, 1});
  CHECK(served.instance->Ready().ok());
}

TEST_CASE_FIXTURE(CleanLedger, "what is everybody's failure is not tried again") {
  Served served(OneDimension(DataType::kFp32, 1));
  served.script->run = FailAt(1, {Code::kUnavailable, "out of memory"});
  std::array<Request, 2> requests;
  for (Request& request : requests) {
    request.Add("x", Floats({1, 1}, {1}));
  }
  CHECK(served.instance->Execute({&requests[0], &requests[1]}).ok());
  CHECK(served.script->runs == 1);
  for (const Request& request : requests) {
    CHECK(request.answer().status.code() == Code::kUnavailable);
  }
  CHECK(served.instance->Ready().ok());
}

TEST_CASE_FIXTURE(CleanLedger,
                  "after a fatal failure the model refuses everything until it is new") {
  auto script = OneDimension(DataType::kFp32, 1, 2);
  script->run = FailAt(-1, Status::Fatal("the device is lost"));
  Served served(script);
  std::array<Request, 5> requests;
  requests[0].Add("x", Floats({2, 1}, {1, 2}));
  requests[1].Add("x", Floats({2, 1}, {3, -1}));
  requests[2].Add("x", Floats({2, 1}, {4, 5}));
  CHECK(served.instance->Execute({&requests[0], &requests[1], &requests[2]}).ok());
  CHECK(requests[0].answer().status.ok());
  CHECK(requests[1].answer().status.code() == Code::kUnavailable);
  // The third was handed over with the others, and came after the failure.
  CHECK(requests[2].answer().status.code() == Code::kUnavailable);
  CHECK(script->runs == 2);
  CHECK(served.instance->Ready().code() == Code::kUnavailable);
  CHECK(
      Contains(served.instance->Ready().message(), "model 'm' is not ready until it is reloaded"));
  CHECK(Contains(served.instance->Ready().message(), "the device is lost"));

  requests[3].Add("x", Floats({1, 1}, {1}));
  CHECK(served.instance->Execute({&requests[3]}).ok());
  CHECK(requests[3].answer().status.code() == Code::kUnavailable);
  CHECK(script->runs == 2);

  stand_in::Model reloaded(&served.backend, "m");
  stand_in::Instance instance(&reloaded);
  requests[4].Add("x", Floats({1, 1}, {1}));
  CHECK(instance.Execute({&requests[4]}).ok());
  CHECK(requests[4].answer().status.ok());
  CHECK(instance.Ready().ok());
  CHECK_FALSE(served.instance->Ready().ok());
}

TEST_CASE_FIXTURE(CleanLedger, "a request that its client gave up does not run") {
  Served served(OneDimension(DataType::kFp32, 1));
  std::array<Request, 3> requests;
  for (Request& request : requests) {
    request.Add("x", Floats({1, 1}, {7}));
  }
  requests[0].cancelled = true;
  requests[2].cancelled = true;
  CHECK(served.instance->Execute({&requests[0], &requests[1], &requests[2]}).ok());
  CHECK(requests[0].answer().status.code() == Code::kCancelled);
  CHECK(requests[1].answer().status.ok());
  CHECK(requests[2].answer().status.code() == Code::kCancelled);
  CHECK(served.script->rows == 1);
}

TEST_CASE_FIXTURE(CleanLedger, "the server's own failures reach the one request that met them") {
  Served served(OneDimension(DataType::kFp32, 1));
  std::array<Request, 5> requests;
  for (Request& request : requests) {
    request.Add("x", Floats({1, 1}, {7}));
  }
  requests[0].failing = {"TRITONBACKEND_ResponseNew"};
  requests[1].failing = {"TRITONBACKEND_OutputBuffer"};
  requests[2].failing = {"TRITONBACKEND_RequestOutputCount"};
  requests[3].failing = {"TRITONBACKEND_RequestIsCancelled"};
  CHECK(served.instance
            ->Execute({&requests[0], &requests[1], &requests[2], &requests[3], &requests[4]})
            .ok());
  CHECK(requests[0].answers.empty());
  for (size_t i = 1; i < 4; ++i) {
    CHECK(requests[i].answer().status.code() == Code::kInternal);
    CHECK(Contains(requests[i].answer().status.message(), requests[i].failing.front()));
  }
  CHECK(requests[4].answer().status.ok());
}

TEST_CASE_FIXTURE(CleanLedger, "an engine whose outputs cannot be right") {
  Served served(OneDimension(DataType::kFp32, 1));
  served.script->outputs = [](std::vector<triton_jax::OutputBuffer>* outputs) {
    outputs->front().dims[0] = 1;
  };
  Request request;
  request.Add("x", Floats({2, 1}, {1, 2}));
  CHECK(served.instance->Execute({&request}).ok());
  CHECK(request.answer().status.code() == Code::kInternal);
  CHECK(Contains(request.answer().status.message(),
                 "output 'y' has shape [1,1], but the batch has at least 2 rows"));
}

TEST_CASE_FIXTURE(CleanLedger, "state goes to the sequence, outputs to the client") {
  auto script = OneDimension(DataType::kFp32, 2);
  triton_jax::TensorSpec state = script->description.inputs[0];
  state.name = "state_in";
  script->description.inputs.push_back(state);
  state.name = "state_out";
  state.state = true;
  script->description.outputs.push_back(state);
  Served served(script);
  std::array<Request, 2> requests;
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto value = static_cast<float>(i);
    requests[i].Add("x", Floats({1, 2}, {value, value}));
    requests[i].Add("state_in", Floats({1, 2}, {10 + value, 20 + value}));
    requests[i].wanted = {"y"};
  }
  CHECK(served.instance->Execute({&requests[0], &requests[1]}).ok());
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto value = static_cast<float>(i);
    CHECK(requests[i].answer().outputs.size() == 1);
    CHECK(requests[i].states.size() == 1);
    CHECK(requests[i].states.at("state_out") == Floats({1, 2}, {10 + value, 20 + value}));
  }
}

TEST_CASE_FIXTURE(CleanLedger, "a model without batches runs its requests one by one") {
  Served served(OneDimension(DataType::kFp32, -1, 0));
  std::array<Request, 3> requests;
  for (Request& request : requests) {
    request.Add("x", Floats({3}, {1, 2, 3}));
  }
  CHECK(served.instance->Execute({&requests[0], &requests[1], &requests[2]}).ok());
  CHECK(served.script->runs == 3);
  for (const Request& request : requests) {
    CHECK(request.answer().outputs.at("y") == Floats({3}, {1, 2, 3}));
  }
}

TEST_CASE_FIXTURE(CleanLedger, "any model with any requests: each gets what is its own") {
  stand_in::Backend backend;
  for (unsigned seed = 0; seed < 1500; ++seed) {
    INFO("seed ", seed);
    stand_in::RandomChoices choices(seed);
    const stand_in::Case made = stand_in::MakeCase(&choices, 6);
    stand_in::Define("random", made.script);
    stand_in::Model model(&backend, "random");
    stand_in::Instance instance(&model);
    std::vector<Request*> requests;
    for (const auto& request : made.requests) {
      requests.push_back(request.get());
    }
    REQUIRE(instance.Execute(requests).ok());
    REQUIRE(made.Wrong() == "");
    REQUIRE(stand_in::TakeViolations() == std::vector<std::string>{});
  }
}

}  // namespace
