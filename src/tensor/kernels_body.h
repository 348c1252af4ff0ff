// SPDX-License-Identifier: Apache-2.0
// The one source of all kernels. A file kernels_SET.cc defines RONDE_KERNELS (the table's symbol) and
// RONDE_KERNELS_NAME and includes this; kernel_table.h says what must not come out of it.
//
// Two sources, the most frequent case, are one loop over memory. More are combined block by block in a buffer of kBlock
// elements that stays in the first cache: memory is read once and written once. Halves are widened into such buffers
// and rounded once at the end. Every loop is plain C++ that the compiler vectorises; `ivdep` tells it that an output
// may equal a source but not overlap it otherwise.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/halves_body.h"
#include "tensor/kernel_table.h"

namespace ronde {
namespace {

constexpr size_t kBlock = 1024;

// Element types. Value: what is computed with. Wrap: where Sum and Product wrap. Memory: a Value at any address (named
// in full where it is used: `auto` would drop the attributes).
struct F32 {
  typedef float Value;
  typedef float Memory __attribute__((aligned(1), may_alias));
};
struct F64 {
  typedef double Value;
  typedef double Memory __attribute__((aligned(1), may_alias));
};
struct I32 {
  typedef int32_t Value;
  typedef uint32_t Wrap;
  typedef int32_t Memory __attribute__((aligned(1), may_alias));
  typedef double Scaled;
  static constexpr Scaled kLeast = INT32_MIN;
  static constexpr Scaled kMost = INT32_MAX;
};
struct I64 {
  typedef int64_t Value;
  typedef uint64_t Wrap;
  typedef int64_t Memory __attribute__((aligned(1), may_alias));
  typedef long double Scaled;
  static constexpr Scaled kLeast = INT64_MIN;
  static constexpr Scaled kMost = INT64_MAX;
};
struct U8 {
  typedef uint8_t Value;
  typedef uint32_t Wrap;
  typedef uint8_t Memory;
  typedef double Scaled;
  static constexpr Scaled kLeast = 0;
  static constexpr Scaled kMost = UINT8_MAX;
};
struct I8 {
  typedef int8_t Value;
  typedef uint32_t Wrap;
  typedef int8_t Memory __attribute__((may_alias));
  typedef double Scaled;
  static constexpr Scaled kLeast = INT8_MIN;
  static constexpr Scaled kMost = INT8_MAX;
};
struct I16 {
  typedef int16_t Value;
  typedef uint32_t Wrap;
  typedef int16_t Memory __attribute__((aligned(1), may_alias));
  typedef double Scaled;
  static constexpr Scaled kLeast = INT16_MIN;
  static constexpr Scaled kMost = INT16_MAX;
};
struct U16 {
  typedef uint16_t Value;
  typedef uint32_t Wrap;
  typedef uint16_t Memory __attribute__((aligned(1), may_alias));
  typedef double Scaled;
  static constexpr Scaled kLeast = 0;
  static constexpr Scaled kMost = UINT16_MAX;
};
struct Bool {
  typedef uint8_t Value;
  typedef uint8_t Memory;
};

struct Add {
  static float of(F32, float a, float b) { return a + b; }
  static double of(F64, double a, double b) { return a + b; }
  static uint8_t of(Bool, uint8_t a, uint8_t b) { return (a | b) != 0; }
  template <class E>
  static typename E::Value of(E, typename E::Value a, typename E::Value b) {
    typedef typename E::Wrap Wrap;
    return static_cast<typename E::Value>(static_cast<Wrap>(a) + static_cast<Wrap>(b));
  }
};
struct Multiply {
  static float of(F32, float a, float b) { return a * b; }
  static double of(F64, double a, double b) { return a * b; }
  static uint8_t of(Bool, uint8_t a, uint8_t b) { return (a != 0) & (b != 0); }
  template <class E>
  static typename E::Value of(E, typename E::Value a, typename E::Value b) {
    typedef typename E::Wrap Wrap;
    return static_cast<typename E::Value>(static_cast<Wrap>(a) * static_cast<Wrap>(b));
  }
};
// b is taken where it is less (greater) or NaN; a NaN in a is kept because nothing is less (greater) than it.
struct Least {
  static uint8_t of(Bool, uint8_t a, uint8_t b) { return (a != 0) & (b != 0); }
  template <class E>
  static typename E::Value of(E, typename E::Value a, typename E::Value b) {
    return (b < a) | (b != b) ? b : a;
  }
};
struct Greatest {
  static uint8_t of(Bool, uint8_t a, uint8_t b) { return (a | b) != 0; }
  template <class E>
  static typename E::Value of(E, typename E::Value a, typename E::Value b) {
    return (b > a) | (b != b) ? b : a;
  }
};

// What is done to an element that is complete.
struct Keep {
  template <class T>
  T operator()(T x) const {
    return x;
  }
};
template <class T>
struct MultiplyBy {
  T factor;
  explicit MultiplyBy(const Scale& scale) : factor(static_cast<T>(scale.factor / static_cast<double>(scale.divisor))) {}
  T operator()(T x) const { return x * factor; }
};
template <class E>
struct DivideBy {
  // Exact for 32 bits and fewer: a quotient just below an integer is further from it than a double is coarse.
  double divisor;
  explicit DivideBy(const Scale& scale) : divisor(static_cast<double>(scale.divisor)) {}
  typename E::Value operator()(typename E::Value x) const {
    return static_cast<typename E::Value>(static_cast<int32_t>(static_cast<double>(x) / divisor));
  }
};
template <>
struct DivideBy<I64> {
  int64_t divisor;
  explicit DivideBy(const Scale& scale) : divisor(scale.divisor) {}
  int64_t operator()(int64_t x) const { return x / divisor; }
};
template <class E>
struct ScaleBy {
  typedef typename E::Scaled Scaled;
  Scaled factor;
  Scaled divisor;
  explicit ScaleBy(const Scale& scale)
      : factor(static_cast<Scaled>(scale.factor)), divisor(static_cast<Scaled>(scale.divisor)) {}
  typename E::Value operator()(typename E::Value x) const {
    const Scaled value = static_cast<Scaled>(x) * factor / divisor;
    const Scaled number = value != value ? Scaled{0} : value;
    const Scaled raised = number < E::kLeast ? E::kLeast : number;
    const Scaled bounded = raised > E::kMost ? E::kMost : raised;
    return to_value(bounded);
  }

