# SPDX-License-Identifier: Apache-2.0
"""The benchmark itself, in short: that it runs, and that what it compares computes the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import session, wrk
from benchmarks.competitor_models import mlp
from benchmarks.competitors import COMPETITORS, MLP, fresh, serve, write_model
from benchmarks.plan import Plan
from benchmarks.report import Report, document
from benchmarks.results import Cell
from benchmarks.workplace import DIRECTORY, Workplace
from ci import toolchain
from ci.build import build_targets
from tests.support.backend import Backend
from tritonserver_jax.tuning.candidates import Candidate
from tritonserver_jax.tuning.perf_analyzer import obtain_perf_analyzer
from tritonserver_jax.tuning.search import Options, TuneError, tune

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.fixture(scope="module")
def work(backend: Backend, tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    options = ["-DTRITON_JAX_BENCHMARKS=ON"]
    build = build_targets("triton_copy_only", preset="release", options=options)
    return Workplace(
        directory=tmp_path_factory.mktemp("benchmark"),
        distribution=backend.distribution,
        backends=backend.directory,
        environment=backend.environment,
        copy_only=build / "copy_only" / "backends",
        perf_analyzer=obtain_perf_analyzer(),
        pytriton=DIRECTORY / "pytriton",  # kept over runs: it is large
    )


def test_every_competitor_answers_as_plain_jax_does_and_is_measured(work: Workplace) -> None:
    toolchain.ensure([wrk.requirement()])
    # One short run of each: starting them checks their answers.
    plan = Plan(
        clients=("grpc", "wrk"), rounds=1, seconds=0.3, concurrencies=(2,), large=False, starts=0
    )
    kept: list[str] = []
    report = session.run(work, plan, Console(), lambda one: kept.append(one.to_json()))
    assert [run.cell for run in report.runs] == plan.cells()
    assert {run.cell.competitor for run in report.runs} == set(COMPETITORS)
    assert all(run.measured.throughput > 0 for run in report.runs)
    assert all(run.measured.p50 <= run.measured.p99 for run in report.runs)
    assert set(report.memory) == set(report.ready_seconds) == set(COMPETITORS)
    assert all(one["private"] > 10 for one in report.memory.values())
    assert [(one.model, one.concurrency) for one in report.batches] == [("mlp", 2), ("large", 1)]
    for batch in report.batches:
        assert {"gather", "run", "send"} <= set(batch.phases)
        assert 1 <= batch.rows <= 2
    assert Report.from_json(report.to_json()) == report
    assert len(kept) == 1
    assert "## What was to be reached" in document(report)


def test_the_large_model_goes_by_shared_memory(work: Workplace) -> None:
    cell = Cell("copy_only", "large", "shm", 1)
    with COMPETITORS["copy_only"].start(work) as running:
        assert session.measure(work, running, cell, 0.3).throughput > 0


def _files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_tuning_tries_configurations_and_leaves_the_model_as_it_was(work: Workplace) -> None:
    with COMPETITORS["ours"].start(work):
        pass  # writes the network
    repository = work.directory / "models" / "ours_1"
    before = _files(repository)
    options = Options(seconds=0.3, rounds=3, budget=8.0, concurrency=4)
    result = tune(
        repository,
        "mlp",
        distribution=work.distribution,
        backends=work.backends,
        environment=work.environment,
        analyzer=work.perf_analyzer,
        options=options,
    )
    assert _files(repository) == before
    assert not result.failed
    assert result.rounds == 3
    assert len(result.default.measured) == 3
    assert all(len(trial.measured) == 3 for trial in result.finalists)
    assert result.best is None or result.fragment()


def test_a_fragment_is_understood_beside_the_one_line_that_a_model_has(work: Workplace) -> None:
    changes = Candidate(instances=2, delay=100, preferred=(8,), buckets=(1, 8, 64))
    completed = {
        "max_batch_size": 64,
        "instance_group": [{"kind": "KIND_CPU", "count": 1}],
        "dynamic_batching": {},
    }
    repository = fresh(work.directory / "models" / "fragment")
    config = f'backend: "jax"\n{changes.fragment(completed)}\n'
    write_model(repository, MLP, config=config, source=Path(mlp.__file__), params=True)
    with serve(work, repository, work.backends) as running:
        assert running.server is not None
        found = running.server.model_config(MLP)
    groups, batching = found["instance_group"], found["dynamic_batching"]
    assert isinstance(groups, list)
    assert isinstance(batching, dict)
    assert [group["count"] for group in groups] == [2]
    assert batching["preferred_batch_size"] == [8]
    assert int(batching["max_queue_delay_microseconds"]) == 100
    assert found["parameters"] == {"buckets": {"string_value": "1,8,64"}}


def test_a_model_that_is_not_there_is_named(work: Workplace, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with pytest.raises(TuneError, match=r"mine: expected a model, found none.*has other"):
        tune(
            tmp_path,
            "mine",
            distribution=work.distribution,
            backends=work.backends,
            analyzer=work.perf_analyzer,
        )
