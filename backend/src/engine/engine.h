// SPDX-License-Identifier: Apache-2.0
//
// The interface between the core, which knows Triton, and an engine, which knows how to run models.
// Neither side sees the other's world: no Triton type and no Python type appears here.
//
// No method throws; objects live in the library that made them and are destroyed through it.

#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "status.h"

namespace triton_jax {

using Dims = std::vector<int64_t>;

// Values equal Triton's data types.
enum class DataType {
  kInvalid = 0,
  kBool = 1,
  kUint8 = 2,
  kUint16 = 3,
  kUint32 = 4,
  kUint64 = 5,
  kInt8 = 6,
  kInt16 = 7,
  kInt32 = 8,
  kInt64 = 9,
  kFp16 = 10,
  kFp32 = 11,
  kFp64 = 12,
  kBytes = 13,
  kBf16 = 14,
};

enum class LogLevel { kInfo = 0, kWarning = 1, kError = 2, kVerbose = 3 };

// Values equal Triton's instance group kinds.
enum class DeviceKind { kAuto = 0, kCpu = 1, kGpu = 2, kModel = 3 };

// What an engine may ask of the process that hosts it. Outlives every engine; thread-safe.
class Host {
 public:
  virtual ~Host() = default;
  virtual bool LogIsEnabled(LogLevel level) = 0;
  virtual void Log(LogLevel level, const char* file, int line, const char* message) = 0;
};

enum class Event {
  kCompiled,   // a program was traced, lowered and compiled; value: seconds
  kCacheHit,   // ... or rather taken from the persistent compile cache
  kCacheMiss,  // ... which did not have it
  kEvicted,    // a program was given up, to keep to the bound on their number
  kInTraffic,  // the program that was compiled is one that a request waited for
  kPredicted,  // the compiled function was called, other than by Instance::Run
};

// What an engine reports of one model while it runs. Outlives the model; thread-safe.
class ModelObserver {
 public:
  virtual ~ModelObserver() = default;
  // `device` as in Instance::Device.
  virtual void Observe(Event event, const std::string& device, double value) = 0;
};

// An input or output.
//
// The dimensions of all inputs that vary are numbered in the order in which they stand: the first
// -1 of the first input that has one is number 0.
struct TensorSpec {
  std::string name;
  DataType dtype = DataType::kInvalid;
  Dims dims;  // without the batch dimension; -1 where it varies

  // Inputs:
  bool optional = false;  // a request may leave it out
  bool ragged = false;    // requests of one batch may differ in the dimensions that vary
  Dims lengths;  // what dimensions that vary are padded to, in rising order; empty: nothing

  // Outputs:
  bool state = false;  // kept by the server for the sequence, not sent to the client
  // For each dimension, the number of the input dimension that it is as long as; -1: none.
  std::vector<int> follows;
};

struct ModelSpec {
  std::string name;
  uint64_t version = 0;
  std::string directory;    // of the model in its repository
  std::string config_json;  // the model configuration as Triton has it
  bool complete_config = false;
  int64_t default_max_batch_size = 0;
};

struct ModelDescription {
  std::string config_json;     // completed from the model where completion was asked for
  int64_t max_batch_size = 0;  // 0: the model has no batch dimension
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  bool decoupled = false;    // a request is answered by any number of responses
  bool phase_times = false;  // the phases of an execution are timed

  // Whether an output becomes an input of the sequence's next request.
  bool HasState() const {
    return std::any_of(outputs.begin(), outputs.end(),
                       [](const TensorSpec& spec) { return spec.state; });
  }
};

struct InstanceSpec {
  std::string name;
  DeviceKind kind = DeviceKind::kAuto;
  int32_t device_id = 0;
  bool gpu_memory = false;  // whether the caller copies from and to memory of GPUs
};

// One input of a batch, before it is filled.
struct InputShape {
  bool present = true;
  Dims dims;  // without the batch dimension; padded

