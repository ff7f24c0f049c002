# SPDX-License-Identifier: Apache-2.0
"""Where an artifact comes from, which server is there, and what libraries need."""

from __future__ import annotations

import hashlib
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tritonserver_jax.artifacts.layout import tarball_name
from tritonserver_jax.elf import ElfError, newest, read_elf
from tritonserver_jax.installation import InstallationError, find_artifact
from tritonserver_jax.releases import DEFAULT_RELEASE, find_release, load_releases
from tritonserver_jax.server import obtain_server
from tritonserver_jax.server.facts import find_servers, releases_with, server_facts
from tritonserver_jax.server.log_lines import LogFollower, LogLine

NAME = tarball_name("1.0", "24.10")
OTHER = tarball_name("1.0", "23.10")


# -- artifacts -------------------------------------------------------------------------------------


def artifact(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"artifact " + path.name.encode())
    return path


def test_a_file_and_a_folder_name_an_artifact(tmp_path: Path) -> None:
    here = artifact(tmp_path / "one" / NAME)
    assert find_artifact(str(here), None, env={}) == here
    assert find_artifact(str(here.parent), None, env={}) == here
    assert find_artifact(str(here.parent), "24.10", env={}) == here
    variable = {"TRITONSERVER_JAX_ARTIFACT": str(here)}
    assert find_artifact(None, None, env=variable, folder=tmp_path) == here


def test_dist_is_looked_into_by_release(tmp_path: Path) -> None:
    ours = artifact(tmp_path / "dist" / "24.10" / NAME)
    assert find_artifact(None, None, env={}, folder=tmp_path) == ours
    other = artifact(tmp_path / "dist" / "23.10" / OTHER)
    assert find_artifact(None, "23.10", env={}, folder=tmp_path) == other
    with pytest.raises(InstallationError, match=rf"found 2: 23\.10/{OTHER}, 24\.10/{NAME}"):
        find_artifact(None, None, env={}, folder=tmp_path)


def test_what_is_not_there_says_where_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(InstallationError, match=r"nox -s package-24\.10.*name it with --artifact"):
        find_artifact(None, "24.10", env={}, folder=tmp_path)
    with pytest.raises(InstallationError, match="found nothing there"):
        find_artifact(str(tmp_path / "no"), None, env={})
    with pytest.raises(InstallationError, match=r"for release 24\.10 there .* found none"):
        find_artifact(str(tmp_path), "24.10", env={})


@pytest.fixture
def web(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    folder = tmp_path / "web"
    folder.mkdir()

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", folder
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_url_is_downloaded_once_and_by_its_hash(tmp_path: Path, web: tuple[str, Path]) -> None:
    address, folder = web
    there = artifact(folder / NAME)
    digest = hashlib.sha256(there.read_bytes()).hexdigest()
    cache = tmp_path / "cache"
    said: list[str] = []

    def get(end: str) -> Path:
        url = f"{address}/{NAME}{end}"
        return find_artifact(url, None, env={}, cache=cache, say=said.append)

    got = get(f"#sha256={digest}")
    assert got.read_bytes() == there.read_bytes()
    assert got.name == NAME
    there.write_bytes(b"replaced")
    assert get(f"#{digest.upper()}") == got
    assert len(said) == 1

    with pytest.raises(InstallationError, match=rf"expected {'0' * 64}, got [0-9a-f]+; this is"):
        get(f"#sha256={'0' * 64}")
    assert not list((cache / "artifacts" / ("0" * 64)).iterdir())
    with pytest.raises(InstallationError, match="expected #sha256= and 64 hexadecimal digits"):
        get("")
    with pytest.raises(InstallationError, match="got status 404"):
        find_artifact(f"{address}/{OTHER}#{digest}", None, env={}, cache=cache)
    with pytest.raises(InstallationError, match="expected http:// or https://, got file://"):
        find_artifact(f"file:///{NAME}#{digest}", None, env={}, cache=cache)
    with pytest.raises(InstallationError, match="expected the URL of a tritonserver-jax"):
        find_artifact(f"{address}/x.tar.gz#{digest}", None, env={}, cache=cache)
    with pytest.raises(InstallationError, match="cannot be downloaded"):
        find_artifact(f"http://127.0.0.1:9/{NAME}#{'1' * 64}", None, env={}, cache=cache)


# -- libraries and servers -------------------------------------------------------------------------


def compiled(folder: Path, name: str, source: str, *options: str) -> Path:
    (folder / f"{name}.c").write_text(source, encoding="utf-8")
    out = folder / f"{name}.so"
    command = ["gcc", "-shared", "-fPIC", "-o", str(out), f"{name}.c", *options]
    subprocess.run(command, cwd=folder, check=True)
    return out


def test_a_library_is_read_as_nm_reads_it(tmp_path: Path) -> None:
    compiled(tmp_path, "libother", "int other(void) { return 1; }")
    library = compiled(
        tmp_path,
        "libours",
        "#include <stdlib.h>\nint other(void);\nstatic int hidden(void) { return other(); }\n"
        'int ours(void) { return hidden() + atoi(getenv("X")); }',
        *("-L.", "-l:libother.so", "-Wl,-rpath,$ORIGIN/sub:$ORIGIN"),
    )
    found = read_elf(library)
    assert "ours" in found.exported
    assert "hidden" not in found.exported | found.required
    assert {"other", "getenv"} <= found.required
    assert "libother.so" in found.libraries
    assert found.find_library("libother") == tmp_path / "libother.so"
    assert found.find_library("libnone") is None
    assert (newest(found.versions, "GLIBC") or ()) >= (2, 2)
    assert newest(found.versions, "GLIBCXX") is None
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True
    )
    assert found.exported == {line.split()[-1] for line in listed.stdout.splitlines()}


