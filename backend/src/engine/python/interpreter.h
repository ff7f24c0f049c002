// SPDX-License-Identifier: Apache-2.0
//
// The Python interpreter of this process: started once, on a thread of its own, and never
// finalised.

#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "engine/status.h"

namespace triton_jax {

// Python's main thread must be one that stays: initialised on one of Triton's loader threads, its
// end would come on another, and hang. It is not finalised, because Py_FinalizeEx waits for threads
// that a model's code left running; Stop runs what was registered with atexit instead.
class Interpreter {
 public:
  static Interpreter& Get();

  // Starts Python as `executable` unless it already runs. Throws StatusError if it cannot, or if
  // what runs is another environment than `prefix`. May be tried again.
  void Start(const std::string& executable, const std::string& prefix);

  // Runs `task` on Python's main thread with the GIL held, and returns when it is done.
  Status RunOnMainThread(const std::function<void()>& task);

  // Runs Python's exit functions and ends the main thread. Python cannot be started again after it.
  void Stop();

 private:
  Interpreter() = default;

  void MainThread();

  std::mutex calls_;  // one task at a time
  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* task_ = nullptr;
  Status task_status_;
  bool task_done_ = false;
  bool stopping_ = false;
  bool initialized_ = false;
  std::thread thread_;
};

}  // namespace triton_jax
