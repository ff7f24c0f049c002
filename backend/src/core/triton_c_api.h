// SPDX-License-Identifier: Apache-2.0
//
// The part of Triton's C API that this backend uses, declared by us: names, types, and enumerator
// values of the binary interface, as of release 23.04 (backend API 1.12), the oldest release that
// the backend supports. Every build uses this header. When the build is given an SDK directory
// (cmake -DTRITON_SDK_DIR=...), triton_c_api_check.cc includes the official headers of that release
// before this one, so that a difference in any signature or value is a compile error.
//
// Functions newer than 23.04 must not be declared here: Triton opens a backend with RTLD_NOW, and
// an undefined symbol would keep the library from loading on an older release.

#pragma once

#include <stddef.h>
#include <stdint.h>

// The backend API that this backend asks of a server: major must match, minor must not be lower.
#define TRITON_JAX_BACKEND_API_MAJOR 1
#define TRITON_JAX_BACKEND_API_MINOR 12

// With official headers on the include path, enumerators are compared instead of declared.
#ifdef TRITON_JAX_CHECK_AGAINST_SDK
#define TRITON_JAX_ENUM(TAG, TYPE, LIST) LIST(TRITON_JAX_COMPARE_ENUMERATOR)
#define TRITON_JAX_COMPARE_ENUMERATOR(NAME, VALUE) \
  static_assert(static_cast<int>(NAME) == (VALUE), #NAME " differs from the release's header");
#else
// With an underlying type, so that values which only newer releases name can be passed too.
#define TRITON_JAX_ENUM(TAG, TYPE, LIST) \
  typedef enum TAG : unsigned int { LIST(TRITON_JAX_DECLARE_ENUMERATOR) } TYPE;
#define TRITON_JAX_DECLARE_ENUMERATOR(NAME, VALUE) NAME = VALUE,
#endif

#define TRITON_JAX_DATATYPES(X)   \
  X(TRITONSERVER_TYPE_INVALID, 0) \
  X(TRITONSERVER_TYPE_BOOL, 1)    \
  X(TRITONSERVER_TYPE_UINT8, 2)   \
  X(TRITONSERVER_TYPE_UINT16, 3)  \
  X(TRITONSERVER_TYPE_UINT32, 4)  \
  X(TRITONSERVER_TYPE_UINT64, 5)  \
  X(TRITONSERVER_TYPE_INT8, 6)    \
  X(TRITONSERVER_TYPE_INT16, 7)   \
  X(TRITONSERVER_TYPE_INT32, 8)   \
  X(TRITONSERVER_TYPE_INT64, 9)   \
  X(TRITONSERVER_TYPE_FP16, 10)   \
  X(TRITONSERVER_TYPE_FP32, 11)   \
  X(TRITONSERVER_TYPE_FP64, 12)   \
  X(TRITONSERVER_TYPE_BYTES, 13)  \
  X(TRITONSERVER_TYPE_BF16, 14)

#define TRITON_JAX_MEMORY_TYPES(X)     \
  X(TRITONSERVER_MEMORY_CPU, 0)        \
  X(TRITONSERVER_MEMORY_CPU_PINNED, 1) \
  X(TRITONSERVER_MEMORY_GPU, 2)

#define TRITON_JAX_PARAMETER_TYPES(X) \
  X(TRITONSERVER_PARAMETER_STRING, 0) \
  X(TRITONSERVER_PARAMETER_INT, 1)    \
  X(TRITONSERVER_PARAMETER_BOOL, 2)

#define TRITON_JAX_INSTANCE_GROUP_KINDS(X)  \
  X(TRITONSERVER_INSTANCEGROUPKIND_AUTO, 0) \
  X(TRITONSERVER_INSTANCEGROUPKIND_CPU, 1)  \
  X(TRITONSERVER_INSTANCEGROUPKIND_GPU, 2)  \
  X(TRITONSERVER_INSTANCEGROUPKIND_MODEL, 3)

#define TRITON_JAX_LOG_LEVELS(X) \
  X(TRITONSERVER_LOG_INFO, 0)    \
  X(TRITONSERVER_LOG_WARN, 1)    \
  X(TRITONSERVER_LOG_ERROR, 2)   \
  X(TRITONSERVER_LOG_VERBOSE, 3)

#define TRITON_JAX_ERROR_CODES(X)      \
  X(TRITONSERVER_ERROR_UNKNOWN, 0)     \
  X(TRITONSERVER_ERROR_INTERNAL, 1)    \
  X(TRITONSERVER_ERROR_NOT_FOUND, 2)   \
  X(TRITONSERVER_ERROR_INVALID_ARG, 3) \
  X(TRITONSERVER_ERROR_UNAVAILABLE, 4) \
  X(TRITONSERVER_ERROR_UNSUPPORTED, 5) \
  X(TRITONSERVER_ERROR_ALREADY_EXISTS, 6)

#define TRITON_JAX_METRIC_KINDS(X)       \
  X(TRITONSERVER_METRIC_KIND_COUNTER, 0) \
  X(TRITONSERVER_METRIC_KIND_GAUGE, 1)

#define TRITON_JAX_ARTIFACT_TYPES(X) X(TRITONBACKEND_ARTIFACT_FILESYSTEM, 0)

#define TRITON_JAX_EXECUTION_POLICIES(X) \
  X(TRITONBACKEND_EXECUTION_BLOCKING, 0) \
  X(TRITONBACKEND_EXECUTION_DEVICE_BLOCKING, 1)

#define TRITON_JAX_RELEASE_FLAGS(X) X(TRITONSERVER_REQUEST_RELEASE_ALL, 1)

#define TRITON_JAX_RESPONSE_FLAGS(X) X(TRITONSERVER_RESPONSE_COMPLETE_FINAL, 1)

#ifdef __cplusplus
extern "C" {
#endif

TRITON_JAX_ENUM(TRITONSERVER_datatype_enum, TRITONSERVER_DataType, TRITON_JAX_DATATYPES)
TRITON_JAX_ENUM(TRITONSERVER_memorytype_enum, TRITONSERVER_MemoryType, TRITON_JAX_MEMORY_TYPES)
TRITON_JAX_ENUM(TRITONSERVER_parametertype_enum, TRITONSERVER_ParameterType,
                TRITON_JAX_PARAMETER_TYPES)
TRITON_JAX_ENUM(TRITONSERVER_instancegroupkind_enum, TRITONSERVER_InstanceGroupKind,
                TRITON_JAX_INSTANCE_GROUP_KINDS)
TRITON_JAX_ENUM(TRITONSERVER_loglevel_enum, TRITONSERVER_LogLevel, TRITON_JAX_LOG_LEVELS)
TRITON_JAX_ENUM(TRITONSERVER_errorcode_enum, TRITONSERVER_Error_Code, TRITON_JAX_ERROR_CODES)
TRITON_JAX_ENUM(TRITONSERVER_metrickind_enum, TRITONSERVER_MetricKind, TRITON_JAX_METRIC_KINDS)
TRITON_JAX_ENUM(tritonserver_requestreleaseflag_enum, TRITONSERVER_RequestReleaseFlag,
                TRITON_JAX_RELEASE_FLAGS)
TRITON_JAX_ENUM(tritonserver_responsecompleteflag_enum, TRITONSERVER_ResponseCompleteFlag,
                TRITON_JAX_RESPONSE_FLAGS)
TRITON_JAX_ENUM(TRITONBACKEND_artifacttype_enum, TRITONBACKEND_ArtifactType,
                TRITON_JAX_ARTIFACT_TYPES)
TRITON_JAX_ENUM(TRITONBACKEND_execpolicy_enum, TRITONBACKEND_ExecutionPolicy,
                TRITON_JAX_EXECUTION_POLICIES)

struct TRITONSERVER_Error;
struct TRITONSERVER_Message;
struct TRITONSERVER_Metric;
struct TRITONSERVER_MetricArgs;
struct TRITONSERVER_MetricFamily;
struct TRITONSERVER_Parameter;
struct TRITONBACKEND_Backend;
struct TRITONBACKEND_Input;
struct TRITONBACKEND_Model;
struct TRITONBACKEND_ModelInstance;
struct TRITONBACKEND_Output;
struct TRITONBACKEND_Request;
struct TRITONBACKEND_Response;
struct TRITONBACKEND_ResponseFactory;
struct TRITONBACKEND_State;

// Errors
struct TRITONSERVER_Error* TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code code, const char* msg);
void TRITONSERVER_ErrorDelete(struct TRITONSERVER_Error* error);
TRITONSERVER_Error_Code TRITONSERVER_ErrorCode(struct TRITONSERVER_Error* error);
const char* TRITONSERVER_ErrorMessage(struct TRITONSERVER_Error* error);

// Logging
bool TRITONSERVER_LogIsEnabled(TRITONSERVER_LogLevel level);
struct TRITONSERVER_Error* TRITONSERVER_LogMessage(TRITONSERVER_LogLevel level,
                                                   const char* filename, const int line,
                                                   const char* msg);

// Messages
struct TRITONSERVER_Error* TRITONSERVER_MessageNewFromSerializedJson(
    struct TRITONSERVER_Message** message, const char* base, size_t byte_size);
struct TRITONSERVER_Error* TRITONSERVER_MessageDelete(struct TRITONSERVER_Message* message);
struct TRITONSERVER_Error* TRITONSERVER_MessageSerializeToJson(struct TRITONSERVER_Message* message,
                                                               const char** base,
                                                               size_t* byte_size);

// Metrics
struct TRITONSERVER_Parameter* TRITONSERVER_ParameterNew(const char* name,
                                                         const TRITONSERVER_ParameterType type,
                                                         const void* value);
void TRITONSERVER_ParameterDelete(struct TRITONSERVER_Parameter* parameter);
struct TRITONSERVER_Error* TRITONSERVER_MetricFamilyNew(struct TRITONSERVER_MetricFamily** family,
                                                        const TRITONSERVER_MetricKind kind,
                                                        const char* name, const char* description);
struct TRITONSERVER_Error* TRITONSERVER_MetricFamilyDelete(
    struct TRITONSERVER_MetricFamily* family);
struct TRITONSERVER_Error* TRITONSERVER_MetricNew(struct TRITONSERVER_Metric** metric,
                                                  struct TRITONSERVER_MetricFamily* family,
                                                  const struct TRITONSERVER_Parameter** labels,
                                                  const uint64_t label_count);
struct TRITONSERVER_Error* TRITONSERVER_MetricDelete(struct TRITONSERVER_Metric* metric);
struct TRITONSERVER_Error* TRITONSERVER_MetricIncrement(struct TRITONSERVER_Metric* metric,
                                                        double value);

// Backend
struct TRITONSERVER_Error* TRITONBACKEND_ApiVersion(uint32_t* major, uint32_t* minor);
struct TRITONSERVER_Error* TRITONBACKEND_BackendName(struct TRITONBACKEND_Backend* backend,
                                                     const char** name);
struct TRITONSERVER_Error* TRITONBACKEND_BackendConfig(
    struct TRITONBACKEND_Backend* backend, struct TRITONSERVER_Message** backend_config);
struct TRITONSERVER_Error* TRITONBACKEND_BackendSetExecutionPolicy(
    struct TRITONBACKEND_Backend* backend, TRITONBACKEND_ExecutionPolicy policy);
struct TRITONSERVER_Error* TRITONBACKEND_BackendArtifacts(struct TRITONBACKEND_Backend* backend,
                                                          TRITONBACKEND_ArtifactType* artifact_type,
                                                          const char** location);
struct TRITONSERVER_Error* TRITONBACKEND_BackendState(struct TRITONBACKEND_Backend* backend,
                                                      void** state);
struct TRITONSERVER_Error* TRITONBACKEND_BackendSetState(struct TRITONBACKEND_Backend* backend,
                                                         void* state);

// Model
struct TRITONSERVER_Error* TRITONBACKEND_ModelName(struct TRITONBACKEND_Model* model,
                                                   const char** name);
struct TRITONSERVER_Error* TRITONBACKEND_ModelVersion(struct TRITONBACKEND_Model* model,
                                                      uint64_t* version);
struct TRITONSERVER_Error* TRITONBACKEND_ModelRepository(struct TRITONBACKEND_Model* model,
                                                         TRITONBACKEND_ArtifactType* artifact_type,
                                                         const char** location);
struct TRITONSERVER_Error* TRITONBACKEND_ModelConfig(struct TRITONBACKEND_Model* model,
                                                     const uint32_t config_version,
                                                     struct TRITONSERVER_Message** model_config);
struct TRITONSERVER_Error* TRITONBACKEND_ModelAutoCompleteConfig(struct TRITONBACKEND_Model* model,
                                                                 bool* auto_complete_config);
struct TRITONSERVER_Error* TRITONBACKEND_ModelSetConfig(struct TRITONBACKEND_Model* model,
                                                        const uint32_t config_version,
                                                        struct TRITONSERVER_Message* model_config);
struct TRITONSERVER_Error* TRITONBACKEND_ModelBackend(struct TRITONBACKEND_Model* model,
                                                      struct TRITONBACKEND_Backend** backend);
struct TRITONSERVER_Error* TRITONBACKEND_ModelState(struct TRITONBACKEND_Model* model,
                                                    void** state);
struct TRITONSERVER_Error* TRITONBACKEND_ModelSetState(struct TRITONBACKEND_Model* model,
                                                       void* state);

// Model instance
struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceName(
    struct TRITONBACKEND_ModelInstance* instance, const char** name);
struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceKind(
    struct TRITONBACKEND_ModelInstance* instance, TRITONSERVER_InstanceGroupKind* kind);
struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceDeviceId(
    struct TRITONBACKEND_ModelInstance* instance, int32_t* device_id);
struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceModel(
    struct TRITONBACKEND_ModelInstance* instance, struct TRITONBACKEND_Model** model);
struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceState(
    struct TRITONBACKEND_ModelInstance* instance, void** state);
struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceSetState(
    struct TRITONBACKEND_ModelInstance* instance, void* state);
struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportStatistics(
    struct TRITONBACKEND_ModelInstance* instance, struct TRITONBACKEND_Request* request,
    const bool success, const uint64_t exec_start_ns, const uint64_t compute_start_ns,
    const uint64_t compute_end_ns, const uint64_t exec_end_ns);
struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportBatchStatistics(
    struct TRITONBACKEND_ModelInstance* instance, const uint64_t batch_size,
    const uint64_t exec_start_ns, const uint64_t compute_start_ns, const uint64_t compute_end_ns,
    const uint64_t exec_end_ns);

// Requests
struct TRITONSERVER_Error* TRITONBACKEND_RequestCorrelationId(struct TRITONBACKEND_Request* request,
                                                              uint64_t* id);
struct TRITONSERVER_Error* TRITONBACKEND_RequestInput(struct TRITONBACKEND_Request* request,
                                                      const char* name,
                                                      struct TRITONBACKEND_Input** input);
struct TRITONSERVER_Error* TRITONBACKEND_RequestOutputCount(struct TRITONBACKEND_Request* request,
                                                            uint32_t* count);
struct TRITONSERVER_Error* TRITONBACKEND_RequestOutputName(struct TRITONBACKEND_Request* request,
                                                           const uint32_t index,
                                                           const char** output_name);
struct TRITONSERVER_Error* TRITONBACKEND_RequestRelease(struct TRITONBACKEND_Request* request,
                                                        uint32_t release_flags);
struct TRITONSERVER_Error* TRITONBACKEND_InputProperties(
    struct TRITONBACKEND_Input* input, const char** name, TRITONSERVER_DataType* datatype,
    const int64_t** shape, uint32_t* dims_count, uint64_t* byte_size, uint32_t* buffer_count);
struct TRITONSERVER_Error* TRITONBACKEND_InputBuffer(struct TRITONBACKEND_Input* input,
                                                     const uint32_t index, const void** buffer,
                                                     uint64_t* buffer_byte_size,
                                                     TRITONSERVER_MemoryType* memory_type,
                                                     int64_t* memory_type_id);

// Responses
struct TRITONSERVER_Error* TRITONBACKEND_ResponseNew(struct TRITONBACKEND_Response** response,
                                                     struct TRITONBACKEND_Request* request);
struct TRITONSERVER_Error* TRITONBACKEND_ResponseDelete(struct TRITONBACKEND_Response* response);
struct TRITONSERVER_Error* TRITONBACKEND_ResponseOutput(
    struct TRITONBACKEND_Response* response, struct TRITONBACKEND_Output** output, const char* name,
    const TRITONSERVER_DataType datatype, const int64_t* shape, const uint32_t dims_count);
struct TRITONSERVER_Error* TRITONBACKEND_OutputBuffer(struct TRITONBACKEND_Output* output,
                                                      void** buffer,
                                                      const uint64_t buffer_byte_size,
                                                      TRITONSERVER_MemoryType* memory_type,
                                                      int64_t* memory_type_id);
struct TRITONSERVER_Error* TRITONBACKEND_ResponseSend(struct TRITONBACKEND_Response* response,
                                                      const uint32_t send_flags,
                                                      struct TRITONSERVER_Error* error);

struct TRITONSERVER_Error* TRITONBACKEND_ResponseFactoryNew(
    struct TRITONBACKEND_ResponseFactory** factory, struct TRITONBACKEND_Request* request);
struct TRITONSERVER_Error* TRITONBACKEND_ResponseFactoryDelete(
    struct TRITONBACKEND_ResponseFactory* factory);
struct TRITONSERVER_Error* TRITONBACKEND_ResponseFactorySendFlags(
    struct TRITONBACKEND_ResponseFactory* factory, const uint32_t send_flags);
struct TRITONSERVER_Error* TRITONBACKEND_ResponseNewFromFactory(
    struct TRITONBACKEND_Response** response, struct TRITONBACKEND_ResponseFactory* factory);

// Implicit state of a sequence
struct TRITONSERVER_Error* TRITONBACKEND_StateNew(struct TRITONBACKEND_State** state,
                                                  struct TRITONBACKEND_Request* request,
                                                  const char* name,
                                                  const TRITONSERVER_DataType datatype,
                                                  const int64_t* shape, const uint32_t dims_count);
struct TRITONSERVER_Error* TRITONBACKEND_StateBuffer(struct TRITONBACKEND_State* state,
                                                     void** buffer, const uint64_t buffer_byte_size,
                                                     TRITONSERVER_MemoryType* memory_type,
                                                     int64_t* memory_type_id);
struct TRITONSERVER_Error* TRITONBACKEND_StateUpdate(struct TRITONBACKEND_State* state);

// What the backend implements. Exported by exports.map; visible although the build hides the rest.
#define TRITON_JAX_EXPORT __attribute__((visibility("default")))
TRITON_JAX_EXPORT struct TRITONSERVER_Error* TRITONBACKEND_Initialize(
    struct TRITONBACKEND_Backend* backend);
TRITON_JAX_EXPORT struct TRITONSERVER_Error* TRITONBACKEND_Finalize(
    struct TRITONBACKEND_Backend* backend);
TRITON_JAX_EXPORT struct TRITONSERVER_Error* TRITONBACKEND_ModelInitialize(
    struct TRITONBACKEND_Model* model);
TRITON_JAX_EXPORT struct TRITONSERVER_Error* TRITONBACKEND_ModelFinalize(
    struct TRITONBACKEND_Model* model);
TRITON_JAX_EXPORT struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceInitialize(
    struct TRITONBACKEND_ModelInstance* instance);
TRITON_JAX_EXPORT struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceFinalize(
    struct TRITONBACKEND_ModelInstance* instance);
TRITON_JAX_EXPORT struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(
    struct TRITONBACKEND_ModelInstance* instance, struct TRITONBACKEND_Request** requests,
    const uint32_t request_count);
// Looked up by servers since 25.12; older ones do not know it.
TRITON_JAX_EXPORT struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReady(
    struct TRITONBACKEND_ModelInstance* instance);

#ifdef __cplusplus
}
#endif
