// SPDX-License-Identifier: Apache-2.0
//
// Stands in for an engine: it returns what it is given, and fails, streams and counts on demand.
// See triton_stand_in.h for why it is here. The core gets it from LoadPythonEngine, the one
// function by which it asks for an engine: the tests are linked with this one's instead of the real
// one's.

#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace stand_in {

// What the core handed to an instance for one run.
struct Prepared {
  int64_t rows = 0;
  int64_t padded_rows = 0;
  std::vector<triton_jax::InputShape> shapes;
  std::vector<triton_jax::InputBuffer> inputs;
};

// How a model behaves. Output number i is a copy of input number i.
struct Script {
  triton_jax::ModelDescription description;
  triton_jax::Status load;      // of LoadModel
  triton_jax::Status instance;  // of CreateInstance
  triton_jax::Status prepare;   // of every Prepare
  std::vector<int64_t> buckets = {1, 2, 4, 8, 16, 32, 64};
  std::string device = "cpu:0";
  int gpu = -1;  // in whose memory it takes inputs, and gives outputs but for BYTES
  std::atomic<bool> gpu_memory{false};  // of the last InstanceSpec
  bool takes_in_place = false;
  int responses = 1;  // of a decoupled model
  // Called by Run and Start, and by Next with the number of the response.
  std::function<triton_jax::Status(const Prepared&)> run = nullptr;
  std::function<triton_jax::Status(int response)> next = nullptr;
  // Called when the outputs of a run are made, to make them wrong.
  std::function<void(std::vector<triton_jax::OutputBuffer>*)> outputs = nullptr;

  std::atomic<int> runs{0};
  std::atomic<int64_t> rows{0};
};

// What the engine will find under a name. Thread-safe.
void Define(const std::string& model, std::shared_ptr<Script> script);

// A failure of LoadPythonEngine; OK ends it.
void FailToStart(const triton_jax::Status& status);

}  // namespace stand_in
