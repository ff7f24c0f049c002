// SPDX-License-Identifier: Apache-2.0
//
// Times the phases of an execution.

#pragma once

#include <chrono>

#include "metrics.h"

namespace triton_jax {

class PhaseClock {
 public:
  // Starts now. Without `metrics` it does nothing.
  explicit PhaseClock(DeviceMetrics* metrics) : metrics_(metrics) {
    if (metrics_ != nullptr) {
      last_ = Clock::now();
    }
  }

  // What went by since the start, or the last call, was this phase.
  void End(Phase phase) {
    if (metrics_ != nullptr) {
      const Clock::time_point now = Clock::now();
      metrics_->Took(phase, std::chrono::duration<double>(now - last_).count());
      last_ = Clock::now();
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  DeviceMetrics* metrics_;
  Clock::time_point last_;
};

}  // namespace triton_jax
