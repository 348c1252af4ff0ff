// SPDX-License-Identifier: Apache-2.0
// What the kernels must compute, element by element and as plainly as possible, for tests. Each step of a float32 is
// taken in double and rounded (exact: a double has more than twice the digits), integers in 128 bits, halves by looking
// for the nearest neighbour.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "tensor/kernels.h"

namespace ronde::reference {

// A value of a half with `mantissa_bits`: the exact number that its bits stand for.
inline double half_value(uint32_t bits, int mantissa_bits) {
  const int exponent_bits = 15 - mantissa_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>((bits & 0x7fff) >> mantissa_bits);
  const auto mantissa = static_cast<double>(bits & ((1u << mantissa_bits) - 1));
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  const double one = std::ldexp(1.0, mantissa_bits);
  if (exponent == (1 << exponent_bits) - 1) {
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(one + mantissa, exponent - bias - mantissa_bits);
}

// The half nearest to x, to even; what lies half a step beyond the largest is infinite.
inline uint16_t nearest_half(double x, int mantissa_bits) {
  const uint32_t sign = std::signbit(x) ? 0x8000 : 0;
  const uint32_t infinite = ((1u << (15 - mantissa_bits)) - 1) << mantissa_bits;
  if (std::isnan(x)) return static_cast<uint16_t>(sign | infinite | (1u << (mantissa_bits - 1)));
  const double size = std::fabs(x);
  const double step_beyond = 2 * half_value(infinite - 1, mantissa_bits) - half_value(infinite - 2, mantissa_bits);
  const auto value = [&](uint32_t bits) { return bits == infinite ? step_beyond : half_value(bits, mantissa_bits); };
  uint32_t low = 0;
  uint32_t high = infinite;
  while (low + 1 < high) {
    const uint32_t middle = (low + high) / 2;
    (value(middle) <= size ? low : high) = middle;
  }
  const double below = size - value(low);
  const double above = value(high) - size;
  const bool up = above < below || (above == below && low % 2 == 1);
  return static_cast<uint16_t>(sign | (up ? high : low));
}

constexpr int mantissa_bits_of(DType half) {
  return half == DType::F16 ? 10 : 7;
}

template <class T>
T load(const Bytes& bytes, size_t i) {
  T out;
  std::memcpy(&out, bytes.data() + i * sizeof(T), sizeof(T));
  return out;
}
template <class T>
void store(Bytes& bytes, size_t i, T value) {
  std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
}

template <class T>
T chosen(Combine op, T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  const bool first = op == Combine::Min ? a <= b : a >= b;
  return first ? a : b;
}

inline float step(Combine op, float a, float b) {
  if (op == Combine::Sum) return static_cast<float>(static_cast<double>(a) + static_cast<double>(b));
  if (op == Combine::Product) return static_cast<float>(static_cast<double>(a) * static_cast<double>(b));
  return chosen(op, a, b);
}
inline double step(Combine op, double a, double b) {
  if (op == Combine::Sum) return a + b;
  return op == Combine::Product ? a * b : chosen(op, a, b);
}
template <class T>
T integer_step(Combine op, T a, T b) {
  if (op == Combine::Sum) return static_cast<T>(static_cast<__int128>(a) + b);  // conversion keeps the lowest bits
  if (op == Combine::Product) return static_cast<T>(static_cast<__int128>(a) * b);
  return op == Combine::Min ? std::min(a, b) : std::max(a, b);
}

inline float scaled(float x, const Scale& scale) {
  if (scale.is_identity()) return x;
  const auto factor = static_cast<float>(scale.factor / static_cast<double>(scale.divisor));
  return static_cast<float>(static_cast<double>(x) * static_cast<double>(factor));
}
inline double scaled(double x, const Scale& scale) {
  return scale.is_identity() ? x : x * (scale.factor / static_cast<double>(scale.divisor));
}
template <class T>
T integer_scaled(T x, const Scale& scale) {
  if (scale.factor == 1.0) return static_cast<T>(static_cast<__int128>(x) / scale.divisor);
  using Wide = std::conditional_t<sizeof(T) == 8, long double, double>;
  const Wide product = static_cast<Wide>(x) * static_cast<Wide>(scale.factor);
  const Wide value = std::trunc(product / static_cast<Wide>(scale.divisor));
  if (std::isnan(value)) return 0;
  if (value > static_cast<Wide>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  if (value < static_cast<Wide>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  return static_cast<T>(value);
}

template <class T>
void combine_floats(Combine op, Bytes& out, const std::vector<Bytes>& srcs, const Scale& scale) {
  for (size_t i = 0; i < out.size() / sizeof(T); ++i) {
    T value = load<T>(srcs[0], i);
    for (size_t k = 1; k < srcs.size(); ++k) value = step(op, value, load<T>(srcs[k], i));
    store(out, i, scaled(value, scale));
  }
}
template <class T>
void combine_integers(Combine op, Bytes& out, const std::vector<Bytes>& srcs, const Scale& scale) {
  for (size_t i = 0; i < out.size() / sizeof(T); ++i) {
    T value = load<T>(srcs[0], i);
    for (size_t k = 1; k < srcs.size(); ++k) value = integer_step(op, value, load<T>(srcs[k], i));
    store(out, i, integer_scaled(value, scale));
  }
}
inline void combine_halves(Combine op, DType dtype, Bytes& out, const std::vector<Bytes>& srcs, const Scale& scale) {
  const int bits = mantissa_bits_of(dtype);
  const auto wide = [&](size_t k, size_t i) {
    return static_cast<float>(half_value(load<uint16_t>(srcs[k], i), bits));
  };
  for (size_t i = 0; i < out.size() / 2; ++i) {
    float value = wide(0, i);
    for (size_t k = 1; k < srcs.size(); ++k) value = step(op, value, wide(k, i));
    store(out, i, nearest_half(static_cast<double>(scaled(value, scale)), bits));
  }
}
inline void combine_bools(Combine op, Bytes& out, const std::vector<Bytes>& srcs) {
  for (size_t i = 0; i < out.size(); ++i) {
    size_t trues = 0;
    for (const Bytes& src : srcs) trues += src[i] != std::byte{0} ? 1 : 0;
    const bool all = op == Combine::Min || op == Combine::Product;
    out[i] = static_cast<std::byte>(all ? trues == srcs.size() : trues > 0);
  }
}

inline Bytes combined(Combine op, DType dtype, const std::vector<Bytes>& srcs, const Scale& scale) {
  Bytes out(srcs[0].size());
  switch (dtype) {
    case DType::F32:
      combine_floats<float>(op, out, srcs, scale);
      break;
    case DType::F64:
      combine_floats<double>(op, out, srcs, scale);
      break;
    case DType::F16:
    case DType::BF16:
      combine_halves(op, dtype, out, srcs, scale);
      break;
    case DType::I32:
      combine_integers<int32_t>(op, out, srcs, scale);
      break;
    case DType::I64:
      combine_integers<int64_t>(op, out, srcs, scale);
      break;
    case DType::U8:
      combine_integers<uint8_t>(op, out, srcs, scale);
      break;
    case DType::Bool:
      combine_bools(op, out, srcs);
      break;
    case DType::I8:
      combine_integers<int8_t>(op, out, srcs, scale);
      break;
    case DType::I16:
      combine_integers<int16_t>(op, out, srcs, scale);
      break;
    case DType::U16:
      combine_integers<uint16_t>(op, out, srcs, scale);
      break;
    case DType::C64:
    case DType::C128:
      return combined(op, part_of(dtype), srcs, scale);
  }
  return out;
}

// True if element i is a NaN.
inline bool is_nan(DType dtype, const Bytes& bytes, size_t i) {
  if (dtype == DType::F32) return std::isnan(load<float>(bytes, i));
  if (dtype == DType::F64) return std::isnan(load<double>(bytes, i));
  if (row(dtype).kind != NumberKind::Float) return false;
  return std::isnan(half_value(load<uint16_t>(bytes, i), mantissa_bits_of(dtype)));
}

// The first element in which two results differ (-1: none). Any NaN equals any other.
inline int64_t first_difference(DType dtype, const Bytes& a, const Bytes& b) {
  const size_t size = size_of(dtype);
  if (row(dtype).kind == NumberKind::Complex) return first_difference(part_of(dtype), a, b);
  RONDE_CHECK(a.size() == b.size(), "results of one size are compared");
  for (size_t i = 0; i < a.size() / size; ++i) {
    if (std::memcmp(a.data() + i * size, b.data() + i * size, size) == 0) continue;
    if (!is_nan(dtype, a, i) || !is_nan(dtype, b, i)) return static_cast<int64_t>(i);
  }
  return -1;
}

using Random = std::mt19937_64;

// The bits of a number: mostly ordinary ones, one in eight an extreme one (zeros, infinities, NaN, subnormals, limits).
inline uint64_t random_bits(DType dtype, Random& random) {
  const uint64_t bits = random();
  const bool extreme = random() % 8 == 0;
  if (row(dtype).kind != NumberKind::Float) {
    static constexpr uint64_t kEdges[] = {0,          1,          ~uint64_t{0}, uint64_t{1} << 63, ~(uint64_t{1} << 63),
                                          0x80000000, 0x7fffffff, 0x80};
    return extreme ? kEdges[bits % std::size(kEdges)] : bits;
  }
  if (extreme) {
    static constexpr double kEdges[] = {0.0, 1.0, 1e-7, 65504.0, 1e38, 3.0e-39, 1e-310, 1e308};
    const double edge = bits % 16 < 8 ? kEdges[bits % 8] : bits % 16 < 12 ? HUGE_VAL : std::nan("");
    const double value = bits & 256 ? -edge : edge;
    if (dtype == DType::F64) return std::bit_cast<uint64_t>(value);
    if (dtype == DType::F32) return std::bit_cast<uint32_t>(static_cast<float>(value));
    return nearest_half(value, mantissa_bits_of(dtype));
  }
  const double value = std::ldexp(static_cast<double>(static_cast<int64_t>(bits)), -60);  // -8 ... 8
  if (dtype == DType::F64) return std::bit_cast<uint64_t>(value);
  if (dtype == DType::F32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  return nearest_half(value, mantissa_bits_of(dtype));
}

inline Bytes random_tensor(DType dtype, size_t count, Random& random) {
  if (row(dtype).kind == NumberKind::Complex) return random_tensor(part_of(dtype), parts(dtype, count), random);
  Bytes out(count * size_of(dtype));
  for (size_t i = 0; i < count; ++i) {
    uint64_t bits = random_bits(dtype, random);
    if (dtype == DType::Bool && random() % 2 == 0) bits = 0;
    std::memcpy(out.data() + i * size_of(dtype), &bits, size_of(dtype));
  }
  return out;
}

}  // namespace ronde::reference
