# SPDX-License-Identifier: Apache-2.0
"""What the core says to a server whose backend API is not the one that it needs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ci.process import ROOT
from ci.symbols import SERVER_PREFIXES, required

# A process that offers the functions of a server, of which only these do anything. It is C++ for
# the libraries of C++, which a real server has loaded too.
HOST = """
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string>

struct TRITONSERVER_Error { int code; std::string text; };

extern "C" {
TRITONSERVER_Error* TRITONSERVER_ErrorNew(int code, const char* text) {
  return new TRITONSERVER_Error{code, text};
}
TRITONSERVER_Error* TRITONBACKEND_ApiVersion(uint32_t* major, uint32_t* minor) {
  *major = MAJOR;
  *minor = MINOR;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_BackendArtifacts(void*, int*, const char**) {
  return TRITONSERVER_ErrorNew(2, "the version was accepted");
}
TRITONSERVER_Error* TRITONSERVER_MetricFamilyNew(void**, int, const char*, const char*) {
  return TRITONSERVER_ErrorNew(5, "metrics are off");
}
bool TRITONSERVER_LogIsEnabled(int) { return false; }
int TRITONSERVER_ErrorCode(TRITONSERVER_Error* error) { return error->code; }
const char* TRITONSERVER_ErrorMessage(TRITONSERVER_Error* error) { return error->text.c_str(); }
void TRITONSERVER_ErrorDelete(TRITONSERVER_Error* error) { delete error; }
%s
}

int main(int, char** arguments) {
  void* library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) { fprintf(stderr, "%%s\\n", dlerror()); return 3; }
  auto initialize = reinterpret_cast<TRITONSERVER_Error* (*)(void*)>(
      dlsym(library, "TRITONBACKEND_Initialize"));
  TRITONSERVER_Error* error = initialize(nullptr);
  if (error == nullptr) { return 4; }
  printf("%%d %%s\\n", error->code, error->text.c_str());
  return 0;
}
"""
DEFINED = {
    "TRITONSERVER_ErrorNew",
    "TRITONBACKEND_ApiVersion",
    "TRITONBACKEND_BackendArtifacts",
    "TRITONSERVER_LogIsEnabled",
    "TRITONSERVER_MetricFamilyNew",
    "TRITONSERVER_ErrorCode",
    "TRITONSERVER_ErrorMessage",
    "TRITONSERVER_ErrorDelete",
}


def answer_to(version: tuple[int, int], core: Path, scratch: Path) -> str:
    """Code and message with which Initialize answers a server of this backend API."""
    others = [n for n in required(core) if n.startswith(SERVER_PREFIXES) and n not in DEFINED]
    source = scratch / "host.cc"
    source.write_text(HOST % "\n".join(f"void* {name}() {{ abort(); }}" for name in others))
    host = scratch / "host"
    subprocess.run(
        [
            *("g++", "-std=c++17", f"-DMAJOR={version[0]}", f"-DMINOR={version[1]}"),
            *(source, "-o", host, "-rdynamic", "-ldl"),
        ],
        check=True,
    )
    return subprocess.run([host, core], check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("version", [(1, 11), (1, 0), (2, 12), (0, 99)])
def test_another_api_is_refused_with_both_numbers(
    libraries: Path, tmp_path: Path, version: tuple[int, int]
) -> None:
    answer = answer_to(version, libraries / "libtriton_jax.so", tmp_path)
    assert answer == (
        "5 the jax backend needs Triton's backend API 1.12 or a later minor version of it "
        f"(release 23.04 or newer); this server has {version[0]}.{version[1]}"
    )


@pytest.mark.parametrize("version", [(1, 12), (1, 19), (1, 99)])
def test_this_api_and_its_later_minor_versions_are_accepted(
    libraries: Path, tmp_path: Path, version: tuple[int, int]
) -> None:
    answer = answer_to(version, libraries / "libtriton_jax.so", tmp_path)
    assert answer == "2 the version was accepted"


SOURCE = ROOT / "backend" / "src" / "core"


def sdk(folder: Path, replace: tuple[str, str] | None = None) -> Path:
    """An SDK whose headers declare what ours does, but for one replacement.

    It stands in for the official headers, which cannot be had here: inside a release image,
    TRITON_SDK_DIR=/opt/tritonserver gives the real ones.
    """
    text = (SOURCE / "triton_c_api.h").read_text(encoding="utf-8")
    if replace is not None:
        assert text.count(replace[0]) >= 1
        text = text.replace(replace[0], replace[1], 1)
    text = text.replace("TRITON_JAX_", "OFFICIAL_")
    include = folder / "include" / "triton" / "core"
    include.mkdir(parents=True)
    versions = (
        "#define TRITONBACKEND_API_VERSION_MAJOR 1\n#define TRITONBACKEND_API_VERSION_MINOR 19\n"
    )
    (include / "tritonserver.h").write_text(versions + text)
    (include / "tritonbackend.h").write_text('#pragma once\n#include "tritonserver.h"\n')
    return folder


def build_against(sdk_directory: Path, build: Path) -> subprocess.CompletedProcess[str]:
    """Configure the backend with TRITON_SDK_DIR, and build the comparison."""
    configured = subprocess.run(
        ["cmake", "-S", ROOT / "backend", "-B", build, f"-DTRITON_SDK_DIR={sdk_directory}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if configured.returncode != 0:
        return configured
    return subprocess.run(
        ["cmake", "--build", build, "--target", "triton_c_api_check"],
        capture_output=True,
        text=True,
        check=False,
    )


def test_headers_that_agree_with_ours(tmp_path: Path) -> None:
    assert shutil.which("cmake")
    done = build_against(sdk(tmp_path / "sdk"), tmp_path / "build")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("replace", "words"),
    [
        (("X(TRITONSERVER_TYPE_BF16, 14)", "X(TRITONSERVER_TYPE_BF16, 15)"), "BF16"),
        (("X(TRITONSERVER_ERROR_INTERNAL, 1)", "X(TRITONSERVER_ERROR_INTERNAL, 9)"), "INTERNAL"),
        (("const char** location", "const void** location"), "TRITONBACKEND_BackendArtifacts"),
        (("uint64_t* version", "uint32_t* version"), "TRITONBACKEND_ModelVersion"),
    ],
    ids=["data type", "error code", "signature", "width"],
)
def test_headers_that_differ_from_ours_stop_the_build(
    tmp_path: Path, replace: tuple[str, str], words: str
) -> None:
    done = build_against(sdk(tmp_path / "sdk", replace), tmp_path / "build")
    assert done.returncode != 0
    assert words in done.stdout + done.stderr


def test_a_directory_without_headers_is_named(tmp_path: Path) -> None:
    done = build_against(tmp_path, tmp_path / "build")
    assert done.returncode != 0
    message = " ".join(done.stderr.split())
    assert f"TRITON_SDK_DIR={tmp_path} has no include/triton/core/tritonbackend.h" in message
    assert "such as /opt/tritonserver" in message
