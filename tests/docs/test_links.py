# SPDX-License-Identifier: Apache-2.0
"""The pages are whole as they are read in the repository: links lead somewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci.markdown_links import anchor_of, anchors_of, broken_links, pages
from ci.process import ROOT

PAGES = pages()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert broken_links(page) == []


def test_every_page_of_the_docs_can_be_found_from_the_readme() -> None:
    seen: set[Path] = set()
    found = [ROOT / "README.md"]
    while found:
        page = found.pop()
        if page in seen:
            continue
        seen.add(page)
        text = page.read_text(encoding="utf-8")
        found += [one for one in PAGES if one not in seen and one.name in text]
    assert {page for page in PAGES if page.parent == ROOT / "docs"} <= seen


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("Parameters in config.pbtxt", "parameters-in-configpbtxt"),
        ("model.jaxexport", "modeljaxexport"),
        ("What `predict` returns", "what-predict-returns"),
        ("Into an image - that you have", "into-an-image-that-you-have"),
        ("`max_batch_size`", "max_batch_size"),
    ],
)
def test_headings_have_the_anchors_that_gitlab_gives_them(heading: str, anchor: str) -> None:
    assert anchor_of(heading.replace("`", "")) == anchor


def test_a_heading_that_is_there_twice_has_a_number(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One\n\n## Two\n\n## One\n")
    assert anchors_of(page) == {"one", "two", "one-1"}


def test_links_that_lead_nowhere_are_named(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Here\n\n[a](#here) [b](#there) [c](other.md) [d](page.md#here) [e](page.md#no) "
        "![f](picture.png) [g](https://example.org/)\n"
    )
    assert broken_links(page, tmp_path) == [
        "page.md: #there: it has no such heading",
        "page.md: other.md: expected a file, found none",
        "page.md: page.md#no: page.md has no such heading",
        "page.md: picture.png: expected a file, found none",
    ]
