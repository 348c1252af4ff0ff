// SPDX-License-Identifier: Apache-2.0
#include "collective/plan/checker.h"

#include <algorithm>
#include <optional>

namespace ronde::collective {
namespace {

// What a chunk holds: how often the contribution of each member is in it. Empty: no content at all.
struct Content {
  std::vector<int> times;
  bool finished = false;
  bool empty() const { return times.empty(); }
};

// A round's halves of one member, and what they carry.
struct Posted {
  bool sent = true;
  bool received = true;
  Content outgoing;
};

class Execution {
 public:
  Execution(Promise promise, std::span<const Schedule> schedules, int root)
      : promise_(promise), schedules_(schedules), size_(static_cast<int>(schedules.size())), root_(root) {}

  Status run() {
    RONDE_TRY(check_form());
    fill();
    for (int member = 0; member < size_; ++member) RONDE_TRY(post(member));
    bool moved = true;
    while (moved) {
      moved = false;
      for (int member = 0; member < size_; ++member) RONDE_TRY(match_send(member, moved));
      for (int member = 0; member < size_; ++member) RONDE_TRY(end_round(member, moved));
    }
    RONDE_TRY(check_all_through());
    return check_end();
  }

 private:
  static Status refuse(int member, size_t round, const std::string& what) {
    return Status(Code::Internal, cat("member ", member, ", round ", round, ": ", what));
  }
  bool sums() const { return promise_ == Promise::SumEverywhere || promise_ == Promise::SumAtOwner; }
  bool is_promised(int member, int chunk) const { return promise_ != Promise::SumAtOwner || member == chunk; }
  const std::vector<Round>& rounds(int member) const { return schedules_[static_cast<size_t>(member)].rounds; }
  const Round& current(int member) const { return rounds(member)[at_[member]]; }
  bool through(int member) const { return at_[member] == rounds(member).size(); }
  Content& content(int member, int chunk) { return contents_[member][chunk]; }

  Status check_form() const {
    const auto& first = schedules_[0];
    for (int member = 0; member < size_; ++member) {
      const Schedule& schedule = schedules_[static_cast<size_t>(member)];
      if (schedule.chunks != first.chunks) return refuse(member, 0, "cuts the data into another number of chunks");
      if (schedule.rounds.size() != first.rounds.size()) return refuse(member, 0, "has another number of rounds");
      for (size_t r = 0; r < schedule.rounds.size(); ++r) RONDE_TRY(check_round(member, r, schedule));
    }
    return {};
  }

  Status check_round(int member, size_t r, const Schedule& schedule) const {
    const Round& round = schedule.rounds[r];
    const auto bad_peer = [&](int peer) { return peer != kNobody && (peer < 0 || peer >= size_ || peer == member); };
    const auto bad_chunk = [&](int chunk) { return chunk < 0 || chunk >= schedule.chunks; };
    if (bad_peer(round.send_to) || bad_peer(round.recv_from)) return refuse(member, r, "has a peer out of range");
    if (bad_chunk(round.send_chunk) || bad_chunk(round.recv_chunk))
      return refuse(member, r, "has a chunk out of range");
    const bool sends = round.send_to != kNobody;
    const bool receives = round.recv_from != kNobody;
    if (sends && receives && round.send_chunk == round.recv_chunk)
      return refuse(member, r, "sends the chunk that it receives");
    if (round.finish_chunk == -1) return {};
    if (!sums()) return refuse(member, r, "finishes a chunk, but nothing is to be finished");
    if (!receives || round.finish_chunk != round.recv_chunk)
      return refuse(member, r, "finishes a chunk that it does not receive");
    return {};
  }

  Content single(int member) const {
    Content out{.times = std::vector<int>(static_cast<size_t>(size_), 0)};
    out.times[static_cast<size_t>(member)] = 1;
    return out;
  }

  void fill() {
    const int chunks = schedules_[0].chunks;
    finishes_.assign(chunks, 0);
    at_.assign(size_, 0);
    posted_.assign(size_, {});
    contents_.assign(size_, std::vector<Content>(chunks));
    for (int member = 0; member < size_; ++member) {
      for (int chunk = 0; chunk < chunks; ++chunk) {
        const bool has = sums() || (promise_ == Promise::GatherEverywhere ? member == chunk : member == root_);
        if (has) content(member, chunk) = single(member);
      }
    }
  }

