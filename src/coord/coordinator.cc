// SPDX-License-Identifier: Apache-2.0
// Steps of a report: decode; replace names and signatures in whole by ids, publishing new ones; gather the submits of a
// group; enter each call in the negotiation of its set.
#include "coord/coordinator.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "coord/decisions.h"
#include "coord/limits.h"
#include "coord/negotiation.h"

namespace ronde::coord {
namespace {

// What a rank is in the middle of telling.
struct Teller {
  bool has_left = false;
  uint32_t group_left = 0;  // submits still to come of a group
  SetId set = kWorldSet;
  std::vector<Entry> call;
};

Status protocol_error(std::string what) {
  return Status(Code::Internal, std::move(what));
}

}  // namespace

struct Coordinator::State {
  explicit State(const CoordinatorOptions& given)
      : options(given), decisions(given.max_frame_bytes), tellers(static_cast<size_t>(given.size)) {
    std::vector<Rank> all;
    for (Rank rank = 0; rank < options.size; ++rank) all.push_back(rank);
    sets.try_emplace(kWorldSet, kWorldSet, all, options, &decisions);
  }

  Status take(Rank rank, Teller& teller, const Submit& item);
  Status take(Rank rank, Teller& teller, const Group& item);
  Status take(Rank rank, Teller& teller, const Flush& item);
  Status take(Rank rank, Teller& teller, const Leave& item);

  Result<Negotiation*> set_of(Rank rank, SetId id);
  Result<Key> key_of(Rank rank, Negotiation& set, const Submit& item);
  Result<uint32_t> signature_of(const Negotiation& set, const Submit& item);
  Status check_change(const Signature& change, SetId in) const;
  void end_sets_of(Rank rank, const Status& why);
  void cut_due();
  void change_sets(const Signature& change);

