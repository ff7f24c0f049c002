# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from benchmarks import wrk
from benchmarks.competitor_models.weights import BUCKETS, MAX_BATCH, bucket_of, weights
from benchmarks.competitors import COMPETITORS
from benchmarks.errors import BenchmarkError
from benchmarks.overhead import batch_times, read_counters
from benchmarks.plan import BY_WRK, CLIENTS, QUICK, Plan, targets
from benchmarks.report import Report, document
from benchmarks.results import Cell, Run, Target, medians, ratio, spread
from benchmarks.starts import Start, xla_seconds
from benchmarks.tables import Rows, ratio_rows
from tritonserver_jax.tuning.perf_analyzer import Measurement


def measured(throughput: float, p50: float = 100.0, p99: float = 300.0) -> Measurement:
    return Measurement(throughput=throughput, average=p50, p50=p50, p90=p99, p99=p99)


def run(
    competitor: str, throughput: float, *, number: int = 0, c: int = 8, p99: float = 300
) -> Run:
    return Run(Cell(competitor, "mlp", "grpc", c), number, measured(throughput, p99=p99))


def test_a_median_is_not_moved_by_one_bad_round() -> None:
    runs = [run("ours", value, number=i) for i, value in enumerate((1000.0, 10.0, 1010.0))]
    found = medians(runs)
    assert found[runs[0].cell].throughput == 1000
    assert spread(runs, runs[0].cell) == pytest.approx(1.0)


def test_a_ratio_of_throughput_is_of_the_best_of_the_others() -> None:
    found = medians([run("ours", 900), run("fastapi", 300), run("fastapi_batching", 450)])
    target = Target("throughput", ("fastapi", "fastapi_batching"), "grpc", 8, 2.0)
    assert ratio(target, found) == pytest.approx(2.0)
    assert target.met(2.0)
    assert not target.met(1.99)


def test_a_ratio_of_latency_is_met_by_less() -> None:
    found = medians([run("ours", 1, p99=160), run("python_backend", 1, p99=200)])
    target = Target("p99", ("python_backend",), "grpc", 8, 0.8)
    assert ratio(target, found) == pytest.approx(0.8)
    assert target.met(0.8)
    assert not target.met(0.81)


def test_a_tail_is_compared_with_its_own_median() -> None:
    found = medians([run("ours", 1, p99=250)])
    target = Target("p99", ("ours",), "grpc", 8, 3.0, against_figure="p50")
    assert ratio(target, found) == pytest.approx(2.5)


def test_there_is_no_ratio_of_what_was_not_measured() -> None:
    target = Target("throughput", ("copy_only",), "grpc", 8, 0.8)
    assert ratio(target, medians([run("ours", 1)])) is None
    assert ratio(target, medians([run("copy_only", 1)])) is None


def test_every_round_measures_the_same_and_goes_the_other_way() -> None:
    plan = Plan(rounds=2)
    runs = list(plan.runs())
    first = [cell for number, cell in runs if number == 0]
    second = [cell for number, cell in runs if number == 1]
    assert first == second[::-1]
    assert len(set(first)) == len(first)


def test_those_that_are_compared_are_measured_one_after_the_other() -> None:
    cells = Plan(clients=("grpc",), competitors=("ours", "copy_only"), large=False).cells()
    assert [(cell.competitor, cell.concurrency) for cell in cells] == [
        *(("ours", 1), ("copy_only", 1)),
        *(("ours", 8), ("copy_only", 8)),
        *(("ours", 32), ("copy_only", 32)),
    ]


def test_fastapi_and_triton_are_measured_by_the_same_client() -> None:
    cells = {(cell.competitor, cell.client) for cell in Plan().cells()}
    for name in BY_WRK:
        assert (name, "wrk") in cells
    assert {client for name, client in cells if COMPETITORS[name].kind == "fastapi"} == {"wrk"}


def test_every_target_can_be_measured_by_the_whole_plan() -> None:
    cells = set(Plan().cells())
    for target in targets():
        for name in (target.ours, *target.against):
            assert Cell(name, target.model, target.client, target.concurrency) in cells


def test_the_plans_keep_to_their_time() -> None:
    assert Plan().expected_seconds() < 17 * 60  # the rest of 20 minutes is for starting and timers
    assert QUICK.expected_seconds() < 3.5 * 60
    assert set(QUICK.clients) <= set(CLIENTS["triton"])


def test_the_figures_of_wrk_are_read() -> None:
    text = "Running 1s test\nmeasured 5000 2000000 0 150.5 140 180 900\n"
    assert wrk.parse_report(text) == Measurement(2500, 150.5, 140, 180, 900)


@pytest.mark.parametrize(
    "text", ["", "measured 10 1000000 3 1.0 1 1 1\n", "measured 0 1000000 0 1.0 1 1 1\n"]
)
def test_a_run_of_wrk_with_failures_is_no_result(text: str) -> None:
    with pytest.raises(BenchmarkError, match="wrk: expected"):
        wrk.parse_report(text)


