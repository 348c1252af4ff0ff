// SPDX-License-Identifier: Apache-2.0
#include "backend/select.h"

namespace ronde::backend {

Result<Backend*> select(std::span<const std::unique_ptr<Backend>> table, const Batch& batch) {
  std::string asked;
  for (const auto& backend : table) {
    if (backend->supports(batch)) return backend.get();
    asked += cat(asked.empty() ? "" : ", ", backend->name());
  }
  return Status(Code::Unsupported, cat("no backend can run ", name_of(batch.op), " batch ", batch.number, " of ",
                                       batch.members.size(), " members; asked: ", asked.empty() ? "none" : asked));
}

}  // namespace ronde::backend
