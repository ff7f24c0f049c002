// SPDX-License-Identifier: Apache-2.0

#include "model_instance.h"

#include <chrono>
#include <cstring>
#include <string>

#include "data_type.h"
#include "log.h"
#include "triton_status.h"

namespace triton_jax {
namespace {

// Triton compares these with its own timestamps, which are steady_clock's.
uint64_t NowNs() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

}  // namespace

TritonModelInstance::TritonModelInstance(TRITONBACKEND_ModelInstance* instance)
    : triton_instance_(instance) {
  TRITONBACKEND_Model* triton_model = nullptr;
  ThrowIfError(TRITONBACKEND_ModelInstanceModel(instance, &triton_model));
  void* state = nullptr;
  ThrowIfError(TRITONBACKEND_ModelState(triton_model, &state));
  model_ = static_cast<TritonModel*>(state);

  InstanceSpec spec;
  const char* name = nullptr;
  ThrowIfError(TRITONBACKEND_ModelInstanceName(instance, &name));
  spec.name = name;
  TRITONSERVER_InstanceGroupKind kind = TRITONSERVER_INSTANCEGROUPKIND_AUTO;
  ThrowIfError(TRITONBACKEND_ModelInstanceKind(instance, &kind));
  spec.kind = static_cast<DeviceKind>(kind);
  ThrowIfError(TRITONBACKEND_ModelInstanceDeviceId(instance, &spec.device_id));
  ThrowIfError(model_->engine_model().CreateInstance(spec, &engine_instance_));
}

void TritonModelInstance::Execute(TRITONBACKEND_Request** requests, uint32_t count) {
  const uint64_t start_ns = NowNs();
  std::vector<Request> all;
  all.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    all.emplace_back(requests[i], model_->description());
    all.back().times.execute_start_ns = start_ns;
  }

  const Status formed = CatchStatus([&] {
    for (Batch& batch : FormBatches(all)) {
      Run(batch);
    }
  });
  for (Request& request : all) {
    request.Fail(formed);
    request.Respond();
  }
  const uint64_t end_ns = NowNs();
  for (Request& request : all) {
    RequestTimes& times = request.times;
    times.execute_end_ns = end_ns;
    // A request that never ran spent all its time in input.
    if (times.compute_start_ns == 0) {
      times.compute_start_ns = end_ns;
    }
    if (times.compute_end_ns == 0) {
      times.compute_end_ns = end_ns;
    }
    request.Release(triton_instance_);
  }
}

std::vector<TritonModelInstance::Batch> TritonModelInstance::FormBatches(
    std::vector<Request>& requests) const {
  const int64_t max_rows = model_->description().max_batch_size;
  std::vector<Batch> batches;
  for (Request& request : requests) {
    if (!request.ok()) {
      continue;
    }
    Batch* home = nullptr;
    for (Batch& batch : batches) {
      if (batch.rows + request.rows() <= max_rows &&
          batch.requests.front()->input_dims() == request.input_dims()) {
        home = &batch;
        break;
      }
    }
    if (home == nullptr) {
      home = &batches.emplace_back();
    }
    home->requests.push_back(&request);
    home->rows += request.rows();
  }
  return batches;
}

void TritonModelInstance::Run(Batch& batch) {
  RequestTimes times;
  const Status status = CatchStatus([&] {
    std::vector<InputBuffer> inputs;
    ThrowIfError(
        engine_instance_->Prepare(batch.rows, batch.requests.front()->input_dims(), &inputs));
    Gather(batch, inputs);
    times.compute_start_ns = NowNs();
    std::vector<OutputBuffer> outputs;
    ThrowIfError(engine_instance_->Run(&outputs));
    times.compute_end_ns = NowNs();
    int64_t first_row = 0;
    for (Request* request : batch.requests) {
      if (request->ok()) {
        request->AddOutputs(outputs, first_row);
      }
      first_row += request->rows();
    }
  });
  engine_instance_->Finish();
  // A phase that was not reached took no time.
  if (times.compute_start_ns == 0) {
    times.compute_start_ns = NowNs();
  }
  if (times.compute_end_ns == 0) {
    times.compute_end_ns = NowNs();
  }
  for (Request* request : batch.requests) {
    request->times.compute_start_ns = times.compute_start_ns;
    request->times.compute_end_ns = times.compute_end_ns;
    request->Fail(status);
  }
  if (status.ok()) {
    TRITON_JAX_LOG_IF_ERROR(TRITONBACKEND_ModelInstanceReportBatchStatistics(
                                triton_instance_, static_cast<uint64_t>(batch.rows),
                                batch.requests.front()->times.execute_start_ns,
                                times.compute_start_ns, times.compute_end_ns, NowNs()),
                            "reporting the statistics of a batch");
  }
}

void TritonModelInstance::Gather(Batch& batch, const std::vector<InputBuffer>& inputs) const {
  const std::vector<TensorSpec>& specs = model_->description().inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::optional<size_t> row_bytes =
        TensorBytes(specs[i].dtype, batch.requests.front()->input_dims()[i]);
    size_t filled = 0;
    for (Request* request : batch.requests) {
      size_t bytes = 0;
      if (!row_bytes ||
          __builtin_mul_overflow(*row_bytes, static_cast<size_t>(request->rows()), &bytes) ||
          bytes > inputs[i].bytes - filled) {
        throw StatusError(Code::kInternal, "input '" + specs[i].name + "': a batch of " +
                                               std::to_string(batch.rows) + " rows of " +
                                               DimsText(request->input_dims()[i]) +
                                               " does not fit in " +
                                               std::to_string(inputs[i].bytes) + " bytes");
      }
      request->CopyInput(i, inputs[i].data + filled, bytes);
      filled += bytes;
    }
    // Padding is zeros, never what an earlier request left there.
    if (inputs[i].bytes > filled) {
      std::memset(inputs[i].data + filled, 0, inputs[i].bytes - filled);
    }
  }
}

}  // namespace triton_jax
