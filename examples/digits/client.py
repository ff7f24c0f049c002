# SPDX-License-Identifier: Apache-2.0
"""Classify the held-out digits with a running server, over HTTP and over gRPC.

    python examples/digits/client.py
    python examples/digits/client.py --reference examples/digits/1 --json report.json

Prints what the server says of the model, then per protocol the accuracy, the latency that one
client sees and its throughput. With --reference each answer is compared with the same model in
plain JAX. Exit status 1: low accuracy, a difference, or an error.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np
import tritonclient.grpc
import tritonclient.http
from numpy.typing import NDArray

if not __package__:  # run as a file rather than by `python -m examples.digits.client`
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.digits.data import Digits, held_out

PROTOCOLS: dict[str, ModuleType] = {"HTTP": tritonclient.http, "gRPC": tritonclient.grpc}
REQUIRED_ACCURACY = 0.97
ALLOWED_DIFFERENCE = 1e-5
LARGEST_BATCH = 8
WARM_UP_REQUESTS = 5

FloatArray = NDArray[np.float32]


class ClientError(Exception):
    """The server could not be asked, or did not answer as the digits model does."""


@dataclass(frozen=True)
class Report:
    """What one protocol gave."""

    protocol: str
    requests: int
    images: int
    accuracy: float
    p50_ms: float
    p99_ms: float
    images_per_second: float
    max_difference: float | None
    """The largest distance of a logit from the reference; None without a reference."""

    def problems(self) -> list[str]:
        """Say what is not as it must be; empty when all is well."""
        found = []
        if self.accuracy < REQUIRED_ACCURACY:
            found.append(
                f"{self.protocol}: accuracy {self.accuracy:.4f}, expected at least "
                f"{REQUIRED_ACCURACY}; train the model again with examples/digits/train.py"
            )
        # Written so that NaN is a problem too.
        if self.max_difference is not None and not self.max_difference <= ALLOWED_DIFFERENCE:
            found.append(
                f"{self.protocol}: a logit differs by {self.max_difference:.3g} from plain JAX, "
                f"expected at most {ALLOWED_DIFFERENCE:.0e}; does the server have the weights of "
                "the reference?"
            )
        return found

    def __str__(self) -> str:
        text = (
            f"{self.protocol}  accuracy {self.accuracy:.4f}  "
            f"latency p50 {self.p50_ms:.2f} ms, p99 {self.p99_ms:.2f} ms  "
            f"{self.images_per_second:,.0f} images/s  "
            f"({self.images} images in {self.requests} requests)"
        )
        if self.max_difference is not None:
            text += f"  max difference from plain JAX {self.max_difference:.2e}"
        return text


class Classifier(Protocol):
    """What can be asked for logits; `DigitsClient` is one."""

    protocol: str

    def logits(self, images: FloatArray) -> FloatArray:
        """Return the logits, [batch, 10], of images, [batch, 8, 8, 1]."""


class DigitsClient:
    """A connection to a server by one protocol, to be closed by `with`."""

    def __init__(self, protocol: str, url: str, model: str = "digits") -> None:
        """Connect.

        Args:
            protocol: A key of `PROTOCOLS`.
            url: The server's address for that protocol, without `http://`.
            model: The name under which the model is served.
        """
        self.protocol = protocol
        self._where = f"{protocol}: model {model!r} at {url}"
        self._model = model
        self._api = PROTOCOLS[protocol]
        try:
            self._client = self._api.InferenceServerClient(url)
        except Exception as error:
            raise self._failed(error) from error

    def __enter__(self) -> DigitsClient:
        return self

    def __exit__(self, *exception: object) -> None:
        self._client.close()

    def metadata(self) -> dict[str, Any]:
        """Return the model's metadata; both protocols give the same dict."""
        options = {"as_json": True} if self.protocol == "gRPC" else {}
        try:
            answer = self._client.get_model_metadata(self._model, **options)
        except Exception as error:  # the HTTP client lets its transport's own kinds through
            raise self._failed(error) from error
        for tensor in (*answer.get("inputs", ()), *answer.get("outputs", ())):
            tensor["shape"] = [int(size) for size in tensor["shape"]]  # JSON of gRPC has strings
        return dict(answer)

    def logits(self, images: FloatArray) -> FloatArray:
        """Return the logits, [batch, 10], of images, [batch, 8, 8, 1]."""
        image = self._api.InferInput("IMAGE", list(images.shape), "FP32")
        image.set_data_from_numpy(images)
        output = self._api.InferRequestedOutput("LOGITS")
        try:
            result = self._client.infer(self._model, [image], outputs=[output])
        except Exception as error:  # the HTTP client lets its transport's own kinds through
            raise self._failed(error) from error
        logits = result.as_numpy("LOGITS")
        expected = (len(images), 10)
        if logits is None or logits.shape != expected or logits.dtype != np.float32:
            got = "none" if logits is None else f"{logits.dtype} {list(logits.shape)}"
            raise ClientError(
                f"{self._where}: output LOGITS: expected float32 {list(expected)}, got {got}; "
                "is this the digits example?"
            )
        values: FloatArray = logits
        return values

    def _failed(self, error: Exception) -> ClientError:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        return ClientError(f"{self._where}: {reason}; is a server running there, with this model?")


