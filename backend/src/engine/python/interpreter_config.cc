// SPDX-License-Identifier: Apache-2.0

#include "interpreter_config.h"

#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <string>

#include "python_init_abi.h"

namespace triton_jax {
namespace {

template <typename Function>
Function* Find(const char* name) {
  auto* function = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
  if (function == nullptr) {
    throw StatusError(Code::kUnsupported,
                      std::string("this Python's shared library has no function ") + name);
  }
  return function;
}

void Check(const InitStatus& status, const char* executable) {
  if (status.type != 0) {
    throw StatusError(Code::kUnavailable,
                      std::string("Python does not start (") + executable +
                          "): " + (status.message == nullptr ? "no reason given" : status.message));
  }
}

}  // namespace

void InitializePython(const char* executable) {
  PreConfig preconfig{};
  Find<void(PreConfig*)>("PyPreConfig_InitIsolatedConfig")(&preconfig);
  preconfig.utf8_mode = 1;
  Check(Find<InitStatus(const PreConfig*)>("Py_PreInitialize")(&preconfig), executable);

  OpaqueConfig config{};
  Find<void(OpaqueConfig*)>("PyConfig_InitIsolatedConfig")(&config);
  // Python finds its environment from the name it was run by, which is argv[0]: the one setting
  // that can be made without knowing where in PyConfig it is.
  std::array<char*, 1> argv{const_cast<char*>(executable)};
  InitStatus status = Find<InitStatus(OpaqueConfig*, ssize_t, char* const*)>(
      "PyConfig_SetBytesArgv")(&config, argv.size(), argv.data());
  if (status.type == 0) {
    status = Find<InitStatus(const OpaqueConfig*)>("Py_InitializeFromConfig")(&config);
  }
  Find<void(OpaqueConfig*)>("PyConfig_Clear")(&config);
  Check(status, executable);
}

}  // namespace triton_jax
