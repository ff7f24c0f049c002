// SPDX-License-Identifier: Apache-2.0

#include "python_engine_loader.h"

#include <dlfcn.h>

#include "engine/python/python_engine.h"
#include "python_environment.h"

namespace triton_jax {
namespace {

constexpr const char* kEngineLibrary = "libtriton_jax_python.so";

void* Open(const std::string& path, int flags) {
  // Never unloaded: Python and JAX leave threads and thread-local objects that point into it.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_NODELETE | flags);
  if (library == nullptr) {
    throw StatusError(Code::kUnavailable, std::string("cannot open ") + path + ": " + dlerror());
  }
  return library;
}

}  // namespace

std::shared_ptr<Engine> LoadPythonEngine(const PythonEngineSpec& spec, Host* host) {
  const PythonEnvironment environment =
      ProbePythonEnvironment(spec.environment, spec.backend_directory);
  // Global, although Triton opens backends locally: Python's extension modules are not linked
  // against libpython and look its symbols up in the process.
  Open(environment.libpython, RTLD_GLOBAL);
  void* library = Open(spec.backend_directory + "/" + kEngineLibrary, RTLD_LOCAL);
  auto* make_engine =
      reinterpret_cast<TritonJaxPythonEngine*>(dlsym(library, "triton_jax_python_engine"));
  if (make_engine == nullptr) {
    throw StatusError(Code::kInternal, std::string(kEngineLibrary) +
                                           " is not the jax backend's: it has no symbol "
                                           "triton_jax_python_engine");
  }
  const PythonEngineOptions options{environment.executable.c_str(), environment.prefix.c_str(),
                                    spec.settings.c_str()};
  Engine* engine = nullptr;
  Status status;
  make_engine(&options, host, &engine, &status);
  ThrowIfError(status);
  return std::shared_ptr<Engine>(engine);
}

}  // namespace triton_jax