def classify(
    client: Classifier,
    digits: Digits,
    *,
    seed: int = 0,
    repeat: int = 1,
    reference: FloatArray | None = None,
) -> Report:
    """Send all the images, `repeat` times, in batches of random sizes from 1 to 8.

    Args:
        client: A connection, one request at a time.
        digits: Images and their labels.
        seed: Of the batch sizes: the same seed sends the same requests.
        repeat: More requests give steadier figures.
        reference: The expected logits of all the images.
    """
    for batch in _batches(len(digits.images), np.random.default_rng(seed), WARM_UP_REQUESTS):
        client.logits(digits.images[batch])  # connections are opened here, not in the figures
    sizes = np.random.default_rng(seed)
    latencies = []
    correct = 0
    difference = 0.0
    for _ in range(repeat):
        for batch in _batches(len(digits.images), sizes):
            started = time.perf_counter()
            logits = client.logits(digits.images[batch])
            latencies.append(time.perf_counter() - started)
            correct += int(np.sum(np.argmax(logits, axis=-1) == digits.labels[batch]))
            if reference is not None:
                # np.maximum, unlike max, keeps a NaN.
                worst = np.max(np.abs(logits - reference[batch]))
                difference = float(np.maximum(difference, worst))
    images = repeat * len(digits.images)
    p50, p99 = np.percentile(np.array(latencies) * 1e3, [50, 99])
    return Report(
        protocol=client.protocol,
        requests=len(latencies),
        images=images,
        accuracy=correct / images,
        p50_ms=float(p50),
        p99_ms=float(p99),
        images_per_second=images / sum(latencies),
        max_difference=None if reference is None else difference,
    )


def _batches(
    count: int, sizes: np.random.Generator, limit: int | None = None
) -> Iterator[slice[int, int, None]]:
    """Cut `count` images into batches, at most `limit` of them."""
    start = 0
    while start < count and limit != 0:
        end = min(count, start + int(sizes.integers(1, LARGEST_BATCH, endpoint=True)))
        yield slice(start, end)
        start = end
        limit = None if limit is None else limit - 1


def format_metadata(metadata: dict[str, Any]) -> str:
    """Lay out a model's metadata for reading, one tensor a line."""
    lines = [f"model {metadata['name']}, versions {', '.join(metadata.get('versions', []))}"]
    for kind in ("inputs", "outputs"):
        lines += [
            f"  {kind[:-1]:6}  {tensor['name']}  {tensor['datatype']} {tensor['shape']}"
            for tensor in metadata.get(kind, [])
        ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description="Classify the held-out digits with a running server."
    )
    parser.add_argument(
        "--url", type=_address, default="localhost:8000", help="HTTP (default: %(default)s)"
    )
    parser.add_argument(
        "--grpc-url", type=_address, default="localhost:8001", help="default: %(default)s"
    )
    parser.add_argument("--model", default="digits", help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="of the batch sizes (default: 0)")
    parser.add_argument(
        "--repeat", type=_positive, default=5, help="times to send all the images (default: 5)"
    )
    parser.add_argument(
        "--reference",
        type=Path,
        metavar="DIR",
        help="version directory of the same model, to compare each logit with plain JAX",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the report there")
    options = parser.parse_args(arguments)

    digits = held_out()
    metadata: dict[str, Any] = {}
    reports = []
    try:
        reference = None
        if options.reference is not None:
            from examples.digits.reference import predict  # only a comparison needs jax

            reference = predict(options.reference, digits.images)["LOGITS"]
        for protocol, url in (("HTTP", options.url), ("gRPC", options.grpc_url)):
            with DigitsClient(protocol, url, options.model) as client:
                if not metadata:
                    metadata = client.metadata()
                    print(format_metadata(metadata))
                report = classify(
                    client, digits, seed=options.seed, repeat=options.repeat, reference=reference
                )
            print(report)
            reports.append(report)
        if options.json is not None:
            document = {"model": metadata, "reports": [asdict(report) for report in reports]}
            options.json.write_text(json.dumps(document, indent=2) + "\n")
    except (ClientError, OSError, ValueError) as error:
        print(f"client.py: {error}", file=sys.stderr)
        return 1
    problems = [problem for report in reports for problem in report.problems()]
    for problem in problems:
        print(f"client.py: {problem}", file=sys.stderr)
    return 1 if problems else 0


def _address(text: str) -> str:
    if "/" in text:
        raise argparse.ArgumentTypeError(
            f"expected HOST:PORT, without a scheme or path, got {text}"
        )
    return text


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected at least 1, got {value}")
    return value


if __name__ == "__main__":
    sys.exit(main())
