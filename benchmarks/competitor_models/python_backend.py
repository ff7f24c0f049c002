# SPDX-License-Identifier: Apache-2.0
"""Triton's python backend as well as it can be written: the requests of a batch in one call."""

import os
import sys
from typing import Any

# The Python in the python backend does not look there by itself.
sys.path[:0] = os.environ["PYTHONPATH"].split(os.pathsep)

import numpy as np  # noqa: E402
import triton_python_backend_utils as pb_utils  # noqa: E402

from benchmarks.competitor_models.compiled import CompiledMlp  # noqa: E402


class TritonPythonModel:
    """What the python backend looks for."""

    def initialize(self, args: dict[str, str]) -> None:  # noqa: ARG002
        """Compile every bucket."""
        self.run = CompiledMlp()

    def execute(self, requests: list[Any]) -> list[Any]:
        """Answer a batch of requests."""
        # By DLPack, here and below: this python backend reads and writes arrays of NumPy 2 wrongly.
        inputs = [np.from_dlpack(pb_utils.get_input_tensor_by_name(one, "X")) for one in requests]
        # A copy, because DLPack does not take read-only memory.
        outputs = np.array(self.run(inputs))
        responses = []
        begin = 0
        for rows in map(len, inputs):
            answer = pb_utils.Tensor.from_dlpack("Y", outputs[begin : begin + rows])
            responses.append(pb_utils.InferenceResponse([answer]))
            begin += rows
        return responses
