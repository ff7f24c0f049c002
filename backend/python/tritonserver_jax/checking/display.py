# SPDX-License-Identifier: Apache-2.0
"""What was found of a model's programs, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tritonserver_jax.checking.results import ModelReport, ProgramReport

__all__ = ["in_words", "show_programs"]

#: With a program for each batch size and length, only so many are shown; the JSON has all.
_MOST: Final = 16
_KILO: Final = 1024


def in_words(size: float | None) -> str:
    """Return a number of bytes for people."""
    if size is None:
        return "-"
    for unit in ("B", "KiB", "MiB"):
        if size < _KILO:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= _KILO
    return f"{size:.1f} GiB"


def show_programs(report: ModelReport, console: Console) -> None:
    """Print what is compiled before the model is ready, and what it takes.

    Args:
        report: Of a model that was loaded.
        console: Where to.
    """
    programs = report.programs
    if programs:
        console.print(_table(programs))
    compiling = sum(one.compile_seconds for one in programs)
    left_out = len(programs) - _MOST
    if left_out > 0:
        console.print(f"  and {left_out} more", highlight=False)
    console.print(
        f"  {len(programs)} program{'' if len(programs) == 1 else 's'} compiled in "
        f"{compiling:.2f} s, loaded in {report.load_seconds or 0:.2f} s; parameters "
        f"{in_words(report.parameter_bytes)}, whole process {in_words(report.peak_bytes)}",
        highlight=False,
        soft_wrap=True,
    )


def _table(programs: Sequence[ProgramReport]) -> Table:
    several = len({one.device for one in programs}) > 1
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 2))
    if several:
        table.add_column("device")
    table.add_column("rows", justify="right")
    table.add_column("inputs", overflow="fold")
    table.add_column("compile", justify="right")
    table.add_column("run", justify="right")
    table.add_column("tensors", justify="right")
    table.add_column("temporary", justify="right")
    for one in sorted(programs[:_MOST], key=lambda one: (one.device, one.rows or 0)):
        run = "-" if one.run_seconds is None else f"{one.run_seconds * 1000:.2f} ms"
        table.add_row(
            *([one.device] if several else []),
            "-" if one.rows is None else str(one.rows),
            Text(one.shapes),  # names may look like markup
            f"{one.compile_seconds:.2f} s",
            run,
            in_words(one.tensor_bytes),
            in_words(one.temporary_bytes),
        )
    return table
