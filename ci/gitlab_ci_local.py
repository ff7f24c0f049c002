# SPDX-License-Identifier: Apache-2.0
"""Runs jobs of ``.gitlab-ci.yml`` on this machine, by gitlab-ci-local.

It is a program for Node.js, pinned with the hashes of all that it needs in ``ci/gitlab/local``, and
installed into ``build/gitlab-ci-local``. Jobs run as on a runner: each in a checkout of its own,
with the artifacts of the jobs that it needs and of no others. Those with an image of their own run
in a container of it; the others run in a shell on this machine, whatever the default image is.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ci import toolchain
from ci.build import BUILD_DIRECTORY
from ci.process import ROOT, capture, run
from ci.toolchain import Requirement

__all__ = [
    "Containers",
    "JobResult",
    "LocalRunner",
    "PipelineRun",
    "RunnerError",
    "install_runner",
]

#: What pins gitlab-ci-local.
LOCK: Final = ROOT / "ci" / "gitlab" / "local"
MINIMUM_NODE: Final[toolchain.Version] = (18,)

#: Where it keeps what it makes, in a checkout.
STATE: Final = ".gitlab-ci-local"
#: What it reads beside the pipeline: more of it, and the variables of the project.
_OVERLAY: Final = ".gitlab-ci-local.yml"
_VARIABLES: Final = ".gitlab-ci-local-variables.yml"

_RESULT: Final = re.compile(r"^ (PASS|WARN|FAIL) +\[ *([^\]]+)\] (\S+)")


class RunnerError(RuntimeError):
    """gitlab-ci-local did not take the pipeline, or cannot be had."""


@dataclass(frozen=True, slots=True)
class JobResult:
    """How one job went.

    Attributes:
        name: The job.
        state: ``PASS``, ``FAIL``, or ``WARN`` of a job that may fail.
        took: How long, for people.
        log: What it printed.
    """

    name: str
    state: str
    took: str
    log: str

    @property
    def failed(self) -> bool:
        """Whether it stops the pipeline."""
        return self.state == "FAIL"


@dataclass(frozen=True, slots=True)
class PipelineRun:
    """How a pipeline, or some jobs of it, went.

    Attributes:
        jobs: Those that ran, by name.
        seconds: What it took.
        output: All that was printed.
    """

    jobs: Mapping[str, JobResult]
    seconds: float
    output: str

    @property
    def failed(self) -> list[str]:
        """The names of the jobs that stop the pipeline."""
        return [job.name for job in self.jobs.values() if job.failed]

    def table(self) -> str:
        """The jobs, for people."""
        width = max((len(name) for name in self.jobs), default=0)
        lines = [f"{job.name:{width}}  {job.state}  {job.took}" for job in self.jobs.values()]
        return "\n".join([*lines, f"{len(self.jobs)} jobs, {self.seconds:.0f} s"])


@dataclass(frozen=True, slots=True)
class Containers:
    """How jobs with an image of their own are run.

    Attributes:
        helper: An image with bash and rsync, which copies artifacts out of a job's volume.
        volumes: What they see of this machine, as Docker is told: ``FROM:TO:ro``.
    """

    helper: str
    volumes: Sequence[str] = ()


def _folder_name(job: str) -> str:
    """Return what gitlab-ci-local calls a job's folders: letters, digits and what is like them."""

    def encoded(match: re.Match[str]) -> str:
        return base64.urlsafe_b64encode(match[0].encode()).decode().rstrip("=")

    return re.sub(r"[^\w-]+", encoded, job, flags=re.ASCII)


def _find_node() -> str | None:
    path = shutil.which("node")
    version = toolchain.parse_version(capture([path, "--version"]) or "") if path else None
    if path is None or version is None or version < MINIMUM_NODE:
        return None
    return f"{path} {toolchain.format_version(version)}"


def requirements() -> list[Requirement]:
    """Return what gitlab-ci-local needs."""
    needed = f">= {toolchain.format_version(MINIMUM_NODE)}"
    return [
        Requirement("Node.js", needed, "nodejs", _find_node),
        Requirement("npm", "any", "npm", lambda: shutil.which("npm")),
        Requirement("rsync", "any", "rsync", lambda: shutil.which("rsync")),
        Requirement("Git", "any", "git", lambda: shutil.which("git")),
    ]


