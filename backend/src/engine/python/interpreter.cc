// SPDX-License-Identifier: Apache-2.0

#include "interpreter.h"

#include <Python.h>
#include <pthread.h>
#include <signal.h>

#include "gil.h"
#include "interpreter_config.h"
#include "py_ref.h"
#include "python_error.h"

namespace triton_jax {
namespace {

// What sys.prefix is: Python silently falls back to its base prefix where the executable is gone.
std::string RunningPrefix() {
  PyObject* prefix = PySys_GetObject("prefix");  // borrowed
  Py_ssize_t size = 0;
  const char* text = prefix == nullptr ? nullptr : PyUnicode_AsUTF8AndSize(prefix, &size);
  if (text == nullptr) {
    PyErr_Clear();
    return "(no sys.prefix)";
  }
  return {text, static_cast<size_t>(size)};
}

void RunExitFunctions() {
  const PyRef atexit = CheckPython(PyImport_ImportModule("atexit"));
  CheckPython(PyObject_CallMethod(atexit.get(), "_run_exitfuncs", nullptr));
}

}  // namespace

Interpreter& Interpreter::Get() {
  // Never destroyed: threads of Python and JAX outlive every static object of this library.
  static auto* interpreter = new Interpreter;
  return *interpreter;
}

void Interpreter::Start(const std::string& executable, const std::string& prefix) {
  if (!thread_.joinable()) {
    if (stopping_) {
      throw StatusError(Code::kUnavailable, "Python has been stopped in this process");
    }
    thread_ = std::thread([this] { MainThread(); });
  }
  ThrowIfError(RunOnMainThread([&] {
    if (!initialized_) {
      InitializePython(executable.c_str());
      PyEval_SaveThread();
      initialized_ = true;
    }
    const Gil gil;
    const std::string running = RunningPrefix();
    if (running != prefix) {
      throw StatusError(Code::kUnavailable, "Python runs in this server with the environment " +
                                                running + ", expected " + prefix +
                                                "; restart the server to change it");
    }
  }));
}

Status Interpreter::RunOnMainThread(const std::function<void()>& task) {
  const std::lock_guard<std::mutex> one_call(calls_);
  std::unique_lock<std::mutex> lock(mutex_);
  if (stopping_ || !thread_.joinable()) {
    return {Code::kUnavailable, "Python's main thread does not run"};
  }
  task_ = &task;
  task_done_ = false;
  changed_.notify_all();
  changed_.wait(lock, [this] { return task_done_; });
  return task_status_;
}

void Interpreter::Stop() {
  if (!thread_.joinable()) {
    return;
  }
  if (initialized_) {
    // What an exit function raises, Python itself prints; there is nobody else to tell.
    static_cast<void>(RunOnMainThread([] {
      const Gil gil;
      RunExitFunctions();
    }));
    CloseGil();
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Interpreter::MainThread() {
  // Signals are the server's.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  pthread_setname_np(pthread_self(), "jax-python");

  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return task_ != nullptr || stopping_; });
    if (task_ == nullptr) {
      return;
    }
    const std::function<void()>& task = *task_;
    lock.unlock();
    Status status = CatchStatus(task);
    lock.lock();
    task_status_ = std::move(status);
    task_ = nullptr;
    task_done_ = true;
    changed_.notify_all();
  }
}

}  // namespace triton_jax