 private:
  static int64_t to_value(long double x) { return static_cast<int64_t>(x); }
  static typename E::Value to_value(double x) { return static_cast<typename E::Value>(static_cast<int32_t>(x)); }
};

bool is_identity(const Scale& scale) {
  return scale.factor == 1.0 && scale.divisor == 1;
}

const void* at(const void* base, size_t bytes) {
  return static_cast<const char*>(base) + bytes;
}
void* at(void* base, size_t bytes) {
  return static_cast<char*>(base) + bytes;
}

// The sources from a byte offset on.
struct Sources {
  const void* const* pointers;
  size_t size;
  size_t offset;
  const void* operator[](size_t k) const { return at(pointers[k], offset); }
};

template <class Block>
void for_each_block(size_t count, Block block) {
  for (size_t begin = 0; begin < count; begin += kBlock) {
    block(begin, count - begin < kBlock ? count - begin : kBlock);
  }
}

template <class E, class Op, class Finish>
void combine_two(void* out, const void* a, const void* b, size_t count, Finish finish) {
  typedef typename E::Memory Memory;
  Memory* to = static_cast<Memory*>(out);
  const Memory* x = static_cast<const Memory*>(a);
  const Memory* y = static_cast<const Memory*>(b);
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i) to[i] = finish(Op::of(E{}, x[i], y[i]));
}

template <class E, class Finish>
void finish_all(void* out, const void* in, size_t count, Finish finish) {
  typedef typename E::Memory Memory;
  Memory* to = static_cast<Memory*>(out);
  const Memory* from = static_cast<const Memory*>(in);
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i) to[i] = finish(from[i]);
}

