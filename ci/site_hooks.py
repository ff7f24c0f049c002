# SPDX-License-Identifier: Apache-2.0
"""What mkdocs.yml cannot say: pages that lie outside of docs/, links that leave it, diagrams.

Pages are written for the repository, where ``../releases.toml`` is a link that works. In the site,
it goes to the file in the repository, or to the page that is made of it.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from ci.mermaid import mermaid_script
from ci.process import ROOT

#: Files outside of docs/ that are pages, too, by their place in the site.
PAGES: Final = {
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "examples.md": "examples/README.md",
}
MERMAID: Final = "assets/javascripts/mermaid.min.js"

_DOCS: Final = "docs"
_LINK: Final = re.compile(r"(?<=\]\()(?P<target>[^)\s]+)(?=\))")
_FENCE: Final = re.compile(r"^ *```.*?^ *```[ \t]*$", re.MULTILINE | re.DOTALL)
_REFERENCE: Final = "main"


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add what does not lie in docs/."""
    for place, source in PAGES.items():
        page = File.generated(config, place, content=(ROOT / source).read_text(encoding="utf-8"))
        page.edit_uri = posixpath.relpath(source, _DOCS)
        files.append(page)
    files.append(File.generated(config, MERMAID, content=mermaid_script()))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Have links go where they go in the repository."""
    source = PAGES.get(page.file.src_uri, f"{_DOCS}/{page.file.src_uri}")

    def moved(found: re.Match[str]) -> str:
        return site_link(found["target"], source, str(config.repo_url), files)

    pieces = []
    end = 0
    for fence in _FENCE.finditer(markdown):
        pieces += [_LINK.sub(moved, markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*pieces, _LINK.sub(moved, markdown[end:])])


def site_link(target: str, source: str, repository: str, files: Files) -> str:
    """Return the link of a page in the site for one that works in the repository.

    Args:
        target: The link, as it is written.
        source: The file that it is in, from the root of the repository.
        repository: The address of the repository.
        files: Those of the site.
    """
    path, mark, anchor = target.partition("#")
    if not path or re.match(r"[a-z]+:|/", path):
        return target
    file = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    if file == "README.md":
        return "index.md"
    places = {source: place for place, source in PAGES.items()}
    inside = places.get(file) or file.removeprefix(f"{_DOCS}/")
    if file in places or (file.startswith(f"{_DOCS}/") and files.get_file_from_path(inside)):
        return f"{inside}{mark}{anchor}"
    kind = "tree" if Path(ROOT, file).is_dir() else "blob"
    revision = os.environ.get("CI_COMMIT_SHA", _REFERENCE)
    return f"{repository.rstrip('/')}/-/{kind}/{revision}/{file}{mark}{anchor}"
