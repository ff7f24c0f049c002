# SPDX-License-Identifier: Apache-2.0
"""The one exception of this package, and what it is made of."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Problem", "VerificationError"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is not as it should be.

    Attributes:
        file: The file it is about, or the member of an archive.
        expected: What should be there.
        got: What is there.
        remedy: What to do next.
    """

    file: str
    expected: str
    got: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.file}: expected {self.expected}, got {self.got}; {self.remedy}"


class VerificationError(RuntimeError):
    """Something is not what was released; `problems` says what, one by one."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems
