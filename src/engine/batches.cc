// SPDX-License-Identifier: Apache-2.0
#include "engine/batches.h"

#include "backend/select.h"

namespace ronde::engine {
namespace {

// At most two batches at a time, on the two streams of the wire.
constexpr size_t kWindow = 2;

}  // namespace

Status Batches::push(BoundBatch bound, std::vector<coord::Ticket> tickets, Time now) {
  RONDE_ASSIGN(Widened widened, Widened::make(bound, index_of(bound.batch, self_)));
  RONDE_ASSIGN(auto* chosen, backend::select(backends_, bound.batch));
  auto entry = std::make_unique<Entry>();
  entry->bound = std::move(bound);
  entry->widened = std::move(widened);
  entry->tickets = std::move(tickets);
  entry->backend = chosen;
  entry->since = now;
  queue_.push_back(std::move(entry));
  return {};
}

bool Batches::may_start(size_t position) const {
  if (position == 0) return true;
  if (position >= kWindow) return false;
  const Entry& first = *queue_[0];
  const Entry& second = *queue_[position];
  return first.backend->has_streams() && second.backend->has_streams() &&
         first.bound.batch.number % 2 != second.bound.batch.number % 2;
}

Result<bool> Batches::advance(const std::function<void(Entry&)>& finished) {
  bool worked = false;
  for (size_t i = 0; i < queue_.size() && (queue_[i]->running || may_start(i));) {
    Entry& entry = *queue_[i];
    if (!entry.running) entry.running = entry.backend->start(entry.bound);
    RONDE_ASSIGN(const auto progress, entry.running->advance());
    worked |= progress != collective::Progress::Blocked;
    if (progress == collective::Progress::Done) {
      entry.running.reset();
      const auto done = std::move(queue_[i]);
      done->widened.narrow();
      queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(i));
      finished(*done);
    } else {
      ++i;
    }
  }
  return worked;
}

std::vector<coord::Ticket> Batches::clear() {
  std::vector<coord::Ticket> out;
  for (const auto& entry : queue_) out.insert(out.end(), entry->tickets.begin(), entry->tickets.end());
  queue_.clear();
  return out;
}

}  // namespace ronde::engine
