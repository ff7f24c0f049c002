// SPDX-License-Identifier: Apache-2.0

#include "model_instance.h"

#include <algorithm>
#include <string>

#include "log.h"
#include "now.h"
#include "triton_status.h"

namespace triton_jax {
namespace {

// A phase that was not reached took no time.
void FillTimes(RequestTimes* times) {
  const uint64_t now_ns = NowNs();
  for (uint64_t* time : {&times->compute_start_ns, &times->compute_end_ns}) {
    if (*time == 0) {
      *time = now_ns;
    }
  }
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
  gpu_memory_ = GpuMemory::Open();
  spec.gpu_memory = gpu_memory_ != nullptr;
  ThrowIfError(model_->engine_model().CreateInstance(spec, &engine_instance_));
  metrics_ = &model_->metrics().OnDevice(engine_instance_->Device());
  if (model_->description().phase_times) {
    metrics_->KeepPhases();
  }
}

void TritonModelInstance::Execute(TRITONBACKEND_Request** requests, uint32_t count) {
  const uint64_t start_ns = NowNs();
  PhaseClock clock(PhaseMetrics());
  std::vector<Request> all;
  all.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    all.emplace_back(requests[i], model_->description(), gpu_memory_.get());
    all.back().times.execute_start_ns = start_ns;
  }

  const Status status = CatchStatus([&] { RunAll(&all, &clock); });
  for (Request& request : all) {
    request.Fail(status);
    End(&request);
  }
}

void TritonModelInstance::RunAll(std::vector<Request>* requests, PhaseClock* clock) {
  for (Request& request : *requests) {
    request.FailIfCancelled();
  }
  std::vector<Batch> batches = FormBatches(model_->description(), requests);
  clock->End(Phase::kRead);
  for (Batch& batch : batches) {
    Run(&batch, clock);
  }
}

void TritonModelInstance::EndAll(const Batch& batch, PhaseClock* clock) noexcept {
  if (EndLater(batch)) {
    return;
  }
  // At once: what runs next may take long, and these need not wait for it.
  for (Request* request : batch.requests()) {
    End(request);
  }
  clock->End(Phase::kSend);
}

bool TritonModelInstance::EndLater(const Batch& batch) noexcept {
  // A sequence's next request needs the state of this one. And to wake a thread for a single
  // response costs more than it gains.
  if (model_->description().HasState() || batch.requests().size() == 1) {
    return false;
  }
  const Status status = CatchStatus([&] {
    if (sender_ == nullptr) {
      sender_ = std::make_unique<ResponseSender>([this](std::vector<Request>* requests) {
        PhaseClock clock(PhaseMetrics());
        for (Request& request : *requests) {
          End(&request);
        }
        clock.End(Phase::kSend);
      });
    }
  });
  if (!status.ok() || !sender_->HasRoom()) {
    return false;
  }
  std::vector<Request> requests;
  requests.reserve(batch.requests().size());
  for (Request* request : batch.requests()) {
    requests.push_back(std::move(*request));
  }
  sender_->Take(std::move(requests));
  return true;
}

void TritonModelInstance::End(Request* request) noexcept {
  if (request->ended()) {
    return;
  }
  if (!request->ok() && !request->placeholder()) {
    metrics_->Failed(request->status().code());
  }
  FillTimes(&request->times);
  request->Respond();
  request->times.execute_end_ns = NowNs();
  // Right after the answer: until then, memory that the client shares counts as in use.
  request->Release(triton_instance_);
}

void TritonModelInstance::Run(Batch* batch, PhaseClock* clock) {
  if (const Status health = model_->Health(); !health.ok()) {
    for (Request* request : batch->requests()) {
      request->Fail(health);
    }
    EndAll(*batch, clock);
    return;
  }
  RequestTimes times;
  times.execute_start_ns = batch->requests().front()->times.execute_start_ns;
  const Status status = CatchStatus([&] { RunPrepared(batch, &times, clock); });
  FillTimes(&times);
  if (!status.ok()) {
    engine_instance_->Finish();
    if (status.fatal()) {
      model_->SetFatal(status);
    }
    if (status.code() == Code::kInternal && batch->requests().size() > 1) {
      // One of them may be to blame for all: alone, each gets what is its own.
      for (Request* request : batch->requests()) {
        if (request->ok()) {
          Batch alone(model_->description());
          alone.Add(request);
          Run(&alone, clock);
        }
      }
      return;
    }
  }
  for (Request* request : batch->requests()) {
    if (request->status().fatal()) {
      model_->SetFatal(request->status());
    }
    request->times.compute_start_ns = times.compute_start_ns;
    request->times.compute_end_ns = times.compute_end_ns;
    request->Fail(status);
  }
  EndAll(*batch, clock);
  if (status.ok()) {
    // Only now are the outputs given up: the clients have their copies, and need not wait for it.
    engine_instance_->Finish();
    clock->End(Phase::kFinish);
    ReportBatch(batch->rows(), times);
  }
}

void TritonModelInstance::RunPrepared(Batch* batch, RequestTimes* times, PhaseClock* clock) {
  const std::vector<InputShape> shapes = batch->Shapes();
  std::vector<InputBuffer> inputs;
  ThrowIfError(engine_instance_->Prepare(batch->rows(), shapes, &inputs));
  batch->Gather(shapes, &inputs, gpu_memory_.get(), engine_instance_->Gpu());
  clock->End(Phase::kGather);
  const std::vector<Request*>& requests = batch->requests();
  if (std::none_of(requests.begin(), requests.end(),
                   [](const Request* request) { return request->ok(); })) {
    throw StatusError(requests.front()->status());  // nobody is left to run for
  }
  times->compute_start_ns = NowNs();
  if (model_->description().decoupled) {
    Stream(batch->requests().front(), inputs);
    times->compute_end_ns = NowNs();
    return;
  }
  std::vector<OutputBuffer> outputs;
  ThrowIfError(engine_instance_->Run(inputs, &outputs));
  times->compute_end_ns = NowNs();
  clock->End(Phase::kRun);
  int64_t real_rows = 0;
  for (const Request* request : requests) {
    real_rows += request->placeholder() ? 0 : request->rows();
  }
  metrics_->Ran(real_rows, engine_instance_->PaddedRows(),
                static_cast<double>(times->compute_end_ns - times->compute_start_ns) * 1e-9);
  if (gpu_memory_ != nullptr) {
    gpu_memory_->Forget();  // the outputs of earlier runs
  }
  int64_t first_row = 0;
  for (Request* request : batch->requests()) {
    if (request->ok()) {
      request->AddOutputs(outputs, first_row);
    }
    first_row += request->rows();
  }
  clock->End(Phase::kScatter);
}

void TritonModelInstance::Stream(Request* request, const std::vector<InputBuffer>& inputs) {
  ThrowIfError(engine_instance_->Start(inputs));
  while (request->ok()) {
    std::vector<OutputBuffer> outputs;
    bool end = false;
    ThrowIfError(engine_instance_->Next(&outputs, &end));
    if (end) {
      return;
    }
    request->RespondOnce(outputs);
    request->FailIfCancelled();
  }
}

void TritonModelInstance::ReportBatch(int64_t rows, const RequestTimes& times) {
  TRITON_JAX_LOG_IF_ERROR(TRITONBACKEND_ModelInstanceReportBatchStatistics(
                              triton_instance_, static_cast<uint64_t>(rows), times.execute_start_ns,
                              times.compute_start_ns, times.compute_end_ns, NowNs()),
                          "reporting the statistics of a batch");
}

}  // namespace triton_jax
