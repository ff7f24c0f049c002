# SPDX-License-Identifier: Apache-2.0
"""The sessions: what a person or a CI job runs. ``./ci/nox --list`` shows them.

Nothing is decided here. A session installs a locked dependency group (see pyproject.toml) and
runs a module of `ci`, where the logic and its tests are.
"""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import nox

ROOT = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT), str(ROOT / "backend" / "python")]

from tritonserver_jax.releases import load_catalog  # noqa: E402 # after its path is known

nox.needs_version = ">=2026.2.9"
nox.options.default_venv_backend = "uv"
nox.options.reuse_venv = "yes"
nox.options.error_on_missing_interpreters = True
nox.options.sessions = ["lint", "unit"]
# Where the sessions' environments are: several checkouts may share them.
nox.options.envdir = os.environ.get("NOX_ENVDIR", ".nox")

CATALOG = load_catalog()
#: Every release has sessions that make something for it ...
RELEASES = list(CATALOG.releases)
#: ... and those of which a server can be started here, sessions that try it.
SERVED = [name for name, release in CATALOG.releases.items() if release.server]


#: What `each_release` decorates: it is given the session and the release.
ReleaseSession = Callable[[nox.Session, str], None]


def install(session: nox.Session, *groups: str) -> None:
    """Makes the session's environment equal to the named groups of uv.lock, hashes checked."""
    session.run_install(
        *("uv", "sync", "--quiet", "--locked", "--no-install-project"),
        *(f"--only-group={group}" for group in groups),
        f"--python={session.virtualenv.location}",
        env={"UV_PROJECT_ENVIRONMENT": session.virtualenv.location},
    )


@nox.session
def lint(session: nox.Session) -> None:
    """Check the source: ruff, mypy, clang-format, clang-tidy, shellcheck, locks, the tag.

    `-- --fix` repairs what can be repaired; `-- --only mypy` runs one check, `-- --agreement` those
    that take seconds; `-- --code-quality FILE` writes what GitLab shows.
    """
    install(session, "lint")
    session.run("python", "-m", "ci.lint", *session.posargs)


@nox.session
def unit(session: nox.Session) -> None:
    """Run the quick tests that need no built backend. Arguments after `--` go to pytest.

    The slow ones are run by `test`; `-- -m slow` runs them here.
    """
    install(session, "test")
    options = ("-n=auto", "-m=not slow", "tests/unit")
    session.run("python", "-m", "pytest", *options, *session.posargs)


@nox.session
def test(session: nox.Session) -> None:
    """Run everything that a change has to pass: lint, artifacts, all tests on real servers.

    All tests run on the default release, then the core of them on the other gate releases.
    Arguments after `--` go to pytest, as in `./ci/nox -s test -- -k add_sub`, and leave out the
    others.
    """
    install(session, "lint")
    session.run("python", "-m", "ci.lint")
    session.run("python", "-m", "ci.artifacts", *CATALOG.gate_releases)
    session.run("python", "-m", "pytest", "tests", "--backend-dist=dist", *session.posargs)
    if not session.posargs:
        others = [name for name in CATALOG.gate_releases if name != CATALOG.default_release]
        options = [f"--release={name}" for name in others]
        session.run("python", "-m", "ci.matrix", "--suite=integration", *options)


@nox.session
def suite(session: nox.Session) -> None:
    """Run tests on what is there, and build nothing: `-- tests/images --release 24.10`.

    Artifacts are taken from `dist`, or from `--backend-dist`. Arguments go to pytest.
    """
    if not session.posargs:
        session.error("name a folder of tests, as in: ./ci/nox -s suite -- tests/contract")
    install(session, "lint")
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session
def coverage(session: nox.Session) -> None:
    """Say which lines the unit tests and the core's own tests run; `-- python` or `-- core`.

    Reports that GitLab reads are left in build/reports.
    """
    install(session, "coverage")
    session.run("python", "-m", "ci.coverage", *session.posargs)


@nox.session
def pipeline(session: nox.Session) -> None:
    """Run .gitlab-ci.yml on this machine, as for a merge request and as for a tag, to the end.

    It publishes to services that are started for this. `-- --form tag` runs one of them,
    `-- --release 24.10 --release 23.10` makes more than the default release.
    """
    install(session, "test")
    session.run("python", "-m", "ci.pipeline", *session.posargs)


@nox.session
def matrix(session: nox.Session) -> None:
    """Show on which releases the backend works: contract tests for all, real servers of twelve.

    `-- --release 23.10` takes one; `-- --backend FILE` a tarball or library built elsewhere.
    """
    install(session, "test")
    session.run("python", "-m", "ci.matrix", *session.posargs)


