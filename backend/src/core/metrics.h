// SPDX-License-Identifier: Apache-2.0
//
// The backend's own metrics on Triton's metrics endpoint.

#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "engine/engine.h"
#include "triton_c_api.h"

namespace triton_jax {

enum class MetricId : size_t { kPredictCalls, kCompilations, kCompilationTime, kCount };

constexpr size_t kMetricCount = static_cast<size_t>(MetricId::kCount);

class MetricRegistry;

// The metrics of one model version. Thread-safe.
class ModelMetrics : public ModelObserver {
 public:
  ModelMetrics(const MetricRegistry& registry, const std::string& model, uint64_t version);
  ~ModelMetrics() override;
  ModelMetrics(const ModelMetrics&) = delete;
  ModelMetrics& operator=(const ModelMetrics&) = delete;

  void Compiled(double seconds) override;
  void Predicted() override;

 private:
  void Add(MetricId id, double value);

  std::array<TRITONSERVER_Metric*, kMetricCount> metrics_{};
};

// The metric families, made once per backend. Where the server keeps no metrics
// (--allow-metrics=false), everything here quietly does nothing.
class MetricRegistry {
 public:
  MetricRegistry();
  ~MetricRegistry();
  MetricRegistry(const MetricRegistry&) = delete;
  MetricRegistry& operator=(const MetricRegistry&) = delete;

  // The metrics of a model version. While a model is reloaded, its old and its new object live side
  // by side: both get the same metrics, which go when the last of them goes. (Triton would give the
  // second the first one's metric, and delete it under the second.)
  std::shared_ptr<ModelMetrics> ForModel(const std::string& model, uint64_t version);

  TRITONSERVER_MetricFamily* family(MetricId id) const {
    return families_[static_cast<size_t>(id)];
  }

 private:
  using Key = std::pair<std::string, uint64_t>;
  struct Shared {
    std::unique_ptr<ModelMetrics> metrics;
    int users = 0;
  };

  void Release(const Key& key);

  std::array<TRITONSERVER_MetricFamily*, kMetricCount> families_{};
  std::mutex mutex_;
  std::map<Key, Shared> models_;
};

}  // namespace triton_jax
