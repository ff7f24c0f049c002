// SPDX-License-Identifier: Apache-2.0

#include "triton_stand_in.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <set>
#include <thread>

#include "cuda_stand_in.h"
#include "triton_status.h"

using stand_in::Counted;
using stand_in::Kind;
using stand_in::Violation;

struct TRITONSERVER_Error {
  Counted counted{Kind::kError};
  TRITONSERVER_Error_Code code = TRITONSERVER_ERROR_UNKNOWN;
  std::string message;
};

struct TRITONSERVER_Parameter {
  Counted counted{Kind::kParameter};
  std::string name;
  std::string value;
};

struct TRITONSERVER_MetricArgs {
  Counted counted{Kind::kMetricArguments};
  std::vector<double> bounds;
};

// The value of a metric; it may be asked for after the metric's end.
struct Series {
  std::atomic<double> value{0};
  std::atomic<bool> ended{false};
};

struct TRITONSERVER_MetricFamily {
  Counted counted{Kind::kMetricFamily};
  std::string name;
  TRITONSERVER_MetricKind kind = TRITONSERVER_METRIC_KIND_COUNTER;
  std::map<std::string, std::shared_ptr<Series>> series;  // by labels
};

struct TRITONSERVER_Metric {
  Counted counted{Kind::kMetric};
  TRITONSERVER_MetricFamily* family = nullptr;
  std::string labels;
  std::shared_ptr<Series> series = std::make_shared<Series>();
};

struct TRITONBACKEND_Output {
  stand_in::Answer* answer = nullptr;
  std::string name;
  TRITONBACKEND_Request* request = nullptr;
  char* on_gpu = nullptr;  // where its bytes are until the response is sent
};

struct TRITONBACKEND_Response {
  Counted counted{Kind::kResponse};
  TRITONBACKEND_Request* request = nullptr;
  stand_in::Answer answer;
  std::vector<std::unique_ptr<TRITONBACKEND_Output>> outputs;
};

struct TRITONBACKEND_ResponseFactory {
  Counted counted{Kind::kResponseFactory};
  TRITONBACKEND_Request* request = nullptr;
};

// Kept by the request until its end, as by a server for the sequence.
struct TRITONBACKEND_State {
  Counted counted{Kind::kState};
  TRITONBACKEND_Request* request = nullptr;
  std::string name;
  stand_in::Tensor tensor;
};

namespace {

constexpr std::array<const char*, static_cast<size_t>(Kind::kCount)> kKindNames{
    "engine",        "error",     "message",  "metric",           "metric arguments",
    "metric family", "parameter", "response", "response factory", "state"};

struct Ledger {
  std::array<std::atomic<int64_t>, static_cast<size_t>(Kind::kCount)> alive{};
  std::mutex mutex;  // of all that follows
  std::vector<std::string> violations;
  std::vector<std::string> log;
  std::set<TRITONSERVER_MetricFamily*> families;
};

Ledger& TheLedger() {
  static Ledger ledger;
  return ledger;
}

TRITONSERVER_Error* Failure(TRITONSERVER_Error_Code code, const std::string& message) {
  return TRITONSERVER_ErrorNew(code, message.c_str());
}

TRITONSERVER_Error* FailureOf(const TRITONBACKEND_Request& request, const char* function) {
  return request.Fails(function)
             ? Failure(TRITONSERVER_ERROR_INTERNAL, std::string(function) + " fails on demand")
             : nullptr;
}

TRITONSERVER_Error* NewMetric(TRITONSERVER_Metric** metric, TRITONSERVER_MetricFamily* family,
                              const TRITONSERVER_Parameter** labels, uint64_t count) {
  auto made = std::make_unique<TRITONSERVER_Metric>();
  made->family = family;
  for (uint64_t i = 0; i < count; ++i) {
    made->labels += (i == 0 ? "" : ",") + labels[i]->name + "=" + labels[i]->value;
  }
  const std::lock_guard<std::mutex> lock(TheLedger().mutex);
  if (!family->series.emplace(made->labels, made->series).second) {
    // A server gives both the same metric, and the first one's end takes it from the second.
    TheLedger().violations.push_back("a second metric " + family->name + "{" + made->labels + "}");
  }
  *metric = made.release();
  return nullptr;
}

TRITONSERVER_Error* AddToMetric(TRITONSERVER_Metric* metric, double value) {
  if (value < 0) {
    return Failure(TRITONSERVER_ERROR_INVALID_ARG, "a counter cannot fall");
  }
  if (metric->series->ended.load(std::memory_order_relaxed)) {
    Violation("metric " + metric->family->name + " used after its end");
  }
  std::atomic<double>& sum = metric->series->value;
  double old = sum.load(std::memory_order_relaxed);
  while (!sum.compare_exchange_weak(old, old + value, std::memory_order_relaxed)) {
  }
  return nullptr;
}

void Send(TRITONBACKEND_Request* request, stand_in::Answer answer) {
  if (request->releases > 0) {
    Violation("a response after the request was released");
  }
  if (request->finals > 0) {
    Violation("a response after the final one");
  }
  if (answer.final) {
    ++request->finals;
  }
  request->answers.push_back(std::move(answer));
  if (request->answers.size() >= request->cancel_after) {
    request->cancelled = true;
  }
}

}  // namespace

