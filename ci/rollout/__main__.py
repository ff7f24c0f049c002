# SPDX-License-Identifier: Apache-2.0
"""Replaces servers under load with the settings of the chart, and shows that no request is lost.

Three times: with the chart's settings, through a proxy that understands the protocols, where no
request may fail; without the preStop hook, where some have to, or the first time has shown nothing;
and with connections that end at the servers, as through a cluster's Service.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ci import toolchain
from ci.chart import CHART_ERRORS, VALUE_SETS, documents, render
from ci.docker_engine import docker_engine
from ci.image_plan import CPU
from ci.images import IMAGE_ERRORS, build, prepared
from ci.process import fail
from ci.rollout.load import KINDS
from ci.rollout.pod import PodError, read_spec
from ci.rollout.proxy import Layer, ProxyError, requirement
from ci.rollout.rehearsal import LEAST_REQUESTS, Report, rehearse
from tritonserver_jax.releases import DEFAULT_RELEASE, find_release

__all__ = ["CASES", "Case", "complaints", "main"]


@dataclass(frozen=True, slots=True)
class Case:
    """One rehearsal, and what has to come of it.

    Attributes:
        title: For people.
        layer: What the proxy understands.
        pre_stop: Whether the preStop hook is run.
        lost: Whether requests have to be lost.
        cut_off: Kinds of clients that never let go of a connection: each loses the request that is
            under way when the server's time is over, as the documentation says.
    """

    title: str
    layer: Layer
    pre_stop: bool = True
    lost: bool = False
    cut_off: tuple[str, ...] = ()


#: The rehearsals, by name.
CASES = {
    "proxy": Case("the chart's settings, through a proxy", "http"),
    "no-pre-stop": Case("the same without the preStop hook", "http", pre_stop=False, lost=True),
    "service": Case(
        "the chart's settings, with connections that end at the servers",
        "tcp",
        cut_off=("http", "http-slow"),
    ),
}


def complaints(case: Case, report: Report) -> Iterator[str]:
    """Say what is not as it has to be."""
    if report.requests < LEAST_REQUESTS:
        yield f"expected {LEAST_REQUESTS} requests, sent {report.requests}"
    # Where Triton had to cut a request off, it ends at once, with its threads running: with 1, by a
    # signal, or not at all before it is killed.
    if any(one.status or one.killed for one in report.ended) and not (case.lost or case.cut_off):
        yield f"expected servers to end in time, with status 0; got {report.ended}"
    if case.lost:
        if report.failures == 0:
            yield "expected that requests are lost, none was: this rehearsal shows nothing"
        return
    for kind, tally in report.tallies.items():
        allowed = KINDS[kind].clients if kind in case.cut_off else 0
        if tally.failures > allowed:
            yield f"{kind}: {tally.failures} requests of {tally.answered} failed"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the rehearsals; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m ci.rollout", description=__doc__)
    parser.add_argument("release", nargs="?", default=DEFAULT_RELEASE)
    parser.add_argument("--case", action="append", choices=CASES, help="by default, all")
    options = parser.parse_args(arguments)
    failed = []
    try:
        toolchain.ensure([requirement()])
        sets = {"image.release": options.release}
        spec = read_spec(documents(render(VALUE_SETS["minimal"], sets=sets)))
        with docker_engine() as client:
            release = find_release(options.release)
            with prepared(client, release, CPU, stand_in=True) as plan:
                image = build(plan)
            for name in options.case or CASES:
                case = CASES[name]
                print(f"\n== {case.title}", flush=True)
                report = rehearse(client, image, spec, layer=case.layer, pre_stop=case.pre_stop)
                print(f"{report.table()}\n-- {report.seconds:.0f} s", flush=True)
                failed += [f"{name}: {text}" for text in complaints(case, report)]
    except (*IMAGE_ERRORS, *CHART_ERRORS, PodError, ProxyError) as error:
        return fail(error)
    for text in failed:
        print(f"error: {text}", file=sys.stderr)
    if not failed:
        print("rollout: no request was lost that must not be")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
