// SPDX-License-Identifier: Apache-2.0

#include "python_environment.h"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/status.h"
#include "subprocess.h"

namespace triton_jax {
namespace {

// Long enough for a cold disk; a healthy environment answers in a tenth of a second.
constexpr std::chrono::seconds kProbeTimeout{60};

constexpr int kOldestPythonMinor = 11;

// Must run on any Python 3, to be able to say that it is too old. It reads metadata only: importing
// JAX here would double the time of a start.
constexpr const char* kProbeScript = R"python(
import json, os, sys, sysconfig
found = {"python": list(sys.version_info[:3]), "prefix": sys.prefix, "libpython": None,
         "looked_for": [], "packages": {}}
name = sysconfig.get_config_var("INSTSONAME") or ""
folders = [sysconfig.get_config_var("LIBDIR"), os.path.join(sys.base_prefix, "lib")]
folders = [f for f in dict.fromkeys(folders) if f]
multiarch = sysconfig.get_config_var("MULTIARCH")
if multiarch:
    folders += [os.path.join(f, multiarch) for f in folders]
if ".so" not in name:
    name = "libpython%d.%d.so.1.0" % sys.version_info[:2]
for folder in folders:
    path = os.path.join(folder, name)
    found["looked_for"].append(path)
    if os.path.isfile(path):
        found["libpython"] = os.path.realpath(path)
        break
try:
    from importlib import metadata
    for package in ("tritonserver-jax", "jax", "jaxlib", "flax", "numpy"):
        try:
            found["packages"][package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found["packages"][package] = None
except ImportError:
    pass
print(json.dumps(found))
)python";

[[noreturn]] void Refuse(const std::string& directory, const std::string& backend_directory,
                         const std::string& problem) {
  throw StatusError(Code::kUnavailable, "Python environment " + directory + ": " + problem +
                                            ". Make it with " + backend_directory +
                                            "/scripts/setup_env.sh, or name another one with "
                                            "--backend-config=jax,env=DIRECTORY");
}

bool IsDirectory(const std::string& path) {
  struct stat info{};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

std::string LastLine(const std::string& text) {
  const size_t end = text.find_last_not_of("\n ");
  if (end == std::string::npos) {
    return "(it printed nothing)";
  }
  const size_t start = text.rfind('\n', end);
  return text.substr(start == std::string::npos ? 0 : start + 1,
                     end - (start == std::string::npos ? 0 : start + 1) + 1);
}

std::string Join(const nlohmann::json& values, const char* separator) {
  std::string text;
  for (const auto& value : values) {
    text += (text.empty() ? "" : separator) +
            (value.is_string() ? value.get<std::string>() : value.dump());
  }
  return text;
}

}  // namespace

PythonEnvironment ProbePythonEnvironment(const std::string& directory,
                                         const std::string& backend_directory) {
  if (!IsDirectory(directory)) {
    Refuse(directory, backend_directory, "there is no such directory");
  }
  PythonEnvironment environment;
  environment.executable = directory + "/bin/python";
  if (access(environment.executable.c_str(), X_OK) != 0) {
    Refuse(directory, backend_directory,
           "bin/python is missing, or points to a Python that is no longer there");
  }

  const ProcessResult result =
      RunProcess({environment.executable, "-I", "-X", "utf8", "-c", kProbeScript}, kProbeTimeout);
  if (result.exit_status == -1) {
    Refuse(directory, backend_directory,
           "its interpreter did not answer within " + std::to_string(kProbeTimeout.count()) + " s");
  }
  const nlohmann::json found =
      nlohmann::json::parse(result.standard_output, nullptr, /*allow_exceptions=*/false);
  if (result.exit_status != 0 || found.is_discarded()) {
    Refuse(directory, backend_directory,
           "its interpreter does not start: " + LastLine(result.standard_error));
  }

  const std::string version = Join(found["python"], ".");
  if (found["python"][0] != 3 || found["python"][1] < kOldestPythonMinor) {
    Refuse(directory, backend_directory,
           "expected Python 3." + std::to_string(kOldestPythonMinor) + " or newer, got " + version);
  }
  for (const char* package : {"tritonserver-jax", "jax", "jaxlib", "numpy"}) {
    if (!found["packages"].value(package, nlohmann::json()).is_string()) {
      Refuse(directory, backend_directory,
             std::string("its Python ") + version + " has no package " + package +
                 " (it was made for another Python, or not by setup_env.sh)");
    }
  }
  const std::string runtime = found["packages"]["tritonserver-jax"];
  if (runtime != TRITON_JAX_VERSION) {
    Refuse(directory, backend_directory,
           "it has tritonserver-jax " + runtime + ", but the backend is " + TRITON_JAX_VERSION);
  }
  if (!found["libpython"].is_string()) {
    Refuse(directory, backend_directory,
           "its Python " + version + " has no shared library, which embedding needs (looked for " +
               Join(found["looked_for"], ", ") +
               "); on Debian and Ubuntu it is in the package "
               "libpython3." +
               std::to_string(found["python"][1].get<int>()));
  }
  environment.prefix = found["prefix"];
  environment.libpython = found["libpython"];
  return environment;
}

}  // namespace triton_jax
