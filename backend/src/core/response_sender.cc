// SPDX-License-Identifier: Apache-2.0

#include "response_sender.h"

#include <utility>

namespace triton_jax {

ResponseSender::ResponseSender(std::function<void(std::vector<Request>*)> end)
    : end_(std::move(end)), thread_([this] { Loop(); }) {}

ResponseSender::~ResponseSender() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closing_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

bool ResponseSender::HasRoom() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return waiting_.empty();
}

void ResponseSender::Take(std::vector<Request> requests) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting_ = std::move(requests);
  }
  changed_.notify_one();
}

void ResponseSender::Loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return closing_ || !waiting_.empty(); });
    if (waiting_.empty()) {
      return;
    }
    std::vector<Request> requests = std::exchange(waiting_, {});
    lock.unlock();
    end_(&requests);
    requests.clear();
    lock.lock();
  }
}

}  // namespace triton_jax
