// SPDX-License-Identifier: Apache-2.0
#include "coord/outbox.h"

#include <iterator>

namespace ronde::coord {
namespace {

// More held submissions than this are told early, so that a flush never has too much to tell at once.
constexpr size_t kMostHeld = 1000;
constexpr size_t kMostHeldNameBytes = 48 * 1024;

}  // namespace

void Outbox::submit(std::vector<Tensor> call) {
  const bool more = call.front().more;
  Held& held = held_[call.front().request.set];
  if (!more) release(held);
  std::vector<Outgoing>& queue = more && !eager_ ? held.items : sending_;
  if (call.size() > 1) queue.emplace_back(std::in_place_type<Group>, Group{static_cast<uint32_t>(call.size())});
  for (Tensor& tensor : call) {
    held.name_bytes += more ? tensor.request.name.size() : 0;
    queue.emplace_back(std::in_place_type<Tensor>, std::move(tensor));
  }
  // A submission without `more` is a flush of those before it.
  held.needs_flush = more;
  if (held.items.size() > kMostHeld || held.name_bytes > kMostHeldNameBytes) release(held);
}

void Outbox::flush(SetId set) {
  const auto found = held_.find(set);
  if (found == held_.end()) return;
  Held& held = found->second;
  release(held);
  if (held.needs_flush) sending_.emplace_back(std::in_place_type<Flush>, Flush{set});
  held.needs_flush = false;
}

void Outbox::leave() {
  held_.clear();
  sending_.emplace_back(std::in_place_type<Leave>);
}

void Outbox::clear() {
  held_.clear();
  sending_.clear();
}

void Outbox::release(Held& held) {
  sending_.insert(sending_.end(), std::make_move_iterator(held.items.begin()),
                  std::make_move_iterator(held.items.end()));
  held.items.clear();
  held.name_bytes = 0;
}

}  // namespace ronde::coord