  CoordinatorOptions options;
  Decisions decisions;
  std::vector<Teller> tellers;        // by rank
  std::map<SetId, Negotiation> sets;  // by id, so that one moment's batches have one order
  SetId next_set = 1;
  Time now{};
};

Result<Negotiation*> Coordinator::State::set_of(Rank rank, SetId id) {
  const auto it = sets.find(id);
  if (it == sets.end()) return protocol_error(cat("there is no process set ", id));
  if (!it->second.is_member(rank)) return protocol_error(cat("rank ", rank, " is not in process set ", id));
  return &it->second;
}

Result<Key> Coordinator::State::key_of(Rank rank, Negotiation& set, const Submit& item) {
  if (const auto* number = std::get_if<Number>(&item.name)) {
    RONDE_TRY(set.count_unnamed(rank, number->value));
    return Key{true, number->value};
  }
  if (const auto* name = std::get_if<std::string>(&item.name)) return Key{false, decisions.name_id(item.set, *name)};
  const uint32_t id = std::get<NameId>(item.name).value;
  const auto* known = decisions.names().at(id);
  if (known == nullptr || known->set != item.set) return protocol_error(cat("there is no name ", id));
  return Key{false, id};
}

Result<uint32_t> Coordinator::State::signature_of(const Negotiation& set, const Submit& item) {
  const auto* known = std::get_if<SignatureId>(&item.signature);
  const uint32_t id = known != nullptr ? known->value : decisions.signature_id(std::get<Signature>(item.signature));
  const auto* found = decisions.signatures().at(id);
  if (found == nullptr) return protocol_error(cat("there is no signature ", id));
  const OpRow& op = row(found->signature.op);
  if (op.has_root && !set.is_member(found->signature.root)) {
    return protocol_error(cat("root rank ", found->signature.root, " is not in process set ", item.set));
  }
  if (op.tells_first_dim() != (item.first_dim >= 0)) return protocol_error("first dimension of the wrong op");
  if (op.changes_sets) RONDE_TRY(check_change(found->signature, item.set));
  if (tensor_bytes(found->signature, std::max<int64_t>(item.first_dim, 0)) < 0)
    return protocol_error("a tensor of more than 2^60 bytes");
  return id;
}

Status Coordinator::State::take(Rank rank, Teller& teller, const Submit& item) {
  RONDE_ASSIGN(Negotiation * set, set_of(rank, item.set));
  if (!teller.call.empty() && teller.set != item.set) return protocol_error("a group spans two process sets");
  RONDE_ASSIGN(const Key key, key_of(rank, *set, item));
  RONDE_ASSIGN(const uint32_t signature, signature_of(*set, item));
  teller.set = item.set;
  teller.call.push_back(Entry{key, signature, item.first_dim});
  if (teller.group_left > 0 && --teller.group_left > 0) return {};
  const Status status = set->enter(rank, teller.call, item.more, now);
  teller.call.clear();
  return status;
}

Status Coordinator::State::take(Rank, Teller& teller, const Group& item) {
  if (teller.group_left > 0) return protocol_error("a group inside a group");
  teller.group_left = item.count;
  return {};
}

Status Coordinator::State::take(Rank rank, Teller& teller, const Flush& item) {
  if (teller.group_left > 0) return protocol_error("a flush inside a group");
  RONDE_ASSIGN(Negotiation * set, set_of(rank, item.set));
  set->flush(rank);
  return {};
}

Status Coordinator::State::take(Rank rank, Teller& teller, const Leave&) {
  if (teller.group_left > 0) return protocol_error("a leave inside a group");
  cut_due();  // what was complete before this point of the order still runs
  teller.has_left = true;
  decisions.add_left(rank);
  end_sets_of(rank, Status(Code::RankLeft, cat("rank ", rank, " has shut down, and this operation needs it")));
  return {};
}

Status Coordinator::State::check_change(const Signature& change, SetId in) const {
  if (in != kWorldSet) return protocol_error("only all ranks change process sets");
  if (change.op == OpKind::AddSet) {
    if (change.subject.back() >= options.size) return protocol_error("a process set with a rank that does not exist");
  } else if (!sets.contains(static_cast<SetId>(change.subject.front()))) {
    return protocol_error(cat("there is no process set ", change.subject.front()));
  }
  return {};
}

void Coordinator::State::end_sets_of(Rank rank, const Status& why) {
  for (auto& [id, set] : sets) {
    if (set.is_member(rank)) set.end(why);
  }
}

// A set that is added here is looked at in the same walk.
void Coordinator::State::cut_due() {
  for (auto& [id, set] : sets) {
    for (const Signature& change : set.cut_due(now)) change_sets(change);
  }
}

void Coordinator::State::change_sets(const Signature& change) {
  if (change.op == OpKind::AddSet) {
    sets.try_emplace(next_set, next_set, change.subject, options, &decisions);
    ++next_set;
    return;
  }
  // It stays, to answer those that did not know yet.
  const SetId id = static_cast<SetId>(change.subject.front());
  sets.at(id).end(Status(Code::Aborted, cat("process set ", id, " was removed")));
}

Coordinator::Coordinator(const CoordinatorOptions& options) : state_(std::make_unique<State>(options)) {}
Coordinator::~Coordinator() = default;

Status Coordinator::on_report(Rank rank, ByteSpan frame, Time now) {
  RONDE_CHECK(rank >= 0 && rank < state_->options.size, "a report of a rank that does not exist");
  state_->now = std::max(state_->now, now);
  Teller& teller = state_->tellers[static_cast<size_t>(rank)];
  const auto blame = [&](const Status& status) { return status.with_context(cat("report of rank ", rank)); };
  const auto items = decode_report(frame);
  if (!items.ok()) return blame(items.status());
  for (const ReportItem& item : *items) {
    if (teller.has_left) return blame(protocol_error("it goes on after its leave"));
    const Status status = std::visit([&](const auto& it) { return state_->take(rank, teller, it); }, item);
    if (!status.ok()) return blame(status);
  }
  return {};
}

void Coordinator::tick(Time now) {
  state_->now = std::max(state_->now, now);
  state_->cut_due();
  for (auto& [id, set] : state_->sets) set.raise_deadlines(state_->now);
}

Time Coordinator::next_deadline() const {
  Time out = kNever;
  for (const auto& [id, set] : state_->sets) out = std::min(out, set.next_deadline());
  return out;
}

std::vector<Bytes> Coordinator::take_decisions() {
  state_->cut_due();
  return state_->decisions.take();
}

const Coordinator::Counters& Coordinator::counters() const {
  return state_->decisions.counters();
}

}  // namespace ronde::coord
