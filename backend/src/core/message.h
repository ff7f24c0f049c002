// SPDX-License-Identifier: Apache-2.0
//
// Triton's JSON messages as strings.

#pragma once

#include <string>

#include "triton_status.h"

namespace triton_jax {

// The JSON of `message`, which stays its owner's.
inline std::string MessageText(TRITONSERVER_Message* message) {
  const char* base = nullptr;
  size_t bytes = 0;
  ThrowIfError(TRITONSERVER_MessageSerializeToJson(message, &base, &bytes));
  return {base, bytes};
}

// A message of our own, deleted with this object.
class OwnedMessage {
 public:
  OwnedMessage() = default;
  explicit OwnedMessage(const std::string& json) {
    ThrowIfError(TRITONSERVER_MessageNewFromSerializedJson(&message_, json.data(), json.size()));
  }
  ~OwnedMessage() {
    if (message_ != nullptr) {
      FromTriton(TRITONSERVER_MessageDelete(message_)).ok();
    }
  }
  OwnedMessage(const OwnedMessage&) = delete;
  OwnedMessage& operator=(const OwnedMessage&) = delete;

  TRITONSERVER_Message* get() const { return message_; }
  TRITONSERVER_Message** out() { return &message_; }

 private:
  TRITONSERVER_Message* message_ = nullptr;
};

}  // namespace triton_jax
