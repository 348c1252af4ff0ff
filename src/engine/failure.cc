// SPDX-License-Identifier: Apache-2.0
// What ends an epoch. Cause before symptom: a broken link is a symptom; the launcher (or the store) knows who died and
// why, and is waited for, for a second, before the symptom itself is raised. The progress lock is held.
#include <algorithm>

#include "base/log.h"
#include "engine/engine.h"

namespace ronde::engine {
namespace {

constexpr Duration kWaitForCause = std::chrono::seconds(1);
// How often a driver that is busy looks at the descriptors that carry no data.
constexpr Duration kLookInterval = std::chrono::milliseconds(2);
constexpr int kBeatsMissed = 3;  // by a rank that has stopped
constexpr int kTicksPerFarBeat = 5;

}  // namespace

bool Engine::look_for_causes(Time now) {
  if (abandon_ && !failed_) fail(Status(Code::NotInitialized, "this rank has shut down; call init() first"));
  if (!failed_ && parts_.board->aborted()) {
    fail(parts_.board->abort_cause());
    return true;
  }
  // Links want to know at once; in shared memory only news come over descriptors.
  if (!parts_.links && now < next_look_) return false;
  next_look_ = now + kLookInterval;
  const bool any = parts_.events->collect() > 0;
  if (parts_.store && std::exchange(store_source_.ready, false)) take_news(now);
  if (parts_.greeter && parts_.links) {
    for (member::Greeted& connection : parts_.greeter->take(now)) {
      if (Status status = parts_.links->adopt(std::move(connection)); !status.ok()) log_warning(status.message());
    }
  }
  return any;
}

void Engine::take_news(Time now) {
  Result<std::optional<member::Cause>> news = parts_.store->take_news();
  if (!news.ok()) {
    parts_.events->remove(parts_.store->fd());
    // Without a launcher the store ends with rank 0, which is no failure once rank 0 has left.
    if (failed_ || leave_ticket_ != 0 || left_.contains(0)) return;
    const Status lost(Code::PeerLost, cat(parts_.store_owner, " is gone: ", news.status().message()));
    // It explains more than a link that broke in its wake.
    if (symptom_) symptom_ = lost;
    suspect(lost, now);
    return;
  }
  if (*news && !failed_) fail((*news)->status);
}

// Ends the epoch for all: what this rank knows, the others cannot see.
void Engine::abort(const Status& cause) {
  if (failed_) return;
  if (parts_.store) (void)parts_.store->tell_abort(cause);
  fail(cause);
}

// Whom a batch waits for, which may itself wait for another.
std::string Engine::waits_for(const Batches::Entry& batch) const {
  if (!batch.running) return "the batch before it is not done";
  std::vector<std::string> names;
  for (const Rank rank : batch.running->waits_for()) {
    names.push_back(parts_.topology.peers[static_cast<size_t>(rank)].name);
  }
  return names.empty() ? "this rank itself was not at work" : cat("it waits for ", listed(names));
}

// What a text about something late ends with: "; rank 1 (...) has shown no sign of life for 7 s", or nothing.
std::string Engine::silent_ranks(Time now) const {
  std::string out;
  for (Rank rank = 0; rank < parts_.topology.size; ++rank) {
    const auto quiet = long_silence(rank, now);
    if (!quiet) continue;
    out += cat("; ", parts_.topology.peers[static_cast<size_t>(rank)].name, " has shown no sign of life for ",
               std::chrono::duration_cast<std::chrono::seconds>(*quiet).count(), " s");
  }
  return out;
}

// For how long a rank has shown no sign of life, if that is longer than usual.
std::optional<Duration> Engine::long_silence(Rank rank, Time now) const {
  const Topology& topology = parts_.topology;
  if (rank == topology.rank || left_.contains(rank)) return {};
  Duration usual = parts_.settings.heartbeat;
  std::optional<Duration> quiet = control_.silence(rank, now);
  if (quiet) {
    usual *= kTicksPerFarBeat;
  } else {
    const auto local = std::ranges::find(topology.local_ranks, rank) - topology.local_ranks.begin();
    if (local >= parts_.board->local_size()) return {};  // not on this board
    quiet = now - parts_.board->last_beat(static_cast<int>(local));
  }
  return *quiet < kBeatsMissed * usual ? std::nullopt : quiet;
}

void Engine::suspect(const Status& symptom, Time now) {
  if (failed_ || symptom_) return;
  if (!parts_.store) return fail(symptom);
  log_info(cat("asking for the cause of: ", symptom.to_string()));
  symptom_ = symptom;
  symptom_since_ = now;
}

void Engine::fail(const Status& cause) {
  if (failed_) return;
  failed_ = cause;
  symptom_.reset();
  parts_.board->abort(cause);
  if (parts_.links) parts_.links->close_all(cause);
  std::vector<Ticket> tickets = batches_.clear();
  const std::vector<Ticket> undecided = control_.member().fail_all();
  tickets.insert(tickets.end(), undecided.begin(), undecided.end());
  for (const Ticket ticket : tickets) give_up(ticket, cause);
}

bool Engine::check_deadlines(Time now) {
  bool worked = false;
  if (now >= next_beat_) {
    parts_.board->beat(now);
    if (++ticks_ % kTicksPerFarBeat == 0) control_.beat();
    next_beat_ = now + parts_.settings.heartbeat;
  }
  if (symptom_ && now - symptom_since_ >= kWaitForCause) {
    abort(*symptom_);
    worked = true;
  }
  return check_running_batch(now) || worked;
}

bool Engine::check_running_batch(Time now) {
  const Batches::Entry* front = batches_.front();
  const Duration limit = parts_.settings.collective_timeout;
  if (symptom_ || front == nullptr || now - front->since < limit) return false;
  const Batch& batch = front->bound.batch;
  const Status late(Code::Timeout, cat("batch ", batch.number, " (", name_of(batch.op), " of ", batch.tensors.size(),
                                       " tensors, first '", batch.tensors[0].name, "') began but did not end within ",
                                       std::chrono::duration<double>(limit).count(),
                                       " s (collective_timeout): ", waits_for(*front), silent_ranks(now)));
  // The coordinator hears from all ranks, and so has the first word.
  if (parts_.topology.rank == 0) {
    abort(late);
  } else {
    suspect(late, now);
  }
  return true;
}

Time Engine::next_deadline() const {
  Time out = std::min(next_beat_, control_.next_deadline());
  if (symptom_) out = std::min(out, symptom_since_ + kWaitForCause);
  if (!symptom_ && !batches_.empty()) out = std::min(out, batches_.oldest() + parts_.settings.collective_timeout);
  if (parts_.greeter) out = std::min(out, parts_.greeter->next_deadline());
  if (parts_.links) out = std::min(out, parts_.links->next_deadline());
  return out;
}

}  // namespace ronde::engine
