# SPDX-License-Identifier: Apache-2.0
"""How often and how long is measured, in which order, and what is to be reached."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.competitors import COMPETITORS, LARGE, MLP, Competitor
from benchmarks.results import Cell, Target

CONCURRENCIES: Final = (1, 8, 32)
#: The clients for each kind of competitor. perf_analyzer knows Triton's protocols only; wrk sends
#: the same row to FastAPI and to Triton's HTTP.
CLIENTS: Final = {"triton": ("grpc", "http", "shm", "wrk"), "fastapi": ("wrk",)}
#: Who is measured by wrk: the comparison with FastAPI.
BY_WRK: Final = ("ours", "copy_only", "fastapi", "fastapi_batching", "fastapi_batching_2")
#: A run by a client costs this much beside the time that it measures.
OVERHEAD_SECONDS: Final = {"wrk": 0.1, "grpc": 1.0, "http": 1.0, "shm": 1.0}


@dataclass(frozen=True)
class Plan:
    """One run of the benchmark.

    Attributes:
        competitors: By name, in the order of a round.
        clients: Those to use.
        rounds: How often each cell is measured.
        seconds: How long a run measures.
        concurrencies: Of the network; the large model takes the first only.
        large: Whether the large model is measured.
        batches: Whether this backend's own timers are read.
        starts: How often a cold and a warm start are measured.
    """

    competitors: Sequence[str] = tuple(COMPETITORS)
    clients: Sequence[str] = CLIENTS["triton"]
    rounds: int = 3
    seconds: float = 2.0
    concurrencies: Sequence[int] = CONCURRENCIES
    large: bool = True
    batches: bool = True
    starts: int = 3

    def cells(self) -> list[Cell]:
        """Everything that is measured, in the order of one round.

        Those that are compared with each other come one after the other: what the machine does
        beside then falls on all of them.
        """
        chosen = [COMPETITORS[name] for name in self.competitors]
        found = [
            Cell(one.name, MLP, client, concurrency)
            for client in self.clients
            for concurrency in self.concurrencies
            for one in chosen
            if _measures(one, client)
        ]
        if self.large:
            found += [
                Cell(one.name, LARGE, client, self.concurrencies[0])
                for client in self.clients
                if client != "wrk"
                for one in chosen
                if LARGE in one.models
            ]
        return found

    def runs(self) -> Iterator[tuple[int, Cell]]:
        """All runs, round by round; every other round goes backwards."""
        for number in range(self.rounds):
            cells = self.cells()
            yield from ((number, cell) for cell in (reversed(cells) if number % 2 else cells))

    def expected_seconds(self) -> float:
        """About how long the runs take."""
        return sum(self.seconds + OVERHEAD_SECONDS[cell.client] for _, cell in self.runs())


QUICK: Final = Plan(clients=("grpc", "wrk"), rounds=3, seconds=1.2, large=False, starts=0)


def _measures(competitor: Competitor, client: str) -> bool:
    if client not in CLIENTS[competitor.kind]:
        return False
    return client != "wrk" or competitor.name in BY_WRK


def targets() -> list[Target]:
    """Everything that this backend is to reach, by ratio."""
    found = []
    for client in ("grpc", "http", "shm"):
        found += [Target("throughput", ("copy_only",), client, n, 0.8) for n in CONCURRENCIES]
        found += [
            Target("throughput", ("python_backend",), client, n, limit)
            for n, limit in zip(CONCURRENCIES, (1.5, 1.5, 1.6), strict=True)
        ]
        found.append(Target("p50", ("python_backend",), client, 1, 0.7))
        found.append(Target("p99", ("python_backend",), client, 32, 0.8))
        found.append(Target("p99", ("ours",), client, 32, 3.0, against_figure="p50"))
        found.append(Target("throughput", ("copy_only",), client, 1, 0.9, model=LARGE))
    fastapi = tuple(name for name, one in COMPETITORS.items() if one.kind == "fastapi")
    return found + [Target("throughput", fastapi, "wrk", n, 2.0) for n in (8, 32)]