namespace stand_in {

Bytes ToBytes(const std::string& text) { return {text.begin(), text.end()}; }

Counted::Counted(Kind kind) : kind_(kind) {
  TheLedger().alive[static_cast<size_t>(kind_)].fetch_add(1, std::memory_order_relaxed);
}

Counted::~Counted() {
  TheLedger().alive[static_cast<size_t>(kind_)].fetch_sub(1, std::memory_order_relaxed);
}

std::map<std::string, int64_t> Alive() {
  std::map<std::string, int64_t> left;
  for (size_t kind = 0; kind < kKindNames.size(); ++kind) {
    if (const int64_t count = TheLedger().alive[kind].load(); count != 0) {
      left[kKindNames[kind]] = count;
    }
  }
  return left;
}

void Violation(const std::string& what) {
  const std::lock_guard<std::mutex> lock(TheLedger().mutex);
  TheLedger().violations.push_back(what);
}

std::vector<std::string> TakeViolations() {
  const std::lock_guard<std::mutex> lock(TheLedger().mutex);
  return std::exchange(TheLedger().violations, {});
}

std::vector<std::string> TakeLog() {
  const std::lock_guard<std::mutex> lock(TheLedger().mutex);
  return std::exchange(TheLedger().log, {});
}

double MetricValue(const std::string& family, const std::string& labels) {
  const std::lock_guard<std::mutex> lock(TheLedger().mutex);
  for (const TRITONSERVER_MetricFamily* one : TheLedger().families) {
    const auto found = one->series.find(labels);
    if (one->name == family && found != one->series.end()) {
      return found->second->value.load();
    }
  }
  return -1;
}

Settings& TheSettings() {
  static Settings settings;
  return settings;
}

Backend::Backend() {
  handle.config = std::make_unique<TRITONSERVER_Message>();
  handle.config->json = TheSettings().backend_config;
  status_ = triton_jax::FromTriton(TRITONBACKEND_Initialize(&handle));
}

Backend::~Backend() {
  if (!triton_jax::FromTriton(TRITONBACKEND_Finalize(&handle)).ok()) {
    Violation("Finalize failed");
  }
}

Model::Model(Backend* backend, const std::string& name, uint64_t version, bool complete) {
  handle.name = name;
  handle.version = version;
  handle.complete = complete;
  handle.backend = &backend->handle;
  status_ = triton_jax::FromTriton(TRITONBACKEND_ModelInitialize(&handle));
}

Model::~Model() {
  // A server calls it also after a failed Initialize.
  if (!triton_jax::FromTriton(TRITONBACKEND_ModelFinalize(&handle)).ok()) {
    Violation("ModelFinalize failed");
  }
}

Instance::Instance(Model* model, const std::string& name) {
  handle.name = name;
  handle.model = &model->handle;
  status_ = triton_jax::FromTriton(TRITONBACKEND_ModelInstanceInitialize(&handle));
}

Instance::~Instance() {
  if (!triton_jax::FromTriton(TRITONBACKEND_ModelInstanceFinalize(&handle)).ok()) {
    Violation("ModelInstanceFinalize failed");
  }
}

triton_jax::Status Instance::Ready() {
  return triton_jax::FromTriton(TRITONBACKEND_ModelInstanceReady(&handle));
}

triton_jax::Status Instance::Execute(const std::vector<Request*>& requests) {
  triton_jax::Status status = Start(requests);
  Await(requests);
  return status;
}

triton_jax::Status Instance::Start(const std::vector<Request*>& requests) {
  std::vector<Request*> handed = requests;
  return triton_jax::FromTriton(TRITONBACKEND_ModelInstanceExecute(
      &handle, handed.data(), static_cast<uint32_t>(handed.size())));
}

void Instance::Await(const std::vector<Request*>& requests) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  for (const Request* request : requests) {
    while (request->releases == 0 && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    const bool answerable = !request->Fails("TRITONBACKEND_ResponseNew") &&
                            !request->Fails("TRITONBACKEND_ResponseFactoryNew");
    if (request->releases != 1 || request->finals != (answerable ? 1 : 0) ||
        request->statistics != 1) {
      Violation("a request with " + std::to_string(request->finals) + " final responses, " +
                std::to_string(request->releases) + " releases and " +
                std::to_string(request->statistics) + " reports");
    }
    if (!std::is_sorted(std::begin(request->times), std::end(request->times))) {
      Violation("times of a request out of order");
    }
  }
}

}  // namespace stand_in

