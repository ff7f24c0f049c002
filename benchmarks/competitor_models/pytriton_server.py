# SPDX-License-Identifier: Apache-2.0
"""The network behind PyTriton, in an environment of its own: ``pytriton_server.py HTTP GRPC``."""

import sys
from typing import Any

import numpy as np
from pytriton.decorators import batch
from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig, TritonSecurityConfig

from benchmarks.competitor_models.compiled import CompiledMlp
from benchmarks.competitor_models.weights import MAX_BATCH, SIZES


def main() -> None:
    """Serve until SIGTERM."""
    run = CompiledMlp()

    @batch  # type: ignore[untyped-decorator]  # PyTriton is in another environment
    def infer(X: Any) -> dict[str, Any]:
        return {"Y": run([X])[: len(X)]}

    http, grpc, metrics = (int(port) for port in sys.argv[1:4])
    config = TritonConfig(
        http_address="127.0.0.1",
        http_port=http,
        grpc_address="127.0.0.1",
        grpc_port=grpc,
        metrics_port=metrics,
        log_verbose=0,
    )
    # perf_analyzer reads statistics and shares memory; by gRPC it cannot send the token for that.
    everything_open = TritonSecurityConfig(restricted_endpoints=[])
    with Triton(config=config, security_config=everything_open) as triton:
        triton.bind(
            model_name="mlp",
            infer_func=infer,
            inputs=[Tensor(name="X", dtype=np.float32, shape=(SIZES[0],))],
            outputs=[Tensor(name="Y", dtype=np.float32, shape=(SIZES[-1],))],
            config=ModelConfig(max_batch_size=MAX_BATCH, batcher=DynamicBatcher()),
        )
        triton.serve()


if __name__ == "__main__":
    main()
