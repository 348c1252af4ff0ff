// SPDX-License-Identifier: Apache-2.0
// Shape: the dimensions of a tensor, without allocation. 64-bit everywhere.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "base/check.h"
#include "base/text.h"

namespace ronde {

class Shape {
 public:
  static constexpr size_t kMaxDims = 16;

  Shape() = default;
  // At most kMaxDims dimensions, none negative: the edge (capi) checks this with an error.
  explicit Shape(std::span<const int64_t> dims) : size_(static_cast<uint8_t>(dims.size())) {
    RONDE_CHECK(dims.size() <= kMaxDims, "too many dimensions");
    std::copy(dims.begin(), dims.end(), dims_.begin());
  }
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}

  std::span<const int64_t> dims() const { return {dims_.data(), size_}; }
  size_t ndim() const { return size_; }
  int64_t operator[](size_t i) const { return dims_[i]; }
  // The number of elements; 1 for a scalar.
  int64_t count() const {
    int64_t out = 1;
    for (const int64_t dim : dims()) out *= dim;
    return out;
  }
  Shape with_first(int64_t first) const {
    Shape out = *this;
    out.dims_[0] = first;
    return out;
  }
  bool operator==(const Shape& other) const { return std::ranges::equal(dims(), other.dims()); }
  // "[2, 3]"
  std::string to_string() const {
    std::string out = "[";
    for (size_t i = 0; i < size_; ++i) out += cat(i ? ", " : "", dims_[i]);
    return out + "]";
  }

 private:
  std::array<int64_t, kMaxDims> dims_{};
  uint8_t size_ = 0;
};

}  // namespace ronde
