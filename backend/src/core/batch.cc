// SPDX-License-Identifier: Apache-2.0

#include "batch.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "data_type.h"
#include "gpu_gather.h"

namespace triton_jax {
namespace {

// The smallest of the lengths that holds `size`, which is no larger than the last of them.
int64_t PaddedSize(int64_t size, const Dims& lengths) {
  const auto found = std::lower_bound(lengths.begin(), lengths.end(), size);
  return found == lengths.end() ? size : *found;
}

Dims Padded(const TensorSpec& spec, const Dims& dims) {
  Dims padded = dims;
  for (size_t i = 0; i < padded.size(); ++i) {
    if (spec.dims[i] < 0) {
      padded[i] = PaddedSize(padded[i], spec.lengths);
    }
  }
  return padded;
}

// Requests of different lengths run together as long as they take no more than so many times the
// memory that they take apart. Two long in different dimensions would take the product of both.
constexpr size_t kMostPadding = 8;
// ... unless that is so little that running them apart costs more.
constexpr size_t kLittlePadding = size_t{1} << 20U;

// What an engine wants of input that it uses where it is, and from how many bytes on a copy costs
// more than to hand over another address.
constexpr size_t kHostAlignment = 64;
constexpr size_t kWorthLeaving = 256UL * 1024;

// Ragged strings are not padded, so their numbers have to agree.
bool IsPadded(const TensorSpec& spec) { return spec.ragged && spec.dtype != DataType::kBytes; }

// No more than 2**48, which no machine has, so that sums of them do not overflow.
size_t PaddedBytes(const TensorSpec& spec, const Dims& dims, int64_t rows) {
  Dims padded = Padded(spec, dims);
  padded.insert(padded.begin(), rows);
  constexpr size_t kMost = size_t{1} << 48U;
  return std::min(TensorBytes(spec.dtype, padded).value_or(kMost), kMost);
}

void GrowTo(const Dims& dims, Dims* largest) {
  for (size_t d = 0; d < largest->size(); ++d) {
    (*largest)[d] = std::max((*largest)[d], dims[d]);
  }
}

// Fills `bytes` bytes up with copies of the last of the `filled` ones' rows; with zeros if there is
// no row.
void RepeatLastRow(char* data, size_t filled, size_t bytes, size_t row_bytes) {
  if (filled == 0) {
    std::memset(data, 0, bytes);
    return;
  }
  for (size_t position = filled; position + row_bytes <= bytes && row_bytes > 0;
       position += row_bytes) {
    std::memcpy(data + position, data + position - row_bytes, row_bytes);
  }
}

}  // namespace

bool Batch::Takes(const Request& request) const {
  if (requests_.empty()) {
    return true;
  }
  if (model_.decoupled || rows_ + request.rows() > model_.max_batch_size) {
    return false;
  }
  for (size_t i = 0; i < shapes_.size(); ++i) {
    const TensorSpec& spec = model_.inputs[i];
    const InputShape& shape = request.shapes()[i];
    if (shape.present != shapes_[i].present) {
      return false;
    }
    if (!IsPadded(spec)) {
      if (Padded(spec, shape.dims) != Padded(spec, shapes_[i].dims)) {
        return false;
      }
      continue;
    }
    Dims largest = shapes_[i].dims;
    GrowTo(shape.dims, &largest);
    const size_t together = PaddedBytes(spec, largest, rows_ + request.rows());
    const size_t own = PaddedBytes(spec, shape.dims, request.rows());
    if (together > kLittlePadding && together / kMostPadding > apart_[i] + own) {
      return false;
    }
  }
  return true;
}

void Batch::Add(Request* request) {
  if (requests_.empty()) {
    shapes_ = request->shapes();
    apart_.resize(shapes_.size());
  } else {
    for (size_t i = 0; i < shapes_.size(); ++i) {
      GrowTo(request->shapes()[i].dims, &shapes_[i].dims);
    }
  }
  for (size_t i = 0; i < shapes_.size(); ++i) {
    if (IsPadded(model_.inputs[i])) {
      apart_[i] += PaddedBytes(model_.inputs[i], request->shapes()[i].dims, request->rows());
    }
  }
  requests_.push_back(request);
  rows_ += request->rows();
}

std::vector<InputShape> Batch::Shapes() const {
  std::vector<InputShape> shapes = shapes_;
  for (size_t i = 0; i < shapes.size(); ++i) {
    shapes[i].dims = Padded(model_.inputs[i], shapes[i].dims);
  }
  return shapes;
}

void Batch::Gather(const std::vector<InputShape>& shapes, std::vector<InputBuffer>* buffers,
                   GpuMemory* gpu_memory, int gpu) {
  elements_.resize(shapes.size());
  for (size_t i = 0; i < shapes.size(); ++i) {
    const TensorSpec& spec = model_.inputs[i];
    InputBuffer& buffer = (*buffers)[i];
    if (spec.dtype == DataType::kBytes) {
      for (Request* request : requests_) {
        request->AppendElements(i, &elements_[i]);
      }
      buffer.data = elements_[i].data();
      buffer.bytes = elements_[i].size();
    } else if (shapes[i].present) {
      const std::optional<size_t> row_bytes = TensorBytes(spec.dtype, shapes[i].dims);
      size_t filled = 0;
      if (!row_bytes || __builtin_mul_overflow(*row_bytes, static_cast<size_t>(rows_), &filled) ||
          filled > buffer.bytes) {
        throw StatusError(Code::kInternal, "input '" + spec.name + "': a batch of " +
                                               std::to_string(rows_) + " rows of " +
                                               DimsText(shapes[i].dims) + " does not fit in " +
                                               std::to_string(buffer.bytes) + " bytes");
      }
      if (buffer.lengths != nullptr) {
        FillLengths(i, buffer);
      }
      if (gpu >= 0 &&
          GatherOnGpu(gpu_memory, gpu, requests_, i, shapes[i].dims, *row_bytes, &buffer)) {
        continue;
      }
      if (buffer.takes_in_place && filled == buffer.bytes && filled >= kWorthLeaving &&
          requests_.size() == 1 && requests_.front()->ok()) {
        buffer.in_place = requests_.front()->InPlace(i, shapes[i].dims, filled, -1, kHostAlignment);
        if (buffer.in_place != nullptr) {
          continue;
        }
      }
      char* destination = buffer.data;
      for (Request* request : requests_) {
        const size_t bytes = *row_bytes * static_cast<size_t>(request->rows());
        // Beyond what the request has, zeros: never what an earlier one left there.
        if (!request->ok() || request->shapes()[i].dims != shapes[i].dims) {
          std::memset(destination, 0, bytes);
        }
        request->CopyInput(i, shapes[i].dims, destination);
        destination += bytes;
      }
      RepeatLastRow(buffer.data, filled, buffer.bytes, *row_bytes);
    }
  }
}

void Batch::FillLengths(size_t index, const InputBuffer& buffer) const {
  const TensorSpec& spec = model_.inputs[index];
  int32_t* next = buffer.lengths;
  for (const Request* request : requests_) {
    for (int64_t row = 0; row < request->rows(); ++row) {
      for (size_t d = 0; d < spec.dims.size(); ++d) {
        if (spec.dims[d] < 0) {
          *next++ = static_cast<int32_t>(request->shapes()[index].dims[d]);
        }
      }
    }
  }
  const auto filled = static_cast<size_t>(next - buffer.lengths) * sizeof(int32_t);
  const auto varying = static_cast<size_t>(std::count(spec.dims.begin(), spec.dims.end(), -1));
  RepeatLastRow(reinterpret_cast<char*>(buffer.lengths), filled,
                buffer.length_count * sizeof(int32_t), varying * sizeof(int32_t));
}

std::vector<Batch> FormBatches(const ModelDescription& model, std::vector<Request>* requests) {
  std::vector<Batch> batches;
  for (Request& request : *requests) {
    if (!request.ok()) {
      continue;
    }
    const auto home = std::find_if(batches.begin(), batches.end(),
                                   [&](const Batch& batch) { return batch.Takes(request); });
    if (home == batches.end()) {
      batches.emplace_back(model).Add(&request);
    } else {
      home->Add(&request);
    }
  }
  return batches;
}

}  // namespace triton_jax