// At most kBlock elements of three or more sources.
template <class E, class Op, class Finish>
void combine_block(void* out, const Sources& srcs, size_t count, Finish finish) {
  typename E::Value sum[kBlock];
  combine_two<E, Op>(sum, srcs[0], srcs[1], count, Keep{});
  for (size_t k = 2; k + 1 < srcs.size; ++k) combine_two<E, Op>(sum, sum, srcs[k], count, Keep{});
  combine_two<E, Op>(out, sum, srcs[srcs.size - 1], count, finish);
}

template <class E, class Op, class Finish>
void combine_plain(void* out, const Sources& srcs, size_t count, Finish finish) {
  if (srcs.size == 2) return combine_two<E, Op>(out, srcs[0], srcs[1], count, finish);
  for_each_block(count, [&](size_t begin, size_t n) {
    const size_t offset = begin * sizeof(typename E::Value);
    combine_block<E, Op>(at(out, offset), Sources{srcs.pointers, srcs.size, srcs.offset + offset}, n, finish);
  });
}

template <class E, class Op>
void combine_floats(void* out, const Sources& srcs, size_t count, const Scale& scale) {
  if (is_identity(scale)) return combine_plain<E, Op>(out, srcs, count, Keep{});
  combine_plain<E, Op>(out, srcs, count, MultiplyBy<typename E::Value>(scale));
}

template <class E>
void scale_integers(void* out, const void* in, size_t count, const Scale& scale) {
  if (scale.factor == 1.0) return finish_all<E>(out, in, count, DivideBy<E>(scale));
  finish_all<E>(out, in, count, ScaleBy<E>(scale));
}

template <class E, class Op>
void combine_integers(void* out, const Sources& srcs, size_t count, const Scale& scale) {
  if (is_identity(scale)) return combine_plain<E, Op>(out, srcs, count, Keep{});
  for_each_block(count, [&](size_t begin, size_t n) {
    typename E::Value sum[kBlock];
    const size_t offset = begin * sizeof(typename E::Value);
    combine_plain<E, Op>(sum, Sources{srcs.pointers, srcs.size, srcs.offset + offset}, n, Keep{});
    scale_integers<E>(at(out, offset), sum, n, scale);
  });
}

template <class H, class Op>
void combine_halves(void* out, const Sources& srcs, size_t count, const Scale& scale) {
  for_each_block(count, [&](size_t begin, size_t n) {
    float sum[kBlock];
    float next[kBlock];
    const size_t offset = begin * sizeof(HalfBits);
    H::widen(sum, at(srcs[0], offset), n);
    for (size_t k = 1; k < srcs.size; ++k) {
      H::widen(next, at(srcs[k], offset), n);
      combine_two<F32, Op>(sum, sum, next, n, Keep{});
    }
    if (!is_identity(scale)) finish_all<F32>(sum, sum, n, MultiplyBy<float>(scale));
    H::narrow(at(out, offset), sum, n);
  });
}

template <class H>
void scale_halves(void* out, const void* in, size_t count, const Scale& scale) {
  for_each_block(count, [&](size_t begin, size_t n) {
    float wide[kBlock];
    const size_t offset = begin * sizeof(HalfBits);
    H::widen(wide, at(in, offset), n);
    finish_all<F32>(wide, wide, n, MultiplyBy<float>(scale));
    H::narrow(at(out, offset), wide, n);
  });
}

