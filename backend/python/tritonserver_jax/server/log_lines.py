# SPDX-License-Identifier: Apache-2.0
"""The server's log as it is written, line by line."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

__all__ = ["LogFollower", "LogLine"]

_LINE: Final = re.compile(
    r"(?P<level>[IWEF])\d{4} (?P<time>\d\d:\d\d:\d\d)\.\d+ +\d+ (?P<where>\S+?)\] (?P<text>.*)"
)
_LEVELS: Final = {"I": "info", "W": "warning", "E": "error", "F": "error"}
_POLL_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line.

    Attributes:
        level: ``info``, ``warning``, ``error``; empty for what Triton did not write, or that goes
            on from the line before.
        time: Hours, minutes and seconds.
        where: The file and line of the server's source.
        text: What it says.
    """

    level: str
    time: str
    where: str
    text: str

    @classmethod
    def parse(cls, line: str) -> LogLine:
        """Take a line of a log apart."""
        match = _LINE.fullmatch(line)
        if match is None:
            return cls("", "", "", line)
        text = match["text"]
        if len(text) > 1 and text[0] == text[-1] == '"':  # newer releases quote it
            text = text[1:-1]
        return cls(_LEVELS[match["level"]], match["time"], match["where"], text)


class LogFollower:
    """Hands on the lines of a growing log, from a thread of its own.

    Args:
        path: The log; need not be there yet.
        tell: Called with each line.
    """

    def __init__(self, path: Path, tell: Callable[[LogLine], None]) -> None:
        self._path = path
        self._tell = tell
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="log", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end.set()
        self._thread.join()

    def _follow(self) -> None:
        position, begun = 0, b""
        while True:
            last = self._end.is_set()
            try:
                with self._path.open("rb") as file:
                    file.seek(position)
                    new = file.read()
            except FileNotFoundError:
                new = b""
            position += len(new)
            *whole, begun = (begun + new).split(b"\n")
            if last and begun:
                whole.append(begun)
            for line in whole:
                self._tell(LogLine.parse(line.decode("utf-8", "replace")))
            if last:
                return
            self._end.wait(_POLL_SECONDS)
