// SPDX-License-Identifier: Apache-2.0

#include "engine_stand_in.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <new>

#include "bytes_elements.h"
#include "cuda_stand_in.h"
#include "data_type.h"
#include "engine/python_loader/python_engine_loader.h"
#include "triton_stand_in.h"

namespace stand_in {
namespace {

using triton_jax::Code;
using triton_jax::DataType;
using triton_jax::Dims;
using triton_jax::InputBuffer;
using triton_jax::InputShape;
using triton_jax::OutputBuffer;
using triton_jax::Status;
using triton_jax::TensorSpec;

constexpr char kStale = '\xa5';
constexpr size_t kMemoryLimit = size_t{1} << 28;

std::mutex scripts_mutex;
Status start_status;

std::map<std::string, std::shared_ptr<Script>>& Scripts() {
  static std::map<std::string, std::shared_ptr<Script>> scripts;
  return scripts;
}

// Aligned as the interface says, and not a byte longer than it has to be.
class Memory {
 public:
  explicit Memory(size_t bytes)
      : data_(static_cast<char*>(::operator new(bytes, std::align_val_t(64)))) {
    std::memset(data_, kStale, bytes);
  }
  ~Memory() { ::operator delete(data_, std::align_val_t(64)); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  char* data() { return data_; }

 private:
  char* data_;
};

size_t Varying(const TensorSpec& spec) {
  return static_cast<size_t>(std::count(spec.dims.begin(), spec.dims.end(), -1));
}

bool IsZero(const char* data, size_t bytes) {
  return std::all_of(data, data + bytes, [](char byte) { return byte == 0; });
}

// That rows of padding repeat the last real one, or are zeros where there is none.
void CheckRows(const char* data, size_t row_bytes, const Prepared& prepared, const char* what) {
  for (int64_t row = prepared.rows; row < prepared.padded_rows; ++row) {
    const char* padding = data + static_cast<size_t>(row) * row_bytes;
    const bool right = prepared.rows == 0
                           ? IsZero(padding, row_bytes)
                           : std::memcmp(padding, padding - row_bytes, row_bytes) == 0;
    if (!right && row_bytes > 0) {
      Violation(std::string("padding of ") + what + " does not repeat the last row");
      return;
    }
  }
}

// That a row holds zeros beyond its real dimensions.
void CheckBeyond(const char* row, const Dims& dims, const Dims& real, size_t element_bytes) {
  size_t count = 1;
  for (const int64_t dim : dims) {
    count *= static_cast<size_t>(dim);
  }
  for (size_t element = 0; element < count; ++element) {
    size_t rest = element;
    bool inside = true;
    for (size_t axis = dims.size(); axis-- > 0;) {
      inside = inside && rest % static_cast<size_t>(dims[axis]) < static_cast<size_t>(real[axis]);
      rest /= static_cast<size_t>(dims[axis]);
    }
    if (!inside && !IsZero(row + element * element_bytes, element_bytes)) {
      Violation("a row is not zero beyond its length");
      return;
    }
  }
}

class StandInInstance : public triton_jax::Instance {
 public:
  StandInInstance(std::shared_ptr<Script> script, triton_jax::ModelObserver* observer)
      : script_(std::move(script)), observer_(observer), device_(script_->device) {
    observer_->Observe(triton_jax::Event::kCompiled, device_, 0.25);
    observer_->Observe(triton_jax::Event::kInTraffic, device_, 1);
  }

  ~StandInInstance() override { FreeGpuOutputs(); }

  const std::string& Device() const override { return device_; }
  int Gpu() const override { return script_->gpu; }

  Status Prepare(int64_t rows, const std::vector<InputShape>& shapes,
                 std::vector<InputBuffer>* inputs) override {
    Enter(Phase::kIdle, Phase::kPrepared);
    if (!script_->prepare.ok()) {
      return script_->prepare;
    }
    prepared_ = {};
    prepared_.rows = rows;
    prepared_.shapes = shapes;
    const auto bucket = std::lower_bound(script_->buckets.begin(), script_->buckets.end(),
                                         std::max<int64_t>(rows, 1));
    const bool batching = script_->description.max_batch_size > 0;
    prepared_.padded_rows = batching && bucket != script_->buckets.end() ? *bucket : rows;
    memory_.clear();
    for (size_t i = 0; i < shapes.size(); ++i) {
      const TensorSpec& spec = script_->description.inputs[i];
      InputBuffer buffer;
      if (shapes[i].present && spec.dtype != DataType::kBytes) {
        const std::optional<size_t> row = triton_jax::TensorBytes(spec.dtype, shapes[i].dims);
        const auto padded_rows = static_cast<size_t>(prepared_.padded_rows);
        if (!row || *row > kMemoryLimit / std::max<size_t>(padded_rows, 1)) {
          return {Code::kUnavailable, "out of memory"};
        }
        buffer.bytes = *row * padded_rows;
        buffer.takes_in_place = script_->takes_in_place;
        buffer.data = memory_.emplace_back(std::make_unique<Memory>(buffer.bytes))->data();
        if (Varying(spec) > 0 && (spec.ragged || !spec.lengths.empty())) {
          buffer.length_count = padded_rows * Varying(spec);
          buffer.lengths = reinterpret_cast<int32_t*>(
              memory_.emplace_back(std::make_unique<Memory>(buffer.length_count * sizeof(int32_t)))
                  ->data());
        }
      }
      inputs->push_back(buffer);
    }
    return {};
  }

