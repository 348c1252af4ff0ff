// SPDX-License-Identifier: Apache-2.0
// The plain values that travel: what a rank asks for (Request), the part of it on which ranks must agree (Signature),
// and what the coordinator decided (Batch).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "op/op.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace ronde {

using Rank = int32_t;
// Internal id of a process set: never reused within an epoch. 0 is the set of all ranks.
using SetId = uint32_t;
constexpr SetId kWorldSet = 0;

struct Signature {
  OpKind op = OpKind::Allreduce;
  DType dtype = DType::F32;
  ReduceOp reduce = ReduceOp::Sum;  // Sum where the op does not reduce
  Rank root = 0;                    // global rank; 0 where the op has no root
  double prescale = 1.0;            // 1 where the op does not reduce
  double postscale = 1.0;
  Shape shape;  // of the input; with DimsRule::AllButFirst the first dimension is stored as 0
  // Where the op changes sets: the ranks of the set that is added, ascending, or the id of the one that is removed.
  std::vector<int32_t> subject;
  bool operator==(const Signature&) const = default;
  // "allreduce(average) float32[10, 20] prescale=2", "broadcast float32[3] from rank 1", "allgather float32[*, 4]"
  std::string to_string() const;
};

struct Request {
  SetId set = kWorldSet;
  std::string name;  // empty: unnamed, matched by its running number in the set
  Signature signature;
  int64_t first_dim = 0;  // of this rank, where the op lets it differ
};

// The request a user's call makes: fills what the op table says does not matter with its neutral value.
Request make_request(OpKind op, std::string name, DType dtype, const Shape& shape, ReduceOp reduce = ReduceOp::Sum,
                     Rank root = 0, double prescale = 1.0, double postscale = 1.0, SetId set = kWorldSet);

// What all ranks of the job submit to change the process sets: one change at a time.
Request make_set_request(OpKind op, std::vector<int32_t> subject);

// "allreduce 'fc1.weight'", "unnamed barrier 12", "add_process_set"
std::string describe(const Signature& signature, std::string_view name, uint64_t number);

// One tensor of a batch: its key is the name, or for an unnamed operation its running number in the set.
struct BatchTensor {
  std::string name;
  uint64_t number = 0;
  Shape shape;                      // as in the Signature
  std::vector<int64_t> first_dims;  // one per member, in the order of Batch::members; only where the op tells them
};

// Self-contained: a rank that never saw one of the tensors could run it. All tensors share everything but shape.
struct Batch {
  uint64_t number = 0;  // position in the one total order, from 1, over all sets
  SetId set = kWorldSet;
  std::vector<Rank> members;  // ascending
  OpKind op = OpKind::Allreduce;
  DType dtype = DType::F32;
  ReduceOp reduce = ReduceOp::Sum;
  Rank root = 0;
  double prescale = 1.0;
  double postscale = 1.0;
  std::vector<BatchTensor> tensors;
};

}  // namespace ronde