@nox.session
def golden(session: nox.Session) -> None:
    """Write the golden files anew: what servers of all releases answer about models of ours."""
    install(session, "test")
    session.run("python", "-m", "ci.golden", *session.posargs)


@nox.session
def sanitize(session: nox.Session) -> None:
    """Look for faults of memory and for races: the core's own tests, then those on real servers.

    The former are in `test` too. Arguments after `--` go to pytest for the latter.
    """
    install(session, "test")
    session.run("python", "-m", "ci.native")
    session.run("python", "-m", "ci.sanitize", "--", *session.posargs)


@nox.session
def gpu(session: nox.Session) -> None:
    """Run the tests that need a GPU, on a machine that has one; it fails where there is none.

    `-- --accelerator cuda13` chooses JAX's plugin; `-- --packages-of python3 --no-build` takes what
    is there, and downloads nothing. Arguments after a second `--` go to pytest.
    """
    install(session, "test")
    session.run("python", "-m", "ci.gpu", *session.posargs)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Look for inputs that break the core or a server, for a bounded time.

    `-- --seconds 600` gives the core's fuzzers ten minutes in all, instead of one;
    `-- --examples 5000` sends more random requests; `-- --only core` does one half.
    """
    install(session, "test")
    session.run("python", "-m", "ci.fuzz", *session.posargs)


@nox.session(name="package-python")
def package_python(session: nox.Session) -> None:
    """Build the wheel and the sdist, and make of them what is published, in dist/python."""
    install(session, "build")
    session.run("python", "-m", "ci.python_artifacts", *session.posargs)


@nox.session
def sign(session: nox.Session) -> None:
    """Sign folders of artifacts, as in `-- dist/24.10 dist/python`; ci/sign.py says with what."""
    install(session, "build")
    session.run("python", "-m", "ci.sign", *session.posargs)


@nox.session
def deploy(session: nox.Session) -> None:
    """Publish this version to where the variables say; `-- --dry-run` only verifies everything.

    `-- images` publishes a part: images, packages, wheel, release. It may be run again: what is
    published is left alone.
    """
    install(session, "deploy")
    session.run("python", "-m", "ci.deploy", *session.posargs)


@nox.session(name="post-deploy")
def post_deploy(session: nox.Session) -> None:
    """Download what was published, verify it, and serve a model from it."""
    install(session, "deploy")
    session.run("python", "-m", "ci.deploy.post_deploy", *session.posargs)


@nox.session
def rollback(session: nox.Session) -> None:
    """Move the moving tags of the images back: `-- 0.1.0`, or `-- sha256:… --release 24.10`."""
    install(session, "deploy")
    session.run("python", "-m", "ci.deploy.rollback", *session.posargs)


@nox.session
def services(session: nox.Session) -> None:
    """Run a registry, an index and a stand-in of GitLab's API to publish to, until Ctrl-C.

    It prints the variables that `deploy`, `post-deploy` and `rollback` need.
    """
    install(session, "deploy", "services")
    session.run("python", "-m", "ci.local_services", *session.posargs)


@nox.session(name="cut-version")
def cut_version(session: nox.Session) -> None:
    """Cut a version: `-- 0.2.0` changes what names it, runs the checks, commits and tags."""
    install(session, "lint")
    session.run("python", "-m", "ci.cut_version", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Compare this backend with its limit and its alternatives, on real servers, in one run.

    `-- --quick` takes some three minutes; `-- --only ours,copy_only` measures some;
    `-- --clients grpc --rounds 5` measures them in another way. Figures go to build/bench.
    """
    install(session, "bench")
    session.run("python", "-m", "benchmarks", *session.posargs)


@nox.session
def images(session: nox.Session) -> None:
    """Build the image of the default release in every way, and run, push, pull and compare it.

    Docker is installed and started when no engine answers. `test` has the short form of this.
    Arguments after `--` go to pytest.
    """
    install(session, "test")
    session.run("python", "-m", "ci.artifacts")
    session.run("python", "-m", "pytest", "tests/images", "--thorough", *session.posargs)


@nox.session
def chart(session: nox.Session) -> None:
    """Check the Helm chart: render it in every way, validate, package, push to a registry and back.

    `test` runs this too. Arguments after `--` go to pytest.
    """
    install(session, "test")
    session.run("python", "-m", "pytest", "tests/chart", *session.posargs)