  bool operator==(const InputShape& other) const {
    return present == other.present && dims == other.dims;
  }
  bool operator<(const InputShape& other) const {
    return present != other.present ? present < other.present : dims < other.dims;
  }
};

// Where the bytes of one input of the next run go. For BYTES, the caller sets it to what it has
// gathered: the elements of the real rows, each a 4-byte little-endian length and that many bytes.
struct InputBuffer {
  char* data = nullptr;  // 64-byte aligned, `bytes` long; null for BYTES and what is not present
  size_t bytes = 0;      // for the padded batch
  // For each row of the padded batch, and each dimension that varies, how much of it is real; null
  // where nobody asks.
  int32_t* lengths = nullptr;
  size_t length_count = 0;
  // Whether `in_place` may be in the host's memory.
  bool takes_in_place = false;
  // Set by the caller, which then does not fill `data`: where the same bytes are already, complete,
  // and left as they are until Run has returned. They are in memory of the GPU that Instance::Gpu
  // says, aligned to 256 bytes; or, where that is none, in the host's, aligned to 64.
  const char* in_place = nullptr;
};

// Where the bytes of one output of the last run are: complete, contiguous, row-major.
struct OutputBuffer {
  const char* data = nullptr;
  int gpu = -1;  // the number of the GPU whose memory it is; negative: the host's
  size_t bytes = 0;
  // With the batch dimension first, if the model has one, of at least the real rows; [1] for a
  // scalar.
  Dims dims;
  // BYTES: where each element starts, and the end of the last one.
  std::vector<size_t> offsets;
};

// Runs one batch at a time: Prepare, fill the inputs, Run, read the outputs, Finish. A decoupled
// model takes Start instead of Run, and then Next for each response.
// Not thread-safe: each instance belongs to one thread at a time.
class Instance {
 public:
  virtual ~Instance() = default;
  // Where it runs: "cpu:0".
  virtual const std::string& Device() const = 0;
  // The number of the GPU in whose memory it takes inputs; negative if only in the host's.
  virtual int Gpu() const = 0;
  // Readies storage for `rows` rows (1 if the model has no batch dimension) of inputs of `shapes`,
  // in the order of ModelDescription::inputs. The caller fills every byte: what is beyond the
  // real dimensions with zeros, and rows beyond `rows` with copies of the last real one, which can
  // do nothing in the model that the real rows do not.
  virtual Status Prepare(int64_t rows, const std::vector<InputShape>& shapes,
                         std::vector<InputBuffer>* inputs) = 0;
  // The rows of what was prepared, with padding.
  virtual int64_t PaddedRows() const = 0;
  // Runs what was prepared, to its end: the inputs are not read afterwards. The outputs, in the
  // order of ModelDescription::outputs, stay valid until Finish.
  virtual Status Run(const std::vector<InputBuffer>& inputs,
                     std::vector<OutputBuffer>* outputs) = 0;
  // Begins what was prepared.
  virtual Status Start(const std::vector<InputBuffer>& inputs) = 0;
  // The outputs of the next response, valid until the next call; *end is set after the last one.
  virtual Status Next(std::vector<OutputBuffer>* outputs, bool* end) = 0;
  // Gives up the outputs of the last Run. Must follow every Prepare, whatever came of it.
  virtual void Finish() = 0;
};

class Model {
 public:
  virtual ~Model() = default;
  virtual const ModelDescription& Description() const = 0;
  // Places the model on the device asked for and compiles it for every batch size that is known
  // beforehand. Thread-safe. Instances must be gone before the model is.
  virtual Status CreateInstance(const InstanceSpec& spec, std::unique_ptr<Instance>* instance) = 0;
};

class Engine {
 public:
  virtual ~Engine() = default;
  // Thread-safe. `observer` outlives the model; models must be gone before the engine is.
  virtual Status LoadModel(const ModelSpec& spec, ModelObserver* observer,
                           std::unique_ptr<Model>* model) = 0;
};

}  // namespace triton_jax
