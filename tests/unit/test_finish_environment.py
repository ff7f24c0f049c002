# SPDX-License-Identifier: Apache-2.0
"""`packaging/docker/finish_environment.sh`, which makes an environment fit for an image."""

from __future__ import annotations

import subprocess
from pathlib import Path

from ci.process import ROOT

SCRIPT = ROOT / "packaging" / "docker" / "finish_environment.sh"
EPOCH = 1704067200


def finish(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, check=False)


def test_it_takes_away_tests_debugging_sections_and_notes_and_sets_the_time(tmp_path: Path) -> None:
    site = tmp_path / "env" / "lib" / "python3.11" / "site-packages"
    for name in (
        "numpy/core/tests/test_a.py",
        "numpy/core/a.py",
        "scipy/a.py",
        "jax/tests/kept.py",
    ):
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text("")
    notes = site / "tritonserver_jax-0.1.0.dist-info"
    notes.mkdir()
    (notes / "uv_cache.json").write_text("{}")
    (notes / "RECORD").write_text("a.py,,\nx.dist-info/uv_cache.json,sha256=1,2\n")
    source = tmp_path / "a.c"
    source.write_text("int answer(void) { return 42; }\n")
    for name, options in (("debug.so", ["-g"]), ("plain.so", [])):
        command = ["cc", "-shared", "-fPIC", *options, str(source), "-o", str(site / name)]
        subprocess.run(command, check=True)
    plain = (site / "plain.so").read_bytes()

    done = finish(str(tmp_path), str(EPOCH))
    assert done.returncode == 0, done.stderr
    assert not (site / "numpy" / "core" / "tests").exists()
    assert (site / "numpy" / "core" / "a.py").is_file()
    assert (site / "jax" / "tests" / "kept.py").is_file()
    assert not (notes / "uv_cache.json").exists()
    assert (notes / "RECORD").read_text() == "a.py,,\n"
    assert (site / "plain.so").read_bytes() == plain
    sections = subprocess.run(
        ["readelf", "--section-headers", "--wide", site / "debug.so"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert ".debug_info" not in sections
    assert ".symtab" in sections
    assert {path.stat().st_mtime for path in [site, *site.rglob("*")]} == {EPOCH}


def test_without_an_environment_or_a_time_it_says_what_it_wants(tmp_path: Path) -> None:
    for arguments in ((), (str(tmp_path), "1"), (str(tmp_path), "now")):
        done = finish(*arguments)
        assert done.returncode == 2
        assert "Usage: finish_environment.sh DIR EPOCH" in done.stderr
