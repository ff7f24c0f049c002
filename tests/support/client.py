# SPDX-License-Identifier: Apache-2.0
"""Requests through the public clients, over HTTP and gRPC alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

from tritonserver_jax.server import TritonServer

Protocol = Literal["http", "grpc"]
PROTOCOLS: tuple[Protocol, ...] = ("http", "grpc")

Array = np.ndarray[Any, Any]


class RequestError(Exception):
    """The server refused a request.

    Attributes:
        status: The protocol's own: ``"400"`` or ``"StatusCode.INVALID_ARGUMENT"``.
        message: The server's words.
    """

    def __init__(self, status: str | None, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


class Client:
    """A connection to one server, used by one thread."""

    def __init__(self, server: TritonServer, protocol: Protocol, timeout: float = 60) -> None:
        self._module = triton_http if protocol == "http" else triton_grpc
        self._timeout = timeout
        if protocol == "http":
            self._client = triton_http.InferenceServerClient(
                server.http_url, network_timeout=timeout, connection_timeout=timeout
            )
        else:
            self._client = triton_grpc.InferenceServerClient(server.grpc_url)
        self._protocol = protocol

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def infer(
        self,
        model: str,
        inputs: Mapping[str, Array],
        *,
        outputs: Sequence[str] | None = None,
        dtypes: Mapping[str, str] | None = None,
        version: str = "",
    ) -> dict[str, Array]:
        """Send one request and return its outputs by name.

        Args:
            model: The model.
            inputs: Arrays, with the batch dimension if the model has one.
            outputs: Which outputs to ask for; by default all.
            dtypes: Triton data types to send inputs as, for those that NumPy cannot tell.
            version: The model version.

        Raises:
            RequestError: The server refused it.
        """
        sent = []
        for name, array in inputs.items():
            dtype = (dtypes or {}).get(name) or np_to_triton_dtype(array.dtype)
            tensor = self._module.InferInput(name, list(array.shape), dtype)
            if dtype == "BF16":
                # The client makes BF16 from FP32 only, by cutting bits off: send our own bits.
                _set_raw(tensor, array, self._protocol)
            else:
                tensor.set_data_from_numpy(array)
            sent.append(tensor)
        asked = None if outputs is None else [self._module.InferRequestedOutput(o) for o in outputs]
        options = (
            {"timeout": int(self._timeout * 1e6)}
            if self._protocol == "http"
            else {"client_timeout": self._timeout}
        )
        try:
            result = self._client.infer(
                model, sent, outputs=asked, model_version=version, **options
            )
        except InferenceServerException as error:
            raise RequestError(error.status(), error.message()) from error
        response = result.get_response()
        listed = response["outputs"] if self._protocol == "http" else response.outputs
        names = [o["name"] if self._protocol == "http" else o.name for o in listed]
        return {name: result.as_numpy(name) for name in names}


def _set_raw(tensor: Any, array: Array, protocol: Protocol) -> None:
    raw = array.tobytes()
    if protocol == "http":
        tensor._raw_data = raw
        tensor._parameters["binary_data_size"] = len(raw)
    else:
        tensor._raw_content = raw


def status(server: TritonServer, protocol: Protocol, of: Mapping[Protocol, str]) -> str:
    """The protocol's status for an error, on this server.

    Args:
        server: Which.
        protocol: Over which the error comes.
        of: The status of the error, by protocol.
    """
    if protocol == "http" and "http_error_status" not in server.distribution.release.features:
        return "400"
    return of[protocol]


def infer(
    server: TritonServer,
    model: str,
    inputs: Mapping[str, Array],
    protocol: Protocol = "http",
    **options: Any,
) -> dict[str, Array]:
    """One request on a connection of its own. See `Client.infer`."""
    with Client(server, protocol) as client:
        return client.infer(model, inputs, **options)
