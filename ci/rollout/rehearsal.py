# SPDX-License-Identifier: Apache-2.0
"""Servers are replaced one by one while clients send requests, and every request is counted."""

from __future__ import annotations

import contextlib
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import docker

from ci.rollout.load import KINDS, Load, Tally, write_models
from ci.rollout.pod import Ended, Pod, ServerSpec
from ci.rollout.proxy import Layer, Proxy, running_proxy

__all__ = ["LEAST_REQUESTS", "PROPAGATION_SECONDS", "Report", "rehearse"]

#: So many requests have to be sent, or it shows nothing.
LEAST_REQUESTS: Final = 5_000
#: From when a pod is deleted until the last proxy knows: in a cluster mostly less than a second,
#: and some seconds where it is large or busy.
PROPAGATION_SECONDS: Final = 2.0

_SERVERS: Final = 2
_MOST_SECONDS: Final = 180.0


@dataclass(frozen=True, slots=True)
class Report:
    """What came of a rehearsal.

    Attributes:
        tallies: By kind of client.
        ended: How each replaced server ended.
        seconds: How long it took, without the start of the first servers.
    """

    tallies: Mapping[str, Tally]
    ended: tuple[Ended, ...]
    seconds: float

    @property
    def requests(self) -> int:
        """How many there were."""
        return sum(tally.answered + tally.failures for tally in self.tallies.values())

    @property
    def failures(self) -> int:
        """How many of them were not answered."""
        return sum(tally.failures for tally in self.tallies.values())

    def table(self) -> str:
        """For people: a line for each kind of client, with the errors below it."""
        width = max(len(kind.title) for kind in KINDS.values())
        lines = [f"{'':{width}}  requests  failed"]
        for name, tally in self.tallies.items():
            count = tally.answered + tally.failures
            lines.append(f"{KINDS[name].title:{width}}  {count:8}  {tally.failures:6}")
            lines += [f"    {reason}" for reason in tally.reasons()]
        lines.append(f"{'all':{width}}  {self.requests:8}  {self.failures:6}")
        for ended in self.ended:
            how = "killed" if ended.killed else f"exit {ended.status}"
            lines.append(f"a server was gone after {ended.seconds:.1f} s: {how}")
        return "\n".join(lines)


def rehearse(
    client: docker.DockerClient,
    image: str,
    spec: ServerSpec,
    *,
    layer: Layer = "http",
    pre_stop: bool = True,
    say: Callable[[str], None] = print,
) -> Report:
    """Replace two servers by two others, as a Deployment does with ``maxSurge: 1``.

    Args:
        client: Of the engine.
        image: The image.
        spec: What the chart says of a server.
        layer: What the proxy understands.
        pre_stop: Whether servers get their preStop hook; without it, requests are lost.
        say: Is told of each step.
    """
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tritonserver-jax-")))
        folder.chmod(0o755)
        models = folder / "models"
        write_models(models)
        proxy = stack.enter_context(running_proxy(layer, spec, folder))

        def start() -> Pod:
            pod = Pod(client, image, spec, models)
            stack.callback(pod.remove)
            return pod

        first = [start() for _ in range(_SERVERS)]
        old = []
        for pod in first:
            say(f"a server is ready after {pod.wait_ready():.1f} s")
            old.append((pod, proxy.add(pod.address)))
        begin = time.monotonic()
        with (
            Load({"http": proxy.http, "grpc": proxy.grpc}) as load,
            ThreadPoolExecutor(_SERVERS) as background,
        ):
            time.sleep(1)
            ending = []
            for pod, number in old:
                new = start()
                say(f"one more is ready after {new.wait_ready():.1f} s; an old one is deleted")
                proxy.add(new.address)
                ending.append(background.submit(_delete, pod, proxy, number, pre_stop))
            ended = tuple(one.result() for one in ending)
            deadline = begin + _MOST_SECONDS
            while load.total < LEAST_REQUESTS and time.monotonic() < deadline:
                time.sleep(0.5)
        return Report(load.tallies, ended, time.monotonic() - begin)


def _delete(pod: Pod, proxy: Proxy, number: int, pre_stop: bool) -> Ended:
    """Delete a pod: its node ends it, and at the same time the news of it spreads."""
    news = threading.Timer(PROPAGATION_SECONDS, proxy.remove, [number])
    news.start()
    try:
        return pod.delete(pre_stop=pre_stop)
    finally:
        news.join()