  // Begins the member's current round: takes what it sends, as it is now.
  Status post(int member) {
    if (through(member)) return {};
    const Round& round = current(member);
    Posted& posted = posted_[member];
    posted = {.sent = round.send_to == kNobody, .received = round.recv_from == kNobody, .outgoing = {}};
    if (posted.sent) return {};
    posted.outgoing = content(member, round.send_chunk);
    if (posted.outgoing.empty())
      return refuse(member, at_[member], cat("sends chunk ", round.send_chunk, " without content"));
    if (sums() && complete(posted.outgoing) && !posted.outgoing.finished)
      return refuse(member, at_[member], cat("sends chunk ", round.send_chunk, " complete but not finished"));
    return {};
  }

  bool complete(const Content& c) const {
    return !c.empty() && std::ranges::all_of(c.times, [](int times) { return times == 1; });
  }

  // Delivers the member's send if the receiver stands at a matching receive.
  Status match_send(int member, bool& moved) {
    if (through(member) || posted_[member].sent) return {};
    const Round& round = current(member);
    const int peer = round.send_to;
    if (through(peer) || posted_[peer].received || current(peer).recv_from != member) return {};
    if (at_[peer] != at_[member])
      return refuse(member, at_[member], cat("is received by member ", peer, " in its round ", at_[peer]));
    if (current(peer).recv_chunk != round.send_chunk)
      return refuse(
          member, at_[member],
          cat("sends chunk ", round.send_chunk, " where member ", peer, " receives ", current(peer).recv_chunk));
    posted_[member].sent = true;
    posted_[peer].received = true;
    moved = true;
    return take(peer, posted_[member].outgoing);
  }

  // The receiving half of the member's current round.
  Status take(int member, const Content& incoming) {
    const Round& round = current(member);
    Content& own = content(member, round.recv_chunk);
    if (round.on_receive == OnReceive::Copy) {
      own = incoming;
    } else {
      if (own.empty()) return refuse(member, at_[member], "reduces into a chunk without content");
      if (own.finished || incoming.finished) return refuse(member, at_[member], "reduces a finished chunk");
      for (size_t i = 0; i < own.times.size(); ++i) own.times[i] += incoming.times[i];
    }
    if (round.finish_chunk == -1) return {};
    if (!complete(own)) return refuse(member, at_[member], "finishes a chunk that is not complete");
    if (own.finished || ++finishes_[round.finish_chunk] > 1)
      return refuse(member, at_[member], cat("finishes chunk ", round.finish_chunk, " a second time"));
    own.finished = true;
    return {};
  }

  Status end_round(int member, bool& moved) {
    if (through(member) || !posted_[member].sent || !posted_[member].received) return {};
    ++at_[member];
    moved = true;
    return post(member);
  }

  Status check_all_through() const {
    for (int member = 0; member < size_; ++member)
      if (!through(member)) return refuse(member, at_[member], "waits for ever");
    return {};
  }

  Status check_end() {
    const size_t end = schedules_[0].rounds.size();
    for (int member = 0; member < size_; ++member) {
      for (int chunk = 0; chunk < schedules_[0].chunks; ++chunk) {
        if (!is_promised(member, chunk)) continue;
        const Content& own = content(member, chunk);
        if (!as_promised(own, chunk)) return refuse(member, end, cat("chunk ", chunk, " is not what was promised"));
        if (sums() && size_ > 1 && !own.finished) return refuse(member, end, cat("chunk ", chunk, " is not finished"));
      }
    }
    return {};
  }

  bool as_promised(const Content& own, int chunk) const {
    if (sums()) return complete(own);
    return own.times == single(promise_ == Promise::GatherEverywhere ? chunk : root_).times;
  }

  Promise promise_;
  std::span<const Schedule> schedules_;
  int size_;
  int root_;
  std::vector<size_t> at_;                      // by member: its round
  std::vector<Posted> posted_;                  // by member
  std::vector<std::vector<Content>> contents_;  // by member and chunk
  std::vector<int> finishes_;                   // by chunk: how often it was finished, anywhere
};

}  // namespace

Status check(Promise promise, std::span<const Schedule> schedules, int root) {
  RONDE_CHECK(!schedules.empty(), "a group has members");
  return Execution(promise, schedules, root).run();
}

std::vector<Schedule> plan_all(const Algorithm& algorithm, int size, int root) {
  std::vector<Schedule> out;
  for (int index = 0; index < size; ++index) out.push_back(algorithm.plan(index, size, root));
  return out;
}

}  // namespace ronde::collective
