// SPDX-License-Identifier: Apache-2.0
//
// One instance of a model: turns the requests that Triton hands over into batches, runs them, and
// gives each request its rows back.

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "batch.h"
#include "engine/engine.h"
#include "gpu_memory.h"
#include "metrics.h"
#include "model.h"
#include "phase_clock.h"
#include "request.h"
#include "response_sender.h"
#include "triton_c_api.h"

namespace triton_jax {

class TritonModelInstance {
 public:
  explicit TritonModelInstance(TRITONBACKEND_ModelInstance* instance);

  // Answers and releases every request. Throws only before it has taken over any of them.
  void Execute(TRITONBACKEND_Request** requests, uint32_t count);

  // Why the instance cannot answer requests any more, or OK.
  Status Ready() const { return model_->Health(); }

 private:
  void RunAll(std::vector<Request>* requests, PhaseClock* clock);
  // Answers and releases a request, once.
  void End(Request* request) noexcept;
  // Ends the requests of a batch, now or soon. Their objects may be taken over.
  void EndAll(const Batch& batch, PhaseClock* clock) noexcept;
  // Whether the sender has taken the requests over.
  bool EndLater(const Batch& batch) noexcept;
  // Ends all its requests.
  void Run(Batch* batch, PhaseClock* clock);
  // Between Prepare and Finish.
  void RunPrepared(Batch* batch, RequestTimes* times, PhaseClock* clock);
  void Stream(Request* request, const std::vector<InputBuffer>& inputs);
  // Null where nobody asks for the times of the phases.
  DeviceMetrics* PhaseMetrics() const {
    return model_->description().phase_times ? metrics_ : nullptr;
  }
  void ReportBatch(int64_t rows, const RequestTimes& times);

  TRITONBACKEND_ModelInstance* triton_instance_;
  TritonModel* model_ = nullptr;
  std::unique_ptr<GpuMemory> gpu_memory_;  // null where there is no GPU
  std::unique_ptr<Instance> engine_instance_;
  DeviceMetrics* metrics_ = nullptr;        // the model's
  std::unique_ptr<ResponseSender> sender_;  // the last member: it uses the others
};

}  // namespace triton_jax
