# SPDX-License-Identifier: Apache-2.0
"""The Triton releases, read from ``releases.toml``.

A *release* is NVIDIA's container tag (``24.10``); the *server version* is what the server itself
reports (``2.51.0``). The file is strict: an unknown key, a wrong type or a doubtful value is an
error that names the file, the line, the release and the key, because a typo there would otherwise
end up in an artifact.
"""

from __future__ import annotations

import difflib
import itertools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple, cast

__all__ = [
    "DEFAULT_RELEASE",
    "MINIMUM_BACKEND_API",
    "SUPPORT_LEVELS",
    "ApiLevel",
    "Catalog",
    "ImagePython",
    "Release",
    "ReleaseDataError",
    "ServerWheel",
    "SystemLibraries",
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
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_FEATURE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_SENTENCE = re.compile(r"\S.*\S")
_PACKAGE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_WHEEL = re.compile(r"[A-Za-z0-9_.]+(-[A-Za-z0-9_.]+){4,5}\.whl")
_PYTHON_SOURCE = re.compile(r"base|standalone")
_PYTHON_URL = re.compile(r"(https|file)://\S+\.tar\.gz")
_C_FUNCTION = re.compile(r"TRITON(BACKEND|SERVER)_[A-Za-z0-9]+")
_IMAGE = re.compile(r"[a-z0-9.-]+(/[a-z0-9._-]+)+:[^\s:]*\{release\}[^\s:]*")

#: How far a release is supported, and what that means (docs/releases.md explains them).
SUPPORT_LEVELS: Final[Mapping[str, str]] = {
    "tested": "a real server of the release runs our tests",
    "built": "its artifact is proved against the C API and the system libraries of the release; "
    "no server of it can be had outside of its image",
    "image only": "its C API is not known here: its artifact is made, and has to be tried in the "
    "image of the release",
}


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


class SystemLibraries(NamedTuple):
    """The newest symbol versions that the libraries of a system have, as in ``GLIBC_2.35``."""

    glibc: tuple[int, ...]
    glibcxx: tuple[int, ...]
    cxxabi: tuple[int, ...]


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
    """One Triton release. ``None`` means that the fact is not known.

    ``features`` are those of Triton's behaviour which the release has, its own and those of the
    releases before it; ``[feature]`` of the file says what each is. ``later_functions`` are those
    of the C API that it has and the oldest release has not.
    """

    release: str
    server_version: str
    support: str
    backend_api: ApiLevel | None
    server_api: ApiLevel | None
    ubuntu: str
    python: str
    cuda: str | None
    driver: str | None
    image: str
    image_digest: str | None
    sdk_image: str
    sdk_image_digest: str | None
    image_python: ImagePython
    libraries: SystemLibraries
    c_api_functions_added: tuple[str, ...] | None
    later_functions: frozenset[str]
    features: frozenset[str]
    server: ServerWheel | None


@dataclass(frozen=True, slots=True)
class Catalog:
    """All of ``releases.toml``; ``releases`` runs from the oldest to the newest."""

    default_release: str
    gate_releases: tuple[str, ...]
    minimum_backend_api: ApiLevel
    features: dict[str, str]
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


_HEADER = re.compile(r"\s*\[\s*(.+?)\s*\]\s*(?:#.*)?")
_KEY = re.compile(r"\s*((?:\"[^\"]*\"|[\w-]+)(?:\s*\.\s*(?:\"[^\"]*\"|[\w-]+))*)\s*=")
_PART = re.compile(r"\"([^\"]*)\"|([\w-]+)")
_STRING_OR_COMMENT = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'|#.*")


class _Source:
    """A file, and where in it each key is: the standard library's parser does not tell."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self._lines = text.splitlines()
        self._where: dict[tuple[str, ...], int] = {}
        table: tuple[str, ...] = ()
        open_brackets = 0
        for number, line in enumerate(self._lines, 1):
            if open_brackets == 0:
                if header := _HEADER.fullmatch(line):
                    table = self._parts(header[1])
                    self._where.setdefault(table, number)
                    continue
                if key := _KEY.match(line):
                    self._where.setdefault((*table, *self._parts(key[1])), number)
            bare = _STRING_OR_COMMENT.sub("", line)
            open_brackets += bare.count("[") - bare.count("]")

    @staticmethod
    def _parts(dotted: str) -> tuple[str, ...]:
        return tuple(quoted or bare for quoted, bare in _PART.findall(dotted))

    def line(self, keys: tuple[str, ...], element: object = None) -> int:
        """The line of a key, or of an element of its list; of its table when it is not there."""
        while keys and keys not in self._where:
            keys = keys[:-1]
        first = self._where.get(keys, 1)
        for number in range(first, len(self._lines) + 1):
            line = self._lines[number - 1]
            if number > first and (_HEADER.fullmatch(line) or _KEY.match(line)):
                break
            if isinstance(element, str) and f'"{element}"' in line:
                return number
        return first


class _Table:
    """One TOML table, its keys taken one by one so that what is left over is an error."""

    def __init__(self, source: _Source, keys: tuple[str, ...], values: object) -> None:
        self._source = source
        self._keys = keys
        self._asked: list[str] = []
        if not isinstance(values, dict):
            raise self.error(None, "a table", values)
        self._values: dict[str, object] = dict(values)

    def error(
        self, key: str | None, expected: str, got: object, *, element: object = None
    ) -> ReleaseDataError:
        """Name the file, the line, the place, the key and both sides."""
        keys = self._keys if key is None else (*self._keys, key)
        line = self._source.line(keys, element)
        where = [" ".join(self._keys[:2]), *self._keys[2:], *([] if key is None else [key])]
        place = ": ".join(part for part in where if part)
        shown = "nothing" if got is None else repr(got)
        said = f"{place}: expected {expected}, got {shown}" if place else f"expected {expected}"
        return ReleaseDataError(f"{self._source.path}:{line}: {said}")

    def take(self, key: str) -> object:
        self._asked.append(key)
        return self._values.pop(key, None)

    def table(self, key: str) -> _Table | None:
        value = self.take(key)
        return None if value is None else _Table(self._source, (*self._keys, key), value)

    def tables(self, key: str, example: str) -> dict[str, _Table]:
        """Tables which have names: ``[key."name"]``."""
        value = self.take(key)
        if not isinstance(value, dict) or not value:
            raise self.error(key, f"tables such as {example}", value)
        return {
            name: _Table(self._source, (*self._keys, key, name), one) for name, one in value.items()
        }

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

    def numbers(self, key: str, meaning: str) -> tuple[int, ...]:
        return _numbers(self.text(key, _NUMBERS, meaning))

    def optional_api_level(self, key: str) -> ApiLevel | None:
        value = self.optional_text(key, _TWO_NUMBERS, 'an API level such as "1.12"')
        return None if value is None else ApiLevel.parse(value)

    def optional_names(
        self, key: str, pattern: re.Pattern[str], meaning: str
    ) -> tuple[str, ...] | None:
        """A list of names, each of them once."""
        value = self.take(key)
        if value is None:
            return None
        if not isinstance(value, list):
            raise self.error(key, meaning, value)
        for position, name in enumerate(value):
            if not isinstance(name, str) or not pattern.fullmatch(name) or name in value[:position]:
                raise self.error(key, meaning, name, element=name)
        return tuple(cast("list[str]", value))

    def sentences(self, names: re.Pattern[str]) -> dict[str, str]:
        """Everything that is left: names, and what they mean."""
        for name in self._values:
            if not names.fullmatch(name):
                raise self.error(name, "a name in lower_case", name)
        return {
            name: self.text(name, _SENTENCE, "what it is, in words") for name in [*self._values]
        }

    def done(self) -> None:
        """Refuse what nobody asked for: most often a misspelt key."""
        if self._values:
            key = min(self._values, key=lambda name: self._source.line((*self._keys, name)))
            near = difflib.get_close_matches(key, self._asked, 1)
            expected = f"{near[0]} (there is no key of this name)" if near else "no such key"
            raise self.error(key, expected, self._values[key])


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


def _libraries(table: _Table) -> SystemLibraries:
    found = SystemLibraries(
        glibc=table.numbers("glibc", 'a version of the C library such as "2.35"'),
        glibcxx=table.numbers("glibcxx", 'a symbol version such as "3.4.30"'),
        cxxabi=table.numbers("cxxabi", 'a symbol version such as "1.3.13"'),
    )
    table.done()
    return found


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


def _python_for(
    table: _Table, ubuntu: str, python: str, known: Mapping[str, ImagePython]
) -> ImagePython:
    found = known.get(ubuntu)
    if found is None:
        listed = " or ".join(known)
        raise table.error("ubuntu", f"one that image_python lists, {listed}", ubuntu)
    if found.source == "base" and found.version != python:
        raise table.error("python", f"{found.version}, as image_python {ubuntu} says", python)
    return found


def _release(
    name: str,
    table: _Table,
    *,
    image: str,
    sdk_image: str,
    systems: Mapping[str, SystemLibraries],
    features: Mapping[str, str],
    pythons: Mapping[str, ImagePython],
) -> Release:
    if not _RELEASE.fullmatch(name):
        raise table.error(None, 'a name such as "24.10" (year.month)', name)
    server = table.table("server")
    ubuntu = table.text("ubuntu", _TWO_NUMBERS, 'an Ubuntu release such as "22.04"')
    if ubuntu not in systems:
        known = ", ".join(systems)
        raise table.error("ubuntu", f"one of those in [ubuntu]: {known}", ubuntu)
    python = table.text("python", _THREE_NUMBERS, 'a Python version such as "3.10.12"')
    digest = "sha256: and 64 lower-case hexadecimal digits"
    levels = " or ".join(f'"{level}"' for level in SUPPORT_LEVELS)
    added = table.optional_names("features_added", _FEATURE, "names of [feature], each once") or ()
    for feature in added:
        if feature not in features:
            near = difflib.get_close_matches(feature, features, 1)
            expected = near[0] if near else f"one of [feature]: {', '.join(features)}"
            raise table.error("features_added", expected, feature, element=feature)
    functions = table.optional_names(
        "c_api_functions_added",
        _C_FUNCTION,
        "a list of TRITONBACKEND_… or TRITONSERVER_… names, each once",
    )
    release = Release(
        release=name,
        server_version=table.text(
            "server_version", _THREE_NUMBERS, 'a server version such as "2.51.0"'
        ),
        support=table.text("support", re.compile("|".join(SUPPORT_LEVELS)), levels),
        backend_api=table.optional_api_level("backend_api"),
        server_api=table.optional_api_level("server_api"),
        ubuntu=ubuntu,
        python=python,
        cuda=table.optional_text("cuda", _NUMBERS, 'a CUDA version such as "12.6.2.004"'),
        driver=table.optional_text("driver", _NUMBERS, 'a driver version such as "560.35.03"'),
        image=image.format(release=name),
        image_digest=table.optional_text("image_digest", _DIGEST, digest),
        sdk_image=sdk_image.format(release=name),
        sdk_image_digest=table.optional_text("sdk_image_digest", _DIGEST, digest),
        image_python=_python_for(table, ubuntu, python, pythons),
        libraries=systems[ubuntu],
        c_api_functions_added=functions,
        later_functions=frozenset(functions or ()),
        features=frozenset(added),
        server=None if server is None else _server_wheel(server),
    )
    table.done()
    _check_support(table, release)
    return release


def _check_support(table: _Table, release: Release) -> None:
    """What is claimed is what can be shown with what is known."""
    if release.support == "tested" and release.server is None:
        raise table.error("support", '"built" or "image only", as there is no server', "tested")
    if release.support != "tested" and release.server is not None:
        raise table.error("support", '"tested", as there is a server', release.support)
    known = release.backend_api is not None
    if release.support == "built" and not known:
        raise table.error("support", '"image only", as backend_api is not known', "built")
    if release.support == "image only" and known:
        raise table.error("support", '"built", as backend_api is known', "image only")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _check_order(releases: Mapping[str, Release], tables: Mapping[str, _Table]) -> None:
    """Releases are listed oldest first, no figure of theirs goes back, nothing comes twice."""
    for older, newer in itertools.pairwise(releases.values()):
        table = tables[newer.release]
        if _numbers(newer.release) <= _numbers(older.release):
            raise table.error(None, f"a release after {older.release}", newer.release)
        if _numbers(newer.server_version) <= _numbers(older.server_version):
            raise table.error(
                "server_version",
                f"more than {older.server_version} of release {older.release}",
                newer.server_version,
            )
    for key in ("backend_api", "server_api"):
        last: Release | None = None
        for newer in releases.values():
            level = getattr(newer, key)
            if level is None:
                continue
            if last is not None and level < getattr(last, key):
                expected = f"at least {getattr(last, key)} of {last.release}"
                raise tables[newer.release].error(key, expected, str(level))
            last = newer
    seen: dict[str, str] = {}
    for release in releases.values():
        table = tables[release.release]
        for key, names in (
            ("c_api_functions_added", release.c_api_functions_added or ()),
            ("features_added", sorted(release.features)),
        ):
            for name in names:
                if name in seen:
                    expected = f"what {seen[name]} did not add already"
                    raise table.error(key, expected, name, element=name)
                seen[name] = release.release
        if (wheel := release.server) is not None:
            if wheel.sha256 in seen:
                expected = f"another wheel than that of {seen[wheel.sha256]}"
                raise table.error("server", expected, wheel.wheel)
            seen[wheel.sha256] = release.release


def load_catalog(path: Path | None = None) -> Catalog:
    """Read and check ``releases.toml``.

    Args:
        path: Another file; by default the one that belongs to this package.

    Raises:
        ReleaseDataError: The file cannot be read, or says something wrong.
    """
    path = releases_file() if path is None else path
    try:
        text = path.read_text(encoding="utf-8")
        content: Mapping[str, object] = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        line = re.search(r"at line (\d+)", str(error))
        place = f"{path}:{line[1]}" if line else f"{path}"
        raise ReleaseDataError(f"{place}: expected a readable TOML file, got: {error}") from error

    root = _Table(_Source(path, text), (), content)
    schema = root.take("schema")
    if schema != _SCHEMA:
        raise root.error("schema", str(_SCHEMA), schema)
    image = root.text("image", _IMAGE, "an image reference with {release} in its tag")
    sdk_image = root.text("sdk_image", _IMAGE, "an image reference with {release} in its tag")
    default = root.text("default_release", _RELEASE, 'a release such as "24.10"')
    gate = root.optional_names("gate_releases", _RELEASE, 'releases such as ["24.10"], each once')
    minimum = root.text("minimum_backend_api", _TWO_NUMBERS, 'an API level such as "1.12"')
    ubuntu = root.tables("ubuntu", '[ubuntu."22.04"]')
    image_pythons = root.tables("image_python", '[image_python."24.04"]')
    features_table = root.table("feature")
    tables = root.tables("release", '[release."24.10"]')
    root.done()

    features = {} if features_table is None else features_table.sentences(_FEATURE)
    systems = {name: _libraries(table) for name, table in ubuntu.items()}
    pythons = {name: _image_python(table) for name, table in image_pythons.items()}
    releases = {
        name: _release(
            name,
            table,
            image=image,
            sdk_image=sdk_image,
            systems=systems,
            features=features,
            pythons=pythons,
        )
        for name, table in tables.items()
    }
    _check_order(releases, tables)
    for key, names in (("default_release", (default,)), ("gate_releases", gate or (default,))):
        for name in names:
            if name not in releases:
                raise root.error(key, "a release of this file", name, element=name)
            if releases[name].server is None:
                raise root.error(key, "a release with a server wheel", name, element=name)
    for older, newer in itertools.pairwise(list(releases)):
        before, after = releases[older], releases[newer]
        releases[newer] = replace(
            after,
            features=before.features | after.features,
            later_functions=before.later_functions | after.later_functions,
        )
    return Catalog(
        default_release=default,
        gate_releases=gate or (default,),
        minimum_backend_api=ApiLevel.parse(minimum),
        features=features,
        releases=releases,
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
