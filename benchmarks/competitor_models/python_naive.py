# SPDX-License-Identifier: Apache-2.0
"""Triton's python backend as examples show it: a loop over the requests, a jitted call for each."""

import os
import sys
from typing import Any

# The Python in the python backend does not look there by itself.
sys.path[:0] = os.environ["PYTHONPATH"].split(os.pathsep)

import jax  # noqa: E402
import numpy as np  # noqa: E402
import triton_python_backend_utils as pb_utils  # noqa: E402

from benchmarks.competitor_models.mlp import predict  # noqa: E402
from benchmarks.competitor_models.weights import weights  # noqa: E402


class TritonPythonModel:
    """What the python backend looks for."""

    def initialize(self, args: dict[str, str]) -> None:  # noqa: ARG002
        """Jit the network; it is compiled when a shape first comes."""
        self.params = jax.device_put(weights())
        self.predict = jax.jit(predict)

    def execute(self, requests: list[Any]) -> list[Any]:
        """Answer each request by itself."""
        responses = []
        for request in requests:
            given = np.from_dlpack(pb_utils.get_input_tensor_by_name(request, "X"))
            answer = self.predict(self.params, given)["Y"]
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor.from_dlpack("Y", answer)]))
        return responses
