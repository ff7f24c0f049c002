# SPDX-License-Identifier: Apache-2.0
"""Blocks are found, annotated and run as ci.guides says."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from ci.guides.__main__ import summary
from ci.guides.blocks import REASONS, Block, GuideError, parse_text
from ci.guides.commands import check_calls, lines_of, session_names
from ci.guides.page import Place, run_page


def parsed(text: str) -> list[Block]:
    return parse_text(textwrap.dedent(text), "page.md")


@pytest.fixture
def bare(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A machine without a server: a page that needs one fails."""
    folder = tmp_path_factory.mktemp("place")
    absent: Any = None
    return Place(
        package=folder,
        dist=folder,
        backends=folder,
        server=folder,
        shared=absent,
        repository=folder,
    )


def test_blocks_have_their_lines_reasons_files_and_outputs() -> None:
    blocks = parsed(
        """\
        # A page

        ```python
        # models/mine/1/model.py
        x = 1
        ```

        <!-- not run: docker -->

        ```sh
        docker run image
        ```

        <!-- setup
        y = 2

        z = 3
        -->

        ```python
        print(y + z)
        ```

        ```text
        5
        ```

        ```text
        models/
        ```
        """
    )
    assert [(one.line, one.language, one.runs) for one in blocks] == [
        (4, "python", False),
        (11, "sh", False),
        (15, "python", True),
        (21, "python", True),
        (29, "text", False),
    ]
    file, docker, setup, program, layout = blocks
    assert (file.path, file.reason) == ("models/mine/1/model.py", None)
    assert (docker.reason, docker.where) == ("docker", "page.md:11")
    assert (setup.hidden, setup.code) == (True, "y = 2\n\nz = 3\n")
    assert (program.output, layout.output) == ("5\n", None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<!-- not run: lazy -->\n\n```sh\ntrue\n```", "'lazy' is no reason"),
        ("<!-- not run: docker -->\n\nwords", "expected a block of code right after"),
        ("<!-- not run: docker -->", "expected a block of code right after"),
        ("<!-- not run: docker -->\n\n```json\n{}\n```", "json is never run"),
        ("<!-- not run because of docker -->\n\n```sh\n```", "expected a comment such as"),
        ("```\nwords\n```", "got none of them"),
        ("```perl\n```", "got perl"),
    ],
)
def test_what_is_not_understood_is_an_error(text: str, message: str) -> None:
    with pytest.raises(GuideError, match=message):
        parse_text(text, "page.md")


def test_every_block_of_a_page_is_run_in_order_and_in_one_folder(
    bare: Place, tmp_path: Path
) -> None:
    text = """\
    ```python
    # data/settings.py
    VALUE = 3
    ```

    ```python
    import sys; sys.path.insert(0, "data")
    from settings import VALUE
    ```

    ```sh
    cat data/settings.py
    python -c 'print(40 + 2)' > answer
    ```

    ```text
    ...
    VALUE = ...
    ...
    ```

    ```python
    print(VALUE, open("answer").read())
    ```

    ```text
    3 42
    ```

    ```console
    $ cat answer
    42
    $ echo one \\
    >     two
    one two
    ```
    """
    run_page(parsed(text), bare, tmp_path)
    assert (tmp_path / "answer").read_text() == "42\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```python\n1 / 0\n```", "page.md:2.*ZeroDivisionError"),
        ("```python\nimport os; os._exit(3)\n```", "page.md:2.*Python ended"),
        ("```sh\ntrue\nfalse\ntrue\n```", "page.md:2.*status 1"),
        ("```sh\nfalse | true\n```", "status 1"),
        ("```sh\necho no\n```\n\n```text\nyes\n```", "page says that it prints\nyes.*no"),
        ("```console\n$ echo no\nyes\n```", "page says that it prints\nyes.*no"),
        ("```sh\ntritonserver --model-repository=x\ntrue\n```", "nothing after tritonserver"),
    ],
)
def test_what_does_not_do_what_its_page_says_fails(
    bare: Place, tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(GuideError, match=f"(?s){message}"):
        run_page(parse_text(text, "page.md"), bare, tmp_path)


def test_a_server_that_does_not_start_is_shown(bare: Place, tmp_path: Path) -> None:
    program = bare.server / "bin" / "tritonserver"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nraise SystemExit('no such model')\n")
    program.chmod(0o755)
    with pytest.raises(GuideError, match=r"(?s)page\.md:2.*ended.*no such model"):
        run_page(parse_text("```sh\ntritonserver -x\n```", "page.md"), bare, tmp_path)


def test_a_block_with_a_reason_is_not_run(bare: Place, tmp_path: Path) -> None:
    text = "<!-- not run: system -->\n\n```sh\ntouch here\n```"
    run_page(parse_text(text, "page.md"), bare, tmp_path)
    assert not (tmp_path / "here").exists()


@pytest.mark.parametrize(
    "code",
    [
        "tritonserver-jax install X.tar.gz --backends DIR --with-env",
        "backends/jax/env/bin/tritonserver-jax doctor --json | jq .ok",
        "tritonserver-jax serve models -- --log-verbose=1",
        "tritonserver-jax --version",
        "./ci/nox -s package-24.10\n./ci/nox -s lint -- --fix",
    ],
)
def test_calls_that_there_are(code: str) -> None:
    check_calls(Block("page.md", 1, "sh", code))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("tritonserver-jax fly", "expected a command, one of .*doctor"),
        ("tritonserver-jax install X --backend DIR", "page.md:1.*--backend"),
        ("./ci/nox -s everything", "no session everything"),
        ("./ci/nox -s integration-23.05", "no session integration-23.05"),
    ],
)
def test_calls_that_there_are_not(code: str, message: str) -> None:
    with pytest.raises(GuideError, match=message):
        check_calls(Block("page.md", 1, "sh", code))


def test_sessions_are_those_of_the_noxfile() -> None:
    assert {"lint", "docs", "package-24.10", "health-23.10", "add-release"} <= session_names()
    assert "install" not in session_names()


def test_lines_that_go_on_are_one() -> None:
    assert lines_of("one \\\n    two\n# three\n\nfour\n") == ["one two", "four"]


def test_blocks_are_counted_by_reason() -> None:
    note = "<!-- not run: {} -->\n\n```sh\ntrue\n```\n"
    blocks = parse_text(
        "```python\n```\n" + note.format("gpu") + note.format("gpu") + note.format("docker"),
        "page.md",
    )
    first, *rest = summary(blocks)
    assert first.startswith("4 blocks: 1 are run (1 of python)")
    assert rest == [f"   1 docker: {REASONS['docker']}", f"   2 gpu: {REASONS['gpu']}"]
