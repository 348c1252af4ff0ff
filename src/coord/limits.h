// SPDX-License-Identifier: Apache-2.0
// What a signature must fulfil before anybody multiplies its dimensions. The same check at a rank's submit (an error of
// the caller) and on what comes over the wire (a protocol error).
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "op/request.h"

namespace ronde::coord {

// Of one tensor, gathered or not: far below where 64-bit arithmetic overflows.
constexpr int64_t kMaxTensorBytes = int64_t{1} << 60;

// Ranks in a set that is added: so many fit into any frame, most of them in a byte each.
constexpr size_t kMaxSubject = 2048;

// Known op, sane scales, dimensions ≥ 0 whose product is within kMaxTensorBytes, and neutral values where the op table
// says that a field does not matter.
Status check_signature(const Signature& signature);
// Bytes of a tensor with this signature and `first` rows in all, where the op lets the first dimension differ (else
// ignored). Negative if there are more than kMaxTensorBytes.
int64_t tensor_bytes(const Signature& signature, int64_t first);
// The rows of all members together; -1 if one is negative or they do not fit 64 bits.
int64_t sum_of(std::span<const int64_t> first_dims);

}  // namespace ronde::coord
