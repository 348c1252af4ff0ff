// SPDX-License-Identifier: Apache-2.0
#include "engine/backends.h"

#include "backend/ring_backend.h"
#include "backend/self_backend.h"
#include "backend/staged_backend.h"

namespace ronde::engine {
namespace {

class BoardWaker final : public transport::Waker {
 public:
  explicit BoardWaker(control::Board& board) : board_(&board) {}
  void wake(std::span<const int> local_ranks) override { board_->wake(local_ranks); }

 private:
  control::Board* board_;
};

void add_staged(Parts& parts) {
  const Topology& topology = parts.topology;
  std::vector<int> local_ranks(static_cast<size_t>(topology.size), -1);
  for (size_t i = 0; i < topology.local_ranks.size(); ++i) {
    local_ranks[static_cast<size_t>(topology.local_ranks[i])] = static_cast<int>(i);
  }
  auto context =
      std::make_shared<collective::StagedContext>(*parts.arena, *parts.waker, topology.rank, std::move(local_ranks));
  parts.backends.push_back(std::make_unique<backend::StagedBackend>(*context));
  parts.keep.push_back(std::move(context));
}

}  // namespace

void add_backends(Parts& parts) {
  parts.waker = std::make_unique<BoardWaker>(*parts.board);
  parts.backends.push_back(std::make_unique<backend::SelfBackend>());
  if (parts.arena) add_staged(parts);
  if (parts.links) {
    parts.backends.push_back(std::make_unique<backend::RingBackend>(
        *parts.links, collective::RingOptions{.self = parts.topology.rank,
                                              .epoch = parts.topology.epoch,
                                              .segment_bytes = static_cast<size_t>(parts.settings.segment_bytes)}));
  }
}

}  // namespace ronde::engine
