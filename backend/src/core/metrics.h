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
#include <vector>

#include "engine/engine.h"
#include "triton_c_api.h"

namespace triton_jax {

enum class MetricId : size_t {
  kPredictCalls,
  kCompilations,
  kCompilationTime,
  kCompilationsInTraffic,
  kCompileCacheHits,
  kCompileCacheMisses,
  kProgramEvictions,
  kRealRows,
  kPaddedRows,
  kExecutionTime,
  kRequestFailures,
  kBatchRows,
  kPhaseTime,
  kCount,
};

constexpr size_t kMetricCount = static_cast<size_t>(MetricId::kCount);

// What an execution consists of, in order: the first is for all its batches together, the others
// for each of them.
enum class Phase : size_t {
  kRead,     // of the requests: what they hold, what they ask for
  kGather,   // of the inputs, into one batch
  kRun,      // in the engine, until the outputs are on the host
  kScatter,  // of the outputs, into the responses
  kSend,     // of the responses, with statistics and release of the requests
  kFinish,   // in the engine, which gives up the outputs
  kCount,
};

constexpr size_t kPhaseCount = static_cast<size_t>(Phase::kCount);

using MetricLabels = std::vector<std::pair<const char*, std::string>>;

// The metric families, made once per backend. Where the server keeps no metrics
// (--allow-metrics=false), or is too old for one of them, that one quietly is not there.
class MetricFamilies {
 public:
  MetricFamilies();
  ~MetricFamilies();
  MetricFamilies(const MetricFamilies&) = delete;
  MetricFamilies& operator=(const MetricFamilies&) = delete;

  // Null where there is none.
  TRITONSERVER_Metric* NewMetric(MetricId id, const MetricLabels& labels) const;

 private:
  std::array<TRITONSERVER_MetricFamily*, kMetricCount> families_{};
};

// The metrics of one model version on one device. Thread-safe.
class DeviceMetrics {
 public:
  DeviceMetrics(const MetricFamilies& families, MetricLabels labels);
  ~DeviceMetrics();
  DeviceMetrics(const DeviceMetrics&) = delete;
  DeviceMetrics& operator=(const DeviceMetrics&) = delete;

  void Observe(Event event, double value);
  // A batch of `rows` real rows ran as `padded_rows`, which took `seconds`.
  void Ran(int64_t rows, int64_t padded_rows, double seconds);
  void Failed(Code code);
  // Makes the metrics of the phases, which are kept only where a model asks for them.
  void KeepPhases();
  void Took(Phase phase, double seconds);

 private:
  void Add(MetricId id, double value);

  const MetricFamilies& families_;
  const MetricLabels labels_;
  std::array<TRITONSERVER_Metric*, kMetricCount> metrics_{};
  std::array<TRITONSERVER_Metric*, kPhaseCount> phases_{};
  std::mutex phases_mutex_;
  std::mutex failures_mutex_;
  std::map<Code, TRITONSERVER_Metric*> failures_;
};

// The metrics of one model version. Thread-safe.
class ModelMetrics : public ModelObserver {
 public:
  ModelMetrics(const MetricFamilies& families, std::string model, uint64_t version);

  // Lives as long as this object.
  DeviceMetrics& OnDevice(const std::string& device);

  void Observe(Event event, const std::string& device, double value) override;

 private:
  const MetricFamilies& families_;
  const std::string model_;
  const uint64_t version_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<DeviceMetrics>> devices_;
};

class MetricRegistry {
 public:
  // The metrics of a model version. While a model is reloaded, its old and its new object live side
  // by side: both get the same metrics, which go when the last of them goes. (Triton would give the
  // second the first one's metric, and delete it under the second.)
  std::shared_ptr<ModelMetrics> ForModel(const std::string& model, uint64_t version);

 private:
  using Key = std::pair<std::string, uint64_t>;
  struct Shared {
    std::unique_ptr<ModelMetrics> metrics;
    int users = 0;
  };

  void Release(const Key& key);

  MetricFamilies families_;
  std::mutex mutex_;
  std::map<Key, Shared> models_;
};

}  // namespace triton_jax
