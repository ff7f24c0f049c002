// SPDX-License-Identifier: Apache-2.0

#include "metrics.h"

#include "log.h"
#include "triton_status.h"

namespace triton_jax {
namespace {

struct MetricDeclaration {
  MetricId id;
  TRITONSERVER_MetricKind kind;
  const char* name;
  const char* help;
};

constexpr std::array<MetricDeclaration, kMetricCount> kDeclarations{{
    {MetricId::kPredictCalls, TRITONSERVER_METRIC_KIND_COUNTER, "jax_predict_calls",
     "Number of calls of the model's compiled predict function, one per executed batch"},
    {MetricId::kCompilations, TRITONSERVER_METRIC_KIND_COUNTER, "jax_xla_compilations",
     "Number of XLA programs compiled for the model"},
    {MetricId::kCompilationTime, TRITONSERVER_METRIC_KIND_COUNTER, "jax_xla_compilation_time",
     "Cumulative seconds spent tracing, lowering and compiling XLA programs for the model"},
}};

}  // namespace

ModelMetrics::ModelMetrics(const MetricRegistry& registry, const std::string& model,
                           uint64_t version) {
  const std::string version_text = std::to_string(version);
  std::array<const TRITONSERVER_Parameter*, 2> labels = {
      TRITONSERVER_ParameterNew("model", TRITONSERVER_PARAMETER_STRING, model.c_str()),
      TRITONSERVER_ParameterNew("version", TRITONSERVER_PARAMETER_STRING, version_text.c_str())};
  for (const MetricDeclaration& declaration : kDeclarations) {
    TRITONSERVER_MetricFamily* family = registry.family(declaration.id);
    if (family != nullptr) {
      TRITON_JAX_LOG_IF_ERROR(
          TRITONSERVER_MetricNew(&metrics_[static_cast<size_t>(declaration.id)], family,
                                 labels.data(), labels.size()),
          std::string("making metric ") + declaration.name + " of model " + model);
    }
  }
  for (const TRITONSERVER_Parameter* label : labels) {
    TRITONSERVER_ParameterDelete(const_cast<TRITONSERVER_Parameter*>(label));
  }
}

ModelMetrics::~ModelMetrics() {
  for (TRITONSERVER_Metric* metric : metrics_) {
    if (metric != nullptr) {
      TRITON_JAX_LOG_IF_ERROR(TRITONSERVER_MetricDelete(metric), "deleting a metric");
    }
  }
}

void ModelMetrics::Add(MetricId id, double value) {
  TRITONSERVER_Metric* metric = metrics_[static_cast<size_t>(id)];
  if (metric != nullptr) {
    TRITON_JAX_LOG_IF_ERROR(TRITONSERVER_MetricIncrement(metric, value), "adding to a metric");
  }
}

void ModelMetrics::Compiled(double seconds) {
  Add(MetricId::kCompilations, 1);
  Add(MetricId::kCompilationTime, seconds);
}

void ModelMetrics::Predicted() { Add(MetricId::kPredictCalls, 1); }

MetricRegistry::MetricRegistry() {
  for (const MetricDeclaration& declaration : kDeclarations) {
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

MetricRegistry::~MetricRegistry() {
  for (TRITONSERVER_MetricFamily* family : families_) {
    if (family != nullptr) {
      TRITON_JAX_LOG_IF_ERROR(TRITONSERVER_MetricFamilyDelete(family), "deleting a metric family");
    }
  }
}

std::shared_ptr<ModelMetrics> MetricRegistry::ForModel(const std::string& model, uint64_t version) {
  const Key key(model, version);
  const std::lock_guard<std::mutex> lock(mutex_);
  Shared& shared = models_[key];
  if (shared.metrics == nullptr) {
    shared.metrics = std::make_unique<ModelMetrics>(*this, model, version);
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
