// SPDX-License-Identifier: Apache-2.0
//
// Models and requests from a source of choices (random numbers in tests, a fuzzer's bytes), and
// what has to become of them.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine_stand_in.h"
#include "triton_stand_in.h"

namespace stand_in {

class Choices {
 public:
  virtual ~Choices() = default;
  // One of low … high.
  virtual int64_t Pick(int64_t low, int64_t high) = 0;
  bool OneIn(int64_t count) { return Pick(1, count) == count; }
};

struct Expected {
  triton_jax::Status status;
  Tensors outputs;
};

struct Case {
  std::shared_ptr<Script> script;
  std::vector<std::unique_ptr<Request>> requests;
  std::vector<Expected> expected;  // of each request

  // What the requests' answers have that they should not; empty if all is well.
  std::string Wrong() const;
};

// A model that returns its inputs, and up to `requests` requests, some of them broken.
Case MakeCase(Choices* choices, int64_t requests);

}  // namespace stand_in
