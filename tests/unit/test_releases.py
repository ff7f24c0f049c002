# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import contextlib
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonserver_jax.releases import (
    DEFAULT_RELEASE,
    MINIMUM_BACKEND_API,
    SUPPORT_LEVELS,
    ApiLevel,
    ReleaseDataError,
    UnknownReleaseError,
    find_release,
    load_catalog,
    load_releases,
    releases_file,
)

SMALL = """
schema = 1
default_release = "24.10"
gate_releases = ["24.10"]
minimum_backend_api = "1.12"
image = "nvcr.io/nvidia/tritonserver:{release}-py3"
sdk_image = "nvcr.io/nvidia/tritonserver:{release}-py3-sdk"

[ubuntu."22.04"]
glibc = "2.35"
glibcxx = "3.4.30"
cxxabi = "1.3.13"

[feature]
first = "what comes first"
second = "what comes second"

[image_python."22.04"]
source = "standalone"
version = "3.12.14"
url = "https://example.org/cpython-3.12.14%2B20260814-x86_64.tar.gz"
sha256 = "5acfa3e9ba26b51ae161c83aff278da915b590d22373a424b2ba55b8afe91fcc"

[release."24.09"]
server_version = "2.50.0"
support = "built"
features_added = ["first"]
backend_api = "1.19"
ubuntu = "22.04"
python = "3.10.12"

[release."24.10"]
server_version = "2.51.0"
support = "tested"
backend_api = "1.19"
server_api = "1.34"
ubuntu = "22.04"
python = "3.10.12"
cuda = "12.6.2.004"
driver = "560.35.03"
c_api_functions_added = [
    "TRITONBACKEND_Function",  # [the first
    "TRITONBACKEND_ModelInstanceReady",
]
features_added = ["second"]

[release."24.10".server]
package = "nvidia-pytriton"
version = "0.7.0"
wheel = "nvidia_pytriton-0.7.0-py3-none-manylinux_2_35_x86_64.whl"
sha256 = "21f063ff93bb426d0c06b7a55e7eb9efcfe62c0dddd9a908e9877e18710128df"
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "releases.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_projects_own_file_has_every_release_from_23_04_on() -> None:
    releases = load_releases()
    names = list(releases)
    assert names[0] == "23.04"
    years = {name.split(".")[0] for name in names}
    assert {"23", "24", "25", "26"} <= years
    assert [name for name in names if name.startswith("24.")] == [
        f"24.{month:02d}" for month in range(1, 13)
    ]
    assert len(names) == 41


def test_the_default_release_is_declared_in_the_file() -> None:
    assert f'default_release = "{DEFAULT_RELEASE}"' in releases_file().read_text("utf-8")
    release = find_release(DEFAULT_RELEASE)
    assert release.server_version == "2.51.0"
    assert release.image == "nvcr.io/nvidia/tritonserver:24.10-py3"
    assert release.sdk_image == "nvcr.io/nvidia/tritonserver:24.10-py3-sdk"
    assert release.server is not None
    assert release.server.version == "0.7.0"


def test_twelve_releases_have_a_server_wheel() -> None:
    wheels = {name: r.server.version for name, r in load_releases().items() if r.server}
    assert len(wheels) == 12
    assert wheels["23.04"] == "0.2.5"
    assert wheels["23.10"] == "0.4.2"
    hashes = {r.server.sha256 for r in load_releases().values() if r.server}
    assert len(hashes) == 12


def test_every_known_release_has_the_api_the_backend_needs() -> None:
    releases = load_releases()
    assert releases["23.04"].backend_api == MINIMUM_BACKEND_API == ApiLevel(1, 12)
    assert all(r.backend_api >= MINIMUM_BACKEND_API for r in releases.values() if r.backend_api)


def test_what_is_unknown_is_none_and_not_a_guess() -> None:
    releases = load_releases()
    assert releases["26.08"].backend_api is None
    assert releases["26.08"].c_api_functions_added is None
    assert releases["24.09"].c_api_functions_added == ()
    assert releases["25.12"].c_api_functions_added == ("TRITONBACKEND_ModelInstanceReady",)


def test_an_image_takes_the_python_of_its_base_only_where_that_is_new_enough() -> None:
    releases = load_releases()
    assert {r.image_python.source for r in releases.values() if r.ubuntu == "22.04"} == {
        "standalone"
    }
    newer = [r for r in releases.values() if r.ubuntu == "24.04"]
    assert {r.image_python.source for r in newer} == {"base"}
    assert all(r.image_python.version == r.python for r in newer)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('source = "standalone"', 'source = "pyenv"', 'source: expected "base" or "standalone"'),
        ('source = "standalone"', 'source = "base"', "url: expected no such key"),
        ('version = "3.12.14"', 'version = "3.12.13"', "url: expected a file of Python 3.12.13"),
        ('sha256 = "5acf', 'sha256 = "5ac', "sha256: expected 64 lower-case"),
        ('image_python."22.04"', 'image_python."24.04"', "ubuntu: expected one that image_python"),
        ("3.12.14", "3.10.14", "version: expected Python 3.11 or newer"),
    ],
)
def test_a_wrong_python_of_an_image_is_refused(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in SMALL
    with pytest.raises(ReleaseDataError, match=re.escape(message)):
        load_catalog(write(tmp_path, SMALL.replace(old, new)))


def test_the_python_of_the_base_is_the_one_that_its_release_has(tmp_path: Path) -> None:
    begin = SMALL.index("source = ")
    end = SMALL.index("[release.")
    text = SMALL[:begin] + 'source = "base"\nversion = "3.12.3"\n\n' + SMALL[end:]
    with pytest.raises(ReleaseDataError, match=r"python: expected 3.12.3, as image_python 22.04"):
        load_catalog(write(tmp_path, text))


def test_api_levels_compare_as_numbers() -> None:
    assert ApiLevel.parse("1.9") < ApiLevel.parse("1.12")
    assert str(ApiLevel(1, 19)) == "1.19"
    with pytest.raises(ValueError, match=r"expected \"<major>.<minor>\", got '1'"):
        ApiLevel.parse("1")


def test_a_release_is_frozen(tmp_path: Path) -> None:
    release = load_releases(write(tmp_path, SMALL))["24.10"]
    with pytest.raises(AttributeError):
        release.ubuntu = "24.04"  # type: ignore[misc]


def test_an_unknown_release_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    path = write(tmp_path, SMALL)
    with pytest.raises(UnknownReleaseError, match=r"one of 24\.09, 24\.10; got '24\.13'"):
        find_release("24.13", path)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("schema = 1", "schema = 2", "schema: expected 1, got 2"),
        ("schema = 1", "", "schema: expected 1, got nothing"),
        ('"2.51.0"', '"2.51"', "release 24.10: server_version: expected a server version"),
        ('"2.51.0"', "2.51", "release 24.10: server_version: expected a server version"),
        ('server_version = "2.51.0"', "", "server_version: expected .*got nothing"),
        ('"2.51.0"', '"2.49.0"', "server_version: expected more than 2.50.0 of release 24.09"),
        ('server_api = "1.34"', 'server_apy = "1.34"', "server_apy: expected server_api "),
        ('server_api = "1.34"', 'colour = "red"', "colour: expected no such key, got 'red'"),
        ('backend_api = "1.19"\nserver', 'backend_api = "1.18"\nserver', "at least 1.19 of 24.09"),
        (
            '[release."24.10"]\n',
            '[release."24.13"]\n',
            'release 24.13: expected a name such as "24.10"',
        ),
        ('"24.09"]', '"24.11"]', "release 24.10: expected a release after 24.11, got '24.10'"),
        ('default_release = "24.10"', 'default_release = "24.11"', "a release of this file"),
        ('default_release = "24.10"', 'default_release = "24.09"', "with a server wheel"),
        ("21f063", "21F063", "release 24.10: server: sha256: expected 64 lower-case"),
        ('"0.7.0"', '"0.7.1"', "wheel: expected a name that starts with nvidia_pytriton-0.7.1-"),
        ("[release.", "[release.x.", "expected"),
        ("TRITONBACKEND_Mod", "TRITON_Mod", "c_api_functions_added: expected a list"),
        ("TRITONBACKEND_Function", "TRITONBACKEND_ModelInstanceReady", "each once, got 'TRITONB"),
        (
            'ubuntu = "22.04"',
            'ubuntu = "22.10"',
            "one of those in \\[ubuntu\\]: 22.04, got '22.10'",
        ),
        ('"2.35"', '"jammy"', "ubuntu 22.04: glibc: expected a version of the C library such as"),
        ('support = "tested"', 'support = "yes"', '"tested" or "built" or "image only", got \'yes'),
        ('support = "tested"', 'support = "built"', 'support: expected "tested", as there is a'),
        ('support = "built"', 'support = "tested"', 'support: expected "built" or "image only"'),
        (
            'support = "built"',
            'support = "image only"',
            'expected "built", as backend_api is known',
        ),
        (
            'features_added = ["second"]',
            'features_added = ["secnd"]',
            "expected second, got 'secnd'",
        ),
        (
            'features_added = ["second"]',
            'features_added = ["x"]',
            "\\[feature\\]: first, second, got",
        ),
        ('features_added = ["second"]', 'features_added = ["first"]', "24.09 did not add already"),
        ('first = "what', '1st = "what', "feature: 1st: expected a name in lower_case"),
        (
            'gate_releases = ["24.10"]',
            'gate_releases = ["24.09"]',
            "with a server wheel, got '24.09",
        ),
        ('cuda = "12.6', 'image_digest = "12.6', "image_digest: expected sha256: and 64"),
        (":{release}-py3-sdk", ":24.10", "sdk_image: expected an image reference"),
        ('ubuntu = "22.04"', "ubuntu = ", "expected a readable TOML file, got: "),
    ],
)
def test_a_wrong_file_is_refused_with_the_place(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    assert old in SMALL
    path = write(tmp_path, SMALL.replace(old, new))
    with pytest.raises(ReleaseDataError, match=said) as raised:
        load_catalog(path)
    assert re.match(rf"{re.escape(str(path))}:\d+: ", str(raised.value))


def line_of(text: str, start: str) -> int:
    lines = text.splitlines()
    return 1 + next(number for number, line in enumerate(lines) if line.strip().startswith(start))


@pytest.mark.parametrize(
    ("old", "new", "at"),
    [
        ('"2.51.0"', '"2.51"', 'server_version = "2.51"'),
        ("TRITONBACKEND_Mod", "TRITON_Mod", '"TRITON_Mod'),
        ('server_api = "1.34"', 'colour = "red"', "colour"),
        ('support = "tested"', "", '[release."24.10"]'),
        ("21f063", "21F063", 'sha256 = "21F063'),
        ('sha256 = "21f063', 'sha255 = "21f063', '[release."24.10".server]'),
        ('cuda = "12.6.2.004"', 'cuda = "12.6.2.004"\ncuda = "12.6.2.004"', "driver"),
        ('[release."24.10"]', '[release."24.09"]\n[release."24.10"]', '[release."24.10"]'),
        ('glibc = "2.35"', "glibc = 2.35", "glibc = 2.35"),
        ('second = "what comes second"', 'Second = "second"', "Second"),
        ("schema = 1", "schema = 3", "schema"),
    ],
)
def test_an_error_names_the_line(tmp_path: Path, old: str, new: str, at: str) -> None:
    text = SMALL.replace(old, new)
    assert text != SMALL
    path = write(tmp_path, text)
    with pytest.raises(ReleaseDataError) as raised:
        load_catalog(path)
    said = re.match(rf"{re.escape(str(path))}:(\d+): ", str(raised.value))
    assert said is not None, raised.value
    # What the parser itself finds twice, it says where the second one ends.
    assert abs(int(said[1]) - line_of(text, at)) <= ("Cannot" in str(raised.value)), raised.value


KEYS = sorted(set(re.findall(r"^(\w+) = ", SMALL, re.MULTILINE)))


@given(key=st.sampled_from(KEYS), at=st.integers(0, 40), letter=st.sampled_from("abcxyz_"))
def test_a_misspelt_key_never_passes(
    tmp_path_factory: pytest.TempPathFactory, key: str, at: int, letter: str
) -> None:
    at %= len(key)
    wrong = key[:at] + letter + key[at + 1 :]
    text = re.sub(rf"^{key} = ", f"{wrong} = ", SMALL, flags=re.MULTILINE)
    path = write(tmp_path_factory.mktemp("misspelt"), text)
    if wrong == key or key in ("first", "second"):
        return
    with pytest.raises(ReleaseDataError) as raised:
        load_catalog(path)
    # Either the key that there is not, or the one that is missing now.
    assert re.search(rf":\d+: .*\b({wrong}|{key})\b", str(raised.value))


@given(values=st.dictionaries(st.sampled_from(KEYS), st.text('0123456789.ab"\n#[]', max_size=8)))
def test_no_file_makes_another_error(
    tmp_path_factory: pytest.TempPathFactory, values: dict[str, str]
) -> None:
    text = SMALL
    for key, value in values.items():
        text = re.sub(rf"^{key} = .*$", lambda _: f"{key} = {value}", text, flags=re.MULTILINE)  # noqa: B023
    path = write(tmp_path_factory.mktemp("any"), text)
    with contextlib.suppress(ReleaseDataError):
        load_catalog(path)


def test_every_release_has_a_level_of_support_that_fits() -> None:
    releases = load_releases()
    assert {release.support for release in releases.values()} <= set(SUPPORT_LEVELS)
    assert all((r.support == "tested") == (r.server is not None) for r in releases.values())


def test_features_are_kept_by_the_releases_that_follow(tmp_path: Path) -> None:
    releases = load_releases(write(tmp_path, SMALL))
    assert releases["24.09"].features == {"first"}
    assert releases["24.10"].features == {"first", "second"}


def test_the_gate_has_the_oldest_and_the_newest_server() -> None:
    served = [name for name, release in load_releases().items() if release.server]
    gate = load_catalog().gate_releases
    assert {served[0], served[-1], DEFAULT_RELEASE} <= set(gate)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReleaseDataError, match=r"nowhere\.toml: expected a readable TOML file"):
        load_catalog(tmp_path / "nowhere.toml")
