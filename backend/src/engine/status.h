// SPDX-License-Identifier: Apache-2.0
//
// The outcome of an operation, in the terms of Triton's status codes, without depending on Triton.

#pragma once

#include <exception>
#include <new>
#include <string>
#include <utility>

namespace triton_jax {

// Values equal Triton's error codes.
enum class Code {
  kUnknown = 0,
  kInternal = 1,
  kNotFound = 2,
  kInvalidArg = 3,
  kUnavailable = 4,
  kUnsupported = 5,
  kAlreadyExists = 6,
  kCancelled = 7,  // since release 23.10
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : ok_(false), code_(code), message_(std::move(message)) {}

  // A failure after which nothing on the device can be expected to work.
  static Status Fatal(std::string message) {
    Status status(Code::kUnavailable, std::move(message));
    status.fatal_ = true;
    return status;
  }

  bool ok() const { return ok_; }
  bool fatal() const { return fatal_; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  bool ok_ = true;
  bool fatal_ = false;
  Code code_ = Code::kUnknown;
  std::string message_;
};

// A failed Status on its way up to an entry point, inside one library. Never crosses a library.
class StatusError : public std::exception {
 public:
  explicit StatusError(Status status) : status_(std::move(status)) {}
  StatusError(Code code, std::string message) : status_(code, std::move(message)) {}

  const Status& status() const { return status_; }
  const char* what() const noexcept override { return status_.message().c_str(); }

 private:
  Status status_;
};

inline void ThrowIfError(const Status& status) {
  if (!status.ok()) {
    throw StatusError(status);
  }
}

// Runs `function`, turning whatever it throws into a Status: for the edge of a library.
template <typename Function>
Status CatchStatus(Function&& function) {
  try {
    std::forward<Function>(function)();
    return {};
  } catch (const StatusError& error) {
    return error.status();
  } catch (const std::bad_alloc&) {
    return {Code::kUnavailable, "out of host memory"};
  } catch (const std::exception& error) {
    return {Code::kInternal, error.what()};
  } catch (...) {
    return {Code::kInternal, "unknown C++ exception"};
  }
}

}  // namespace triton_jax