@nox.session
def rollout(session: nox.Session) -> None:
    """Replace real servers under load, with the chart's own settings, and count lost requests.

    `-- --case proxy` takes one of three rehearsals.
    """
    install(session, "test")
    session.run("python", "-m", "ci.artifacts")
    session.run("python", "-m", "ci.rollout", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site of the documentation in build/site, check its links, and run its code.

    `-- --external` also asks for every address outside of it; `-- --site` leaves the code out.
    """
    install(session, "test")
    session.run("python", "-m", "ci.site", *session.posargs)
    if "--site" not in session.posargs:
        session.run("python", "-m", "ci.artifacts")
        session.run("python", "-m", "pytest", "tests/docs")


@nox.session
def monitoring(session: nox.Session) -> None:
    """Try alerts, recording rules and dashboard: a real Prometheus watches a real server.

    Prometheus and its blackbox exporter are installed when they are not there. `-- --report` draws
    `docs/images/dashboard.svg` from what was measured; other arguments go to pytest.
    """
    install(session, "test")
    session.run("python", "-m", "ci.monitoring.session", *session.posargs)


@nox.session
def reproduce(session: nox.Session) -> None:
    """Build twice in different circumstances, and show that every byte is the same.

    diffoscope says how, where it is not. `-- --image` builds the images too, and compares their
    layers; `-- --compare A B` compares what is there already.
    """
    install(session, "reproduce", "images")
    session.run("python", "-m", "ci.reproduce", *session.posargs)


@nox.session
def tune(session: nox.Session) -> None:
    """Look for the configuration that serves a model best: of `digits`, or of one that is named.

    `-- MODELS --model mine --concurrency 8 --budget 120`. The plot goes to build/tune.
    """
    install(session, "bench")
    session.run("python", "-m", "ci.tune", *session.posargs)


@nox.session
def demo(session: nox.Session) -> None:
    """Show the whole way: build, package, install into a stock tritonserver, serve `digits`.

    It classifies held-out digits over HTTP and gRPC, and prints accuracy, latency and metrics.
    """
    install(session, "build", "examples")
    session.run("python", "-m", "ci.demo", *session.posargs)


@nox.session(name="add-release")
def add_release(session: nox.Session) -> None:
    """Add a release to releases.toml: `-- 26.09 --from DIRECTORY`, or with a fact per option.

    `-- 26.07 --update --from DIRECTORY` adds what has become known of one that is there;
    `-- --help` lists the facts. What derives from the file is made anew.
    """
    install(session, "test")
    session.run("python", "-m", "ci.add_release", *session.posargs)


@nox.session
def hooks(session: nox.Session) -> None:
    """Install the git hooks, which run the quick checks at every commit."""
    install(session, "lint")
    session.run("pre-commit", "install", "--install-hooks")


def each_release(
    action: str, releases: Sequence[str]
) -> Callable[[ReleaseSession], ReleaseSession]:
    """Makes a function into sessions `<action>-<release>`, one for each of the releases."""

    def register(body: ReleaseSession) -> ReleaseSession:
        for name in releases:

            def session_of_release(session: nox.Session, release: str = name) -> None:
                body(session, release)

            session_of_release.__doc__ = body.__doc__
            nox.session(name=f"{action}-{name}")(session_of_release)
        return body

    return register


@each_release("build", RELEASES)
def build_release(session: nox.Session, release: str) -> None:
    """Build the native libraries and the wheel, and check that the release can load them.

    One binary serves every release. With TRITON_SDK_DIR=/opt/tritonserver, inside the image of
    the release, the declarations of the C API are compared with that release's own headers.
    """
    install(session, "build")
    session.run("python", "-m", "ci.build", f"--release={release}", *session.posargs)


@each_release("package", RELEASES)
def package_release(session: nox.Session, release: str) -> None:
    """Build, and make the artifacts of the release in dist/<release>."""
    install(session, "build")
    session.run("python", "-m", "ci.artifacts", release, *session.posargs)


@each_release("integration", SERVED)
def integration_release(session: nox.Session, release: str) -> None:
    """Make the artifacts, and run the integration tests on a real server of the release.

    `-- --backend FILE` tests a tarball, its folder or a libtriton_jax.so, and builds nothing
    native; the rest goes to pytest: `-- -m core`, `-- -k streams`.
    """
    install(session, "test")
    session.run("python", "-m", "ci.integration", release, *session.posargs)


@each_release("health", SERVED)
def health_release(session: nox.Session, release: str) -> None:
    """Make the artifacts, install them, serve `add_sub`, and run the health check on it.

    `-- --backend FILE` takes a tarball, its folder, or a libtriton_jax.so.
    """
    install(session, "build")
    session.run("python", "-m", "ci.health", release, *session.posargs)
