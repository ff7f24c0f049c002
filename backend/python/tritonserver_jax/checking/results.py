# SPDX-License-Identifier: Apache-2.0
"""What a check reports of a model, in types that go through a pipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from tritonserver_jax.findings import Finding, Status

__all__ = ["ModelReport", "ProgramReport", "TensorReport"]


@dataclass(frozen=True, slots=True)
class TensorReport:
    """An input or output, with the batch dimension left out."""

    name: str
    dtype: str
    dims: list[int]

    def __str__(self) -> str:
        """As Triton's tools write it."""
        return f"{self.name} {self.dtype}{self.dims}"


@dataclass(frozen=True, slots=True)
class ProgramReport:
    """A program that is compiled before the model is ready.

    Attributes:
        device: Where it runs.
        rows: Of the batch; None for a model without one.
        shapes: Of its inputs.
        compile_seconds: Of tracing, lowering and compiling.
        run_seconds: Of one run, from the input memory to the outputs; None where it was not run.
        temporary_bytes: What XLA needs while it runs; None where XLA does not say.
        tensor_bytes: Of its inputs and outputs.
    """

    device: str
    rows: int | None
    shapes: str
    compile_seconds: float
    run_seconds: float | None
    temporary_bytes: int | None
    tensor_bytes: int


@dataclass(slots=True)
class ModelReport:
    """What a check found of one version of a model.

    Attributes:
        model: Its name.
        version: Of it; None where none could be looked at.
        findings: What is well and what is not.
        inputs: What clients send.
        outputs: What they get.
        max_batch_size: 0 where it has no batch dimension.
        x64: Whether it runs in JAX's 64-bit mode.
        parameter_bytes: Of its parameters.
        programs: What is compiled beforehand.
        load_seconds: Until the first instance is ready.
        peak_bytes: Of the memory of the process, JAX itself included.
        config: The completed configuration, as text.
    """

    model: str
    version: int | None
    findings: list[Finding] = field(default_factory=list)
    inputs: list[TensorReport] = field(default_factory=list)
    outputs: list[TensorReport] = field(default_factory=list)
    max_batch_size: int = 0
    x64: bool = False
    parameter_bytes: int = 0
    programs: list[ProgramReport] = field(default_factory=list)
    load_seconds: float | None = None
    peak_bytes: int | None = None
    config: str = ""

    @property
    def loaded(self) -> bool:
        """Whether a server would serve it."""
        return self.load_seconds is not None

    def count(self, status: Status) -> int:
        """Return how many findings have a status."""
        return sum(one.status is status for one in self.findings)

    def as_json(self) -> dict[str, Any]:
        """Return it in JSON's types."""
        made = asdict(self)
        made["findings"] = [one.as_json() for one in self.findings]
        return made

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> ModelReport:
        """Return what `as_json` was called of."""
        values = dict(given)
        values["findings"] = [
            Finding(one["name"], Status(one["status"]), one["detail"], one["remedy"])
            for one in given["findings"]
        ]
        for kind in ("inputs", "outputs"):
            values[kind] = [TensorReport(**one) for one in given[kind]]
        values["programs"] = [ProgramReport(**one) for one in given["programs"]]
        return cls(**values)
