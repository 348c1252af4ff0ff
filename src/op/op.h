// SPDX-License-Identifier: Apache-2.0
// The op table: one row per collective. What the coordinator compares, whether a root or a reduce op matters, and how
// the output relates to the input are columns here and nowhere else. Values are part of the C ABI and of the wire.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "tensor/kernels.h"

namespace ronde {

enum class OpKind : uint8_t {
  Allreduce = 0,
  Broadcast = 1,
  Allgather = 2,
  Barrier = 3,
  Reducescatter = 4,
  Alltoall = 5,
  AddSet = 6,
  RemoveSet = 7
};
constexpr OpKind kLastOp = OpKind::RemoveSet;

// The numbers users know from the Python constants. 2 is kept free (Adasum).
enum class ReduceOp : uint8_t { Average = 0, Sum = 1, Min = 3, Max = 4, Product = 5 };
constexpr ReduceOp kLastReduceOp = ReduceOp::Product;
bool is_reduce_op(uint8_t value);
std::string_view name_of(ReduceOp op);
// An average of bool has no meaning; complex numbers have no order, and their product is not offered.
bool is_possible(ReduceOp op, DType dtype);

enum class DimsRule : uint8_t {
  All,         // every dimension agrees on all ranks
  AllButFirst  // the first may differ
};

// What a member gets. Where it is not as large as the input, the engine allocates it.
enum class Output : uint8_t {
  None,
  Same,      // the shape of the input; may be the input's memory
  AllRows,   // the rows of all members, in their order; the decision carries how many each has
  OwnRows,   // this member's part of the rows
  Exchanged  // rows from each member; how many is told while the batch runs, so a batch has one such tensor
};

struct OpRow {
  OpKind kind;
  std::string_view name;
  DimsRule dims;
  bool reduces;   // reduce op and scale factors are part of the signature
  bool has_root;  // the root is part of the signature
  Output output;
  bool changes_sets = false;  // the signature says which; all ranks agree on it, and nothing is run

  constexpr bool has_tensor() const { return output != Output::None; }
  constexpr bool allocates_output() const { return output > Output::Same; }
  constexpr bool tells_first_dim() const { return output == Output::AllRows; }
  constexpr bool works_on_rows() const { return output > Output::Same; }
};

constexpr std::array<OpRow, 8> kOps{{
    {OpKind::Allreduce, "allreduce", DimsRule::All, true, false, Output::Same},
    {OpKind::Broadcast, "broadcast", DimsRule::All, false, true, Output::Same},
    {OpKind::Allgather, "allgather", DimsRule::AllButFirst, false, false, Output::AllRows},
    {OpKind::Barrier, "barrier", DimsRule::All, false, false, Output::None},
    {OpKind::Reducescatter, "reducescatter", DimsRule::All, true, false, Output::OwnRows},
    {OpKind::Alltoall, "alltoall", DimsRule::AllButFirst, false, false, Output::Exchanged},
    {OpKind::AddSet, "add_process_set", DimsRule::All, false, false, Output::None, true},
    {OpKind::RemoveSet, "remove_process_set", DimsRule::All, false, false, Output::None, true},
}};

constexpr const OpRow& row(OpKind kind) {
  return kOps[static_cast<size_t>(kind)];
}
constexpr std::string_view name_of(OpKind kind) {
  return row(kind).name;
}

}  // namespace ronde
