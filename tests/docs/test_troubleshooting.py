# SPDX-License-Identifier: Apache-2.0
"""docs/troubleshooting.md explains the messages that the backend gives: all, and no others."""

from __future__ import annotations

import json
import re

import pytest

from ci.messages import HOLE, Message, matches, messages, quoted
from ci.process import ROOT

GOLDEN = ROOT / "tests" / "integration" / "golden"
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
QUOTED = quoted(PAGE)
MESSAGES = messages()
#: A quotation of fewer words than these might be of any message.
FEWEST_CHARACTERS = 6


def test_the_sources_are_read() -> None:
    texts = {message.text for message in MESSAGES}
    # One of each kind: refused in Python, put together there, thrown in C++, with holes at its end.
    assert "there is no version directory …" in texts
    assert any(matches("… raised …", text) for text in texts)
    assert "the client cancelled the request" in texts
    assert "input '…' is missing" in texts
    assert "model '…' is not ready until it is reloaded, after a failure of its device: …" in texts
    assert len(MESSAGES) > 150


@pytest.mark.parametrize("quotation", QUOTED)
def test_what_is_quoted_is_in_the_sources(quotation: str) -> None:
    assert any(matches(quotation, message.text) for message in MESSAGES)
    assert len(quotation.replace(HOLE, "")) >= FEWEST_CHARACTERS


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.where)
def test_every_message_has_an_entry(message: Message) -> None:
    assert any(matches(quotation, message.text) for quotation in QUOTED), (
        f"{message.where}: docs/troubleshooting.md does not explain it: {message.text}"
    )


def test_what_is_quoted_of_triton_is_what_servers_answer() -> None:
    answers = json.loads((GOLDEN / "answers.json").read_text(encoding="utf-8"))
    said = [text for name, text in answers.items() if name.startswith("request with")]
    section = PAGE.partition("\n## Requests\n")[2].partition("\n## ")[0]
    of_triton = re.findall(r"^#### Triton: `(.+)`$", section, re.MULTILINE)
    assert len(of_triton) >= 5
    for quotation in of_triton:
        assert any(matches(quotation, text) for text in said), quotation


def test_every_entry_says_something() -> None:
    for entry in re.split(r"^#### ", PAGE, flags=re.MULTILINE)[1:]:
        title, _, text = entry.partition("\n")
        said = re.sub(r"^- `.*$", "", re.split(r"\n###? ", text)[0], flags=re.MULTILINE)
        assert len(said.split()) >= 1, title


@pytest.mark.parametrize(
    ("quotation", "message", "same"),
    [
        ("input '…' is missing", "input '…' is missing", True),
        ("… raised …", "… raised …", True),
        ("'…': expected …, got …", "input '…': expected data type …, got …", True),
        ("'…': got …, expected …", "input '…': expected data type …, got …", False),
        ("is (not)", "is not", False),
    ],
)
def test_a_quotation_is_of_a_message_whose_pieces_it_has(
    quotation: str, message: str, same: bool
) -> None:
    assert matches(quotation, message) is same
