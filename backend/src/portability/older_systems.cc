// SPDX-License-Identifier: Apache-2.0
//
// Functions that newer compilers and C libraries put in place of older ones, and that the systems
// of older release images do not have. They are defined here in terms of what every system has,
// and are not exported, so that the libraries can be built on a newer system than they run on.
//
// Which ones are needed is found by ci/symbols.py, which compares what the libraries need with
// what the image of each release has.

#include <exception>

namespace {

// The functions themselves, whatever a header makes of their names.
extern "C" long long OldStrtoll(const char* text, char** end, int base) __asm__("strtoll");
extern "C" unsigned long long OldStrtoull(const char* text, char** end,
                                          int base) __asm__("strtoull");
extern "C" void* BeginCatch(void* exception) noexcept __asm__("__cxa_begin_catch");

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier): these are the names that are looked for.
extern "C" {

// glibc 2.38 has numbers such as 0b101 of C23 in them. No caller of ours reads such.
long long __isoc23_strtoll(const char* text, char** end, int base) {
  return OldStrtoll(text, end, base);
}

unsigned long long __isoc23_strtoull(const char* text, char** end, int base) {
  return OldStrtoull(text, end, base);
}

// What GCC 14 calls when an exception would leave a noexcept function.
void __cxa_call_terminate(void* exception) noexcept {
  if (exception != nullptr) {
    BeginCatch(exception);
  }
  std::terminate();
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