@pytest.mark.parametrize("content", [b"", b"text", b"\x7fELF\x02\x01" + bytes(10)])
def test_what_is_no_library_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.so"
    path.write_bytes(content)
    with pytest.raises(ElfError, match=r"a\.so: expected"):
        read_elf(path)


def test_a_cut_library_is_refused(tmp_path: Path) -> None:
    library = compiled(tmp_path, "liba", "int a(void) { return 1; }")
    content = library.read_bytes()
    library.write_bytes(content[: len(content) // 2])
    with pytest.raises(ElfError, match="damaged"):
        read_elf(library)


def test_newest_compares_numbers() -> None:
    versions = frozenset({"GLIBC_2.9", "GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_PRIVATE"})
    assert newest(versions, "GLIBC") == (2, 34)


def test_a_real_server_is_known_by_its_functions_alone(tmp_path: Path) -> None:
    release = find_release(DEFAULT_RELEASE)
    distribution = obtain_server(release)
    facts = server_facts(distribution.root)
    assert facts.releases == (release,)
    assert facts.said_by == "the wheel that it came in"
    assert "TRITONBACKEND_ModelSetConfig" in facts.functions
    assert facts.backend_api == release.backend_api

    names = [one.release for one in releases_with(facts.functions, load_releases().values())]
    assert DEFAULT_RELEASE in names
    assert "23.10" not in names
    none = server_facts(tmp_path)
    assert (none.executable, none.releases) == (None, ())
    assert "there is no" in none.trouble


def test_what_an_image_says_is_read(tmp_path: Path) -> None:
    (tmp_path / "TRITON_VERSION").write_text("2.39.0\n", encoding="utf-8")
    facts = server_facts(tmp_path)
    assert [one.release for one in facts.releases] == ["23.10"]
    assert facts.describe() == f"server version 2.39.0 (23.10), says {tmp_path}/TRITON_VERSION"
    (tmp_path / "TRITON_VERSION").write_text("9.9.9\n", encoding="utf-8")
    assert "no known release" in server_facts(tmp_path).describe()


def test_servers_are_found_on_the_path(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "tritonserver"
    program.parent.mkdir()
    program.touch(mode=0o755)
    assert tmp_path in find_servers(tmp_path / "cache", {"PATH": f":{program.parent}"})


# -- the log ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            'I1129 22:51:05.123456 421 server.cc:604] "Started"',
            LogLine("info", "22:51:05", "server.cc:604", "Started"),
        ),
        (
            "E1129 01:02:03.000001     9 model.cc:1] no such file",
            LogLine("error", "01:02:03", "model.cc:1", "no such file"),
        ),
        ("| a | b |", LogLine("", "", "", "| a | b |")),
    ],
)
def test_a_line_of_the_log_is_taken_apart(line: str, expected: LogLine) -> None:
    assert LogLine.parse(line) == expected


def test_a_growing_log_is_followed_to_its_end(tmp_path: Path) -> None:
    log = tmp_path / "log"
    got: list[str] = []
    seen = threading.Event()

    def tell(line: LogLine) -> None:
        got.append(line.text)
        seen.set()

    with LogFollower(log, tell), log.open("ab", buffering=0) as file:
        file.write(b"first\nsec")
        assert seen.wait(10)
        file.write(b"ond\nlast")
    assert got == ["first", "second", "last"]
