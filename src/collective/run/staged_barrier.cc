// SPDX-License-Identifier: Apache-2.0
// Staged barrier: each member stores the batch's first mark as its `packed` word and is through once all have.
// No slot is used; one store and n-1 loads per member.
#include "collective/run/staged_start.h"

namespace ronde::collective {
namespace {

class StagedBarrier final : public Running {
 public:
  explicit StagedBarrier(const StagedParty& party) : party_(party) {}

  Result<Progress> advance() override {
    if (!arrived_) party_.publish_arrival();
    arrived_ = true;
    return party_.all_packed(0) ? Progress::Done : Progress::Blocked;
  }
  std::vector<Rank> waits_for() const override { return party_.waits_for(); }

 private:
  StagedParty party_;
  bool arrived_ = false;
};

}  // namespace

std::unique_ptr<Running> start_staged_barrier(const StagedParty& party) {
  return std::make_unique<StagedBarrier>(party);
}

}  // namespace ronde::collective
