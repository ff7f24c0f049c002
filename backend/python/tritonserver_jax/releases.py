# SPDX-License-Identifier: Apache-2.0
"""The Triton releases, read from ``releases.toml``.

A *release* is NVIDIA's container tag (``24.10``); the *server version* is what the server itself
reports (``2.51.0``). The file is strict: an unknown key, a wrong type or a doubtful value is an
error that names the file, the release and the key, because a typo there would otherwise end up in
an artifact.
"""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, cast

__all__ = [
    "DEFAULT_RELEASE",
    "MINIMUM_BACKEND_API",
    "ApiLevel",
    "Catalog",
    "ImagePython",
    "Release",
    "ReleaseDataError",
    "ServerWheel",
    "UnknownReleaseError",
    "find_release",
    "load_catalog",
    "load_releases",
    "releases_file",
]

_SCHEMA: Final = 1
_OLDEST_PYTHON: Final = (3, 11)

_RELEASE = re.compile(r"\d{2}\.(0[1-9]|1[0-2])")
_TWO_NUMBERS = re.compile(r"\d+\.\d+")
_THREE_NUMBERS = re.compile(r"\d+\.\d+\.\d+")
_NUMBERS = re.compile(r"\d+(\.\d+)+")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_PACKAGE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_WHEEL = re.compile(r"[A-Za-z0-9_.]+(-[A-Za-z0-9_.]+){4,5}\.whl")
_PYTHON_SOURCE = re.compile(r"base|standalone")
_PYTHON_URL = re.compile(r"(https|file)://\S+\.tar\.gz")
_C_FUNCTION = re.compile(r"TRITON(BACKEND|SERVER)_[A-Za-z0-9]+")
_IMAGE = re.compile(r"[a-z0-9.-]+(/[a-z0-9._-]+)+:[^\s:]*\{release\}[^\s:]*")


class ReleaseDataError(ValueError):
    """``releases.toml`` is missing, unreadable or says something that cannot be."""


class UnknownReleaseError(LookupError):
    """A release was asked for which ``releases.toml`` does not have."""


