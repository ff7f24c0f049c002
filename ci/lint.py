# SPDX-License-Identifier: Apache-2.0
"""Every check of the source that runs nothing of it.

``python -m ci.lint`` runs all of them, also after one failed, and ends with the list of those
that did. ``--fix`` first lets the tools that can do so repair what they find. ``--only NAME``
runs one (pre-commit calls it so), and ``--agreement`` those that compare what is written twice:
they take seconds. ``--code-quality FILE`` writes what ruff and hadolint find for
GitLab, which shows it beside the lines of a merge request.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ci import build, code_quality, content, toolchain, version
from ci.process import ROOT, CommandError, fail, run

#: Exported from the group `nox` of uv.lock; ci/nox installs it.
NOX_REQUIREMENTS = ROOT / "ci" / "requirements-nox.txt"
#: Exported from the group `uv`; the images' builds install it.
UV_REQUIREMENTS = ROOT / "packaging" / "docker" / "requirements-uv.txt"
#: What is exported from a group of uv.lock, and who reads it.
EXPORTED = {
    NOX_REQUIREMENTS: ("nox", "./ci/nox installs"),
    UV_REQUIREMENTS: ("uv", "makes the environment of an image"),
}


@dataclass(frozen=True)
class Check:
    """One check.

    Attributes:
        name: What `--only` calls it.
        check: Runs it; raises when it finds something.
        fix: Repairs what it can; None when the tool cannot.
        agreement: Whether it compares what is written twice, or made from something else.
    """

    name: str
    check: Callable[[], None]
    fix: Callable[[], object] | None = None
    agreement: bool = False


def files(*patterns: str, root: Path = ROOT) -> list[Path]:
    """Returns the files that match, sorted, as paths from the root."""
    found = {path for pattern in patterns for path in root.glob(pattern) if path.is_file()}
    return sorted(path.relative_to(root) for path in found)


def native_sources() -> list[Path]:
    """Returns the C++ sources and headers."""
    return files(
        *("backend/src/**/*.cc", "backend/src/**/*.h"),
        *("benchmarks/**/*.cc", "tests/**/*.cc", "tests/**/*.h"),
    )


def shell_scripts() -> list[Path]:
    """Returns the shell scripts."""
    return files(".ci/run", "ci/nox", "ci/**/*.sh", "packaging/**/*.sh")


def mypy_targets() -> list[list[Path]]:
    """Returns what mypy is given, one list per run.

    Each example is a run of its own: all of them have a module called `model`.
    """
    targets = [
        [Path(name) for name in ("backend/python", "benchmarks", "ci", "tests", "noxfile.py")]
    ]
    targets[0] += files("packaging/**/*.py")
    examples = sorted({path.parts[1] for path in files("examples/*/**/*.py")})
    targets += [files(f"examples/{name}/**/*.py") for name in examples]
    return targets


def compiled_sources(build_dir: Path, root: Path = ROOT) -> list[Path]:
    """Returns those of our sources which a configured build compiles.

    What it does not compile (the comparison with a release's headers, without such headers)
    cannot be parsed either.
    """
    commands = json.loads((build_dir / "compile_commands.json").read_text(encoding="utf-8"))
    compiled = {Path(command["directory"], command["file"]).resolve() for command in commands}
    return [path for path in files("backend/src/**/*.cc", root=root) if root / path in compiled]


def _ruff(*arguments: str) -> None:
    run(["ruff", *arguments, "."])


def _mypy() -> None:
    errors = [_error_of(["mypy", *targets]) for targets in mypy_targets()]
    for error in filter(None, errors):
        raise error


def _clang_format(*arguments: str) -> None:
    sources = native_sources()
    if sources:
        run(["clang-format", *arguments, *sources])


def _clang_tidy() -> None:
    directory = build.configure()
    tidy = ["clang-tidy", "--quiet", "-p", str(directory)]
    # GCC's warnings that clang does not know are no finding.
    tidy += ["--extra-arg=-Wno-unknown-warning-option"]
    sources = compiled_sources(directory)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        outcomes = list(pool.map(lambda path: _error_of([*tidy, path]), sources))
    failed = [str(path) for path, error in zip(sources, outcomes, strict=True) if error]
    if failed:
        raise CommandError(f"clang-tidy has findings in {', '.join(failed)}")


def _error_of(command: Sequence[str | Path]) -> CommandError | None:
    try:
        run(command)
    except CommandError as error:
        return error
    return None


def _shellcheck() -> None:
    run(["shellcheck", *shell_scripts()])


def export_requirements(path: Path, output: Path) -> None:
    """Writes one of `EXPORTED`, a file of hashed requirements that pip can read."""
    group, purpose = EXPORTED[path]
    # The same words whatever the output is, because uv repeats them in the file's header.
    export = ["uv", "export", "--quiet", "--locked", f"--only-group={group}", "--no-emit-project"]
    run([*export, "--no-annotate", "--no-header", "--output-file", output])
    text = output.read_text(encoding="utf-8")
    header = f"# What {purpose}. Made by `./ci/nox -s lint -- --fix` from uv.lock.\n"
    output.write_text(header + text, encoding="utf-8")


def _export_all() -> None:
    for path in EXPORTED:
        export_requirements(path, path)


def _hadolint() -> None:
    run(["hadolint", *dockerfiles()])


def dockerfiles() -> list[Path]:
    """Returns the Dockerfiles."""
    return files("packaging/docker/Dockerfile*")


def _pipeline(*arguments: str) -> None:
    run([sys.executable, "-m", "ci.pipeline_plan", *arguments])


def _images(*arguments: str) -> None:
    run([sys.executable, "-m", "ci.image_plan", *arguments])


def _chart(*arguments: str) -> None:
    run([sys.executable, "-m", "ci.chart_files", *arguments])


def _docs(*arguments: str) -> None:
    run([sys.executable, "-m", "ci.docs", *arguments])


def _monitoring(*arguments: str) -> None:
    run([sys.executable, "-m", "ci.monitoring.files", *arguments])


def _locks() -> None:
    run(["uv", "lock", "--check"])
    with tempfile.TemporaryDirectory() as scratch:
        for path in EXPORTED:
            fresh = Path(scratch, path.name)
            export_requirements(path, fresh)
            if not path.is_file() or fresh.read_bytes() != path.read_bytes():
                raise CommandError(
                    f"{path.relative_to(ROOT)} is not what uv.lock says; "
                    "run ./ci/nox -s lint -- --fix"
                )
    run([sys.executable, "-m", "ci.locks", "--check"])


def _version() -> None:
    version.check(version.project_version(), version.tags())


def checks() -> list[Check]:
    """Returns every check, the quick ones first."""
    return [
        Check(
            "ruff",
            lambda: _ruff("check"),
            lambda: _ruff("check", "--fix-only", "--exit-zero"),
        ),
        Check("format", lambda: _ruff("format", "--check", "--diff"), lambda: _ruff("format")),
        Check("shellcheck", _shellcheck),
        Check("version", _version, agreement=True),
        # The chart copies what this one writes.
        Check("monitoring", lambda: _monitoring("--check"), _monitoring, agreement=True),
        Check("chart", lambda: _chart("--check"), _chart, agreement=True),
        Check("docs", lambda: _docs("--check"), _docs, agreement=True),
        Check("images", lambda: _images("--check"), _images, agreement=True),
        Check("pipeline", lambda: _pipeline("--check"), _pipeline, agreement=True),
        Check("dockerfile", _hadolint),
        Check("locks", _locks, _export_all, agreement=True),
        Check("content", content.check_content_lists, content.write_content_lists, agreement=True),
        Check(
            "clang-format",
            lambda: _clang_format("--dry-run", "--Werror"),
            lambda: _clang_format("-i"),
        ),
        Check("mypy", _mypy),
        Check("clang-tidy", _clang_tidy),
    ]


def lint(selected: Iterable[Check], *, fix: bool = False) -> list[str]:
    """Runs checks, and returns the names of those that failed.

    Args:
        selected: The checks.
        fix: Whether to repair first what can be repaired.
    """
    failed = []
    for check in selected:
        print(f"-- {check.name}", flush=True)
        begin = time.monotonic()
        try:
            if fix and check.fix:
                check.fix()
            check.check()
        except (
            build.BuildError,
            CommandError,
            content.ContentError,
            toolchain.ToolchainError,
            version.VersionError,
        ) as error:
            fail(error)
            failed.append(check.name)
        print(f"-- {check.name}: {time.monotonic() - begin:.1f} s", flush=True)
    return failed


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs all checks, or those named."""
    every = checks()
    parser = argparse.ArgumentParser(prog="python -m ci.lint", description=__doc__)
    parser.add_argument("--fix", action="store_true", help="first repair what can be repaired")
    parser.add_argument("--only", action="append", choices=[check.name for check in every])
    parser.add_argument("--agreement", action="store_true", help="only what is written twice")
    parser.add_argument("--code-quality", type=Path, metavar="FILE", help="what GitLab shows")
    options = parser.parse_args(arguments)
    if options.code_quality:
        code_quality.write_report(options.code_quality, dockerfiles())
    selected = [
        check
        for check in every
        if (not options.only or check.name in options.only)
        and (not options.agreement or check.agreement)
    ]
    failed = lint(selected, fix=options.fix)
    if failed:
        print(f"lint: {len(failed)} of {len(selected)} failed: {', '.join(failed)}")
        return 1
    print(f"lint: {len(selected)} checks, all well")
    return 0


if __name__ == "__main__":
    sys.exit(main())
