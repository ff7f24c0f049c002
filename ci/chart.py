# SPDX-License-Identifier: Apache-2.0
"""The Helm chart: checked, rendered, packaged, and pushed to a registry.

``python -m ci.chart package`` makes ``dist/helm/tritonserver-jax-<version>.tgz``, the same bytes
each time; ``push`` puts it into an OCI registry; ``manifests`` writes the plain manifests in
``packaging/kubernetes``, for those who do not use Helm.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import yaml

from ci.build import BuildError, source_date_epoch
from ci.chart_files import CHART
from ci.derived import outdated_files, write_or_check
from ci.helm import Helm, obtain_helm
from ci.process import ROOT, CommandError, fail
from ci.tarballs import Packed, tar_gz
from tritonserver_jax import __version__
from tritonserver_jax.artifacts.checksums import sha256_of
from tritonserver_jax.server import ServerError

__all__ = [
    "CHART_ERRORS",
    "NAME",
    "VALUE_SETS",
    "ChartError",
    "chart_file_name",
    "documents",
    "lint",
    "manifests",
    "outdated_manifests",
    "package_chart",
    "pull_chart",
    "push_chart",
    "render",
]

NAME: Final = CHART.name
HELM_DIST: Final = ROOT / "dist" / "helm"
MANIFESTS: Final = ROOT / "packaging" / "kubernetes"

#: Values that the tests render the chart with, by name.
VALUE_SETS: Final[Mapping[str, Path]] = {
    path.name.removesuffix("-values.yaml"): path for path in sorted(CHART.glob("ci/*-values.yaml"))
}
#: The newest Kubernetes that the chart is checked against: what is rendered without a cluster is
#: rendered for it.
KUBERNETES: Final = "1.37.0"

#: The plain manifests, and the values that each is made from.
_PLAIN: Final = {"cpu.yaml": "minimal", "gpu.yaml": "gpu", "s3.yaml": "s3"}
# What only Helm reads.
_HELMS: Final = re.compile(
    r"^ *(helm\.sh/chart|app\.kubernetes\.io/managed-by): .*\n|^# Source: .*\n", re.MULTILINE
)

#: What a registry says of a version that it does not have.
_NOT_THERE: Final = (": not found", "manifest unknown", "name unknown")


class ChartError(RuntimeError):
    """The chart is not what it should be, or not where it should be."""


#: What may go wrong here, for those who report it in one line.
CHART_ERRORS: Final = (BuildError, ChartError, CommandError, ServerError)


def chart_file_name(version: str = __version__) -> str:
    """Return the file name of the packaged chart."""
    return f"{NAME}-{version}.tgz"


def lint(values: Path | None = None) -> str:
    """Let Helm look for faults, and return what it says.

    Args:
        values: A file with values; by default the chart's own.

    Raises:
        CommandError: It found one.
    """
    given: list[str | Path] = [] if values is None else ["--values", values]
    return obtain_helm()("lint", "--strict", *given, CHART)


def render(
    values: Path | None = None,
    *,
    sets: Mapping[str, object] | None = None,
    kubernetes: str = KUBERNETES,
    chart: Path = CHART,
    tests: bool = True,
) -> str:
    """Return what Helm would give to a cluster.

    Args:
        values: A file with values.
        sets: More values, by path.
        kubernetes: The version of the cluster.
        chart: The chart: a folder, or a package.
        tests: Whether the objects of ``helm test`` are among it.

    Raises:
        CommandError: Helm or the chart refused the values; the message says why.
    """
    given: list[str | Path] = [] if values is None else ["--values", values]
    for path, value in (sets or {}).items():
        given += ["--set-json", f"{path}={json.dumps(value)}"]
    options = [f"--kube-version={kubernetes}", "--namespace=models", *given]
    if not tests:
        options.append("--skip-tests")
    return obtain_helm()("template", "jax", chart, *options)


def documents(text: str) -> list[dict[str, Any]]:
    """Return the objects in what was rendered."""
    return [one for one in yaml.safe_load_all(text) if one]


def manifests() -> dict[Path, str]:
    """Return the plain manifests."""
    return {MANIFESTS / name: _plain(name, VALUE_SETS[values]) for name, values in _PLAIN.items()}


def _plain(name: str, values: Path) -> str:
    given = "".join(
        f"#     {line}\n"
        for line in values.read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    )
    head = (
        "# SPDX-License-Identifier: Apache-2.0\n"
        "# Made from the Helm chart by `python -m ci.chart manifests`; do not edit. The values\n"
        f"# are the chart's own, and these:\n#\n{given}#\n"
        f"#   kubectl apply --filename packaging/kubernetes/{name}\n"
    )
    text = _HELMS.sub("", render(values, tests=False))
    # They go where kubectl is told to put them.
    return head + re.sub(r"(?m)^ *namespace: models\n", "", text)


def outdated_manifests(*, write: bool = False) -> list[Path]:
    """Return the plain manifests that are not what the chart says; written anew if asked for."""
    texts = manifests()
    return outdated_files({path: partial(texts.__getitem__, path) for path in texts}, write=write)


def package_chart(directory: Path) -> Path:
    """Package the chart; the same source gives the same bytes.

    Args:
        directory: Where to; it is made.

    Returns:
        ``tritonserver-jax-<version>.tgz`` there.

    Raises:
        ChartError: The chart's version is not the project's.
        CommandError: Helm refused it.
        ServerError: Helm could not be had.
    """
    directory.mkdir(parents=True, exist_ok=True)
    target = directory / chart_file_name()
    epoch = source_date_epoch()
    with tempfile.TemporaryDirectory(dir=directory, prefix=".new-") as scratch:
        obtain_helm()("package", CHART, "--destination", scratch)
        made = sorted(Path(scratch).iterdir())
        if [path.name for path in made] != [target.name]:
            raise ChartError(
                f"{CHART / 'Chart.yaml'}: expected version {__version__}, got "
                f"{', '.join(path.name for path in made)}; run python -m ci.chart_files"
            )
        # Helm decides what belongs to it; the time of the day is its own, and is not kept.
        with tarfile.open(made[0]) as archive:
            files = {
                member.name: Packed(file.read())
                for member in archive
                if (file := archive.extractfile(member)) is not None
            }
        fresh = Path(scratch, "fresh")
        fresh.write_bytes(tar_gz(files, epoch))
        # A registry is told the time of the file.
        os.utime(fresh, (epoch, epoch))
        fresh.replace(target)
    return target


def push_chart(
    path: Path,
    registry: str,
    *,
    username: str | None = None,
    password: str | None = None,
    plain_http: bool = False,
) -> str:
    """Push a packaged chart to an OCI registry, unless it is there already.

    Args:
        path: What `package_chart` made.
        registry: Where to, without a scheme: ``registry.example.com/group/charts``. The chart's
            name and version are added.
        username: For the registry, if it wants one.
        password: Likewise. It is in no command line and in no log.
        plain_http: Whether the registry has no TLS, as one on this machine.

    Returns:
        Its address with its digest: ``<registry>/tritonserver-jax@sha256:…``.

    Raises:
        ChartError: The registry has another chart of that version.
        CommandError: Helm failed; the message has its words.
    """
    helm = obtain_helm()
    name, version = _name_and_version(path)
    reference = f"oci://{registry}/{name}"
    http = ["--plain-http"] if plain_http else []
    with (
        _logged_in(helm, registry, username, password, http) as login,
        tempfile.TemporaryDirectory(prefix="tritonserver-jax-") as scratch,
    ):
        pull = ["pull", reference, f"--version={version}", f"--destination={scratch}", *http]
        try:
            said = helm(*pull, registry=login)
        except CommandError as error:
            if not any(words in str(error).lower() for words in _NOT_THERE):
                raise
            said = helm("push", path, f"oci://{registry}", *http, registry=login)
        else:
            published = Path(scratch, f"{name}-{version}.tgz")
            _refuse_difference(f"{reference}:{version}", path, published)
    return f"{registry}/{name}@{_digest(said)}"


def pull_chart(
    registry: str,
    directory: Path,
    *,
    version: str = __version__,
    username: str | None = None,
    password: str | None = None,
    plain_http: bool = False,
) -> Path:
    """Pull the chart of a version, and return its file.

    Args:
        registry: As `push_chart` was told.
        directory: Where to.
        version: Which.
        username: For the registry, if it wants one.
        password: Likewise.
        plain_http: Whether the registry has no TLS.

    Raises:
        CommandError: Helm failed; the message has its words.
    """
    helm = obtain_helm()
    http = ["--plain-http"] if plain_http else []
    directory.mkdir(parents=True, exist_ok=True)
    with _logged_in(helm, registry, username, password, http) as login:
        options = [f"--version={version}", f"--destination={directory}", *http]
        helm("pull", f"oci://{registry}/{NAME}", *options, registry=login)
    return directory / chart_file_name(version)


@contextlib.contextmanager
def _logged_in(
    helm: Helm, registry: str, username: str | None, password: str | None, http: Sequence[str]
) -> Iterator[Path]:
    """Give a file with the login, which goes away with its folder."""
    with tempfile.TemporaryDirectory(prefix="tritonserver-jax-") as folder:
        login = Path(folder, "registry.json")
        if username is not None:
            host = registry.partition("/")[0]
            words = ["registry", "login", host, f"--username={username}", "--password-stdin"]
            helm(*words, *http, given=password or "", registry=login)
        yield login


def _name_and_version(path: Path) -> tuple[str, str]:
    with tarfile.open(path) as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is not None and re.fullmatch(r"[^/]+/Chart\.yaml", member.name):
                chart = yaml.safe_load(file.read())
                return str(chart["name"]), str(chart["version"])
    raise ChartError(f"{path}: expected a packaged chart, with a Chart.yaml in it")


def _refuse_difference(reference: str, path: Path, published: Path) -> None:
    ours, theirs = (sha256_of(file) for file in (path, published))
    if ours != theirs:
        raise ChartError(
            f"{reference}: expected what is in {path} (SHA-256 {ours}), the registry has another "
            f"chart of that version (SHA-256 {theirs}); a version that is published never changes: "
            "make a new one"
        )


def _digest(said: str) -> str:
    found = re.search(r"Digest:\s*(sha256:[0-9a-f]{64})", said)
    if found is None:
        raise ChartError(f"helm: expected the digest of the chart, got {said.strip()!r}")
    return found[1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m ci.chart", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("package", help="package the chart, and print where it is")
    command.add_argument("--output", type=Path, default=HELM_DIST)
    command = commands.add_parser("push", help="package it, push it, and print its digest")
    command.add_argument("registry", help="as in registry.example.com/group/charts")
    command.add_argument("--username", help="the password is read from $HELM_PASSWORD")
    command.add_argument("--plain-http", action="store_true")
    command = commands.add_parser("render", help="print what a cluster would be given")
    command.add_argument("values", choices=VALUE_SETS)
    command = commands.add_parser("manifests", help="write the plain manifests")
    command.add_argument("--check", action="store_true", help="only say what is out of date")
    options = parser.parse_args(arguments)
    try:
        return _command(options)
    except CHART_ERRORS as error:
        return fail(error)


def _command(options: argparse.Namespace) -> int:
    if options.command == "package":
        print(package_chart(options.output))
    elif options.command == "push":
        with tempfile.TemporaryDirectory(prefix="tritonserver-jax-") as scratch:
            print(
                push_chart(
                    package_chart(Path(scratch)),
                    options.registry,
                    username=options.username,
                    password=os.environ.get("HELM_PASSWORD"),
                    plain_http=options.plain_http,
                )
            )
    elif options.command == "render":
        print(render(VALUE_SETS[options.values]))
    else:
        return write_or_check(
            ["--check"] if options.check else [],
            program="python -m ci.chart manifests",
            description=None,
            outdated=lambda write: outdated_manifests(write=write),
            difference="these manifests are not what the chart says",
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