  int64_t PaddedRows() const override { return prepared_.padded_rows; }

  Status Run(const std::vector<InputBuffer>& inputs, std::vector<OutputBuffer>* outputs) override {
    Enter(Phase::kPrepared, Phase::kRun);
    if (const Status status = Begin(inputs); !status.ok()) {
      return status;
    }
    *outputs = Echo();
    return {};
  }

  Status Start(const std::vector<InputBuffer>& inputs) override {
    Enter(Phase::kPrepared, Phase::kStream);
    given_ = 0;
    return Begin(inputs);
  }

  Status Next(std::vector<OutputBuffer>* outputs, bool* end) override {
    Enter(Phase::kStream, Phase::kStream);
    if (script_->next != nullptr) {
      if (Status status = script_->next(given_); !status.ok()) {
        return status;
      }
    }
    *end = given_ >= script_->responses;
    if (!*end) {
      ++given_;
      *outputs = Echo();
      observer_->Observe(triton_jax::Event::kPredicted, device_, 0);
    }
    return {};
  }

  void Finish() override {
    phase_ = Phase::kIdle;
    memory_.clear();
    FreeGpuOutputs();
    prepared_.inputs.clear();
  }

 private:
  enum class Phase { kIdle, kPrepared, kRun, kStream };

  void Enter(Phase from, Phase to) {
    if (phase_.exchange(to) != from) {
      Violation("an instance was called out of turn");
    }
  }

  Status Begin(const std::vector<InputBuffer>& inputs) {
    prepared_.inputs = inputs;
    for (InputBuffer& input : prepared_.inputs) {
      if (input.in_place != nullptr) {
        const uintptr_t alignment = script_->gpu < 0 ? 64 : 256;
        if (reinterpret_cast<uintptr_t>(input.in_place) % alignment != 0) {
          Violation("an input in place that is not aligned");
        }
        if (script_->gpu < 0 && !input.takes_in_place) {
          Violation("an input in place that was not asked for");
        }
        const std::vector<char> data =
            script_->gpu < 0 ? std::vector<char>(input.in_place, input.in_place + input.bytes)
                             : GpuRead(input.in_place, input.bytes);
        input.data = memory_.emplace_back(std::make_unique<Memory>(data.size()))->data();
        std::memcpy(input.data, data.data(), data.size());
      }
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      Check(i);
    }
    script_->runs.fetch_add(1, std::memory_order_relaxed);
    script_->rows.fetch_add(prepared_.rows, std::memory_order_relaxed);
    return script_->run == nullptr ? Status() : script_->run(prepared_);
  }

  void Check(size_t i) const {
    const TensorSpec& spec = script_->description.inputs[i];
    const InputBuffer& buffer = prepared_.inputs[i];
    const Dims& dims = prepared_.shapes[i].dims;
    if (!prepared_.shapes[i].present) {
      return;
    }
    if (spec.dtype == DataType::kBytes) {
      size_t valid = 0;
      if (!triton_jax::AreElements(buffer.data, buffer.bytes, ElementCount(dims), &valid)) {
        Violation("BYTES elements are not those of the batch");
      }
      return;
    }
    const size_t row_bytes = triton_jax::TensorBytes(spec.dtype, dims).value();
    CheckRows(buffer.data, row_bytes, prepared_, "an input");
    if (buffer.lengths == nullptr) {
      return;
    }
    const size_t varying = Varying(spec);
    CheckRows(reinterpret_cast<const char*>(buffer.lengths), varying * sizeof(int32_t), prepared_,
              "lengths");
    for (int64_t row = 0; row < prepared_.rows; ++row) {
      const int32_t* next = buffer.lengths + static_cast<size_t>(row) * varying;
      Dims real = dims;
      for (size_t axis = 0; axis < dims.size(); ++axis) {
        if (spec.dims[axis] < 0) {
          real[axis] = *next++;
          if (real[axis] < 0 || real[axis] > dims[axis]) {
            Violation("a length that is larger than what it is padded to");
            return;
          }
        }
      }
      CheckBeyond(buffer.data + static_cast<size_t>(row) * row_bytes, dims, real,
                  triton_jax::ElementBytes(spec.dtype));
    }
  }

  size_t ElementCount(const Dims& dims) const {
    auto count = static_cast<size_t>(prepared_.rows);
    for (const int64_t dim : dims) {
      count *= static_cast<size_t>(dim);
    }
    return count;
  }

