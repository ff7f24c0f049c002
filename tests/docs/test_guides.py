# SPDX-License-Identifier: Apache-2.0
"""What README.md and the guides show, done as they say: every block, in order."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2

from ci.guides.blocks import Block, guides, parse_page, parse_text
from ci.guides.commands import check_calls, lines_of
from ci.guides.page import Place, run_page
from ci.process import ROOT

#: A newcomer reads README.md and does no more than this many things.
MOST_COMMANDS = 10

NAMES = [str(page.relative_to(ROOT)) for page in guides()]
BLOCKS = {name: parse_page(ROOT / name) for name in NAMES}
RUN = [name for name, blocks in BLOCKS.items() if any(block.runs for block in blocks)]
LOOKED_AT = [block for blocks in BLOCKS.values() for block in blocks if not block.hidden]


@pytest.mark.integration
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", RUN)
def test_what_a_page_shows_works(name: str, place: Place, tmp_path: Path) -> None:
    run_page(BLOCKS[name], place, tmp_path)
    if name == "README.md":
        layout = next(block for block in BLOCKS[name] if block.language == "text")
        for file in re.findall(r"[\w.]+\.(?:py|pbtxt|msgpack)\b", layout.code):
            assert list((tmp_path / "models").rglob(file)), f"{file} of README's layout"


@pytest.mark.parametrize("block", LOOKED_AT, ids=lambda block: block.where)
def test_a_block_is_well_formed(block: Block) -> None:
    check_calls(block)
    match block.language:
        case "python":
            compile(block.code, block.where, "exec", dont_inherit=True)
        case "sh":
            subprocess.run(["bash", "-n", "-c", block.code], check=True)
        case "json":
            json.loads(block.code)
        case "yaml":
            list(yaml.safe_load_all(block.code))
        case "toml":
            tomllib.loads(block.code)
        case "pbtxt":
            text_format.Parse(block.code, model_config_pb2.ModelConfig())


def test_a_newcomer_needs_few_commands() -> None:
    text = (
        (ROOT / "README.md").read_text(encoding="utf-8").partition("## For a backend engineer")[0]
    )
    shown = [block for block in parse_text(text, "README.md") if block.language == "sh"]
    commands = [line for block in shown for line in lines_of(block.code)]
    assert 0 < len(commands) <= MOST_COMMANDS


def test_every_kind_of_reader_has_a_guide_that_is_run() -> None:
    for who in ("author", "operator", "engineer"):
        assert f"docs/quickstart_{who}.md" in NAMES
