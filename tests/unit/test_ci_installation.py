# SPDX-License-Identifier: Apache-2.0
"""An artifact is installed by its own script, and nothing else is taken for one."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from ci.installation import InstallationError, install_artifact

SCRIPT = "jax/scripts/install.sh"
INFO = '{"project_version": "1.0", "release": "24.10", "server_version": "2.51.0"}'


def tarball(path: Path, members: dict[str, str]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return path


def test_the_script_in_the_tarball_does_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = 'echo "got $*"; mkdir "$2/jax"\n'
    made = tarball(tmp_path / "a.tar.gz", {SCRIPT: script, "jax/BUILD_INFO.json": INFO})
    backends = tmp_path / "server" / "backends"
    assert install_artifact(made, backends) == backends / "jax"
    assert (backends / "jax").is_dir()
    assert f"got --backends {backends} --with-env\n" in capfd.readouterr().out


def test_the_environment_is_left_out_when_not_wanted(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    made = tarball(tmp_path / "a.tar.gz", {SCRIPT: 'echo "got $*"\n', "jax/BUILD_INFO.json": INFO})
    install_artifact(made, tmp_path, environment=False)
    assert f"got --backends {tmp_path}\n" in capfd.readouterr().out


def test_a_script_that_fails_is_named(tmp_path: Path) -> None:
    made = tarball(
        tmp_path / "a.tar.gz", {SCRIPT: "echo why\nexit 3\n", "jax/BUILD_INFO.json": INFO}
    )
    with pytest.raises(InstallationError, match=r"^install\.sh ended with status 3:\nwhy$"):
        install_artifact(made, tmp_path)


def test_a_scripts_own_words_are_the_error(tmp_path: Path) -> None:
    script = "echo '==> begun'; echo 'install.sh: error: no room;'; echo '  make some'; exit 1\n"
    made = tarball(tmp_path / "a.tar.gz", {SCRIPT: script, "jax/BUILD_INFO.json": INFO})
    with pytest.raises(InstallationError, match=r"^no room;\n  make some$"):
        install_artifact(made, tmp_path)


@pytest.mark.parametrize("info", ["", "[]", "{}", '{"release": "24.10"}'])
def test_a_tarball_that_does_not_say_what_it_is_is_refused(tmp_path: Path, info: str) -> None:
    made = tarball(tmp_path / "a.tar.gz", {SCRIPT: "", "jax/BUILD_INFO.json": info})
    with pytest.raises(InstallationError, match=r"BUILD_INFO\.json does not say what it is"):
        install_artifact(made, tmp_path)


def test_another_tarball_is_refused(tmp_path: Path) -> None:
    made = tarball(tmp_path / "a.tar.gz", {"jax/README": ""})
    with pytest.raises(InstallationError, match=r"a\.tar\.gz: expected jax/scripts/install\.sh"):
        install_artifact(made, tmp_path)


def test_a_file_that_is_no_tarball_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.tar.gz").write_text("text", encoding="utf-8")
    with pytest.raises(InstallationError, match=r"cannot unpack .*a\.tar\.gz"):
        install_artifact(tmp_path / "a.tar.gz", tmp_path)


def test_a_member_that_leaves_the_directory_is_refused(tmp_path: Path) -> None:
    made = tarball(tmp_path / "a.tar.gz", {"../outside": "text"})
    with pytest.raises(InstallationError, match="cannot unpack"):
        install_artifact(made, tmp_path)
    assert not (tmp_path.parent / "outside").exists()


def test_a_link_is_refused(tmp_path: Path) -> None:
    made = tmp_path / "a.tar.gz"
    with tarfile.open(made, "w:gz") as archive:
        member = tarfile.TarInfo("jax/lib")
        member.type = tarfile.SYMTYPE
        member.linkname = "/etc"
        archive.addfile(member)
    with pytest.raises(InstallationError, match="'jax/lib': expected a plain file or a folder"):
        install_artifact(made, tmp_path)
