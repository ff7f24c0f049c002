# SPDX-License-Identifier: Apache-2.0
"""The fields of a model configuration, by name and type.

This is what the text of a config.pbtxt needs to be read; the numbers that the fields have on the
wire are Triton's own, and are not declared here. A line is ``name: type``: the type of a scalar,
of `ENUMS` or of `MESSAGES`; with ``*`` a list; as ``{type}`` or ``{key type}`` a map, by default of
strings; with ``| group``, only one field of the group may be set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["ENUMS", "MESSAGES", "ROOT"]

#: The message that a config.pbtxt is.
ROOT: Final = "ModelConfig"

#: By name, the values; those that Triton numbers from zero in this order.
ENUMS: Final[Mapping[str, str]] = {
    "DataType": "TYPE_INVALID TYPE_BOOL TYPE_UINT8 TYPE_UINT16 TYPE_UINT32 TYPE_UINT64 TYPE_INT8 "
    "TYPE_INT16 TYPE_INT32 TYPE_INT64 TYPE_FP16 TYPE_FP32 TYPE_FP64 TYPE_STRING TYPE_BF16",
    "InstanceKind": "KIND_AUTO KIND_GPU KIND_CPU KIND_MODEL",
    "SecondaryDeviceKind": "KIND_NVDLA",
    "InputFormat": "FORMAT_NONE FORMAT_NHWC FORMAT_NCHW",
    "BatchInputKind": "BATCH_ELEMENT_COUNT BATCH_ACCUMULATED_ELEMENT_COUNT "
    "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO BATCH_MAX_ELEMENT_COUNT_AS_SHAPE BATCH_ITEM_SHAPE "
    "BATCH_ITEM_SHAPE_FLATTEN",
    "BatchOutputKind": "BATCH_SCATTER_WITH_INPUT_SHAPE",
    "Priority": "PRIORITY_DEFAULT PRIORITY_MAX PRIORITY_MIN",
    "TimeoutAction": "REJECT DELAY",
    "ControlKind": "CONTROL_SEQUENCE_START CONTROL_SEQUENCE_READY CONTROL_SEQUENCE_END "
    "CONTROL_SEQUENCE_CORRID",
}

MESSAGES: Final[Mapping[str, str]] = {
    "ModelConfig": """
        name: string
        platform: string
        backend: string
        runtime: string
        version_policy: VersionPolicy
        max_batch_size: int32
        input: Input*
        output: Output*
        batch_input: BatchInput*
        batch_output: BatchOutput*
        optimization: Optimization
        dynamic_batching: DynamicBatching | scheduling
        sequence_batching: SequenceBatching | scheduling
        ensemble_scheduling: Ensembling | scheduling
        instance_group: InstanceGroup*
        default_model_filename: string
        cc_model_filenames: {string}
        metric_tags: {string}
        parameters: {Parameter}
        model_warmup: Warmup*
        model_operations: Operations
        model_transaction_policy: TransactionPolicy
        model_repository_agents: RepositoryAgents
        response_cache: Switch
        model_metrics: Metrics
    """,
    "Parameter": "string_value: string",
    "Switch": "enable: bool",
    "Operations": "op_library_filename: string*",
    "TransactionPolicy": "decoupled: bool",
    "RepositoryAgents": "agents: Agent*",
    "Agent": """
        name: string
        parameters: {string}
    """,
    "VersionPolicy": """
        latest: LatestVersions | policy
        all: AllVersions | policy
        specific: SpecificVersions | policy
    """,
    "LatestVersions": "num_versions: uint32",
    "AllVersions": "",
    "SpecificVersions": "versions: int64*",
    "Reshape": "shape: int64*",
    "Input": """
        name: string
        data_type: DataType
        format: InputFormat
        dims: int64*
        reshape: Reshape
        is_shape_tensor: bool
        allow_ragged_batch: bool
        optional: bool
        is_non_linear_format_io: bool
    """,
    "Output": """
        name: string
        data_type: DataType
        dims: int64*
        reshape: Reshape
        label_filename: string
        is_shape_tensor: bool
        is_non_linear_format_io: bool
    """,
    "BatchInput": """
        kind: BatchInputKind
        target_name: string*
        data_type: DataType
        source_input: string*
    """,
    "BatchOutput": """
        target_name: string*
        kind: BatchOutputKind
        source_input: string*
    """,
    "InstanceGroup": """
        name: string
        kind: InstanceKind
        count: int32
        rate_limiter: RateLimiter
        gpus: int32*
        secondary_devices: SecondaryDevice*
        profile: string*
        passive: bool
        host_policy: string
    """,
    "SecondaryDevice": """
        kind: SecondaryDeviceKind
        device_id: int64
    """,
    "RateLimiter": """
        resources: RateLimiterResource*
        priority: uint32
    """,
    "RateLimiterResource": """
        name: string
        global: bool
        count: uint32
    """,
    "Optimization": """
        graph: Graph
        priority: Priority
        cuda: Cuda
        execution_accelerators: Accelerators
        input_pinned_memory: Switch
        output_pinned_memory: Switch
        gather_kernel_buffer_threshold: uint32
        eager_batching: bool
    """,
    "Graph": "level: int32",
    "Cuda": """
        graphs: bool
        busy_wait_events: bool
        graph_spec: CudaGraph*
        output_copy_stream: bool
    """,
    "CudaGraph": """
        batch_size: int32
        input: {CudaShape}
        graph_lower_bound: CudaLowerBound
    """,
    "CudaShape": "dim: int64*",
    "CudaLowerBound": """
        batch_size: int32
        input: {CudaShape}
    """,
    "Accelerators": """
        gpu_execution_accelerator: Accelerator*
        cpu_execution_accelerator: Accelerator*
    """,
    "Accelerator": """
        name: string
        parameters: {string}
    """,
    "QueuePolicy": """
        timeout_action: TimeoutAction
        default_timeout_microseconds: uint64
        allow_timeout_override: bool
        max_queue_size: uint32
    """,
    "DynamicBatching": """
        preferred_batch_size: int32*
        max_queue_delay_microseconds: uint64
        preserve_ordering: bool
        priority_levels: uint64
        default_priority_level: uint64
        default_queue_policy: QueuePolicy
        priority_queue_policy: {uint64 QueuePolicy}
    """,
    "SequenceBatching": """
        direct: DirectStrategy | strategy
        oldest: OldestStrategy | strategy
        max_sequence_idle_microseconds: uint64
        control_input: ControlInput*
        state: State*
        iterative_sequence: bool
    """,
    "DirectStrategy": """
        max_queue_delay_microseconds: uint64
        minimum_slot_utilization: float
    """,
    "OldestStrategy": """
        max_candidate_sequences: int32
        preferred_batch_size: int32*
        max_queue_delay_microseconds: uint64
        preserve_ordering: bool
    """,
    "ControlInput": """
        name: string
        control: Control*
    """,
    "Control": """
        kind: ControlKind
        int32_false_true: int32*
        fp32_false_true: float*
        bool_false_true: bool*
        data_type: DataType
    """,
    "State": """
        input_name: string
        output_name: string
        data_type: DataType
        dims: int64*
        initial_state: InitialState*
        use_same_buffer_for_input_output: bool
        use_growable_memory: bool
    """,
    "InitialState": """
        data_type: DataType
        dims: int64*
        zero_data: bool | data
        data_file: string | data
        name: string
    """,
    "Ensembling": """
        step: EnsembleStep*
        max_inflight_requests: uint32
    """,
    "EnsembleStep": """
        model_name: string
        model_version: int64
        input_map: {string}
        output_map: {string}
        model_namespace: string
    """,
    "Warmup": """
        name: string
        batch_size: uint32
        inputs: {WarmupInput}
        count: uint32
    """,
    "WarmupInput": """
        data_type: DataType
        dims: int64*
        zero_data: bool | data
        random_data: bool | data
        input_data_file: string | data
    """,
    "Metrics": "metric_control: MetricControl*",
    "MetricControl": """
        metric_identifier: MetricIdentifier
        histogram_options: HistogramOptions | options
    """,
    "MetricIdentifier": "family: string",
    "HistogramOptions": "buckets: double*",
}