  std::vector<OutputBuffer> Echo() {
    std::vector<OutputBuffer> outputs;
    const bool batching = script_->description.max_batch_size > 0;
    for (size_t i = 0; i < script_->description.outputs.size(); ++i) {
      const TensorSpec& spec = script_->description.inputs[i];
      const InputBuffer& input = prepared_.inputs[i];
      OutputBuffer output;
      output.dims = prepared_.shapes[i].dims;
      if (!prepared_.shapes[i].present) {
        // Zeros, as short as can be.
        output.dims = spec.dims;
        std::replace(output.dims.begin(), output.dims.end(), int64_t{-1}, int64_t{0});
      }
      const size_t elements = ElementCount(output.dims);
      if (batching) {
        output.dims.insert(output.dims.begin(),
                           spec.dtype == DataType::kBytes ? prepared_.rows : prepared_.padded_rows);
      }
      if (prepared_.shapes[i].present) {
        output.data = input.data;
        output.bytes = input.bytes;
      } else {
        output.bytes = spec.dtype == DataType::kBytes
                           ? elements * sizeof(uint32_t)
                           : triton_jax::TensorBytes(spec.dtype, output.dims).value();
        Memory& zeros = *memory_.emplace_back(std::make_unique<Memory>(output.bytes));
        std::memset(zeros.data(), 0, output.bytes);
        output.data = zeros.data();
      }
      if (spec.dtype == DataType::kBytes) {
        size_t position = 0;
        for (size_t element = 0; element < elements; ++element) {
          output.offsets.push_back(position);
          uint32_t length = 0;
          std::memcpy(&length, output.data + position, sizeof length);
          position += sizeof length + length;
        }
        output.offsets.push_back(position);
      }
      if (script_->gpu >= 0 && spec.dtype != DataType::kBytes) {
        char* on_gpu = GpuAllocate(script_->gpu, std::max<size_t>(output.bytes, 1));
        GpuWrite(on_gpu, output.data, output.bytes);
        gpu_outputs_.push_back(on_gpu);
        output.data = on_gpu;
        output.gpu = script_->gpu;
      }
      outputs.push_back(std::move(output));
    }
    if (script_->outputs != nullptr) {
      script_->outputs(&outputs);
    }
    return outputs;
  }

  void FreeGpuOutputs() {
    for (char* output : gpu_outputs_) {
      GpuFree(output);
    }
    gpu_outputs_.clear();
  }

  std::shared_ptr<Script> script_;
  triton_jax::ModelObserver* observer_;
  std::string device_;
  std::vector<char*> gpu_outputs_;
  std::atomic<Phase> phase_{Phase::kIdle};
  Prepared prepared_;
  std::vector<std::unique_ptr<Memory>> memory_;
  int given_ = 0;
};

class StandInModel : public triton_jax::Model {
 public:
  StandInModel(std::shared_ptr<Script> script, triton_jax::ModelObserver* observer)
      : script_(std::move(script)), observer_(observer) {}

  const triton_jax::ModelDescription& Description() const override { return script_->description; }

  Status CreateInstance(const triton_jax::InstanceSpec& spec,
                        std::unique_ptr<triton_jax::Instance>* instance) override {
    script_->gpu_memory = spec.gpu_memory;
    if (script_->instance.ok()) {
      *instance = std::make_unique<StandInInstance>(script_, observer_);
    }
    return script_->instance;
  }

 private:
  std::shared_ptr<Script> script_;
  triton_jax::ModelObserver* observer_;
};

class StandInEngine : public triton_jax::Engine {
 public:
  Status LoadModel(const triton_jax::ModelSpec& spec, triton_jax::ModelObserver* observer,
                   std::unique_ptr<triton_jax::Model>* model) override {
    std::shared_ptr<Script> script;
    {
      const std::lock_guard<std::mutex> lock(scripts_mutex);
      script = Scripts()[spec.name];
    }
    if (script == nullptr) {
      return {Code::kNotFound, "no script for model " + spec.name};
    }
    if (script->load.ok()) {
      *model = std::make_unique<StandInModel>(script, observer);
    }
    return script->load;
  }

 private:
  Counted counted_{Kind::kEngine};
};

}  // namespace

void Define(const std::string& model, std::shared_ptr<Script> script) {
  const std::lock_guard<std::mutex> lock(scripts_mutex);
  Scripts()[model] = std::move(script);
}

void FailToStart(const Status& status) {
  const std::lock_guard<std::mutex> lock(scripts_mutex);
  start_status = status;
}

}  // namespace stand_in

namespace triton_jax {

std::shared_ptr<Engine> LoadPythonEngine(const PythonEngineSpec& /*spec*/, Host* host) {
  {
    const std::lock_guard<std::mutex> lock(stand_in::scripts_mutex);
    ThrowIfError(stand_in::start_status);
  }
  if (host->LogIsEnabled(LogLevel::kInfo)) {
    host->Log(LogLevel::kInfo, __FILE__, __LINE__, "the engine that stands in");
  }
  return std::make_shared<stand_in::StandInEngine>();
}

}  // namespace triton_jax
