// SPDX-License-Identifier: Apache-2.0
// The op table: one row per collective. What the coordinator compares, whether a root or a reduce op matters, and how
// the output relates to the input are columns here and nowhere else. Values are part of the C ABI and of the wire.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "tensor/kernels.h"

namespace ronde {

enum class OpKind : uint8_t { Allreduce = 0, Broadcast = 1, Allgather = 2, Barrier = 3 };
constexpr OpKind kLastOp = OpKind::Barrier;

// The numbers users know from the Python constants. 2 is kept free (Adasum).
enum class ReduceOp : uint8_t { Average = 0, Sum = 1, Min = 3, Max = 4, Product = 5 };
constexpr ReduceOp kLastReduceOp = ReduceOp::Product;
bool is_reduce_op(uint8_t value);
std::string_view name_of(ReduceOp op);

enum class DimsRule : uint8_t {
  All,         // every dimension agrees on all ranks
  AllButFirst  // the first may differ: the output has the sum of them
};

struct OpRow {
  OpKind kind;
  std::string_view name;
  DimsRule dims;
  bool reduces;   // reduce op and scale factors are part of the signature
  bool has_root;  // the root is part of the signature
  bool has_tensor;
  bool allocates_output;  // the size of the output is known only when all ranks are ready
};

constexpr std::array<OpRow, 4> kOps{{
    {OpKind::Allreduce, "allreduce", DimsRule::All, true, false, true, false},
    {OpKind::Broadcast, "broadcast", DimsRule::All, false, true, true, false},
    {OpKind::Allgather, "allgather", DimsRule::AllButFirst, false, false, true, true},
    {OpKind::Barrier, "barrier", DimsRule::All, false, false, false, false},
}};

constexpr const OpRow& row(OpKind kind) {
  return kOps[static_cast<size_t>(kind)];
}
constexpr std::string_view name_of(OpKind kind) {
  return row(kind).name;
}

}  // namespace ronde
