// SPDX-License-Identifier: Apache-2.0

#include "optional_api.h"

#include <dlfcn.h>

namespace triton_jax {
namespace {

template <typename Function>
void Find(const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

OptionalApi Lookup() {
  OptionalApi api;
  Find("TRITONBACKEND_RequestIsCancelled", &api.request_is_cancelled);
  Find("TRITONBACKEND_ResponseFactoryIsCancelled", &api.response_factory_is_cancelled);
  Find("TRITONSERVER_MetricArgsNew", &api.metric_args_new);
  Find("TRITONSERVER_MetricArgsSetHistogram", &api.metric_args_set_histogram);
  Find("TRITONSERVER_MetricArgsDelete", &api.metric_args_delete);
  Find("TRITONSERVER_MetricNewWithArgs", &api.metric_new_with_args);
  Find("TRITONSERVER_MetricObserve", &api.metric_observe);
  return api;
}

}  // namespace

const OptionalApi& Optional() {
  static const OptionalApi api = Lookup();
  return api;
}

}  // namespace triton_jax
