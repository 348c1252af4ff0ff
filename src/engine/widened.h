// SPDX-License-Identifier: Apache-2.0
// Widened: the memory of a batch that averages small integers, as 64-bit integers. An average divides the exact sum,
// and the sum of small integers may not fit into their own type, in a ring not even on its way. Every rank sees from
// the batch alone that it is to be widened, so all do. Sums that do not fit into 64 bits wrap.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "op/batch.h"

namespace ronde::engine {

class Widened {
 public:
  // Copies the inputs and makes `bound` work on the copies, if it averages integers of less than 64 bits; otherwise
  // changes nothing. An error: no memory.
  // `self`: the index of this member.
  static Result<Widened> make(BoundBatch& bound, size_t self);
  // Results -> outputs, when the batch is done.
  void narrow() const;

 private:
  struct Tensor {
    std::unique_ptr<int64_t[]> values;  // of the input, and behind them of an output that is apart from it
    const int64_t* results = nullptr;
    int64_t count = 0;  // of the results
    void* out = nullptr;
  };
  DType dtype_ = DType::I64;
  std::vector<Tensor> tensors_;
};

}  // namespace ronde::engine