PAGE = """\
# HELP jax_predict_calls Number of calls
jax_predict_calls{device="cpu:0",model="mlp",version="1"} 100
jax_predict_calls{device="cpu:0",model="other",version="1"} 7
jax_real_rows{device="cpu:0",model="mlp",version="1"} 400
jax_phase_time{device="cpu:0",model="mlp",phase="gather",version="1"} 0.0002
jax_phase_time{device="cpu:0",model="mlp",phase="run",version="1"} 0.009
nv_inference_count{model="mlp",version="1"} 400
"""


def test_counters_of_one_model_are_read() -> None:
    assert read_counters(PAGE, "mlp") == {
        "jax_predict_calls": 100,
        "jax_real_rows": 400,
        "jax_phase_time:gather": 0.0002,
        "jax_phase_time:run": 0.009,
    }


def test_the_time_of_a_batch_is_what_passed_between_two_readings() -> None:
    before = {"jax_predict_calls": 50.0, "jax_real_rows": 200.0, "jax_phase_time:run": 0.004}
    found = batch_times("mlp", 8, before, read_counters(PAGE, "mlp"), dict.fromkeys(BUCKETS, 20.0))
    assert found.rows == 4
    assert found.phases["run"] == pytest.approx(100)
    assert found.phases["gather"] == pytest.approx(4)
    assert found.bare_call == 20


def test_a_load_that_did_not_arrive_is_an_error() -> None:
    counters = read_counters(PAGE, "mlp")
    with pytest.raises(BenchmarkError, match="expected to grow under load"):
        batch_times("mlp", 8, counters, counters, dict.fromkeys(BUCKETS, 20.0))


def test_every_competitor_pads_to_the_same_sizes() -> None:
    assert [bucket_of(rows) for rows in (1, 2, 3, 33, MAX_BATCH)] == [1, 2, 4, 64, 64]
    assert {name: array.shape for name, array in weights().items()} == {
        "w1": (64, 256),
        "b1": (256,),
        "w2": (256, 256),
        "b2": (256,),
        "w3": (256, 10),
        "b3": (10,),
    }


@pytest.fixture
def report() -> Report:
    bare = dict.fromkeys(BUCKETS, 20.0)
    return Report(
        date="2026-01-02",
        machine={"processor": "some"},
        software={"jax": "1"},
        rounds=1,
        seconds=1.0,
        runs=[run("ours", 900, c=1), run("copy_only", 1000, c=1), run("python_backend", 500, c=1)],
        memory={
            "ours": {"rss": 300.0, "private": 290.0},
            "ours_2": {"rss": 310.0, "private": 300.0},
        },
        ready_seconds={"ours": 3.0, "ours_2": 3.2},
        batches=[batch_times("mlp", 1, {}, read_counters(PAGE, "mlp"), bare)],
        instance_mib=10.0,
        starts=[
            Start("mlp", "cold", 4.0, 1.2, 1.0, 7, 0),
            Start("mlp", "warm", 3.0, 0.2, 0.1, 7, 7),
        ],
    )


def test_a_report_comes_back_from_its_file(report: Report) -> None:
    assert Report.from_json(report.to_json()) == report


def test_a_file_that_is_no_report_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a report with schema 2"):
        Report.from_json("{}")


def test_the_document_says_what_was_met_and_what_was_not(report: Report) -> None:
    lines = document(report).splitlines()
    ratios = [line for line in lines if line.startswith("| mlp | grpc | 1 |")]
    assert any("copy-only" in line and "0.90" in line and "| met |" in line for line in ratios)
    assert any("p50" in line and "1.00" in line and "| not met |" in line for line in ratios)
    assert "| XLA's part of the compile time, cold ÷ warm, mlp | 10.0 | ≥ 5 | met |" in lines
    assert "| engine and JAX per batch at c1 | 90.0 µs | ≤ 45 µs | not met |" in lines
    assert any("One more instance of the network takes 10.0 MiB" in line for line in lines)


def test_figures_are_set_to_the_right() -> None:
    table = Rows("t", ("name", "figure"), [("a", "1,000"), ("b", "≥ 2")])
    assert table.markdown().splitlines()[1] == "|---|---:|"


def test_a_table_has_only_what_was_measured(report: Report) -> None:
    assert {row[2] for row in ratio_rows(medians(report.runs)).rows} == {"1"}


def test_xlas_part_is_of_one_model() -> None:
    def line(model: str, rows: int, seconds: str) -> str:
        return (
            f"I1130 06:00:00.000000 1 program.py:1] jax: model '{model}' version 1: compiled "
            f"predict for X: float32[{rows},64] on cpu:0 in 0.500 s, {seconds} s of them in XLA"
        )

    log = "\n".join([line("mlp", 64, "0.125"), line("large", 1, "0.400"), line("mlp", 32, "0.250")])
    assert xla_seconds(log, "mlp") == 0.375
    assert xla_seconds(log, "large") == 0.4
