// SPDX-License-Identifier: Apache-2.0
#include "collective/run/copy.h"

#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace ronde::collective {

#if defined(__SSE2__)
namespace {

constexpr size_t kLine = 64;
// Below this memcpy is at its best.
constexpr size_t kLeast = 2048;

size_t to_next_line(const std::byte* at) {
  return -reinterpret_cast<size_t>(at) % kLine;
}

const __m128i* lanes(const std::byte* at) {
  return reinterpret_cast<const __m128i*>(at);
}
__m128i* lanes(std::byte* at) {
  return reinterpret_cast<__m128i*>(at);
}

// Whole lines, to an aligned target; `put` stores one lane. Returns the bytes copied.
template <class Put>
size_t copy_lines(std::byte* to, const std::byte* from, size_t bytes, Put put) {
  const size_t whole = bytes / kLine * kLine;
  for (size_t at = 0; at < whole; at += kLine) {
    const __m128i a = _mm_loadu_si128(lanes(from + at));
    const __m128i b = _mm_loadu_si128(lanes(from + at + 16));
    const __m128i c = _mm_loadu_si128(lanes(from + at + 32));
    const __m128i d = _mm_loadu_si128(lanes(from + at + 48));
    put(lanes(to + at), a);
    put(lanes(to + at + 16), b);
    put(lanes(to + at + 32), c);
    put(lanes(to + at + 48), d);
  }
  return whole;
}

template <class Put>
void copy_aligned(std::byte* to, const std::byte* from, size_t bytes, Put put) {
  const size_t head = to_next_line(to);
  std::memcpy(to, from, head);
  const size_t done = head + copy_lines(to + head, from + head, bytes - head, put);
  std::memcpy(to + done, from + done, bytes - done);
}

}  // namespace

void copy_bytes(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes == 0) return;
  if (bytes < kLeast) {
    std::memcpy(to, from, bytes);
    return;
  }
  copy_aligned(to, from, bytes, [](__m128i* at, __m128i lane) { _mm_store_si128(at, lane); });
}

void stream_bytes(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes < kLeast) return copy_bytes(to, from, bytes);
  copy_aligned(to, from, bytes, [](__m128i* at, __m128i lane) { _mm_stream_si128(at, lane); });
}

#else

void copy_bytes(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

void stream_bytes(std::byte* to, const std::byte* from, size_t bytes) {
  copy_bytes(to, from, bytes);
}

#endif

}  // namespace ronde::collective