class ApiLevel(NamedTuple):
    """A level of one of Triton's C APIs; compares as numbers (1.9 < 1.12)."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    @classmethod
    def parse(cls, text: str) -> ApiLevel:
        """Read ``"1.12"``; anything else is a ValueError."""
        if not _TWO_NUMBERS.fullmatch(text):
            raise ValueError(f'API level: expected "<major>.<minor>", got {text!r}')
        major, minor = text.split(".")
        return cls(int(major), int(minor))


@dataclass(frozen=True, slots=True)
class ServerWheel:
    """A wheel on the Python package index which carries a whole, runnable tritonserver."""

    package: str
    version: str
    wheel: str
    sha256: str


@dataclass(frozen=True, slots=True)
class ImagePython:
    """Which Python an image of ours runs the backend with.

    Attributes:
        source: ``base``, the one of the release's image, or ``standalone``, put beside the backend.
        version: As in ``3.12.3``.
        url: Where a standalone one comes from.
        sha256: The hash of that file.
    """

    source: str
    version: str
    url: str | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Release:
    """One Triton release. ``None`` means that the fact is not known."""

    release: str
    server_version: str
    backend_api: ApiLevel | None
    server_api: ApiLevel | None
    ubuntu: str
    python: str
    cuda: str | None
    driver: str | None
    image: str
    sdk_image: str
    image_python: ImagePython
    c_api_functions_added: tuple[str, ...] | None
    server: ServerWheel | None


@dataclass(frozen=True, slots=True)
class Catalog:
    """All of ``releases.toml``; ``releases`` runs from the oldest to the newest."""

    default_release: str
    minimum_backend_api: ApiLevel
    releases: dict[str, Release]


def releases_file() -> Path:
    """Return the ``releases.toml`` that belongs to this package.

    In an installed wheel it lies beside this module, in a checkout at the root.
    """
    here = Path(__file__).resolve()
    candidates = [here.with_name("releases.toml"), here.parents[3] / "releases.toml"]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    raise ReleaseDataError(
        f"releases.toml: expected at {' or '.join(map(str, candidates))}, found at neither; "
        "reinstall tritonserver-jax, or restore the file in the checkout"
    )


class _Table:
    """One TOML table, its keys taken one by one so that what is left over is an error."""

    def __init__(self, path: Path, where: str, values: object) -> None:
        self._path = path
        self._where = where
        if not isinstance(values, dict):
            raise self.error(None, "a table", values)
        self._values: dict[str, object] = dict(values)

    def error(self, key: str | None, expected: str, got: object) -> ReleaseDataError:
        """Name the file, the place, the key and both sides."""
        place = ": ".join(part for part in (str(self._path), self._where, key) if part)
        shown = "nothing" if got is None else repr(got)
        return ReleaseDataError(f"{place}: expected {expected}, got {shown}")

    def take(self, key: str) -> object:
        return self._values.pop(key, None)

    def optional_text(self, key: str, pattern: re.Pattern[str], meaning: str) -> str | None:
        value = self.take(key)
        if value is None:
            return None
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise self.error(key, meaning, value)
        return value

    def text(self, key: str, pattern: re.Pattern[str], meaning: str) -> str:
        value = self.optional_text(key, pattern, meaning)
        if value is None:
            raise self.error(key, meaning, None)
        return value

    def optional_api_level(self, key: str) -> ApiLevel | None:
        value = self.optional_text(key, _TWO_NUMBERS, 'an API level such as "1.12"')
        return None if value is None else ApiLevel.parse(value)

    def optional_functions(self, key: str) -> tuple[str, ...] | None:
        value = self.take(key)
        if value is None:
            return None
        meaning = "a list of TRITONBACKEND_… or TRITONSERVER_… names, each once"
        if not isinstance(value, list) or len(set(map(str, value))) != len(value):
            raise self.error(key, meaning, value)
        for name in value:
            if not isinstance(name, str) or not _C_FUNCTION.fullmatch(name):
                raise self.error(key, meaning, name)
        return tuple(cast("list[str]", value))

    def done(self) -> None:
        """Refuse what nobody asked for: most often a misspelt key."""
        if self._values:
            key = min(self._values)
            raise self.error(key, "no such key", self._values[key])


def _server_wheel(table: _Table) -> ServerWheel:
    package = table.text("package", _PACKAGE, "a distribution name in lower case")
    version = table.text("version", _NUMBERS, 'a version such as "0.7.0"')
    wheel = table.text("wheel", _WHEEL, "the file name of a wheel")
    sha256 = table.text("sha256", _SHA256, "64 lower-case hexadecimal digits")
    table.done()
    prefix = f"{package.replace('-', '_')}-{version}-"
    if not wheel.startswith(prefix):
        raise table.error("wheel", f"a name that starts with {prefix}", wheel)
    return ServerWheel(package=package, version=version, wheel=wheel, sha256=sha256)


def _image_python(table: _Table) -> ImagePython:
    source = table.text("source", _PYTHON_SOURCE, '"base" or "standalone"')
    version = table.text("version", _THREE_NUMBERS, 'a Python version such as "3.12.3"')
    if source == "base":
        python = ImagePython(source, version)
    else:
        url = table.text("url", _PYTHON_URL, "the address of a .tar.gz of python-build-standalone")
        sha256 = table.text("sha256", _SHA256, "64 lower-case hexadecimal digits")
        if f"-{version}%2B" not in url:
            raise table.error("url", f"a file of Python {version}", url)
        python = ImagePython(source, version, url, sha256)
    table.done()
    if _numbers(version) < _OLDEST_PYTHON:
        raise table.error("version", "Python 3.11 or newer, which JAX needs", version)
    return python


def _image_pythons(path: Path, root: _Table) -> dict[str, ImagePython]:
    listed = root.take("image_python")
    if not isinstance(listed, dict) or not listed:
        raise root.error("image_python", 'tables such as [image_python."24.04"]', listed)
    return {
        ubuntu: _image_python(_Table(path, f"image_python {ubuntu}", values))
        for ubuntu, values in listed.items()
    }


def _python_for(
    table: _Table, ubuntu: str, python: str, known: dict[str, ImagePython]
) -> ImagePython:
    found = known.get(ubuntu)
    if found is None:
        listed = " or ".join(known)
        raise table.error("ubuntu", f"one that image_python lists, {listed}", ubuntu)
    if found.source == "base" and found.version != python:
        raise table.error("python", f"{found.version}, as image_python {ubuntu} says", python)
    return found


def _release(
    path: Path,
    name: str,
    values: object,
    images: tuple[str, str],
    pythons: dict[str, ImagePython],
) -> Release:
    where = f"release {name}"
    table = _Table(path, where, values)
    if not _RELEASE.fullmatch(name):
        raise table.error(None, 'a name such as "24.10" (year.month)', name)
    server = table.take("server")
    ubuntu = table.text("ubuntu", _TWO_NUMBERS, 'an Ubuntu release such as "22.04"')
    python = table.text("python", _THREE_NUMBERS, 'a Python version such as "3.10.12"')
    image, sdk_image = (reference.format(release=name) for reference in images)
    release = Release(
        release=name,
        server_version=table.text(
            "server_version", _THREE_NUMBERS, 'a server version such as "2.51.0"'
        ),
        backend_api=table.optional_api_level("backend_api"),
        server_api=table.optional_api_level("server_api"),
        ubuntu=ubuntu,
        python=python,
        cuda=table.optional_text("cuda", _NUMBERS, 'a CUDA version such as "12.6.2.004"'),
        driver=table.optional_text("driver", _NUMBERS, 'a driver version such as "560.35.03"'),
        image=image,
        sdk_image=sdk_image,
        image_python=_python_for(table, ubuntu, python, pythons),
        c_api_functions_added=table.optional_functions("c_api_functions_added"),
        server=None if server is None else _server_wheel(_Table(path, f"{where}: server", server)),
    )
    table.done()
    return release


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _check_order(path: Path, releases: list[Release]) -> None:
    """Releases are listed oldest first, and no figure of theirs ever goes back."""
    for older, newer in itertools.pairwise(releases):
        table = _Table(path, f"release {newer.release}", {})
        if _numbers(newer.release) <= _numbers(older.release):
            raise table.error(None, f"a release after {older.release}", newer.release)
        if _numbers(newer.server_version) <= _numbers(older.server_version):
            raise table.error(
                "server_version",
                f"more than {older.server_version} of release {older.release}",
                newer.server_version,
            )
        pairs = [
            ("backend_api", older.backend_api, newer.backend_api),
            ("server_api", older.server_api, newer.server_api),
        ]
        for key, before, after in pairs:
            if before is not None and after is not None and after < before:
                raise table.error(key, f"at least {before} of {older.release}", str(after))


def load_catalog(path: Path | None = None) -> Catalog:
    """Read and check ``releases.toml``.

    Args:
        path: Another file; by default the one that belongs to this package.

    Raises:
        ReleaseDataError: The file cannot be read, or says something wrong.
    """
    path = releases_file() if path is None else path
    try:
        content: Mapping[str, object] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ReleaseDataError(f"{path}: expected a readable TOML file, got: {error}") from error

    root = _Table(path, "", content)
    schema = root.take("schema")
    if schema != _SCHEMA:
        raise root.error("schema", str(_SCHEMA), schema)
    image = root.text("image", _IMAGE, "an image reference with {release} in its tag")
    sdk_image = root.text("sdk_image", _IMAGE, "an image reference with {release} in its tag")
    default = root.text("default_release", _RELEASE, 'a release such as "24.10"')
    minimum = root.text("minimum_backend_api", _TWO_NUMBERS, 'an API level such as "1.12"')
    pythons = _image_pythons(path, root)
    listed = root.take("release")
    root.done()
    if not isinstance(listed, dict) or not listed:
        raise root.error("release", 'tables such as [release."24.10"]', listed)

    releases = [
        _release(path, name, table, (image, sdk_image), pythons) for name, table in listed.items()
    ]
    _check_order(path, releases)
    by_name = {release.release: release for release in releases}
    if default not in by_name:
        raise root.error("default_release", "a release of this file", default)
    if by_name[default].server is None:
        raise root.error("default_release", "a release with a server wheel", default)
    return Catalog(
        default_release=default,
        minimum_backend_api=ApiLevel.parse(minimum),
        releases=by_name,
    )


def load_releases(path: Path | None = None) -> dict[str, Release]:
    """Return every release by name, oldest first (see `load_catalog`)."""
    return load_catalog(path).releases


def find_release(name: str, path: Path | None = None) -> Release:
    """Return one release; an unknown name is an error that lists the known ones."""
    releases = load_releases(path)
    try:
        return releases[name]
    except KeyError:
        raise UnknownReleaseError(
            f"release: expected one of {', '.join(releases)}; got {name!r}; "
            "a release not listed there has to be added to releases.toml first"
        ) from None


_CATALOG: Final = load_catalog()

#: What is used when no release is named.
DEFAULT_RELEASE: Final[str] = _CATALOG.default_release

#: The oldest level of Triton's backend API that the compiled backend runs on.
MINIMUM_BACKEND_API: Final[ApiLevel] = _CATALOG.minimum_backend_api
