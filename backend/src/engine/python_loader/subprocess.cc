// SPDX-License-Identifier: Apache-2.0

#include "subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "engine/status.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX leaves it to the program

namespace triton_jax {
namespace {

class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) {
      throw StatusError(Code::kUnavailable, std::string("pipe: ") + std::strerror(errno));
    }
  }
  ~Pipe() {
    CloseWriteEnd();
    close(ends_[0]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  void CloseWriteEnd() {
    if (ends_[1] >= 0) {
      close(ends_[1]);
      ends_[1] = -1;
    }
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

// Reads both pipes until both end or the deadline passes; true if both ended.
bool Drain(const Pipe& out, std::string* out_text, const Pipe& err, std::string* err_text,
           std::chrono::steady_clock::time_point deadline) {
  std::array<pollfd, 2> polled{{{out.read_end(), POLLIN, 0}, {err.read_end(), POLLIN, 0}}};
  const std::array<std::string*, 2> texts{out_text, err_text};
  int open = 2;
  while (open > 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      return false;
    }
    if (poll(polled.data(), polled.size(), static_cast<int>(left.count())) < 0 && errno != EINTR) {
      return false;
    }
    for (size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].fd < 0 || polled[i].revents == 0) {
        continue;
      }
      std::array<char, 4096> chunk{};
      const ssize_t count = read(polled[i].fd, chunk.data(), chunk.size());
      if (count > 0) {
        texts[i]->append(chunk.data(), static_cast<size_t>(count));
      } else if (count == 0 || errno != EINTR) {
        polled[i].fd = -1;  // poll skips it
        --open;
      }
    }
  }
  return true;
}

}  // namespace

ProcessResult RunProcess(const std::vector<std::string>& arguments,
                         std::chrono::milliseconds timeout) {
  Pipe out;
  Pipe err;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write_end(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.write_end(), STDERR_FILENO);

  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);

  pid_t child = -1;
  const int spawned = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (spawned != 0) {
    throw StatusError(Code::kUnavailable,
                      "cannot run " + arguments[0] + ": " + std::strerror(spawned));
  }
  out.CloseWriteEnd();
  err.CloseWriteEnd();

  ProcessResult result;
  const bool ended = Drain(out, &result.standard_output, err, &result.standard_error,
                           std::chrono::steady_clock::now() + timeout);
  if (!ended) {
    kill(child, SIGKILL);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  result.exit_status = ended ? status : -1;
  return result;
}

}  // namespace triton_jax
