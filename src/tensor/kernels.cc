// SPDX-License-Identifier: Apache-2.0
#include "tensor/kernels.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/check.h"

namespace ronde {
namespace {

float widen(_Float16 x) {
  return static_cast<float>(x);
}
struct BFloat {
  uint16_t bits;
};
float widen(BFloat x) {
  return std::bit_cast<float>(uint32_t{x.bits} << 16);
}
template <class T>
T widen(T x) {
  return x;
}
template <class T, class W>
T narrow(W x) {
  if constexpr (std::is_same_v<T, BFloat>) {
    const auto bits = std::bit_cast<uint32_t>(x);
    if (x != x) return {static_cast<uint16_t>((bits >> 16) | 0x40)};
    return {static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
  } else {
    return static_cast<T>(x);
  }
}

template <class F>
void with_type(DType dtype, F f) {
  switch (dtype) {
    case DType::F32:
      return f(float{});
    case DType::F64:
      return f(double{});
    case DType::F16:
      return f(_Float16{});
    case DType::BF16:
      return f(BFloat{});
    case DType::I32:
      return f(int32_t{});
    case DType::I64:
      return f(int64_t{});
    case DType::U8:
      return f(uint8_t{});
    case DType::Bool:
      return f(bool{});
  }
}

template <class T>
T load(const void* p, size_t i) {
  T out;
  if constexpr (std::is_same_v<T, bool>) return static_cast<const uint8_t*>(p)[i] != 0;
  std::memcpy(&out, static_cast<const std::byte*>(p) + i * sizeof(T), sizeof(T));
  return out;
}
template <class T>
void store(void* p, size_t i, T x) {
  std::memcpy(static_cast<std::byte*>(p) + i * sizeof(T), &x, sizeof(T));
}

template <class W>
W apply(Combine op, W a, W b) {
  if constexpr (std::is_same_v<W, bool>) {
    return op == Combine::Min || op == Combine::Product ? (a && b) : (a || b);
  } else {
    switch (op) {
      case Combine::Sum:
        if constexpr (std::is_integral_v<W>)
          return static_cast<W>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
        else
          return a + b;
      case Combine::Product:
        if constexpr (std::is_integral_v<W>)
          return static_cast<W>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
        else
          return a * b;
      case Combine::Min:
        return b < a || b != b ? b : a;
      case Combine::Max:
        return b > a || b != b ? b : a;
    }
    return a;
  }
}

template <class W>
W scaled(W x, Scale scale) {
  if constexpr (std::is_same_v<W, bool>)
    return x;
  else if constexpr (std::is_floating_point_v<W>)
    return x * static_cast<W>(scale.factor / static_cast<double>(scale.divisor));
  else {
    if (scale.factor == 1.0) return static_cast<W>(static_cast<int64_t>(x) / scale.divisor);
    using F = std::conditional_t<sizeof(W) == 8, long double, double>;
    const F value = static_cast<F>(x) * static_cast<F>(scale.factor) / static_cast<F>(scale.divisor);
    if (value != value) return 0;
    if (value >= static_cast<F>(std::numeric_limits<W>::max())) return std::numeric_limits<W>::max();
    if (value <= static_cast<F>(std::numeric_limits<W>::min())) return std::numeric_limits<W>::min();
    return static_cast<W>(value);
  }
}

}  // namespace

void combine(Combine op, DType dtype, void* out, std::span<const void* const> srcs, size_t count, Scale scale) {
  with_type(dtype, [&](auto type) {
    using T = decltype(type);
    for (size_t i = 0; i < count; ++i) {
      auto acc = widen(load<T>(srcs[0], i));
      for (const void* src : srcs.subspan(1)) acc = apply(op, acc, widen(load<T>(src, i)));
      store<T>(out, i, narrow<T>(scale.is_identity() ? acc : scaled(acc, scale)));
    }
  });
}

void scale_copy(DType dtype, void* out, const void* in, size_t count, Scale scale) {
  if (scale.is_identity()) {
    if (count > 0 && out != in) std::memcpy(out, in, count * size_of(dtype));
    return;
  }
  const void* const srcs[] = {in};
  combine(Combine::Sum, dtype, out, srcs, count, scale);
}

void convert(DType out_dtype, void* out, DType in_dtype, const void* in, size_t count) {
  with_type(in_dtype, [&](auto from) {
    with_type(out_dtype, [&](auto to) {
      using From = decltype(from);
      using To = decltype(to);
      if constexpr (std::is_same_v<decltype(widen(from)), float> && std::is_same_v<decltype(widen(to)), float>) {
        for (size_t i = 0; i < count; ++i) store<To>(out, i, narrow<To>(widen(load<From>(in, i))));
      } else {
        RONDE_CHECK(false, "convert knows float32, float16 and bfloat16");
      }
    });
  });
}

std::span<const char* const> kernel_sets() {
  static constexpr const char* kSets[] = {"base"};
  return kSets;
}
void use_kernel_set(const char*) {}

}  // namespace ronde
