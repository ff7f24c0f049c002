# SPDX-License-Identifier: Apache-2.0
"""The site is built without a warning, and every link and picture of it is there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from mkdocs.structure.files import File, Files

from ci.mermaid import MermaidError, mermaid_script
from ci.site import (
    SiteError,
    broken_links,
    build_site,
    check_site,
    outside,
    read_site,
    unreachable,
)
from ci.site_hooks import PAGES, site_link

REPOSITORY = "https://example.org/group/project"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("site") / "site"
    build_site(directory)
    return directory


def test_its_links_lead_somewhere_and_nothing_comes_from_elsewhere(site: Path) -> None:
    assert "pages" in check_site(site)


def test_it_has_what_readers_expect(site: Path) -> None:
    home = (site / "index.html").read_text(encoding="utf-8")
    assert 'data-md-component="search"' in home
    assert 'name="__palette"' in home
    assert 'lang="en"' in home
    missing = (site / "404.html").read_text(encoding="utf-8")
    assert "There is no such page" in missing
    page = (site / "model_contract" / "index.html").read_text(encoding="utf-8")
    assert "/-/edit/main/docs/model_contract.md" in page
    example = (site / "examples" / "index.html").read_text(encoding="utf-8")
    assert "/-/edit/main/examples/README.md" in example


def test_it_asks_no_one_about_the_project(site: Path) -> None:
    # The theme's link to the source asks GitLab's API on each visit; ours does not.
    for page in site.rglob("*.html"):
        assert 'data-md-component="source"' not in page.read_text(encoding="utf-8"), page


def test_diagrams_are_drawn_by_what_is_in_it(site: Path) -> None:
    page = (site / "architecture" / "index.html").read_text(encoding="utf-8")
    assert '<pre class="mermaid">' in page
    script = site / "assets" / "javascripts" / "mermaid.min.js"
    assert script.stat().st_size > 1_000_000
    assert script.name in page


def test_a_package_with_another_hash_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ci.mermaid.INTEGRITY", "sha512-another")
    with pytest.raises(MermaidError, match="expected sha512-another, got sha512-"):
        mermaid_script(tmp_path)
    assert not list((tmp_path / "tools").glob("*.tgz"))


def write_site(directory: Path, **pages: str) -> Path:
    for name, text in pages.items():
        (directory / f"{name}.html").write_text(text, encoding="utf-8")
    return directory


def test_what_is_wrong_with_a_site_is_named(tmp_path: Path) -> None:
    write_site(
        tmp_path,
        index='<h1 id="top"></h1><a href="two.html#part"></a><a href="two.html#no"></a>'
        '<a href="three.html"></a><img src="picture.png"><a href="#top"></a>',
        two='<p id="part"></p><script src="https://cdn.example.org/x.js"></script>'
        '<link rel="canonical" href="https://example.org/two"><a href="https://example.org/"></a>',
    )
    pages = read_site(tmp_path)
    assert broken_links(tmp_path, pages) == [
        "index.html: picture.png: expected a page at picture.png, found none",
        "index.html: three.html: expected a page at three.html, found none",
        "index.html: two.html#no: two.html has no part no",
    ]
    assert outside(pages, "loaded") == {"https://cdn.example.org/x.js": ["two.html"]}
    assert outside(pages, "links") == {"https://example.org/": ["two.html"]}
    with pytest.raises(SiteError, match=r"(?s)4 links are wrong.*two\.html: https://cdn"):
        check_site(tmp_path)


@pytest.fixture
def address() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/here" else 404)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  its name
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_addresses_elsewhere_are_asked_for(address: str) -> None:
    wrong = unreachable([f"{address}/here", f"{address}/there", "http://127.0.0.1:9/"])
    assert set(wrong) == {f"{address}/there", "http://127.0.0.1:9/"}
    assert "404" in wrong[f"{address}/there"]


@pytest.mark.parametrize(
    ("target", "source", "link"),
    [
        ("types.md#strings", "docs/clients.md", "types.md#strings"),
        ("#here", "docs/clients.md", "#here"),
        ("https://example.org/x", "docs/clients.md", "https://example.org/x"),
        ("../README.md", "docs/clients.md", "index.md"),
        ("../examples/README.md#what", "docs/clients.md", "examples.md#what"),
        ("../docs/types.md", "examples/README.md", "types.md"),
        ("docs/types.md", "CONTRIBUTING.md", "types.md"),
        ("CHANGELOG.md", "CONTRIBUTING.md", "changelog.md"),
        ("../releases.toml", "docs/releases.md", f"{REPOSITORY}/-/blob/main/releases.toml"),
        ("../examples/digits", "docs/x.md", f"{REPOSITORY}/-/tree/main/examples/digits"),
        ("images/a.svg", "docs/benchmarks.md", "images/a.svg"),
    ],
)
def test_links_of_the_repository_become_those_of_the_site(
    monkeypatch: pytest.MonkeyPatch, target: str, source: str, link: str
) -> None:
    monkeypatch.delenv("CI_COMMIT_SHA", raising=False)
    names = [*PAGES, "types.md", "clients.md", "index.md", "images/a.svg"]
    files = Files([File(name, None, "site", use_directory_urls=True) for name in names])
    assert site_link(target, source, REPOSITORY, files) == link
