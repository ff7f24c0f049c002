# SPDX-License-Identifier: Apache-2.0
"""The pipeline as GitLab reads it: its files put together, and what each job is in the end."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ci.process import ROOT

PIPELINE = ROOT / ".gitlab-ci.yml"

#: What is no job, at the top of a file.
_KEYWORDS = {"workflow", "stages", "include", "variables", "default"}
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


def names_in(text: str) -> set[str]:
    """The variables that a text uses."""
    return {braced or plain for braced, plain in _VARIABLE.findall(text)}


def strings_of(value: Any) -> list[str]:
    """Every string in a value, keys left out."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for one in value.values() for text in strings_of(one)]
    if isinstance(value, list):
        return [text for one in value for text in strings_of(one)]
    return []


def _merged(base: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """What `extends` makes of two: hashes are merged, and everything else is replaced."""
    result = copy.deepcopy(base)
    for key, value in over.items():
        known = result.get(key)
        if isinstance(known, dict) and isinstance(value, Mapping):
            result[key] = _merged(known, value)
        else:
            result[key] = copy.deepcopy(value)
    return result


@dataclass(frozen=True)
class Pipeline:
    """The pipeline.

    Attributes:
        settings: What is no job: workflow, stages, variables, default.
        templates: What begins with a dot, as it is written.
        jobs: The jobs, with all that they extend and inherit.
        files: The file that each job is written in.
    """

    settings: dict[str, Any]
    templates: dict[str, Any]
    jobs: dict[str, dict[str, Any]]
    files: dict[str, Path]

    @property
    def variables(self) -> dict[str, str]:
        """The global variables and their values."""
        declared: dict[str, Any] = self.settings["variables"]
        return {
            name: str(one["value"] if isinstance(one, Mapping) else one)
            for name, one in declared.items()
        }

    def script(self, name: str) -> list[str]:
        """The lines of a job's script."""
        script = self.jobs[name]["script"]
        return [script] if isinstance(script, str) else list(script)

    def expanded(self, name: str, text: str) -> str:
        """A text of a job, with the variables of the pipeline and the job in their places."""
        known = {**self.variables, **self.jobs[name].get("variables", {})}
        for _ in range(3):
            text = _VARIABLE.sub(lambda m: str(known.get(m[1] or m[2], m[0])), text)
        return text


def read_pipeline(path: Path = PIPELINE) -> Pipeline:
    """Read the pipeline from its files."""
    settings: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    written: dict[str, dict[str, Any]] = {}
    files: dict[str, Path] = {}
    for include in settings["include"]:
        file = path.parent / include["local"]
        content: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
        for name, job in content.items():
            assert name not in written, f"{name} is in {files[name]} and in {file}"
            written[name] = job
            files[name] = file
    written |= {name: job for name, job in settings.items() if name not in _KEYWORDS}

    def resolved(name: str, chain: tuple[str, ...] = ()) -> dict[str, Any]:
        assert name in written, f"{chain[-1]} extends {name}, which there is not"
        assert name not in chain, f"{name} extends itself: {chain}"
        job = written[name]
        extended = job.get("extends", [])
        result: dict[str, Any] = {}
        for parent in [extended] if isinstance(extended, str) else extended:
            result = _merged(result, resolved(parent, (*chain, name)))
        return _merged(result, {key: value for key, value in job.items() if key != "extends"})

    default: dict[str, Any] = settings["default"]
    jobs = {
        name: {**copy.deepcopy(default), **resolved(name)}
        for name in written
        if not name.startswith(".")
    }
    return Pipeline(
        settings={key: value for key, value in settings.items() if key in _KEYWORDS},
        templates={name: job for name, job in written.items() if name.startswith(".")},
        jobs=jobs,
        files=files,
    )