void TRITONBACKEND_Request::Add(const std::string& input, stand_in::Tensor tensor) {
  TRITONBACKEND_Input& made = inputs[input];
  made.name = input;
  made.dtype = tensor.dtype;
  made.shape = std::move(tensor.shape);
  made.pieces.push_back(std::move(tensor.bytes));
}

bool TRITONBACKEND_Request::Fails(const char* function) const {
  return std::find(failing.begin(), failing.end(), function) != failing.end();
}

const stand_in::Answer& TRITONBACKEND_Request::answer() const {
  if (answers.size() != 1) {
    Violation("expected one answer, got " + std::to_string(answers.size()));
    static const stand_in::Answer none;
    return answers.empty() ? none : answers.front();
  }
  return answers.front();
}

extern "C" {

TRITONSERVER_Error* TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code code, const char* msg) {
  auto error = std::make_unique<TRITONSERVER_Error>();
  error->code = code;
  error->message = msg;
  return error.release();
}

void TRITONSERVER_ErrorDelete(TRITONSERVER_Error* error) { delete error; }

TRITONSERVER_Error_Code TRITONSERVER_ErrorCode(TRITONSERVER_Error* error) { return error->code; }

const char* TRITONSERVER_ErrorMessage(TRITONSERVER_Error* error) { return error->message.c_str(); }

bool TRITONSERVER_LogIsEnabled(TRITONSERVER_LogLevel level) {
  return level != TRITONSERVER_LOG_VERBOSE || stand_in::TheSettings().log_verbose;
}

