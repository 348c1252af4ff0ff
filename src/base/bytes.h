// SPDX-License-Identifier: Apache-2.0
// The one wire codec: little-endian fixed-width numbers and length-prefixed strings, written to and read from bytes.
// A Reader never reads outside its bytes: the first bad read makes it bad for good, later reads give zeros, and the
// caller asks once at the end with finish(). Lengths are capped before anything is allocated.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/status.h"

namespace ronde {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian");

using Bytes = std::vector<std::byte>;
using ByteSpan = std::span<const std::byte>;

class Writer {
 public:
  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) Writer& put(T value) {
    return put_bytes(ByteSpan(reinterpret_cast<const std::byte*>(&value), sizeof value));
  }
  // u32 length, then the bytes.
  Writer& put_string(std::string_view text) {
    put<uint32_t>(static_cast<uint32_t>(text.size()));
    return put_bytes(std::as_bytes(std::span(text.data(), text.size())));
  }
  // Not inlined: g++ 12 would warn of an overflow that cannot be.
  [[gnu::noinline]] Writer& put_bytes(ByteSpan bytes) {
    out_.insert(out_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  size_t size() const { return out_.size(); }
  Bytes take() { return std::exchange(out_, {}); }
  const Bytes& bytes() const { return out_; }

 private:
  Bytes out_;
};

class Reader {
 public:
  explicit Reader(ByteSpan bytes) : rest_(bytes) {}

  template <class T>
  requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) T get() {
    T value{};
    if (rest_.size() < sizeof value) {
      fail();
      return value;
    }
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_ = rest_.subspan(sizeof value);
    return value;
  }
  // An enum of one byte whose values are 0 ... last.
  template <class E>
  E get_enum(E last) {
    const auto value = get<uint8_t>();
    if (value > static_cast<uint8_t>(last)) {
      fail();
      return E{};
    }
    return static_cast<E>(value);
  }
  bool get_bool() {
    const auto value = get<uint8_t>();
    if (value > 1) fail();
    return value == 1;
  }
  std::string get_string(size_t max_bytes) {
    const auto bytes = get_blob(max_bytes);
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  // What put_string wrote, as a view into the input.
  ByteSpan get_blob(size_t max_bytes) {
    const auto length = get<uint32_t>();
    if (length > max_bytes || length > rest_.size()) {
      fail();
      return {};
    }
    const auto out = rest_.first(length);
    rest_ = rest_.subspan(length);
    return out;
  }
  size_t left() const { return rest_.size(); }
  bool good() const { return good_; }
  // Ok if every read was good and nothing is left over. `what` names the message.
  Status finish(std::string_view what) const {
    if (good_ && rest_.empty()) return {};
    return Status(Code::Internal, cat("malformed ", what, good_ ? ": bytes left over" : ": too short or out of range"));
  }

 private:
  void fail() {
    good_ = false;
    rest_ = {};
  }
  ByteSpan rest_;
  bool good_ = true;
};

}  // namespace ronde
