// SPDX-License-Identifier: Apache-2.0

#include "python_engine.h"

#include <memory>

#include "gil.h"
#include "host_functions.h"
#include "interpreter.h"
#include "py_ref.h"
#include "python_error.h"
#include "python_model.h"

namespace triton_jax {
namespace {

constexpr const char* kRuntimeModule = "tritonserver_jax.runtime.entry";

class PythonEngine : public Engine {
 public:
  explicit PythonEngine(PyRef runtime) : runtime_(std::move(runtime)) {}

  ~PythonEngine() override {
    {
      const Gil gil;
      runtime_.reset();
    }
    Interpreter::Get().Stop();
  }

  Status LoadModel(const ModelSpec& spec, ModelObserver* observer,
                   std::unique_ptr<Model>* model) override {
    Status status = CatchStatus([&] {
      const Gil gil;
      *model = std::make_unique<PythonModel>(runtime_.get(), spec, observer);
    });
    if (!status.ok()) {
      const Gil gil;
      ForgetUnloadedModels(runtime_.get());
    }
    return status;
  }

 private:
  PyRef runtime_;
};

}  // namespace
}  // namespace triton_jax

void triton_jax_python_engine(const triton_jax::PythonEngineOptions* options,
                              triton_jax::Host* host, triton_jax::Engine** engine,
                              triton_jax::Status* status) {
  using namespace triton_jax;  // NOLINT(google-build-using-namespace): this is its one function
  *status = CatchStatus([&] {
    Interpreter& interpreter = Interpreter::Get();
    interpreter.Start(options->executable, options->prefix);
    PyRef runtime;
    // JAX is imported on Python's main thread, which some of its dependencies insist on.
    ThrowIfError(interpreter.RunOnMainThread([&] {
      const Gil gil;
      runtime = CheckPython(PyImport_ImportModule(kRuntimeModule));
      CheckPython(PyObject_CallMethod(runtime.get(), "initialize", "Os", LogFunction(host).get(),
                                      options->settings));
    }));
    *engine = new PythonEngine(std::move(runtime));
  });
}
