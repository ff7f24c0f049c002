// SPDX-License-Identifier: Apache-2.0

#include "gil.h"

#include <atomic>

namespace triton_jax {
namespace {

std::atomic<bool> closed{false};

class ThreadState {
 public:
  ~ThreadState() {
    if (state_ != nullptr && !closed.load()) {
      PyEval_RestoreThread(state_);
      PyGILState_Release(PyGILState_UNLOCKED);  // the last release: deletes the thread state
    }
  }

  void Acquire() {
    if (state_ == nullptr) {
      PyGILState_Ensure();
    } else {
      PyEval_RestoreThread(state_);
    }
    held_ = true;
  }
  void Release() {
    held_ = false;
    state_ = PyEval_SaveThread();
  }
  bool held() const { return held_; }

 private:
  PyThreadState* state_ = nullptr;
  bool held_ = false;
};

thread_local ThreadState thread_state;

}  // namespace

Gil::Gil() : nested_(thread_state.held()) {
  if (!nested_) {
    thread_state.Acquire();
  }
}

Gil::~Gil() {
  if (!nested_) {
    thread_state.Release();
  }
}

void CloseGil() { closed.store(true); }

}  // namespace triton_jax
