// SPDX-License-Identifier: Apache-2.0
//
// Sizes and names of data types, and how much memory a tensor of them takes.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "engine/engine.h"

namespace triton_jax {

// Bytes of one element; 0 for BYTES, whose elements vary.
constexpr size_t ElementBytes(DataType dtype) {
  switch (dtype) {
    case DataType::kBool:
    case DataType::kUint8:
    case DataType::kInt8:
      return 1;
    case DataType::kUint16:
    case DataType::kInt16:
    case DataType::kFp16:
    case DataType::kBf16:
      return 2;
    case DataType::kUint32:
    case DataType::kInt32:
    case DataType::kFp32:
      return 4;
    case DataType::kUint64:
    case DataType::kInt64:
    case DataType::kFp64:
      return 8;
    case DataType::kBytes:
    case DataType::kInvalid:
      break;
  }
  return 0;
}

constexpr const char* DataTypeName(DataType dtype) {
  switch (dtype) {
    case DataType::kBool:
      return "BOOL";
    case DataType::kUint8:
      return "UINT8";
    case DataType::kUint16:
      return "UINT16";
    case DataType::kUint32:
      return "UINT32";
    case DataType::kUint64:
      return "UINT64";
    case DataType::kInt8:
      return "INT8";
    case DataType::kInt16:
      return "INT16";
    case DataType::kInt32:
      return "INT32";
    case DataType::kInt64:
      return "INT64";
    case DataType::kFp16:
      return "FP16";
    case DataType::kFp32:
      return "FP32";
    case DataType::kFp64:
      return "FP64";
    case DataType::kBytes:
      return "BYTES";
    case DataType::kBf16:
      return "BF16";
    case DataType::kInvalid:
      break;
  }
  return "INVALID";
}

// Bytes of a tensor of `dims`, or nothing where a dimension is negative or the product overflows.
inline std::optional<size_t> TensorBytes(DataType dtype, const Dims& dims) {
  size_t bytes = ElementBytes(dtype);
  for (const int64_t dim : dims) {
    if (dim < 0 || __builtin_mul_overflow(bytes, static_cast<size_t>(dim), &bytes)) {
      return std::nullopt;
    }
  }
  return bytes;
}

// "[2,3]"
inline std::string DimsText(const Dims& dims) {
  std::string text = "[";
  for (const int64_t dim : dims) {
    if (text.size() > 1) {
      text += ",";
    }
    text += std::to_string(dim);
  }
  return text + "]";
}

}  // namespace triton_jax
