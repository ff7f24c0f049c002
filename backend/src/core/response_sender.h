// SPDX-License-Identifier: Apache-2.0
//
// A thread that ends requests: to send their responses takes longer than to run small models, and
// the next batch need not wait for it.

#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "request.h"

namespace triton_jax {

class ResponseSender {
 public:
  // `end` answers and releases the requests of a batch. Throws std::system_error where there is no
  // thread left.
  explicit ResponseSender(std::function<void(std::vector<Request>*)> end);
  // After all that was taken is ended.
  ~ResponseSender();
  ResponseSender(const ResponseSender&) = delete;
  ResponseSender& operator=(const ResponseSender&) = delete;

  // Whether there is room for another batch. One may wait: with more, responses would pile up, and
  // whoever makes them is to send them himself.
  bool HasRoom();
  // Takes a batch for which there is room.
  void Take(std::vector<Request> requests);

 private:
  void Loop();

  const std::function<void(std::vector<Request>*)> end_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Request> waiting_;
  bool closing_ = false;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace triton_jax