template <class Op>
void combine_with(DType dtype, void* out, const Sources& srcs, size_t count, const Scale& scale) {
  switch (dtype) {
    case DType::F32:
      return combine_floats<F32, Op>(out, srcs, count, scale);
    case DType::F64:
      return combine_floats<F64, Op>(out, srcs, count, scale);
    case DType::F16:
      return combine_halves<F16, Op>(out, srcs, count, scale);
    case DType::BF16:
      return combine_halves<BF16, Op>(out, srcs, count, scale);
    case DType::I32:
      return combine_integers<I32, Op>(out, srcs, count, scale);
    case DType::I64:
      return combine_integers<I64, Op>(out, srcs, count, scale);
    case DType::U8:
      return combine_integers<U8, Op>(out, srcs, count, scale);
    case DType::I8:
      return combine_integers<I8, Op>(out, srcs, count, scale);
    case DType::I16:
      return combine_integers<I16, Op>(out, srcs, count, scale);
    case DType::U16:
      return combine_integers<U16, Op>(out, srcs, count, scale);
    case DType::Bool:
      return combine_plain<Bool, Op>(out, srcs, count, Keep{});
    case DType::C64:
    case DType::C128:
      return;
  }
}

void combine_any(Combine op, DType dtype, void* out, const void* const* pointers, size_t sources, size_t count,
                 const Scale& scale) {
  const Sources srcs{pointers, sources, 0};
  switch (op) {
    case Combine::Sum:
      return combine_with<Add>(dtype, out, srcs, count, scale);
    case Combine::Min:
      return combine_with<Least>(dtype, out, srcs, count, scale);
    case Combine::Max:
      return combine_with<Greatest>(dtype, out, srcs, count, scale);
    case Combine::Product:
      return combine_with<Multiply>(dtype, out, srcs, count, scale);
  }
}

void scale_any(DType dtype, void* out, const void* in, size_t count, const Scale& scale) {
  switch (dtype) {
    case DType::F32:
      return finish_all<F32>(out, in, count, MultiplyBy<float>(scale));
    case DType::F64:
      return finish_all<F64>(out, in, count, MultiplyBy<double>(scale));
    case DType::F16:
      return scale_halves<F16>(out, in, count, scale);
    case DType::BF16:
      return scale_halves<BF16>(out, in, count, scale);
    case DType::I32:
      return scale_integers<I32>(out, in, count, scale);
    case DType::I64:
      return scale_integers<I64>(out, in, count, scale);
    case DType::U8:
      return scale_integers<U8>(out, in, count, scale);
    case DType::I8:
      return scale_integers<I8>(out, in, count, scale);
    case DType::I16:
      return scale_integers<I16>(out, in, count, scale);
    case DType::U16:
      return scale_integers<U16>(out, in, count, scale);
    case DType::Bool:
    case DType::C64:
    case DType::C128:
      return;
  }
}

// `out` and `in` step through F32 or half memory; a float buffer may be either end itself.
void widen(DType dtype, float* out, const void* in, size_t count) {
  if (dtype == DType::F16) return F16::widen(out, in, count);
  if (dtype == DType::BF16) return BF16::widen(out, in, count);
  __builtin_memcpy(out, in, count * sizeof(float));
}
void narrow(DType dtype, void* out, const float* in, size_t count) {
  if (dtype == DType::F16) return F16::narrow(out, in, count);
  if (dtype == DType::BF16) return BF16::narrow(out, in, count);
  __builtin_memcpy(out, in, count * sizeof(float));
}
size_t width(DType dtype) {
  return dtype == DType::F32 ? sizeof(float) : sizeof(HalfBits);
}

void convert_any(DType out_dtype, void* out, DType in_dtype, const void* in, size_t count) {
  for_each_block(count, [&](size_t begin, size_t n) {
    float wide[kBlock];
    widen(in_dtype, wide, at(in, begin * width(in_dtype)), n);
    narrow(out_dtype, at(out, begin * width(out_dtype)), wide, n);
  });
}

}  // namespace

const KernelTable RONDE_KERNELS{RONDE_KERNELS_NAME, combine_any, scale_any, convert_any};

}  // namespace ronde
