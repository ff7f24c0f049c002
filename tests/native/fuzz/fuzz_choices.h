// SPDX-License-Identifier: Apache-2.0
//
// Choices from a fuzzer's bytes: one byte for each, and the smallest where there is none left.

#pragma once

#include <cstddef>
#include <cstdint>

#include "random_case.h"

namespace stand_in {

class FuzzChoices : public Choices {
 public:
  FuzzChoices(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  int64_t Pick(int64_t low, int64_t high) override {
    if (size_ == 0) {
      return low;
    }
    --size_;
    return low + *data_++ % (high - low + 1);
  }

 private:
  const uint8_t* data_;
  size_t size_;
};

}  // namespace stand_in
