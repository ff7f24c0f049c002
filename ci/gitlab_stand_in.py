# SPDX-License-Identifier: Apache-2.0
"""A stand-in for two parts of GitLab: generic packages, and releases with their permanent links.

GitLab itself cannot be run on any machine. What is published to it is therefore first published to
this, which is small and stricter than the original: every request needs the job's token, names have
to be as GitLab wants them, lists come in pages of twenty, and a file, a release or a link that is
there already is a conflict (GitLab would take a second file of the same name, unless the project's
settings forbid it). What it does not have it refuses. The page of a release asks for no token, as
that of a public project, but it only points to a file, whose request needs one.

It keeps files in a folder and everything else in memory.
"""

from __future__ import annotations

import hashlib
import http
import re
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from fastapi import Depends, FastAPI, Header, HTTPException, Request, Response
from fastapi.responses import FileResponse, JSONResponse, RedirectResponse
from pydantic import BaseModel, ConfigDict, Field, HttpUrl

__all__ = ["GitLabStandIn"]

_PACKAGE_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")
_PACKAGE_VERSION: Final = re.compile(r"\.?[\w+-]+(\.[\w+-]+)*")
_FILE_NAME: Final = re.compile(r"[A-Za-z0-9._+-][A-Za-z0-9._+~@-]*")
_DIRECT_PATH: Final = r"^/([\-.\w]+/?)*[0-9a-zA-Z]+$"
_PER_PAGE: Final = 20


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Link(_Strict):
    """A link of a release, as a client sends it."""

    name: str = Field(min_length=1, max_length=255)
    url: HttpUrl
    link_type: Literal["other", "runbook", "image", "package"] = "other"
    direct_asset_path: str | None = Field(default=None, pattern=_DIRECT_PATH)


class Assets(_Strict):
    """What a release has beside its source."""

    links: list[Link] = []


class NewRelease(_Strict):
    """A release, as a client sends it."""

    tag_name: str = Field(min_length=1)
    name: str = Field(min_length=1)
    description: str = Field(min_length=1)
    assets: Assets = Assets()


@dataclass
class _File:
    identifier: int
    name: str
    sha256: str
    size: int
    path: Path


@dataclass
class _Package:
    identifier: int
    name: str
    version: str
    files: dict[str, _File] = field(default_factory=dict)


@dataclass
class _Release:
    tag: str
    name: str
    description: str
    links: dict[str, Link] = field(default_factory=dict)


@dataclass
class _Faults:
    method: str
    passed: int
    times: int
    status: int