TRITONSERVER_Error* TRITONSERVER_LogMessage(TRITONSERVER_LogLevel level, const char* /*filename*/,
                                            const int /*line*/, const char* msg) {
  constexpr const char* kNames[] = {"info", "warning", "error", "verbose"};
  const std::lock_guard<std::mutex> lock(TheLedger().mutex);
  TheLedger().log.push_back(std::string(kNames[level]) + ": " + msg);
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_MessageNewFromSerializedJson(TRITONSERVER_Message** message,
                                                              const char* base, size_t byte_size) {
  auto made = std::make_unique<TRITONSERVER_Message>();
  made->json.assign(base, byte_size);
  *message = made.release();
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_MessageDelete(TRITONSERVER_Message* message) {
  delete message;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_MessageSerializeToJson(TRITONSERVER_Message* message,
                                                        const char** base, size_t* byte_size) {
  *base = message->json.data();
  *byte_size = message->json.size();
  return nullptr;
}

TRITONSERVER_Parameter* TRITONSERVER_ParameterNew(const char* name,
                                                  const TRITONSERVER_ParameterType /*type*/,
                                                  const void* value) {
  auto parameter = std::make_unique<TRITONSERVER_Parameter>();
  parameter->name = name;
  parameter->value = static_cast<const char*>(value);
  return parameter.release();
}

void TRITONSERVER_ParameterDelete(TRITONSERVER_Parameter* parameter) { delete parameter; }

TRITONSERVER_Error* TRITONSERVER_MetricFamilyNew(TRITONSERVER_MetricFamily** family,
                                                 const TRITONSERVER_MetricKind kind,
                                                 const char* name, const char* /*description*/) {
  if (!stand_in::TheSettings().metrics) {
    return Failure(TRITONSERVER_ERROR_UNSUPPORTED, "metrics not supported");
  }
  auto made = std::make_unique<TRITONSERVER_MetricFamily>();
  made->name = name;
  made->kind = kind;
  const std::lock_guard<std::mutex> lock(TheLedger().mutex);
  TheLedger().families.insert(made.get());
  *family = made.release();
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_MetricFamilyDelete(TRITONSERVER_MetricFamily* family) {
  {
    const std::lock_guard<std::mutex> lock(TheLedger().mutex);
    if (!family->series.empty()) {
      TheLedger().violations.push_back("metric family " + family->name +
                                       " ended before its metrics");
    }
    TheLedger().families.erase(family);
  }
  delete family;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_MetricNew(TRITONSERVER_Metric** metric,
                                           TRITONSERVER_MetricFamily* family,
                                           const TRITONSERVER_Parameter** labels,
                                           const uint64_t label_count) {
  return NewMetric(metric, family, labels, label_count);
}

TRITONSERVER_Error* TRITONSERVER_MetricDelete(TRITONSERVER_Metric* metric) {
  {
    const std::lock_guard<std::mutex> lock(TheLedger().mutex);
    metric->series->ended = true;
    metric->family->series.erase(metric->labels);
  }
  delete metric;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_MetricIncrement(TRITONSERVER_Metric* metric, double value) {
  return AddToMetric(metric, value);
}

// Functions that are newer than the oldest release: the core finds them by name.

TRITONSERVER_Error* TRITONSERVER_MetricArgsNew(TRITONSERVER_MetricArgs** arguments) {
  *arguments = std::make_unique<TRITONSERVER_MetricArgs>().release();
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_MetricArgsSetHistogram(TRITONSERVER_MetricArgs* arguments,
                                                        const double* bounds, uint64_t count) {
  arguments->bounds.assign(bounds, bounds + count);
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_MetricArgsDelete(TRITONSERVER_MetricArgs* arguments) {
  delete arguments;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_MetricNewWithArgs(TRITONSERVER_Metric** metric,
                                                   TRITONSERVER_MetricFamily* family,
                                                   const TRITONSERVER_Parameter** labels,
                                                   uint64_t label_count,
                                                   const TRITONSERVER_MetricArgs* /*arguments*/) {
  return NewMetric(metric, family, labels, label_count);
}

TRITONSERVER_Error* TRITONSERVER_MetricObserve(TRITONSERVER_Metric* metric, double value) {
  return AddToMetric(metric, value);
}

TRITONSERVER_Error* TRITONBACKEND_RequestIsCancelled(TRITONBACKEND_Request* request,
                                                     bool* cancelled) {
  *cancelled = request->cancelled;
  return FailureOf(*request, "TRITONBACKEND_RequestIsCancelled");
}

TRITONSERVER_Error* TRITONBACKEND_ResponseFactoryIsCancelled(TRITONBACKEND_ResponseFactory* factory,
                                                             bool* cancelled) {
  *cancelled = factory->request->cancelled;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ApiVersion(uint32_t* major, uint32_t* minor) {
  *major = stand_in::TheSettings().api_major;
  *minor = stand_in::TheSettings().api_minor;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_BackendName(TRITONBACKEND_Backend* /*backend*/,
                                              const char** name) {
  *name = "jax";
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_BackendConfig(TRITONBACKEND_Backend* backend,
                                                TRITONSERVER_Message** backend_config) {
  *backend_config = backend->config.get();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_BackendSetExecutionPolicy(TRITONBACKEND_Backend* backend,
                                                            TRITONBACKEND_ExecutionPolicy policy) {
  backend->policy = policy;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_BackendArtifacts(TRITONBACKEND_Backend* /*backend*/,
                                                   TRITONBACKEND_ArtifactType* artifact_type,
                                                   const char** location) {
  *artifact_type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
  *location = "/backends/jax";
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_BackendState(TRITONBACKEND_Backend* backend, void** state) {
  *state = backend->state;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_BackendSetState(TRITONBACKEND_Backend* backend, void* state) {
  backend->state = state;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelName(TRITONBACKEND_Model* model, const char** name) {
  *name = model->name.c_str();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelVersion(TRITONBACKEND_Model* model, uint64_t* version) {
  *version = model->version;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelRepository(TRITONBACKEND_Model* model,
                                                  TRITONBACKEND_ArtifactType* artifact_type,
                                                  const char** location) {
  *artifact_type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
  *location = model->location.c_str();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelConfig(TRITONBACKEND_Model* model,
                                              const uint32_t /*config_version*/,
                                              TRITONSERVER_Message** model_config) {
  return TRITONSERVER_MessageNewFromSerializedJson(model_config, model->config.data(),
                                                   model->config.size());
}

TRITONSERVER_Error* TRITONBACKEND_ModelAutoCompleteConfig(TRITONBACKEND_Model* model,
                                                          bool* auto_complete_config) {
  *auto_complete_config = model->complete;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelSetConfig(TRITONBACKEND_Model* model,
                                                 const uint32_t /*config_version*/,
                                                 TRITONSERVER_Message* model_config) {
  if (stand_in::TheSettings().takes_decoupled) {
    model->config = model_config->json;
  }
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelBackend(TRITONBACKEND_Model* model,
                                               TRITONBACKEND_Backend** backend) {
  *backend = model->backend;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelState(TRITONBACKEND_Model* model, void** state) {
  *state = model->state;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelSetState(TRITONBACKEND_Model* model, void* state) {
  model->state = state;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceName(TRITONBACKEND_ModelInstance* instance,
                                                    const char** name) {
  *name = instance->name.c_str();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceKind(TRITONBACKEND_ModelInstance* instance,
                                                    TRITONSERVER_InstanceGroupKind* kind) {
  *kind = instance->kind;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceDeviceId(TRITONBACKEND_ModelInstance* instance,
                                                        int32_t* device_id) {
  *device_id = instance->device_id;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceModel(TRITONBACKEND_ModelInstance* instance,
                                                     TRITONBACKEND_Model** model) {
  *model = instance->model;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceState(TRITONBACKEND_ModelInstance* instance,
                                                     void** state) {
  *state = instance->state;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceSetState(TRITONBACKEND_ModelInstance* instance,
                                                        void* state) {
  instance->state = state;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportStatistics(
    TRITONBACKEND_ModelInstance* /*instance*/, TRITONBACKEND_Request* request, const bool success,
    const uint64_t exec_start_ns, const uint64_t compute_start_ns, const uint64_t compute_end_ns,
    const uint64_t exec_end_ns) {
  if (request->releases > 0) {
    Violation("statistics of a request that was released");
  }
  ++request->statistics;
  request->statistics_success = success;
  request->times[0] = exec_start_ns;
  request->times[1] = compute_start_ns;
  request->times[2] = compute_end_ns;
  request->times[3] = exec_end_ns;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportBatchStatistics(
    TRITONBACKEND_ModelInstance* instance, const uint64_t batch_size, const uint64_t exec_start_ns,
    const uint64_t compute_start_ns, const uint64_t compute_end_ns, const uint64_t exec_end_ns) {
  const uint64_t times[] = {exec_start_ns, compute_start_ns, compute_end_ns, exec_end_ns};
  if (!std::is_sorted(std::begin(times), std::end(times))) {
    Violation("times of a batch out of order");
  }
  instance->batches.push_back(batch_size);
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_RequestCorrelationId(TRITONBACKEND_Request*, uint64_t* id) {
  *id = 1;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_RequestInput(TRITONBACKEND_Request* request, const char* name,
                                               TRITONBACKEND_Input** input) {
  const auto found = request->inputs.find(name);
  if (found == request->inputs.end()) {
    return Failure(TRITONSERVER_ERROR_INVALID_ARG, std::string("unknown request input ") + name);
  }
  *input = &found->second;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_RequestOutputCount(TRITONBACKEND_Request* request,
                                                     uint32_t* count) {
  *count = static_cast<uint32_t>(request->wanted.size());
  return FailureOf(*request, "TRITONBACKEND_RequestOutputCount");
}

TRITONSERVER_Error* TRITONBACKEND_RequestOutputName(TRITONBACKEND_Request* request,
                                                    const uint32_t index,
                                                    const char** output_name) {
  *output_name = request->wanted.at(index).c_str();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_RequestRelease(TRITONBACKEND_Request* request,
                                                 uint32_t release_flags) {
  if (release_flags != TRITONSERVER_REQUEST_RELEASE_ALL) {
    Violation("a request released with flags " + std::to_string(release_flags));
  }
  ++request->releases;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_InputProperties(TRITONBACKEND_Input* input, const char** name,
                                                  TRITONSERVER_DataType* datatype,
                                                  const int64_t** shape, uint32_t* dims_count,
                                                  uint64_t* byte_size, uint32_t* buffer_count) {
  if (name != nullptr) {
    *name = input->name.c_str();
  }
  if (datatype != nullptr) {
    *datatype = input->dtype;
  }
  if (shape != nullptr) {
    *shape = input->shape.data();
  }
  if (dims_count != nullptr) {
    *dims_count = static_cast<uint32_t>(input->shape.size());
  }
  if (byte_size != nullptr) {
    *byte_size = 0;
    for (const stand_in::Bytes& piece : input->pieces) {
      *byte_size += piece.size();
    }
  }
  if (buffer_count != nullptr) {
    *buffer_count = static_cast<uint32_t>(input->pieces.size());
  }
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_InputBuffer(TRITONBACKEND_Input* input, const uint32_t index,
                                              const void** buffer, uint64_t* buffer_byte_size,
                                              TRITONSERVER_MemoryType* memory_type,
                                              int64_t* memory_type_id) {
  if (index >= input->pieces.size()) {
    Violation("input buffer " + std::to_string(index) + " of " +
              std::to_string(input->pieces.size()));
    return Failure(TRITONSERVER_ERROR_INVALID_ARG, "no such buffer");
  }
  *buffer = index == 0 && input->first_piece != nullptr ? input->first_piece
                                                        : input->pieces[index].data();
  *buffer_byte_size = input->pieces[index].size();
  *memory_type = input->memory;
  *memory_type_id = 0;
  if (const auto found = input->on_gpu.find(index); found != input->on_gpu.end()) {
    *buffer = found->second.first;
    *memory_type = TRITONSERVER_MEMORY_GPU;
    *memory_type_id = found->second.second;
  }
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ResponseNew(TRITONBACKEND_Response** response,
                                              TRITONBACKEND_Request* request) {
  if (TRITONSERVER_Error* error = FailureOf(*request, "TRITONBACKEND_ResponseNew")) {
    return error;
  }
  auto made = std::make_unique<TRITONBACKEND_Response>();
  made->request = request;
  *response = made.release();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ResponseDelete(TRITONBACKEND_Response* response) {
  delete response;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ResponseOutput(TRITONBACKEND_Response* response,
                                                 TRITONBACKEND_Output** output, const char* name,
                                                 const TRITONSERVER_DataType datatype,
                                                 const int64_t* shape, const uint32_t dims_count) {
  stand_in::Tensor tensor;
  tensor.dtype = datatype;
  tensor.shape.assign(shape, shape + dims_count);
  if (!response->answer.outputs.emplace(name, std::move(tensor)).second) {
    Violation(std::string("output ") + name + " twice in a response");
  }
  response->outputs.push_back(std::make_unique<TRITONBACKEND_Output>(
      TRITONBACKEND_Output{&response->answer, name, response->request, nullptr}));
  *output = response->outputs.back().get();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_OutputBuffer(TRITONBACKEND_Output* output, void** buffer,
                                               const uint64_t buffer_byte_size,
                                               TRITONSERVER_MemoryType* memory_type,
                                               int64_t* memory_type_id) {
  if (TRITONSERVER_Error* error = FailureOf(*output->request, "TRITONBACKEND_OutputBuffer")) {
    return error;
  }
  stand_in::Bytes& bytes = output->answer->outputs.at(output->name).bytes;
  bytes = stand_in::Bytes(buffer_byte_size, '\x5a');
  *buffer = bytes.data();
  if (!output->request->output_where_asked) {
    *memory_type = output->request->output_memory;
    *memory_type_id = output->request->output_gpu;
  }
  if (*memory_type == TRITONSERVER_MEMORY_GPU) {
    output->on_gpu =
        stand_in::GpuAllocate(static_cast<int>(*memory_type_id), std::max<size_t>(bytes.size(), 1));
    *buffer = output->on_gpu;
  }
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ResponseSend(TRITONBACKEND_Response* response,
                                               const uint32_t send_flags,
                                               TRITONSERVER_Error* error) {
  std::unique_lock<std::mutex> sending;
  if (stand_in::TheSettings().sending != nullptr) {
    sending = std::unique_lock<std::mutex>(*stand_in::TheSettings().sending);
  }
  response->answer.final = send_flags == TRITONSERVER_RESPONSE_COMPLETE_FINAL;
  for (const auto& output : response->outputs) {
    if (output->on_gpu != nullptr) {
      stand_in::Bytes& bytes = response->answer.outputs.at(output->name).bytes;
      bytes = stand_in::GpuRead(output->on_gpu, bytes.size());
      stand_in::GpuFree(output->on_gpu);
    }
  }
  if (error != nullptr) {
    response->answer.status = {static_cast<triton_jax::Code>(error->code), error->message};
    response->answer.outputs.clear();
  }
  Send(response->request, std::move(response->answer));
  delete response;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ResponseFactoryNew(TRITONBACKEND_ResponseFactory** factory,
                                                     TRITONBACKEND_Request* request) {
  if (TRITONSERVER_Error* error = FailureOf(*request, "TRITONBACKEND_ResponseFactoryNew")) {
    return error;
  }
  auto made = std::make_unique<TRITONBACKEND_ResponseFactory>();
  made->request = request;
  *factory = made.release();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ResponseFactoryDelete(TRITONBACKEND_ResponseFactory* factory) {
  delete factory;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ResponseFactorySendFlags(TRITONBACKEND_ResponseFactory* factory,
                                                           const uint32_t send_flags) {
  stand_in::Answer answer;
  answer.final = send_flags == TRITONSERVER_RESPONSE_COMPLETE_FINAL;
  Send(factory->request, std::move(answer));
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ResponseNewFromFactory(TRITONBACKEND_Response** response,
                                                         TRITONBACKEND_ResponseFactory* factory) {
  if (TRITONSERVER_Error* error =
          FailureOf(*factory->request, "TRITONBACKEND_ResponseNewFromFactory")) {
    return error;
  }
  return TRITONBACKEND_ResponseNew(response, factory->request);
}

TRITONSERVER_Error* TRITONBACKEND_StateNew(TRITONBACKEND_State** state,
                                           TRITONBACKEND_Request* request, const char* name,
                                           const TRITONSERVER_DataType datatype,
                                           const int64_t* shape, const uint32_t dims_count) {
  stand_in::Tensor tensor;
  tensor.dtype = datatype;
  tensor.shape.assign(shape, shape + dims_count);
  // Until it is updated it is nobody's but the core's; a server keeps it with the sequence.
  auto made = std::make_unique<TRITONBACKEND_State>();
  made->request = request;
  made->name = name;
  made->tensor = std::move(tensor);
  *state = made.release();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_StateBuffer(TRITONBACKEND_State* state, void** buffer,
                                              const uint64_t buffer_byte_size,
                                              TRITONSERVER_MemoryType* memory_type,
                                              int64_t* memory_type_id) {
  state->tensor.bytes = stand_in::Bytes(buffer_byte_size, '\x5a');
  *buffer = state->tensor.bytes.data();
  *memory_type = TRITONSERVER_MEMORY_CPU;
  *memory_type_id = 0;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_StateUpdate(TRITONBACKEND_State* state) {
  state->request->states[state->name] = std::move(state->tensor);
  delete state;
  return nullptr;
}

}  // extern "C"
