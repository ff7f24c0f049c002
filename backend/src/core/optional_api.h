// SPDX-License-Identifier: Apache-2.0
//
// Functions of Triton's C API that are newer than the oldest release: looked up in the server at
// run time, null where it does not have them.

#pragma once

#include "triton_c_api.h"

namespace triton_jax {

struct OptionalApi {
  // Release 23.10.
  TRITONSERVER_Error* (*request_is_cancelled)(TRITONBACKEND_Request*, bool*) = nullptr;
  TRITONSERVER_Error* (*response_factory_is_cancelled)(TRITONBACKEND_ResponseFactory*,
                                                       bool*) = nullptr;
  // Release 24.08.
  TRITONSERVER_Error* (*metric_args_new)(TRITONSERVER_MetricArgs**) = nullptr;
  TRITONSERVER_Error* (*metric_args_set_histogram)(TRITONSERVER_MetricArgs*, const double*,
                                                   uint64_t) = nullptr;
  TRITONSERVER_Error* (*metric_args_delete)(TRITONSERVER_MetricArgs*) = nullptr;
  TRITONSERVER_Error* (*metric_new_with_args)(TRITONSERVER_Metric**, TRITONSERVER_MetricFamily*,
                                              const TRITONSERVER_Parameter**, uint64_t,
                                              const TRITONSERVER_MetricArgs*) = nullptr;
  TRITONSERVER_Error* (*metric_observe)(TRITONSERVER_Metric*, double) = nullptr;
};

// What this server has. Thread-safe.
const OptionalApi& Optional();

}  // namespace triton_jax
