# SPDX-License-Identifier: Apache-2.0
"""Makes the GitLab release: the changelog, the images by digest, and a link to every asset."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

import requests
from gitlab.exceptions import GitlabError, GitlabGetError
from gitlab.v4.objects import Project, ProjectRelease

from ci.deploy.errors import DeployError, DifferentBytesError
from ci.deploy.plan import Link, Plan
from ci.deploy.project import ask
from ci.deploy.publisher import Item, some_of
from ci.image_plan import SOURCE_URL

__all__ = ["ReleasePublisher", "download_asset", "notes"]

#: What GitLab answers where something is there already.
_CONFLICT = (400, 409)


def notes(plan: Plan, changes: str, digests: dict[str, str]) -> str:
    """Return the text of a release.

    Args:
        plan: The version.
        changes: What the changelog says of it.
        digests: The digest of each image, by its name.
    """
    lines = [changes, "", "## Images", "", "| image | digest |", "|---|---|"]
    lines += [f"| `{name}` | `{digest}` |" for name, digest in digests.items()]
    guide = f"{SOURCE_URL}/-/blob/{plan.tag}/docs/verify.md"
    lines += ["", f"How to verify and install it: [docs/verify.md]({guide})."]
    return "\n".join(lines)


def download_asset(project: Project, tag: str, path: str) -> bytes:
    """Download a file of a release by its permanent link.

    It is that of the release's page, by the way that the token of a job opens in any project.

    Args:
        project: Whose release it is.
        tag: Of the release.
        path: The end of the link, as a `Link` has it.

    Raises:
        DeployError: It leads nowhere.
    """
    address = f"/projects/{project.encoded_id}/releases/{quote(tag, safe='')}/downloads{path}"

    def fetch() -> bytes:
        answer = project.manager.gitlab.http_get(address, raw=True)
        assert isinstance(answer, requests.Response)  # noqa: S101 # raw, as asked for
        return bytes(answer.content)

    return ask(f"release {tag}: permanent link {path}", fetch)


class ReleasePublisher:
    """Makes the release of the tag, and adds what links it lacks."""

    part = "release"

    def __init__(
        self,
        project: Project,
        plan: Plan,
        links: Sequence[Link],
        *,
        changes: str,
        digests: Callable[[], dict[str, str]],
    ) -> None:
        """Take what is needed to make it.

        Args:
            project: Whose release it is.
            plan: The version.
            links: All that it links to.
            changes: What the changelog says of it.
            digests: Returns the digest of each image, when they are published.
        """
        self._project = project
        self._plan = plan
        self._links = links
        self._changes = changes
        self._digests = digests

    def survey(self) -> list[Item]:
        """Look at the release of the tag, and at its links."""
        there = self._published()
        return [self._look(link, there) for link in self._links]

    def publish(self) -> None:
        """Make it, or add the links that it lacks."""
        plan = self._plan
        there = self._published()
        if there is None:
            text = notes(plan, self._changes, self._digests())
            ask(f"release {plan.tag}", lambda: self._create(text))
            there = self._published()
            print(f"release {plan.tag}: made, with {len(self._links)} links", flush=True)
        else:
            absent = [link for link in self._links if not self._look(link, there).there]
            for link in absent:
                add = functools.partial(self._add, link)
                ask(f"release {plan.tag}: link {link.name}", add)
            there = self._published()
            print(f"release {plan.tag}: there already, {len(absent)} links added", flush=True)
        left = [link.name for link in self._links if not self._look(link, there).there]
        if left:
            raise DeployError(
                f"release {plan.tag}: expected {len(self._links)} links, {len(left)} are missing: "
                f"{some_of(left)}; run it again"
            )

    def _look(self, link: Link, there: dict[str, str] | None) -> Item:
        name = f"{self._plan.tag}: {link.name}"
        published = None if there is None else there.get(link.name)
        if published not in (None, link.url):
            raise DifferentBytesError(name, str(published), link.url)
        digest = hashlib.sha256(link.url.encode()).hexdigest()
        return Item(name, digest, there=published is not None)

    def _published(self) -> dict[str, str] | None:
        """Return the URL of each link of the release; None while there is no release."""

        def look() -> dict[str, str] | None:
            release = self._release()
            if release is None:
                return None
            return {str(one.name): str(one.url) for one in release.links.list(get_all=True)}

        return ask(f"release {self._plan.tag}", look)

    def _release(self) -> ProjectRelease | None:
        try:
            return self._project.releases.get(self._plan.tag)
        except GitlabGetError as error:
            if error.response_code == 404:
                return None
            raise

    def _create(self, text: str) -> None:
        try:
            self._project.releases.create(
                {
                    "tag_name": self._plan.tag,
                    "name": f"tritonserver-jax {self._plan.version}",
                    "description": text,
                    "assets": {"links": [_described(link) for link in self._links]},
                }
            )
        except GitlabError as error:
            # An answer may have been lost, and the release be there.
            if error.response_code not in _CONFLICT or self._release() is None:
                raise

    def _add(self, link: Link) -> None:
        release = self._project.releases.get(self._plan.tag, lazy=True)
        try:
            release.links.create(_described(link))
        except GitlabError as error:
            there = self._published() or {}
            if error.response_code not in _CONFLICT or there.get(link.name) != link.url:
                raise


def _described(link: Link) -> dict[str, Any]:
    described = {"name": link.name, "url": link.url, "link_type": link.kind}
    if link.path is not None:
        described["direct_asset_path"] = link.path
    return described
