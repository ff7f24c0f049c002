# SPDX-License-Identifier: Apache-2.0
"""The golden files: what servers of all releases answer about models of ours.

``answers.json`` has what most releases say, ``differences.json`` what single ones say otherwise,
value by value. ``python -m ci.golden`` asks a server of each release that has one, and writes
both. Nothing but the answers is kept: what Triton leaves empty, which differs from release to
release, is left out.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ci import matrix
from ci.artifacts import ARTIFACT_ERRORS
from ci.build import BUILD_DIRECTORY
from ci.process import ROOT, CommandError, fail
from tritonserver_jax.releases import load_releases
from tritonserver_jax.server import ServerError

GOLDEN = ROOT / "tests" / "integration" / "golden"
RECORDED = BUILD_DIRECTORY / "golden"

#: By question: text, or what a JSON document says.
Answers = dict[str, Any]
#: By question, and by place in its answer: the value, or None where there is none.
Differences = dict[str, dict[str, Any]]


def only_what_is_said(document: Any) -> Any:
    """A JSON document without what is empty: zeros, "", false, [] and {}."""
    if isinstance(document, dict):
        kept = {key: only_what_is_said(value) for key, value in document.items()}
        return {key: value for key, value in kept.items() if value or (value == 0 and key == "id")}
    if isinstance(document, list):
        return [only_what_is_said(value) for value in document]
    return document


def _leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, one in value.items():
            yield from _leaves(one, f"{place}/{key}")
    else:
        yield place, value


def _nested(leaves: Mapping[str, Any]) -> Any:
    if "" in leaves:
        return leaves[""]
    result: dict[str, Any] = {}
    for place, value in leaves.items():
        *parents, key = place.split("/")[1:]
        target = result
        for parent in parents:
            target = target.setdefault(parent, {})
        target[key] = value
    return result


def difference(common: Any, other: Any) -> dict[str, Any]:
    """What to change in an answer to have another one, by place."""
    before, after = dict(_leaves(common)), dict(_leaves(other))
    changed = {place: value for place, value in after.items() if before.get(place) != value}
    return changed | {place: None for place in before if place not in after}


def changed(common: Any, by_place: Mapping[str, Any]) -> Any:
    """An answer with a difference applied."""
    leaves = dict(_leaves(common)) | dict(by_place)
    return _nested({place: value for place, value in leaves.items() if value is not None})


def merged(recorded: Mapping[str, Answers]) -> tuple[Answers, dict[str, Differences]]:
    """What most releases answer to each question, and how each of the others differs."""
    questions = list(dict.fromkeys(name for answers in recorded.values() for name in answers))
    common: Answers = {}
    for question in questions:
        said = [json.dumps(answers.get(question)) for answers in recorded.values()]
        # Of those that as many give, the newest release's.
        counted = Counter(said)
        best = max(reversed(said), key=lambda text: counted[text])
        common[question] = json.loads(best)
    differences = {
        release: {
            question: by_place
            for question in questions
            if (by_place := difference(common[question], answers.get(question)))
        }
        for release, answers in recorded.items()
    }
    return common, {release: found for release, found in differences.items() if found}


def expected(release: str) -> Answers:
    """What the golden files say that a release answers."""
    common: Answers = json.loads((GOLDEN / "answers.json").read_text(encoding="utf-8"))
    text = (GOLDEN / "differences.json").read_text(encoding="utf-8")
    others: Differences = json.loads(text).get(release, {})
    return {
        question: changed(answer, others[question]) if question in others else answer
        for question, answer in common.items()
    }


def record() -> dict[str, Answers]:
    """Asks a server of each release that has one."""
    shutil.rmtree(RECORDED, ignore_errors=True)
    served = [one for one in load_releases().values() if one.server]
    matrix.matrix(
        served,
        backend=None,
        parallel=matrix.parallel_runs(),
        suites=["integration"],
        tests=["tests/integration/test_golden.py", f"--record-golden={RECORDED}"],
    )
    found = {}
    for one in served:
        path = RECORDED / f"{one.release}.json"
        if not path.is_file():
            log = matrix.OUTPUT / f"{one.release}.log"
            raise CommandError(f"release {one.release} was asked, and did not answer; see {log}")
        found[one.release] = json.loads(path.read_text(encoding="utf-8"))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the golden files."""
    parser = argparse.ArgumentParser(prog="python -m ci.golden", description=__doc__)
    parser.parse_args(arguments)
    try:
        common, differences = merged(record())
    except (*ARTIFACT_ERRORS, CommandError, ServerError) as error:
        return fail(error)
    for name, content in (("answers", common), ("differences", differences)):
        path = GOLDEN / f"{name}.json"
        text = json.dumps(content, indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")
        print(f"written: {path.relative_to(ROOT)}")
    count = sum(len(places) for found in differences.values() for places in found.values())
    print(f"{len(common)} answers; {count} values differ in {', '.join(differences) or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
