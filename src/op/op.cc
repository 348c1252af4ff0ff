// SPDX-License-Identifier: Apache-2.0
#include "op/op.h"

namespace ronde {
namespace {

// row(kind) is an index into the table.
constexpr bool rows_stand_at_their_value() {
  for (size_t i = 0; i < kOps.size(); ++i) {
    if (static_cast<size_t>(kOps[i].kind) != i) return false;
  }
  return kOps.size() == static_cast<size_t>(kLastOp) + 1;
}
static_assert(rows_stand_at_their_value());

}  // namespace

bool is_reduce_op(uint8_t value) {
  return value <= static_cast<uint8_t>(kLastReduceOp) && !name_of(static_cast<ReduceOp>(value)).empty();
}

bool is_possible(ReduceOp op, DType dtype) {
  switch (row(dtype).kind) {
    case NumberKind::Bool:
      return op != ReduceOp::Average;
    case NumberKind::Complex:
      return op == ReduceOp::Average || op == ReduceOp::Sum;
    case NumberKind::Float:
    case NumberKind::Integer:
      return true;
  }
  return false;
}

std::string_view name_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::Average:
      return "average";
    case ReduceOp::Sum:
      return "sum";
    case ReduceOp::Min:
      return "min";
    case ReduceOp::Max:
      return "max";
    case ReduceOp::Product:
      return "product";
  }
  return {};
}

}  // namespace ronde
