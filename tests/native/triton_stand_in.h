// SPDX-License-Identifier: Apache-2.0
//
// Stands in for the server: the part of Triton's C API that the core uses, inside the process of a
// test. Here, in engine_stand_in.h and in cuda_stand_in.h, and nowhere else in the project,
// something stands in for what is real, because sanitizers, fuzzers and failures on demand need
// both sides of the core in one hand. What is shown with it is shown of the core alone; the tests
// of tests/integration have real servers.
//
// It keeps a ledger: what is alive, and what the core did that a server would not forgive.

#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/status.h"
#include "triton_c_api.h"

namespace stand_in {

// Memory with nothing beside it, so that AddressSanitizer sees one byte too many.
using Bytes = std::vector<char>;

Bytes ToBytes(const std::string& text);

struct Tensor {
  TRITONSERVER_DataType dtype = TRITONSERVER_TYPE_INVALID;
  std::vector<int64_t> shape;
  Bytes bytes;

  bool operator==(const Tensor& other) const {
    return dtype == other.dtype && shape == other.shape && bytes == other.bytes;
  }
};

using Tensors = std::map<std::string, Tensor>;

// One response as the client gets it.
struct Answer {
  triton_jax::Status status;
  Tensors outputs;
  bool final = false;
};

// What is counted while it lives.
enum class Kind : size_t {
  kEngine,
  kError,
  kMessage,
  kMetric,
  kMetricArguments,
  kMetricFamily,
  kParameter,
  kResponse,
  kResponseFactory,
  kState,
  kCount,
};

// Counts its living objects in the ledger. What the core's threads do all the time here orders
// nothing between them (no locks, relaxed atomics): it would hide their races from ThreadSanitizer.
class Counted {
 public:
  explicit Counted(Kind kind);
  ~Counted();
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  Kind kind_;
};

// What is alive, by kind, and is not zero: empty after a clean end.
std::map<std::string, int64_t> Alive();

// What the core did wrong since the last call.
void Violation(const std::string& what);
std::vector<std::string> TakeViolations();

// What was logged since the last call, as "level: message".
std::vector<std::string> TakeLog();

// The value of a metric that exists; labels as "model=m,version=1,…". Negative if there is none.
double MetricValue(const std::string& family, const std::string& labels);

// Settings of the process, to be made before a Backend is.
struct Settings {
  uint32_t api_major = TRITON_JAX_BACKEND_API_MAJOR;
  uint32_t api_minor = TRITON_JAX_BACKEND_API_MINOR;
  bool metrics = true;          // as with --allow-metrics
  bool takes_decoupled = true;  // whether ModelSetConfig takes the transaction policy over
  bool log_verbose = false;
  std::mutex* sending = nullptr;  // taken while a response is sent
  std::string backend_config = R"({"cmdline":{"auto-complete-config":"true"}})";
};

Settings& TheSettings();

}  // namespace stand_in

struct TRITONSERVER_Message {
  stand_in::Counted counted{stand_in::Kind::kMessage};
  std::string json;
};

struct TRITONBACKEND_Input {
  std::string name;
  TRITONSERVER_DataType dtype = TRITONSERVER_TYPE_INVALID;
  std::vector<int64_t> shape;
  std::vector<stand_in::Bytes> pieces;  // the buffers that its bytes are in
  TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
  // Where those pieces are that are on a GPU, and on which one.
  std::map<size_t, std::pair<char*, int>> on_gpu;
  const char* first_piece = nullptr;  // where that is, if not in `pieces`
};

// A request, and what became of it. It belongs to the test, and is counted until it is released.
struct TRITONBACKEND_Request {
  std::map<std::string, TRITONBACKEND_Input> inputs;
  std::vector<std::string> wanted;  // outputs; empty: all
  std::atomic<bool> cancelled{false};
  TRITONSERVER_MemoryType output_memory = TRITONSERVER_MEMORY_CPU;
  bool output_where_asked = false;  // where the core asks for it, whatever output_memory is
  int output_gpu = 0;
  // Calls that fail, by the name of the function.
  std::vector<std::string> failing;
  // Cancels the request once it has this many answers.
  size_t cancel_after = SIZE_MAX;

  std::vector<stand_in::Answer> answers;
  stand_in::Tensors states;  // updated by the core
  int finals = 0;
  std::atomic<int> releases{0};  // whoever has seen it may read what else became of the request
  int statistics = 0;
  bool statistics_success = false;
  uint64_t times[4] = {};  // execute start, compute start, compute end, execute end

  // One contiguous input.
  void Add(const std::string& input, stand_in::Tensor tensor);
  bool Fails(const char* function) const;
  // The only answer of a model that is not decoupled.
  const stand_in::Answer& answer() const;
};

namespace stand_in {

using Request = TRITONBACKEND_Request;

}  // namespace stand_in

struct TRITONBACKEND_Backend {
  void* state = nullptr;
  TRITONBACKEND_ExecutionPolicy policy = TRITONBACKEND_EXECUTION_DEVICE_BLOCKING;
  std::unique_ptr<TRITONSERVER_Message> config;
};

struct TRITONBACKEND_Model {
  std::string name;
  uint64_t version = 1;
  std::string location = "/models/m";
  std::string config = "{}";
  bool complete = true;
  TRITONBACKEND_Backend* backend = nullptr;
  void* state = nullptr;
};

struct TRITONBACKEND_ModelInstance {
  std::string name;
  TRITONSERVER_InstanceGroupKind kind = TRITONSERVER_INSTANCEGROUPKIND_CPU;
  int32_t device_id = 0;
  TRITONBACKEND_Model* model = nullptr;
  void* state = nullptr;
  std::vector<uint64_t> batches;  // rows of each that was reported
};

namespace stand_in {

// A backend between Initialize and Finalize.
class Backend {
 public:
  Backend();
  ~Backend();
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  const triton_jax::Status& status() const { return status_; }
  TRITONBACKEND_Backend handle;

 private:
  triton_jax::Status status_;
};

// A model between its Initialize and its Finalize.
class Model {
 public:
  Model(Backend* backend, const std::string& name, uint64_t version = 1, bool complete = true);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const triton_jax::Status& status() const { return status_; }
  TRITONBACKEND_Model handle;

 private:
  triton_jax::Status status_;
};

// A model instance between its Initialize and its Finalize; used by one thread at a time.
class Instance {
 public:
  explicit Instance(Model* model, const std::string& name = "instance_0");
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  const triton_jax::Status& status() const { return status_; }
  triton_jax::Status Ready();
  // Runs the requests together, and checks that each of them is answered and released once.
  triton_jax::Status Execute(const std::vector<Request*>& requests);
  // Runs the requests together. They may be answered later.
  triton_jax::Status Start(const std::vector<Request*>& requests);
  // Waits until they are, and checks that it was done once. They are of this instance.
  static void Await(const std::vector<Request*>& requests);
  TRITONBACKEND_ModelInstance handle;

 private:
  triton_jax::Status status_;
};

}  // namespace stand_in
