// SPDX-License-Identifier: Apache-2.0
//
// Any model and any requests, from gathering to scattering: each request gets what it sent, or is
// refused for what is wrong with it, whoever shares its batch.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "fuzz_choices.h"
#include "random_case.h"
#include "triton_stand_in.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static stand_in::Backend backend;
  stand_in::FuzzChoices choices(data, size);
  const stand_in::Case made = stand_in::MakeCase(&choices, 6);
  stand_in::Define("fuzzed", made.script);
  stand_in::Model model(&backend, "fuzzed");
  stand_in::Instance instance(&model);
  std::vector<stand_in::Request*> requests;
  for (const auto& request : made.requests) {
    requests.push_back(request.get());
  }
  std::string wrong = instance.Execute(requests).ok() ? made.Wrong() : "Execute failed";
  for (const std::string& violation : stand_in::TakeViolations()) {
    wrong += violation + "\n";
  }
  if (!wrong.empty()) {
    std::fprintf(stderr, "%s\n", wrong.c_str());
    std::abort();
  }
  stand_in::TakeLog();
  return 0;
}
