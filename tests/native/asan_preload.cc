// SPDX-License-Identifier: Apache-2.0
//
// Preloaded into a stock server before AddressSanitizer's runtime, for what that does not stand.
//
// - The runtime starts itself at the first allocation. In a stock server that is one that the C
//   library makes while it holds a lock, for the constructor of some library; the runtime takes
//   that lock again, leaves it broken, and whoever takes it next (Python, when it starts) waits for
//   ever. So this library's constructor, which is linked to run before all others (-z initfirst),
//   allocates first.
// - The runtime ends a process that opens a library with RTLD_DEEPBIND, as the engine has Python do
//   for modules that would find the server's OpenSSL instead of their own. Here they are opened
//   without it; those that cannot be are missing, as they are in a Python that was built without
//   them.

#include <dlfcn.h>

#include <cstdlib>

namespace {

using Dlopen = void*(const char*, int);

__attribute__((constructor)) void Allocate() {
  void* volatile memory = std::malloc(1);
  std::free(memory);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void* dlopen(const char* file,
                                                               int mode) noexcept {
  static auto* const next = reinterpret_cast<Dlopen*>(dlsym(RTLD_NEXT, "dlopen"));
  return next(file, mode & ~RTLD_DEEPBIND);
}
