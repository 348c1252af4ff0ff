// SPDX-License-Identifier: Apache-2.0
// What reports and decisions are made of: variable-length numbers and signatures.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "op/request.h"

namespace ronde::coord {

void put_var(Writer& out, uint64_t value);
size_t var_bytes(uint64_t value);
void put_signature(Writer& out, const Signature& signature);

// A Reader that also knows variable-length numbers. Bad for good after the first bad read.
class WireReader {
 public:
  explicit WireReader(ByteSpan bytes) : in_(bytes) {}

  uint8_t get_u8() { return in_.get<uint8_t>(); }
  // 0 ... max, in its shortest form.
  uint64_t get_var(uint64_t max);
  uint32_t get_var32() { return static_cast<uint32_t>(get_var(UINT32_MAX)); }
  int64_t get_dim() { return static_cast<int64_t>(get_var(INT64_MAX)); }
  Rank get_rank() { return static_cast<Rank>(get_var(INT32_MAX)); }
  std::string get_string(size_t max_bytes) { return in_.get_string(max_bytes); }
  Code get_code();
  std::vector<int32_t> get_ascending();
  Signature get_signature();

  bool good() const { return good_ && in_.good(); }
  size_t left() const { return good() ? in_.left() : 0; }
  void fail() { good_ = false; }
  Status finish(std::string_view what) const;

 private:
  Reader in_;
  bool good_ = true;
};

}  // namespace ronde::coord
