# SPDX-License-Identifier: Apache-2.0
"""Builds the documentation as a site, and checks every link of it.

``python -m ci.site`` builds it into ``build/site``. Links inside the site have to lead to a page
and, where they name one, to a part of it; nothing may be loaded from elsewhere. ``--external`` asks
for every address outside, too.
"""

from __future__ import annotations

import argparse
import os
import sys
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urljoin, urlsplit

from ci.process import ROOT, CommandError, fail, run

__all__ = ["SITE", "SiteError", "broken_links", "build_site", "outside", "read_site", "unreachable"]

SITE: Final = ROOT / "build" / "site"
#: What a browser loads without being asked, by the element and its attribute.
_LOADED: Final = {
    "audio": "src",
    "embed": "src",
    "iframe": "src",
    "img": "src",
    "link": "href",
    "object": "data",
    "script": "src",
    "source": "src",
    "video": "src",
}
#: Links of a page that are about it, and load nothing.
_ABOUT: Final = {"alternate", "author", "canonical", "license", "next", "prev"}
_BASE: Final = "http://site.invalid"
_SECONDS: Final = 20
_AT_ONCE: Final = 8


class SiteError(RuntimeError):
    """The site has links that lead nowhere."""


@dataclass
class Document(HTMLParser):
    """What a page of the site has.

    Attributes:
        anchors: Its parts that can be linked to.
        links: Where it links to.
        loaded: What a browser loads for it.
    """

    anchors: set[str] = field(default_factory=set)
    links: set[str] = field(default_factory=set)
    loaded: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Look at an element."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.add(given["href"])
        attribute = _LOADED.get(tag)
        if attribute in given and given.get("rel") not in _ABOUT:
            self.loaded.add(given[attribute or ""])


def build_site(directory: Path = SITE) -> None:
    """Build the site; a warning is an error.

    Raises:
        CommandError: MkDocs refuses something; its output says what.
    """
    # Without the theme's words on other programs. Not --quiet: it hides warnings from --strict.
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--clean"]
    run([*command, "--site-dir", directory], env=environment)


def read_site(directory: Path) -> dict[str, Document]:
    """Return every page of a site by its path."""
    pages = {}
    for path in sorted(directory.rglob("*.html")):
        document = Document()
        document.feed(path.read_text(encoding="utf-8"))
        pages[path.relative_to(directory).as_posix()] = document
    return pages


def broken_links(directory: Path, pages: Mapping[str, Document]) -> list[str]:
    """Return what is wrong with the links inside a site, a line for each."""
    wrong = []
    for page, document in pages.items():
        for link in sorted(document.links | document.loaded):
            # The page of errors is shown at any address, so its links begin at the root.
            target = urlsplit(urljoin(f"{_BASE}/{page}", link))
            if f"{target.scheme}://{target.netloc}" != _BASE:
                continue
            path = unquote(target.path).removeprefix(_prefix()).lstrip("/")
            if (directory / path).is_dir():
                path = f"{path.rstrip('/')}/index.html".lstrip("/")
            if not (directory / path).is_file():
                wrong.append(f"{page}: {link}: expected a page at {path}, found none")
            elif (
                target.fragment
                and path in pages
                and unquote(target.fragment) not in pages[path].anchors
                and not target.fragment.startswith("__")
            ):
                wrong.append(f"{page}: {link}: {path} has no part {target.fragment}")
    return wrong


def _prefix() -> str:
    """Where the site will be on its server: the page of errors links from there."""
    return urlsplit(os.environ.get("CI_PAGES_URL", "")).path.rstrip("/")


def outside(pages: Mapping[str, Document], kind: str) -> dict[str, list[str]]:
    """Return the addresses outside of a site, and the pages that have them.

    Args:
        pages: Those of the site.
        kind: ``links``, or ``loaded`` for what browsers load without being asked.
    """
    found = defaultdict(list)
    for page, document in pages.items():
        for link in getattr(document, kind):
            if urlsplit(link).scheme in {"http", "https"} or link.startswith("//"):
                found[link.partition("#")[0]].append(page)
    return dict(found)


def unreachable(addresses: Iterable[str]) -> dict[str, str]:
    """Ask for addresses, and return what is wrong with those that do not answer."""

    def ask(address: str) -> str:
        request = urllib.request.Request(  # noqa: S310  http and https only
            address, headers={"User-Agent": "tritonserver-jax-docs"}
        )
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS):  # noqa: S310
                return ""
        except (OSError, urllib.error.URLError, ValueError) as error:
            return str(error)

    wanted = sorted(addresses)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = dict(zip(wanted, pool.map(ask, wanted), strict=True))
    return {address: said for address, said in answers.items() if said}


def check_site(directory: Path, *, external: bool = False) -> str:
    """Check a site that was built, and say what was looked at.

    Raises:
        SiteError: A link leads nowhere, or something is loaded from elsewhere.
    """
    pages = read_site(directory)
    wrong = broken_links(directory, pages)
    wrong += [
        f"{', '.join(names)}: {address} would be loaded from elsewhere"
        for address, names in outside(pages, "loaded").items()
    ]
    links = outside(pages, "links")
    if external:
        wrong += [
            f"{', '.join(links[address])}: {address}: {said}"
            for address, said in unreachable(links).items()
        ]
    if wrong:
        raise SiteError("\n".join([f"{len(wrong)} links are wrong:", *wrong]))
    inside = sum(len(document.links) for document in pages.values())
    asked = "asked for" if external else "not asked for; -- --external does"
    return f"{len(pages)} pages, {inside} links, {len(links)} addresses elsewhere ({asked})"


def main(arguments: Sequence[str] | None = None) -> int:
    """Build and check; returns the exit status."""
    parser = argparse.ArgumentParser(prog="./ci/nox -s docs --", description=__doc__)
    parser.add_argument(
        "--external", action="store_true", help="also ask for the addresses outside of the site"
    )
    # Of the session, which then does not run the blocks of code.
    parser.add_argument("--site", action="store_true", help="only build it and check its links")
    options = parser.parse_args(arguments)
    try:
        build_site()
        print(f"{SITE}: {check_site(SITE, external=options.external)}")
    except (CommandError, SiteError) as error:
        return fail(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
