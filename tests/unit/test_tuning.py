# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tritonserver_jax.tuning.candidates import Candidate, bucket_choices, combined, stages
from tritonserver_jax.tuning.choice import compare
from tritonserver_jax.tuning.loads import largest_output
from tritonserver_jax.tuning.perf_analyzer import (
    Load,
    Measurement,
    PerfAnalyzer,
    PerfAnalyzerError,
    Protocol,
    parse_report,
)
from tritonserver_jax.tuning.plots import draw, text_plot
from tritonserver_jax.tuning.search import Options, Result, Trial

CONFIG = {
    "name": "mine",
    "max_batch_size": 64,
    "instance_group": [{"name": "mine", "kind": "KIND_CPU", "count": 1}],
    "dynamic_batching": {"preferred_batch_size": [64], "max_queue_delay_microseconds": "0"},
    "parameters": {"donate": {"string_value": "false"}},
}

REPORT = """\
Concurrency,Inferences/Second,Client Send,p50 latency,p90 latency,p95 latency,p99 latency,\
Avg latency,request/response,response wait
8,4833.5,2,1261,2000,3000,5774,1400,2,420
"""


def measured(throughput: float, p99: float = 1000.0) -> Measurement:
    return Measurement(throughput, 500.0, 500.0, 900.0, p99)


def test_a_report_of_perf_analyzer_is_read() -> None:
    assert parse_report(REPORT) == Measurement(4833.5, 1400, 1261, 2000, 5774)


@pytest.mark.parametrize(
    "text", ["", REPORT.splitlines()[0], REPORT.replace("p99 latency", "other"), REPORT + "1,2\n"]
)
def test_a_report_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(PerfAnalyzerError, match="perf_analyzer's report: expected"):
        parse_report(text)


def test_a_run_without_an_answer_is_no_result() -> None:
    with pytest.raises(PerfAnalyzerError, match="no request was answered"):
        parse_report(REPORT.replace("4833.5", "0"))


def test_shared_memory_goes_by_grpc_and_knows_its_size() -> None:
    load = Load("m", "shm", 8, 3.0, shapes={"x": [3, 4]}, output_bytes=64)
    command = PerfAnalyzer(Path("pa"), Path("lib")).command("h:1", load, Path("r"))
    assert command[command.index("-i") + 1] == "grpc"
    assert {"--shared-memory=system", "--output-shared-memory-size=64"} <= set(command)
    assert {"--shape=x:3,4", "--concurrency-range=8", "--measurement-interval=1000"} <= set(command)


@pytest.mark.parametrize(
    ("protocol", "concurrency", "expected"),
    [("http", 8, False), ("http", 32, True), ("grpc", 32, False), ("shm", 32, False)],
)
def test_many_requests_over_http_get_few_threads(
    protocol: Protocol, concurrency: int, expected: bool
) -> None:
    load = Load("m", protocol, concurrency, 1.0)
    command = PerfAnalyzer(Path("pa"), Path("lib")).command("h:1", load, Path("r"))
    assert ("--async" in command) is expected


def _program(path: Path, body: str) -> PerfAnalyzer:
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return PerfAnalyzer(path, path.parent)


def test_a_run_that_fails_is_tried_again(tmp_path: Path) -> None:
    report = tmp_path / "report.csv"
    report.write_text(REPORT, encoding="utf-8")
    body = f"""
    last=; for word in "$@"; do [ "$last" = -f ] && out=$word; last=$word; done
    if [ -e {shlex.quote(str(tmp_path / "tried"))} ]; then cp {shlex.quote(str(report))} "$out"; fi
    touch {shlex.quote(str(tmp_path / "tried"))}
    """
    found = _program(tmp_path / "perf_analyzer", body).measure("h:1", Load("m", "grpc", 1, 0.1))
    assert found.throughput == 4833.5


def test_what_the_program_says_is_shown_when_it_fails(tmp_path: Path) -> None:
    analyzer = _program(tmp_path / "perf_analyzer", "echo 'model not found'; exit 1")
    with pytest.raises(PerfAnalyzerError, match=r"in 3 tries; is the model ready(.|\n)*not found"):
        analyzer.measure("h:1", Load("m", "grpc", 1, 0.1))


def test_a_candidate_changes_a_copy_of_the_configuration() -> None:
    candidate = Candidate(instances=2, delay=100, preferred=(16,), buckets=(1, 8, 64))
    made = candidate.applied(CONFIG)
    assert made["instance_group"] == [{"name": "mine", "kind": "KIND_CPU", "count": 2}]
    assert made["dynamic_batching"] == {
        "preferred_batch_size": [16],
        "max_queue_delay_microseconds": 100,
    }
    assert made["parameters"] == {
        "donate": {"string_value": "false"},
        "buckets": {"string_value": "1,8,64"},
    }
    assert CONFIG["instance_group"] == [{"name": "mine", "kind": "KIND_CPU", "count": 1}]


