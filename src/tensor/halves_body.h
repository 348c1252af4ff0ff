// SPDX-License-Identifier: Apache-2.0
// The halves: blocks of float16 and bfloat16 widened to float32 and narrowed again, to nearest even. Part of
// kernels_body.h.
//
// NaN stays NaN: its sign and upper payload bits are kept and it is made quiet, as the F16C instructions do. The
// arithmetic in integers is free of branches, so that the compiler turns it into vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#ifdef __F16C__
#include <immintrin.h>
#endif

namespace ronde {
namespace {

// Named in full where it is used: `auto` would drop the attributes.
typedef uint16_t HalfBits __attribute__((aligned(1), may_alias));

uint32_t bits_of(float x) {
  return __builtin_bit_cast(uint32_t, x);
}
float float_of(uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

struct BF16 {
  static void widen(float* out, const void* in, size_t count) {
    const HalfBits* from = static_cast<const HalfBits*>(in);
    for (size_t i = 0; i < count; ++i) out[i] = float_of(uint32_t{from[i]} << 16);
  }
  static void narrow(void* out, const float* in, size_t count) {
    HalfBits* to = static_cast<HalfBits*>(out);
    for (size_t i = 0; i < count; ++i) to[i] = static_cast<uint16_t>(rounded(bits_of(in[i])));
  }

 private:
  static uint32_t rounded(uint32_t bits) {
    const bool is_nan = static_cast<int32_t>(bits & 0x7fffffff) > 0x7f800000;
    const uint32_t nearest = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;  // from the largest finite value on: infinity
    return is_nan ? (bits >> 16) | 0x40 : nearest;
  }
};

#ifdef __F16C__

struct F16 {
  static void widen(float* out, const void* in, size_t count) {
    const HalfBits* from = static_cast<const HalfBits*>(in);
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
      _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i_u*>(from + i))));
    }
    for (; i < count; ++i) out[i] = _cvtsh_ss(from[i]);
  }
  static void narrow(void* out, const float* in, size_t count) {
    HalfBits* to = static_cast<HalfBits*>(out);
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
      const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT);
      _mm_storeu_si128(reinterpret_cast<__m128i_u*>(to + i), halves);
    }
    for (; i < count; ++i) to[i] = _cvtss_sh(in[i], _MM_FROUND_TO_NEAREST_INT);
  }
};

#else

// A float16 is sign, 5 bits of exponent (bias 15), 10 bits of mantissa; a float32 has 8 (bias 127) and 23.
struct F16 {
  static void widen(float* out, const void* in, size_t count) {
    const HalfBits* from = static_cast<const HalfBits*>(in);
    for (size_t i = 0; i < count; ++i) out[i] = float_of(widened(from[i]));
  }
  static void narrow(void* out, const float* in, size_t count) {
    HalfBits* to = static_cast<HalfBits*>(out);
    for (size_t i = 0; i < count; ++i) to[i] = static_cast<uint16_t>(rounded(bits_of(in[i])));
  }

 private:
  static constexpr uint32_t kRebias = (127 - 15) << 23;
  static constexpr uint32_t kSmallestNormal = kRebias + (1 << 23);  // 2^-14 as a float32
  static constexpr uint32_t kHalf = 0x3f000000;                     // 0.5 as a float32: its last bit is worth 2^-24

  static uint32_t widened(uint32_t half) {
    const uint32_t moved = (half & 0x7fff) << 13;
    const uint32_t exponent = half & 0x7c00;
    const uint32_t is_nan = (half & 0x7fff) > 0x7c00 ? 0x400000 : 0;
    const uint32_t normal = moved + kRebias;
    const uint32_t subnormal = bits_of(float_of(moved + kSmallestNormal) - float_of(kSmallestNormal));  // exact
    const uint32_t special = (moved | 0x7f800000) | is_nan;
    const uint32_t finite = exponent == 0 ? subnormal : normal;
    return (exponent == 0x7c00 ? special : finite) | (half & 0x8000) << 16;
  }

  static uint32_t rounded(uint32_t bits) {
    const auto size = static_cast<int32_t>(bits & 0x7fffffff);
    const auto usize = static_cast<uint32_t>(size);
    const uint32_t normal = (usize - kRebias + 0xfff + ((usize >> 13) & 1)) >> 13;
    // The addition rounds to a multiple of 2^-24, the last bit of a subnormal float16.
    const uint32_t subnormal = bits_of(float_of(usize) + float_of(kHalf)) - kHalf;
    const uint32_t nan = 0x7e00 | ((usize >> 13) & 0x3ff);
    const uint32_t finite = size < static_cast<int32_t>(kSmallestNormal) ? subnormal : normal;
    const uint32_t large = size > 0x7f800000 ? nan : 0x7c00;
    const bool fits = size < 0x477ff000;  // 65520, half way from the largest float16 to the next power of two
    return (fits ? finite : large) | ((bits >> 16) & 0x8000);
  }
};

#endif

}  // namespace
}  // namespace ronde
