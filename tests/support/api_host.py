# SPDX-License-Identifier: Apache-2.0
"""A process that has the C API of a server of any level, to see what Initialize says to it."""

from __future__ import annotations

import subprocess
from pathlib import Path

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

static uint32_t api_major = 0;
static uint32_t api_minor = 0;

extern "C" {
TRITONSERVER_Error* TRITONSERVER_ErrorNew(int code, const char* text) {
  return new TRITONSERVER_Error{code, text};
}
TRITONSERVER_Error* TRITONBACKEND_ApiVersion(uint32_t* major, uint32_t* minor) {
  *major = api_major;
  *minor = api_minor;
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
  api_major = static_cast<uint32_t>(atoi(arguments[2]));
  api_minor = static_cast<uint32_t>(atoi(arguments[3]));
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

REFUSED = (
    "5 the jax backend needs Triton's backend API 1.12 or a later minor version of it "
    "(release 23.04 or newer); this server has {}.{}"
)


def host(core: Path, scratch: Path) -> Path:
    """Build the process that offers what a library needs of a server."""
    others = [n for n in required(core) if n.startswith(SERVER_PREFIXES) and n not in DEFINED]
    source = scratch / "host.cc"
    source.write_text(HOST % "\n".join(f"void* {name}() {{ abort(); }}" for name in others))
    built = scratch / "host"
    subprocess.run(["g++", "-std=c++17", source, "-o", built, "-rdynamic", "-ldl"], check=True)
    return built


def answer_to(version: tuple[int, int], core: Path, api_host: Path) -> str:
    """Code and message with which Initialize answers a server of this backend API."""
    command = [str(api_host), str(core), *map(str, version)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