def test_a_fragment_has_what_was_changed_and_whole_blocks() -> None:
    candidate = Candidate(instances=2, delay=100, buckets=(1, 8, 64))
    assert candidate.fragment(CONFIG).splitlines() == [
        "instance_group { count: 2 kind: KIND_CPU }",
        "max_batch_size: 64",
        "dynamic_batching { preferred_batch_size: 64 max_queue_delay_microseconds: 100 }",
        'parameters { key: "buckets" value { string_value: "1,8,64" } }',
    ]
    assert Candidate().fragment(CONFIG) == ""
    assert Candidate(preferred=()).fragment(CONFIG) == "dynamic_batching { }"


@pytest.mark.parametrize("max_batch", [4, 8, 12, 64, 100])
def test_every_choice_of_buckets_holds_the_largest_batch(max_batch: int) -> None:
    choices = bucket_choices(max_batch)
    assert choices
    for choice in choices:
        assert choice[-1] == max_batch
        assert list(choice) == sorted(set(choice))
        assert min(choice) >= 1


def test_the_grid_is_small_and_leaves_out_what_is_there_already() -> None:
    tried = [one for stage in stages(CONFIG, processors=2, concurrency=32) for one in stage]
    assert len(tried) <= 12
    assert Candidate(instances=1) not in tried
    assert Candidate(delay=0) not in tried
    assert all(not one.is_default for one in tried)


def test_a_model_without_batching_is_tried_with_more_instances_only() -> None:
    config = {"max_batch_size": 0, "instance_group": [{"count": 1, "kind": "KIND_CPU"}]}
    tried = [one for stage in stages(config, processors=8, concurrency=8) for one in stage]
    assert tried == [Candidate(instances=2), Candidate(instances=4)]


def test_changes_add_up() -> None:
    base = combined(Candidate(), Candidate(instances=2))
    assert combined(base, Candidate(delay=100)) == Candidate(instances=2, delay=100)
    assert str(combined(base, Candidate(delay=100))) == "2 instances, delay 100 µs"
    assert str(Candidate()) == "as it is"


def test_a_clear_gain_is_better() -> None:
    default = [measured(1000), measured(1010), measured(990)]
    verdict = compare(default, [measured(1200, 900), measured(1210, 950), measured(1190, 920)])
    assert verdict.better
    assert verdict.gain == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("candidate", "reason"),
    [
        ([measured(1010), measured(1015), measured(1000)], "within the noise"),
        ([measured(1200, 1300), measured(1210, 1400), measured(1190, 1300)], "p99 is 30% worse"),
        ([measured(900), measured(1150), measured(1200)], "faster in only 2 of 3 rounds"),
    ],
)
def test_what_is_not_clearly_better_is_not(candidate: list[Measurement], reason: str) -> None:
    verdict = compare([measured(1000), measured(1010), measured(990)], candidate)
    assert not verdict.better
    assert reason in verdict.reason


def test_a_noisy_machine_asks_for_a_larger_gain() -> None:
    noisy = [measured(800), measured(1000), measured(1200), measured(900), measured(1100)]
    assert not compare(noisy, [measured(1100)] * 5).better


@pytest.fixture
def result() -> Result:
    default = Trial(Candidate(), [measured(1000), measured(1000), measured(1000)])
    two = Trial(Candidate(instances=2), [measured(1300, 800)] * 3)
    slow = Trial(Candidate(delay=500), [measured(700, 2000)])
    found = Result(CONFIG, default, [two], [Trial(two.candidate, [measured(1250)]), slow])
    found.verdicts = [compare(default.measured, two.measured)]
    found.rounds = 3
    return found


def test_the_best_is_the_one_that_is_better(result: Result) -> None:
    assert result.best is result.finalists[0]
    assert result.fragment() == "instance_group { count: 2 kind: KIND_CPU }"
    assert result.to_json()["best"]["configuration"] == "2 instances"


def test_nothing_is_the_best_when_nothing_is_better(result: Result) -> None:
    result.finalists = [Trial(Candidate(instances=2), [measured(1001)] * 3)]
    result.verdicts = [compare(result.default.measured, result.finalists[0].measured)]
    assert result.best is None
    assert result.fragment() == ""
    assert result.to_json()["best"] is None


def test_the_plots_show_every_configuration(result: Result, tmp_path: Path) -> None:
    lines = text_plot(result).splitlines()
    plot = "\n".join(line.partition("|")[2] for line in lines if "|" in line)
    assert sorted(plot.replace(" ", "").replace("\n", "")) == sorted("DB·")
    assert draw(result, tmp_path / "plot.png", "digits")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_neither_jax_nor_matplotlib_is_imported_before_it_is_needed() -> None:
    code = (
        "import sys, tritonserver_jax.tuning.display; "
        "print(sorted({'jax', 'matplotlib', 'numpy'} & set(sys.modules)))"
    )
    path = str(Path(__file__).resolve().parents[2] / "backend" / "python")
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


def test_shared_memory_is_as_large_as_thelargest_output() -> None:
    outputs = [
        {"name": "a", "data_type": "TYPE_FP32", "dims": ["10"]},
        {"name": "b", "data_type": "TYPE_BOOL", "dims": ["100"]},
    ]
    assert largest_output({"output": outputs}, rows=4) == 400
    outputs.append({"name": "c", "data_type": "TYPE_FP16", "dims": ["-1"]})
    assert largest_output({"output": outputs}, rows=4) is None


def test_the_options_have_a_budget() -> None:
    assert Options().budget <= 300
