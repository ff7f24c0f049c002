// SPDX-License-Identifier: Apache-2.0

#include "metrics.h"

#include "log.h"
#include "optional_api.h"
#include "triton_status.h"

namespace triton_jax {
namespace {

// Not among the kinds of the oldest release.
constexpr auto kHistogram = static_cast<TRITONSERVER_MetricKind>(2);

struct MetricDeclaration {
  MetricId id;
  TRITONSERVER_MetricKind kind;
  const char* name;
  const char* help;
};

// docs/metrics.md has the same table; a test compares them.
constexpr std::array<MetricDeclaration, kMetricCount> kDeclarations{{
    {MetricId::kPredictCalls, TRITONSERVER_METRIC_KIND_COUNTER, "jax_predict_calls",
     "Number of calls of the model's compiled predict function, one per executed batch"},
    {MetricId::kCompilations, TRITONSERVER_METRIC_KIND_COUNTER, "jax_xla_compilations",
     "Number of XLA programs compiled for the model"},
    {MetricId::kCompilationTime, TRITONSERVER_METRIC_KIND_COUNTER, "jax_xla_compilation_time",
     "Cumulative seconds spent tracing, lowering and compiling XLA programs for the model"},
    {MetricId::kCompilationsInTraffic, TRITONSERVER_METRIC_KIND_COUNTER,
     "jax_xla_compilations_in_traffic",
     "Number of XLA programs compiled for the model while a request waited for them"},
    {MetricId::kCompileCacheHits, TRITONSERVER_METRIC_KIND_COUNTER, "jax_compile_cache_hits",
     "Number of XLA programs taken from the persistent compile cache"},
    {MetricId::kCompileCacheMisses, TRITONSERVER_METRIC_KIND_COUNTER, "jax_compile_cache_misses",
     "Number of XLA programs that the persistent compile cache did not have"},
    {MetricId::kProgramEvictions, TRITONSERVER_METRIC_KIND_COUNTER, "jax_program_evictions",
     "Number of compiled programs given up to keep to the model's max_programs"},
    {MetricId::kRealRows, TRITONSERVER_METRIC_KIND_COUNTER, "jax_real_rows",
     "Number of rows of requests in executed batches"},
    {MetricId::kPaddedRows, TRITONSERVER_METRIC_KIND_COUNTER, "jax_padded_rows",
     "Number of rows of padding in executed batches"},
    {MetricId::kExecutionTime, TRITONSERVER_METRIC_KIND_COUNTER, "jax_execution_time",
     "Cumulative seconds from a gathered batch to its outputs on the host"},
    {MetricId::kRequestFailures, TRITONSERVER_METRIC_KIND_COUNTER, "jax_request_failures",
     "Number of requests answered with an error by the backend, by status code"},
    {MetricId::kBatchRows, kHistogram, "jax_batch_rows",
     "Rows of requests per executed batch (needs Triton 24.08 or newer)"},
    {MetricId::kPhaseTime, TRITONSERVER_METRIC_KIND_COUNTER, "jax_phase_time",
     "Cumulative seconds spent in each phase of an execution, of models with the parameter "
     "phase_times"},
}};

// Upper bounds of the histogram of rows.
constexpr std::array<double, 11> kRowBounds{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};

constexpr std::array<const char*, kPhaseCount> kPhaseNames{"read",    "gather", "run",
                                                           "scatter", "send",   "finish"};

constexpr const char* CodeName(Code code) {
  switch (code) {
    case Code::kUnknown:
      break;
    case Code::kInternal:
      return "INTERNAL";
    case Code::kNotFound:
      return "NOT_FOUND";
    case Code::kInvalidArg:
      return "INVALID_ARG";
    case Code::kUnavailable:
      return "UNAVAILABLE";
    case Code::kUnsupported:
      return "UNSUPPORTED";
    case Code::kAlreadyExists:
      return "ALREADY_EXISTS";
    case Code::kCancelled:
      return "CANCELLED";
  }
  return "UNKNOWN";
}

TRITONSERVER_Metric* NewHistogram(TRITONSERVER_MetricFamily* family,
                                  std::vector<const TRITONSERVER_Parameter*>* labels) {
  const OptionalApi& api = Optional();
  TRITONSERVER_MetricArgs* arguments = nullptr;
  ThrowIfError(api.metric_args_new(&arguments));
  TRITONSERVER_Metric* metric = nullptr;
  Status status =
      FromTriton(api.metric_args_set_histogram(arguments, kRowBounds.data(), kRowBounds.size()));
  if (status.ok()) {
    status = FromTriton(
        api.metric_new_with_args(&metric, family, labels->data(), labels->size(), arguments));
  }
  ThrowIfError(api.metric_args_delete(arguments));
  ThrowIfError(status);
  return metric;
}

void Delete(TRITONSERVER_Metric* metric) {
  if (metric != nullptr) {
    TRITON_JAX_LOG_IF_ERROR(TRITONSERVER_MetricDelete(metric), "deleting a metric");
  }
}

void Increment(TRITONSERVER_Metric* metric, double value) {
  if (metric != nullptr) {
    TRITON_JAX_LOG_IF_ERROR(TRITONSERVER_MetricIncrement(metric, value), "adding to a metric");
  }
}

}  // namespace

MetricFamilies::MetricFamilies() {
  for (const MetricDeclaration& declaration : kDeclarations) {
    if (declaration.kind == kHistogram && Optional().metric_observe == nullptr) {
      continue;
    }
    TRITONSERVER_MetricFamily** family = &families_[static_cast<size_t>(declaration.id)];
    const Status status = FromTriton(
        TRITONSERVER_MetricFamilyNew(family, declaration.kind, declaration.name, declaration.help));
    if (!status.ok()) {
      *family = nullptr;
      TRITON_JAX_LOG(kVerbose,
                     std::string("jax: no metric ") + declaration.name + ": " + status.message());
    }
  }
}

MetricFamilies::~MetricFamilies() {
  for (TRITONSERVER_MetricFamily* family : families_) {
    if (family != nullptr) {
      TRITON_JAX_LOG_IF_ERROR(TRITONSERVER_MetricFamilyDelete(family), "deleting a metric family");
    }
  }
}

TRITONSERVER_Metric* MetricFamilies::NewMetric(MetricId id, const MetricLabels& labels) const {
  TRITONSERVER_MetricFamily* family = families_[static_cast<size_t>(id)];
  if (family == nullptr) {
    return nullptr;
  }
  std::vector<const TRITONSERVER_Parameter*> parameters;
  for (const auto& [name, value] : labels) {
    parameters.push_back(
        TRITONSERVER_ParameterNew(name, TRITONSERVER_PARAMETER_STRING, value.c_str()));
  }
  TRITONSERVER_Metric* metric = nullptr;
  const Status status = CatchStatus([&] {
    if (id == MetricId::kBatchRows) {
      metric = NewHistogram(family, &parameters);
    } else {
      ThrowIfError(TRITONSERVER_MetricNew(&metric, family, parameters.data(), parameters.size()));
    }
  });
  if (!status.ok()) {
    TRITON_JAX_LOG(kError, "jax: making a metric: " + status.message());
  }
  for (const TRITONSERVER_Parameter* parameter : parameters) {
    TRITONSERVER_ParameterDelete(const_cast<TRITONSERVER_Parameter*>(parameter));
  }
  return metric;
}

DeviceMetrics::DeviceMetrics(const MetricFamilies& families, MetricLabels labels)
    : families_(families), labels_(std::move(labels)) {
  for (const MetricDeclaration& declaration : kDeclarations) {
    // These have one metric for each code, and for each phase.
    if (declaration.id != MetricId::kRequestFailures && declaration.id != MetricId::kPhaseTime) {
      metrics_[static_cast<size_t>(declaration.id)] = families.NewMetric(declaration.id, labels_);
    }
  }
}

DeviceMetrics::~DeviceMetrics() {
  for (TRITONSERVER_Metric* metric : metrics_) {
    Delete(metric);
  }
  for (TRITONSERVER_Metric* metric : phases_) {
    Delete(metric);
  }
  for (const auto& [code, metric] : failures_) {
    Delete(metric);
  }
}

void DeviceMetrics::Add(MetricId id, double value) {
  Increment(metrics_[static_cast<size_t>(id)], value);
}

void DeviceMetrics::Observe(Event event, double value) {
  switch (event) {
    case Event::kCompiled:
      Add(MetricId::kCompilations, 1);
      Add(MetricId::kCompilationTime, value);
      break;
    case Event::kCacheHit:
      Add(MetricId::kCompileCacheHits, 1);
      break;
    case Event::kCacheMiss:
      Add(MetricId::kCompileCacheMisses, 1);
      break;
    case Event::kEvicted:
      Add(MetricId::kProgramEvictions, 1);
      break;
    case Event::kInTraffic:
      Add(MetricId::kCompilationsInTraffic, 1);
      break;
    case Event::kPredicted:
      Add(MetricId::kPredictCalls, 1);
      break;
  }
}

void DeviceMetrics::Ran(int64_t rows, int64_t padded_rows, double seconds) {
  Add(MetricId::kPredictCalls, 1);
  Add(MetricId::kRealRows, static_cast<double>(rows));
  Add(MetricId::kPaddedRows, static_cast<double>(padded_rows - rows));
  Add(MetricId::kExecutionTime, seconds);
  TRITONSERVER_Metric* histogram = metrics_[static_cast<size_t>(MetricId::kBatchRows)];
  if (histogram != nullptr) {
    TRITON_JAX_LOG_IF_ERROR(Optional().metric_observe(histogram, static_cast<double>(rows)),
                            "observing a metric");
  }
}

void DeviceMetrics::KeepPhases() {
  const std::lock_guard<std::mutex> lock(phases_mutex_);
  for (size_t i = 0; i < kPhaseCount; ++i) {
    if (phases_[i] == nullptr) {
      MetricLabels labels = labels_;
      labels.emplace_back("phase", kPhaseNames[i]);
      phases_[i] = families_.NewMetric(MetricId::kPhaseTime, labels);
    }
  }
}

void DeviceMetrics::Took(Phase phase, double seconds) {
  Increment(phases_[static_cast<size_t>(phase)], seconds);
}

void DeviceMetrics::Failed(Code code) {
  const std::lock_guard<std::mutex> lock(failures_mutex_);
  const auto [found, is_new] = failures_.try_emplace(code, nullptr);
  if (is_new) {
    MetricLabels labels = labels_;
    labels.emplace_back("code", CodeName(code));
    found->second = families_.NewMetric(MetricId::kRequestFailures, labels);
  }
  Increment(found->second, 1);
}

ModelMetrics::ModelMetrics(const MetricFamilies& families, std::string model, uint64_t version)
    : families_(families), model_(std::move(model)), version_(version) {}

DeviceMetrics& ModelMetrics::OnDevice(const std::string& device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::unique_ptr<DeviceMetrics>& metrics = devices_[device];
  if (metrics == nullptr) {
    metrics = std::make_unique<DeviceMetrics>(
        families_,
        MetricLabels{{"model", model_}, {"version", std::to_string(version_)}, {"device", device}});
  }
  return *metrics;
}

void ModelMetrics::Observe(Event event, const std::string& device, double value) {
  OnDevice(device).Observe(event, value);
}

std::shared_ptr<ModelMetrics> MetricRegistry::ForModel(const std::string& model, uint64_t version) {
  const Key key(model, version);
  const std::lock_guard<std::mutex> lock(mutex_);
  Shared& shared = models_[key];
  if (shared.metrics == nullptr) {
    shared.metrics = std::make_unique<ModelMetrics>(families_, model, version);
  }
  ++shared.users;
  return {shared.metrics.get(), [this, key](ModelMetrics*) { Release(key); }};
}

void MetricRegistry::Release(const Key& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = models_.find(key);
  if (found != models_.end() && --found->second.users == 0) {
    models_.erase(found);
  }
}

}  // namespace triton_jax