def install_runner(directory: Path = BUILD_DIRECTORY / "gitlab-ci-local") -> Path:
    """Install gitlab-ci-local as it is pinned, and return the program.

    Args:
        directory: Where to.

    Raises:
        CommandError: npm failed; it says why.
        ToolchainError: Node.js or another tool is missing and cannot be installed from here.
    """
    toolchain.ensure(requirements())
    directory.mkdir(parents=True, exist_ok=True)
    names = ("package.json", "package-lock.json", ".npmrc")
    wanted = hashlib.sha256(b"\0".join((LOCK / name).read_bytes() for name in names)).hexdigest()
    marker = directory / ".installed"
    with (directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not marker.is_file() or marker.read_text(encoding="ascii") != wanted:
            marker.unlink(missing_ok=True)
            for name in names:
                shutil.copy2(LOCK / name, directory / name)
            run(["npm", "ci", "--no-progress", "--loglevel=error"], cwd=directory)
            marker.write_text(wanted, encoding="ascii")
    return directory / "node_modules" / ".bin" / "gitlab-ci-local"


@dataclass(frozen=True)
class LocalRunner:
    """Runs the jobs of one checkout.

    Attributes:
        program: What `install_runner` returned.
        checkout: A checkout with git, which belongs to this runner.
        variables: Those of the project and of the pipeline; GitLab's own may be among them.
        unset: GitLab's own that this kind of pipeline does not have.
        overlay: What is laid over the pipeline, as YAML has it; see `_OVERLAY`.
        containers: How jobs with an image run; None lets them run in a shell too.
        concurrency: How many jobs run at a time.
        label: What its lines begin with, where several print to one place.
    """

    program: Path
    checkout: Path
    variables: Mapping[str, str]
    unset: Sequence[str] = ()
    overlay: Mapping[str, Any] = field(default_factory=dict)
    containers: Containers | None = None
    concurrency: int = 2
    label: str = ""

    def artifacts(self, job: str) -> Path:
        """Return the folder of what a job handed on."""
        return self.checkout / STATE / "artifacts" / _folder_name(job)

    def list_jobs(self) -> list[dict[str, Any]]:
        """Return the jobs of the pipeline, as gitlab-ci-local describes them.

        Raises:
            RunnerError: It does not take the pipeline.
        """
        done = subprocess.run(
            self._command("--list-json"),
            cwd=self.checkout,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        start = done.stdout.find("[")
        if done.returncode != 0 or start < 0:
            raise RunnerError(f"the pipeline is not taken: {done.stderr}{done.stdout}")
        jobs: list[dict[str, Any]] = json.loads(done.stdout[start:])
        return jobs

    def automatic_jobs(self) -> list[str]:
        """Return the names of the jobs that run of their own accord in this pipeline."""
        return [job["name"] for job in self.list_jobs() if job["when"] not in {"never", "manual"}]

    def run(self, jobs: Sequence[str] = ()) -> PipelineRun:
        """Run the pipeline, or some of its jobs, in the order that it has them in.

        Args:
            jobs: Their names; artifacts of others are taken as they lie there.

        Raises:
            RunnerError: No job was run.
        """
        begin = time.monotonic()
        lines = []
        with subprocess.Popen(
            self._command(*jobs),
            cwd=self.checkout,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            assert process.stdout is not None  # noqa: S101 # it is a pipe
            for line in process.stdout:
                print(f"{self.label}{line}", end="", flush=True)
                lines.append(line)
        output = "".join(lines)
        results = self._results(lines)
        if not results:
            raise RunnerError(f"no job was run; gitlab-ci-local ended with {process.returncode}")
        return PipelineRun(results, time.monotonic() - begin, output)

    def _results(self, lines: Sequence[str]) -> dict[str, JobResult]:
        found = {}
        for state, took, name in (m.groups() for m in map(_RESULT.match, lines) if m):
            path = self.checkout / STATE / "output" / f"{_folder_name(name)}.log"
            log = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
            found[name] = JobResult(name, state, took, log)
        return found

    def _environment(self) -> dict[str, str]:
        """Everything that decides what a job does is in the pipeline's variables."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CI_")}
        return {**kept, "NO_COLOR": "1"}

    def _command(self, *words: str) -> list[str]:
        self._write_files()
        command = [str(self.program), "--no-color", "--timestamps", "--shell-isolation"]
        # The schema is checked by itself; it knows nothing of what is laid over.
        command += ["--no-artifacts-to-source", "--json-schema-validation=false"]
        command += [f"--concurrency={self.concurrency}"]
        command += [f"--ignore-predefined-vars={','.join(self.variables)}"]
        for name in self.unset:
            command += ["--unset-variable", name]
        if self.containers is None:
            command.append("--force-shell-executor")
        else:
            command += [f"--helper-image={self.containers.helper}", "--network=host"]
            for volume in self.containers.volumes:
                command += ["--volume", volume]
        return [*command, *words]

    def _write_files(self) -> None:
        """Write what gitlab-ci-local reads. JSON is YAML, and a file keeps secrets off `ps`."""
        # A value that begins with a slash would be taken for the name of a file to copy.
        variables = {
            name: {"type": "variable", "values": {"*": value}}
            for name, value in self.variables.items()
        }
        overlay = {"default": {"image": None}, **self.overlay}
        for name, content in ((_VARIABLES, variables), (_OVERLAY, overlay)):
            path = self.checkout / name
            path.touch(mode=0o600)
            path.write_text(json.dumps(content), encoding="utf-8")
