# SPDX-License-Identifier: Apache-2.0
"""The whole way in one run: from the source to a model that classifies digits over the network.

``python -m ci.demo`` builds the backend, packs it, installs the artifact into an empty backend
directory as an operator would, trains the ``digits`` example, serves it on a stock tritonserver,
classifies held-out digits over HTTP and gRPC, and compares each answer with plain JAX.
"""

from __future__ import annotations

import argparse
import importlib
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ci.artifacts import ARTIFACT_ERRORS, make_artifacts
from ci.installation import InstallationError, install_artifact
from ci.process import ROOT, CommandError, fail, run
from tritonserver_jax.releases import DEFAULT_RELEASE, find_release
from tritonserver_jax.server import ServerError, TritonServer, obtain_server

#: For the server to import JAX and compile the models on a slow machine.
READY_TIMEOUT = 180
_ENDINGS = {signal.SIGINT, signal.SIGTERM}
METRICS = ("jax_", "nv_inference_count", "nv_inference_exec_count")

NEXT = (
    "next: a model of your own (docs/model_contract.md), and its clients (docs/clients.md); "
    "./ci/nox -s demo -- --keep goes on serving the models of this demo, and "
    "tritonserver-jax serve (docs/cli.md) those of a folder"
)


class DemoError(RuntimeError):
    """A step of the demo did not show what it should."""


@contextmanager
def _step(title: str) -> Iterator[None]:
    print(f"\n== {title}", flush=True)
    started = time.monotonic()
    yield
    print(f"-- {time.monotonic() - started:.1f} s", flush=True)


def shown_metrics(page: str) -> list[str]:
    """The lines to show of a page of metrics: without a histogram's many buckets."""
    lines = [line for line in page.splitlines() if line.startswith(METRICS)]
    return [line for line in lines if not line.partition("{")[0].endswith("_bucket")]


def _train(repository: Path) -> None:
    train = importlib.import_module("examples.digits.train")
    if train.main(["--output", str(repository / "digits")]) != 0:
        raise DemoError("the digits example was not trained; its output is above")


def _classify(server: TritonServer, repository: Path) -> None:
    client = importlib.import_module("examples.digits.client")
    addresses = ["--url", server.http_url, "--grpc-url", server.grpc_url]
    if client.main([*addresses, "--reference", str(repository / "digits" / "1")]) != 0:
        raise DemoError("the answers of the server were not as expected; the lines above say how")


def show(release: str, *, keep: bool = False) -> None:
    """Run the demo.

    Args:
        release: The release to serve on.
        keep: Whether to go on serving until a person ends it.

    Raises:
        DemoError: The model or its answers were not as they should be.
        CommandError: A program failed; its output says at what.
        ServerError: The server could not be had, did not start, or did not load the model.
    """
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tritonserver-jax-demo-") as scratch:
        repository = Path(scratch, "models")
        repository.mkdir()
        with _step(f"build the backend, and pack it for release {release}"):
            tarball = make_artifacts([release])[release]
            print(tarball)
        with _step("install the artifact, and make its Python environment"):
            installed = install_artifact(tarball, Path(scratch, "backends"))
        with _step(f"get a stock tritonserver {release}"):
            distribution = obtain_server(find_release(release))
            print(distribution.executable)
        with _step("train digits"):
            _train(repository)
            shutil.copytree(ROOT / "examples" / "add_sub", repository / "add_sub")
        with TritonServer(distribution, [repository], backend_directory=installed.parent) as server:
            with _step("serve it"):
                server.wait_ready(READY_TIMEOUT)
                print(f"HTTP {server.http_url}  gRPC {server.grpc_url}")
            with _step("check its health"):
                script = installed / "scripts" / "health_check.py"
                run([sys.executable, script, "--url", server.http_url])
            with _step("classify held-out digits, and compare with plain JAX"):
                _classify(server, repository)
            with _step("metrics"):
                print("\n".join(shown_metrics(server.metrics())))
            print(f"\nshown in {time.monotonic() - started:.0f} s", flush=True)
            if keep:
                print(
                    f"serving on HTTP {server.http_url}, gRPC {server.grpc_url}, metrics "
                    f"{server.metrics_url}/metrics; end it with Ctrl-C",
                    flush=True,
                )
                # Not before the server runs: it would inherit the mask, and hear no signal.
                signal.pthread_sigmask(signal.SIG_BLOCK, _ENDINGS)
                signal.sigwait(_ENDINGS)
            with _step("stop the server"):
                code = server.stop()
                if code != 0:
                    raise DemoError(f"the server ended with status {code}, expected 0")
    print(f"\n{NEXT}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="./ci/nox -s demo --", description=__doc__)
    parser.add_argument("--release", default=DEFAULT_RELEASE, help="default: %(default)s")
    parser.add_argument("--keep", action="store_true", help="go on serving until Ctrl-C")
    options = parser.parse_args(arguments)
    try:
        show(options.release, keep=options.keep)
    except (*ARTIFACT_ERRORS, CommandError, DemoError, InstallationError, ServerError) as error:
        return fail(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
