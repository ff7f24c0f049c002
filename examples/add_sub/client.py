# SPDX-License-Identifier: Apache-2.0
"""Call the add_sub model of a running server over HTTP and over gRPC.

    python examples/add_sub/client.py

The two clients of `tritonclient` have the same functions, so one loop does for both.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from types import ModuleType

import numpy as np
import tritonclient.grpc
import tritonclient.http
from numpy.typing import NDArray


def add_sub(
    protocol: ModuleType,
    url: str,
    a: NDArray[np.float32],
    b: NDArray[np.float32],
    *,
    model: str = "add_sub",
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Ask a server for a + b and a - b.

    Args:
        protocol: `tritonclient.http` or `tritonclient.grpc`.
        url: The server's address for that protocol, for example `localhost:8000`.
        a: Shape [batch, 4].
        b: Shape [batch, 4].
        model: The name under which the model is served.
    """
    inputs = []
    for name, value in (("INPUT0", a), ("INPUT1", b)):
        tensor = protocol.InferInput(name, list(value.shape), "FP32")
        tensor.set_data_from_numpy(value)
        inputs.append(tensor)
    client = protocol.InferenceServerClient(url)
    try:
        result = client.infer(model, inputs)
    finally:
        client.close()
    return result.as_numpy("OUTPUT0"), result.as_numpy("OUTPUT1")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Call the add_sub model of a running server.")
    parser.add_argument(
        "--url", type=_address, default="localhost:8000", help="HTTP (default: %(default)s)"
    )
    parser.add_argument(
        "--grpc-url", type=_address, default="localhost:8001", help="default: %(default)s"
    )
    parser.add_argument("--model", default="add_sub", help="default: %(default)s")
    options = parser.parse_args(arguments)

    a = np.array([[1, 2, 3, 4], [10, 20, 30, 40]], dtype=np.float32)
    b = np.array([[4, 3, 2, 1], [1, 1, 1, 1]], dtype=np.float32)
    for name, protocol, url in (
        ("HTTP", tritonclient.http, options.url),
        ("gRPC", tritonclient.grpc, options.grpc_url),
    ):
        try:
            total, difference = add_sub(protocol, url, a, b, model=options.model)
        except Exception as error:  # the HTTP client lets its transport's own kinds through
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
            print(
                f"client.py: {name}: no answer from the model {options.model!r} at {url}: "
                f"{reason}; is a server running there, with this model?",
                file=sys.stderr,
            )
            return 1
        for got, expected, what in ((total, a + b, "sum"), (difference, a - b, "difference")):
            if not np.array_equal(got, expected):
                print(
                    f"client.py: {name}: wrong {what}: expected {expected.tolist()}, "
                    f"got {got.tolist()}; is {options.model!r} the add_sub example?",
                    file=sys.stderr,
                )
                return 1
        print(f"{name}  sum {total.tolist()}  difference {difference.tolist()}")
    return 0


def _address(text: str) -> str:
    if "/" in text:
        raise argparse.ArgumentTypeError(
            f"expected HOST:PORT, without a scheme or path, got {text}"
        )
    return text


if __name__ == "__main__":
    sys.exit(main())