class GitLabStandIn:
    """One project of it; `app` is what a server of ASGI runs."""

    def __init__(self, folder: Path, *, project: str, project_id: str, token: str) -> None:
        """Begin with nothing published.

        Args:
            folder: Where the files go.
            project: The path of the one project, as in ``group/project``.
            project_id: Its number.
            token: The job's token.
        """
        self.folder = folder
        self.packages: dict[tuple[str, str], _Package] = {}
        self.releases: dict[str, _Release] = {}
        #: Every upload that was taken: ``name/version/file``.
        self.uploads: list[str] = []
        self._project = project
        self._project_id = project_id
        self._token = token
        self._faults: _Faults | None = None
        self._lock = threading.Lock()
        self.app = self._make_app()

    def fail_next(
        self, times: int, status: int = 500, *, method: str = "PUT", passed: int = 0
    ) -> None:
        """Answer some requests with an error.

        Args:
            times: How many.
            status: With what.
            method: Which: those of this method.
            passed: How many of these are answered as ever before that.
        """
        with self._lock:
            self._faults = _Faults(method, passed, times, status)

    def _fault(self, method: str) -> int | None:
        with self._lock:
            faults = self._faults
            if faults is None or faults.method != method:
                return None
            if faults.passed > 0:
                faults.passed -= 1
                return None
            if faults.times == 0:
                return None
            faults.times -= 1
            return faults.status

    def _make_app(self) -> FastAPI:
        app = FastAPI(openapi_url=None)

        @app.middleware("http")
        async def fail_if_told(
            request: Request, proceed: Callable[[Request], Awaitable[Response]]
        ) -> Response:
            status = self._fault(request.method)
            if status is None:
                return await proceed(request)
            await request.body()
            return _message(status)

        @app.exception_handler(HTTPException)
        async def answer(_request: Request, error: HTTPException) -> Response:
            return _message(error.status_code, error.detail)

        root = "/api/v4/projects/{project_id}"
        guarded = [Depends(self._guard)]
        generic = f"{root}/packages/generic/{{name}}/{{version}}/{{file_name}}"
        releases = f"{root}/releases"
        links = f"{releases}/{{tag}}/assets/links"
        for method, path, body, status in (
            ("PUT", generic, self._upload, 201),
            ("GET", generic, self._download, 200),
            ("GET", f"{root}/packages", self._list_packages, 200),
            ("GET", f"{root}/packages/{{package_id}}/package_files", self._list_files, 200),
            ("POST", releases, self._create_release, 201),
            ("GET", f"{releases}/{{tag}}", self._show_release, 200),
            ("GET", links, self._list_links, 200),
            ("POST", links, self._create_link, 201),
            ("GET", f"{releases}/{{tag}}/downloads/{{path:path}}", self._permanent_link, 302),
        ):
            app.add_api_route(
                path, body, methods=[method], status_code=status, dependencies=guarded
            )
        page = f"/{self._project}/-/releases/{{tag}}/downloads/{{path:path}}"
        app.add_api_route(page, self._permanent_link, methods=["GET"], status_code=302)
        return app

    def _guard(
        self, project_id: str, job_token: Annotated[str | None, Header(alias="JOB-TOKEN")] = None
    ) -> None:
        if job_token != self._token:
            raise HTTPException(401, "401 Unauthorized")
        if project_id != self._project_id:
            raise HTTPException(404, "404 Project Not Found")

    async def _upload(
        self, name: str, version: str, file_name: str, request: Request
    ) -> dict[str, Any]:
        for value, pattern, what in (
            (name, _PACKAGE_NAME, "package_name"),
            (version, _PACKAGE_VERSION, "package_version"),
            (file_name, _FILE_NAME, "file_name"),
        ):
            if not pattern.fullmatch(value) or ".." in value:
                raise HTTPException(400, f"{what} is invalid")
        content = await request.body()
        if not content:
            raise HTTPException(400, "file is invalid")
        with self._lock:
            package = self.packages.setdefault(
                (name, version), _Package(len(self.packages) + 1, name, version)
            )
            if file_name in package.files:
                raise HTTPException(409, "Duplicate package is not allowed")
            path = self.folder / name / version / file_name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            digest = hashlib.sha256(content).hexdigest()
            identifier = sum(len(one.files) for one in self.packages.values()) + 1
            stored = _File(identifier, file_name, digest, len(content), path)
            package.files[file_name] = stored
            self.uploads.append(f"{name}/{version}/{file_name}")
        return {"message": "201 Created", **_described(stored)}

    def _download(self, name: str, version: str, file_name: str) -> FileResponse:
        package = self.packages.get((name, version))
        if package is None or file_name not in package.files:
            raise HTTPException(404, "404 Not Found")
        return FileResponse(package.files[file_name].path, media_type="application/octet-stream")

    def _list_packages(
        self,
        request: Request,
        response: Response,
        package_name: str = "",
        package_type: str = "generic",
    ) -> list[dict[str, Any]]:
        found = [
            {
                "id": one.identifier,
                "name": one.name,
                "version": one.version,
                "package_type": "generic",
            }
            for one in self.packages.values()
            # A part of the name is enough, as in GitLab.
            if package_name in one.name and package_type == "generic"
        ]
        return _page(found, request, response)

    def _list_files(
        self, package_id: int, request: Request, response: Response
    ) -> list[dict[str, Any]]:
        for package in self.packages.values():
            if package.identifier == package_id:
                return _page([_described(one) for one in package.files.values()], request, response)
        raise HTTPException(404, "404 Package Not Found")

    def _create_release(self, new: NewRelease) -> dict[str, Any]:
        with self._lock:
            if new.tag_name in self.releases:
                raise HTTPException(409, "Release already exists")
            release = _Release(new.tag_name, new.name, new.description)
            for link in new.assets.links:
                _add_link(release, link)
            self.releases[new.tag_name] = release
        return self._show_release(new.tag_name)

    def _show_release(self, tag: str) -> dict[str, Any]:
        release = self._release(tag)
        return {
            "tag_name": release.tag,
            "name": release.name,
            "description": release.description,
            "assets": {"links": [_link(one) for one in release.links.values()]},
        }

    def _list_links(self, tag: str, request: Request, response: Response) -> list[dict[str, Any]]:
        found = [_link(one) for one in self._release(tag).links.values()]
        return _page(found, request, response)

    def _create_link(self, tag: str, link: Link) -> dict[str, Any]:
        with self._lock:
            _add_link(self._release(tag), link)
        return _link(link)

    def _permanent_link(self, tag: str, path: str) -> RedirectResponse:
        for link in self._release(tag).links.values():
            if link.direct_asset_path == f"/{path}":
                return RedirectResponse(str(link.url), status_code=302)
        raise HTTPException(404, "404 Not Found")

    def _release(self, tag: str) -> _Release:
        if tag not in self.releases:
            raise HTTPException(404, "404 Not Found")
        return self.releases[tag]


def _message(status: int, text: str | None = None) -> JSONResponse:
    phrase = f"{status} {http.HTTPStatus(status).phrase}"
    return JSONResponse({"message": text or phrase}, status_code=status)


def _add_link(release: _Release, link: Link) -> None:
    """Add a link; GitLab wants its name, URL and path to be the only ones of a release."""
    for other in release.links.values():
        path = link.direct_asset_path
        same_path = path is not None and other.direct_asset_path == path
        if other.name == link.name or str(other.url) == str(link.url) or same_path:
            raise HTTPException(400, f"Link {link.name!r}: name, url and path have to be unique")
    release.links[link.name] = link


def _link(link: Link) -> dict[str, Any]:
    return {"id": link.name, **link.model_dump(mode="json")}


def _described(file: _File) -> dict[str, Any]:
    return {
        "id": file.identifier,
        "file_name": file.name,
        "file_sha256": file.sha256,
        "size": file.size,
    }


def _page(
    found: list[dict[str, Any]], request: Request, response: Response
) -> list[dict[str, Any]]:
    """Return the page that was asked for, and say in the headers where the next one is."""
    number = int(request.query_params.get("page", "1"))
    size = min(int(request.query_params.get("per_page", str(_PER_PAGE))), 100)
    pages = max(1, -(-len(found) // size))
    response.headers["X-Total"] = str(len(found))
    response.headers["X-Total-Pages"] = str(pages)
    response.headers["X-Page"] = str(number)
    response.headers["X-Per-Page"] = str(size)
    if number < pages:
        following = request.url.include_query_params(page=number + 1, per_page=size)
        response.headers["X-Next-Page"] = str(number + 1)
        response.headers["Link"] = f'<{following}>; rel="next"'
    return found[(number - 1) * size : number * size]
