// SPDX-License-Identifier: Apache-2.0
// Steps of a report: decode; replace names and signatures in whole by ids, publishing new ones; gather the calls of
// groups; enter each call in the ledger of its set: it opens a unit, joins one, or fails together with what it
// contradicts. Complete units go to the ready queue, from which batches are cut when decisions are taken.
#include "coord/coordinator.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_set>
#include <utility>

#include "coord/cutter.h"
#include "coord/frame_writer.h"
#include "coord/ledger.h"
#include "coord/limits.h"
#include "coord/mismatch.h"
#include "coord/ready_queue.h"
#include "coord/tables.h"

namespace ronde::coord {
namespace {

// For accounting only: sums of such numbers cannot overflow.
constexpr int64_t kMostCountedBytes = int64_t{1} << 40;

// A process set.
struct Set {
  Set(SetId set_id, const std::vector<Rank>& members, Rank size, const HoldLimits& limits)
      : id(set_id), ledger(members), ready(limits, members), ranks(static_cast<size_t>(size)) {}

  struct OfRank {
    uint64_t next_number = 0;  // of its unnamed operations
    size_t held = 0;           // units it holds back
  };
  SetId id;
  Ledger ledger;
  ReadyQueue ready;
  std::vector<OfRank> ranks;
  Status gone;  // why nothing in this set can succeed any more
};

// What a rank is in the middle of telling.
struct Teller {
  bool has_left = false;
  bool is_lost = false;
  uint32_t group_left = 0;  // submits still to come of a group
  bool more = false;
  SetId set = kWorldSet;
  std::vector<Entry> call;
};

Status protocol_error(std::string what) {
  return Status(Code::Internal, std::move(what));
}

}  // namespace

struct Coordinator::State {
  explicit State(const CoordinatorOptions& given)
      : options(given), frames(given.max_frame_bytes), tellers(static_cast<size_t>(given.size)) {
    std::vector<Rank> all;
    for (Rank rank = 0; rank < options.size; ++rank) all.push_back(rank);
    const HoldLimits limits{options.cut_early, options.batch_bytes, options.hold};
    sets.try_emplace(kWorldSet, kWorldSet, all, options.size, limits);
  }

  Status take(Rank rank, Teller& teller, const Submit& item);
  Status take(Rank rank, Teller& teller, const Group& item);
  Status take(Rank rank, Teller& teller, const Flush& item);
  Status take(Rank rank, Teller& teller, const Leave& item);

  Result<Set*> set_of(Rank rank, SetId id);
  Result<Key> key_of(Rank rank, Set& set, const Submit& item);
  Result<uint32_t> signature_of(const Submit& item);

  Status enter(Rank rank, Set& set, const Teller& teller);
  Status enter_alone(Rank rank, Set& set, const Teller& teller);
  void enter_unit(Rank rank, Set& set, Unit& unit, const Teller& teller);
  void fail_call(Rank rank, Set& set, const std::vector<Entry>& call, const Status& status);
  void fail_unit(Set& set, Unit& unit, const Status& status);
  void on_complete(Set& set, Unit& unit);
  Status measure(Unit& unit) const;
  void flush(Rank rank, Set& set);
  void let_go(Set& set, const Unit& unit);
  void end_sets_of(Rank rank, const Status& why);

  void raise_deadlines();
  void cut_all();
  void cut_set(Set& set);

  int64_t bytes_of(const BatchEntry& entry) const;
  std::string text_of(const Key& key) const;
  Call call_of(Rank rank, const std::vector<Entry>& call) const;
  Call call_of(const Unit& unit) const;
  void publish_end(const Set& set, const Status& status, const Ended& ended);
  template <class Item>
  void publish(Item item) {
    frames.add(DecisionItem(std::move(item)));
  }

  CoordinatorOptions options;
  FrameWriter frames;
  std::vector<Teller> tellers;
  std::map<SetId, Set> sets;  // ordered: batches of several sets are cut in the same order everywhere
  NameTable names;
  SignatureTable signatures;
  Counters counters;
  Time now{};
  uint64_t last_batch = 0;
};

// Names, signatures, sets

Result<Set*> Coordinator::State::set_of(Rank rank, SetId id) {
  const auto it = sets.find(id);
  if (it == sets.end()) return protocol_error(cat("there is no process set ", id));
  if (!it->second.ledger.is_member(rank)) return protocol_error(cat("rank ", rank, " is not in process set ", id));
  return &it->second;
}

Result<Key> Coordinator::State::key_of(Rank rank, Set& set, const Submit& item) {
  if (const auto* number = std::get_if<Number>(&item.name)) {
    uint64_t& next = set.ranks[static_cast<size_t>(rank)].next_number;
    if (number->value != next) return protocol_error(cat("unnamed operation ", number->value, " instead of ", next));
    ++next;
    return Key{true, number->value};
  }
  if (const auto* id = std::get_if<NameId>(&item.name)) {
    const auto* known = names.at(id->value);
    if (known == nullptr || known->set != item.set) return protocol_error(cat("there is no name ", id->value));
    return Key{false, id->value};
  }
  const auto& name = std::get<std::string>(item.name);
  if (const auto known = names.find(item.set, name)) return Key{false, *known};
  const uint32_t id = names.next_id();
  RONDE_TRY(names.define(id, item.set, name));
  publish(DefineName{id, item.set, name});
  ++counters.definitions;
  return Key{false, id};
}

Result<uint32_t> Coordinator::State::signature_of(const Submit& item) {
  if (const auto* id = std::get_if<SignatureId>(&item.signature)) {
    if (signatures.at(id->value) == nullptr) return protocol_error(cat("there is no signature ", id->value));
    return id->value;
  }
  const auto& whole = std::get<Signature>(item.signature);
  if (const auto known = signatures.find(whole)) return *known;
  const uint32_t id = signatures.next_id();
  RONDE_TRY(signatures.define(id, whole));
  publish(DefineSignature{id, whole});
  ++counters.definitions;
  return id;
}

// Items of a report

Status Coordinator::State::take(Rank rank, Teller& teller, const Submit& item) {
  RONDE_ASSIGN(Set * set, set_of(rank, item.set));
  if (!teller.call.empty() && teller.set != item.set) return protocol_error("a group spans two process sets");
  RONDE_ASSIGN(const Key key, key_of(rank, *set, item));
  RONDE_ASSIGN(const uint32_t id, signature_of(item));
  const Signature& signature = signatures.at(id)->signature;
  const bool varies = row(signature.op).dims == DimsRule::AllButFirst;
  if (row(signature.op).has_root && !set->ledger.is_member(signature.root)) {
    return protocol_error(cat("root rank ", signature.root, " is not in process set ", set->id));
  }
  if (varies != (item.first_dim >= 0)) return protocol_error(cat("first dimension of ", signature.to_string()));
  if (tensor_bytes(signature, item.first_dim) < 0) return protocol_error("a tensor of more than 2^60 bytes");
  teller.set = item.set;
  teller.more = item.more;
  teller.call.push_back(Entry{key, id, item.first_dim});
  if (teller.group_left > 0 && --teller.group_left > 0) return {};
  const Status status = enter(rank, *set, teller);
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
  RONDE_ASSIGN(Set * set, set_of(rank, item.set));
  flush(rank, *set);
  return {};
}

Status Coordinator::State::take(Rank rank, Teller& teller, const Leave&) {
  if (teller.group_left > 0) return protocol_error("a leave inside a group");
  cut_all();  // what was complete before this point of the order still runs
  teller.has_left = true;
  publish(Left{rank});
  end_sets_of(rank, Status(Code::RankLeft, cat("rank ", rank, " has shut down, and this operation needs it")));
  return {};
}

// Calls

Status Coordinator::State::enter(Rank rank, Set& set, const Teller& teller) {
  if (set.gone.ok()) {
    RONDE_TRY(enter_alone(rank, set, teller));
  } else {
    Ended ended{{}, {rank}};
    for (const Entry& entry : teller.call) ended.keys.push_back(entry.key);
    publish_end(set, set.gone, ended);
  }
  if (!teller.more) flush(rank, set);
  return {};
}

// The ledger decides by where the keys of the call belong: all to one unit, all nowhere, or anything else.
Status Coordinator::State::enter_alone(Rank rank, Set& set, const Teller& teller) {
  const std::vector<Entry>& call = teller.call;
  Unit* unit = nullptr;
  const Failure* failure = nullptr;
  bool all_new = true;
  bool fits = true;
  for (size_t i = 0; i < call.size(); ++i) {
    RONDE_ASSIGN(const Ledger::Place place, set.ledger.place(rank, call[i].key));
    all_new = all_new && place.unit == nullptr && place.failure == nullptr;
    if (place.failure != nullptr && failure == nullptr) failure = place.failure;
    if (place.unit != nullptr && unit == nullptr) unit = place.unit;
    fits = fits && place.unit != nullptr && place.unit == unit && i < unit->entries.size() &&
           unit->entries[i].key == call[i].key;
  }
  if (fits && unit->entries.size() == call.size()) {
    enter_unit(rank, set, *unit, teller);
    return {};
  }
  std::unordered_set<Key, KeyHash> keys;
  for (const Entry& entry : call) {
    if (!keys.insert(entry.key).second) return protocol_error("a group names an operation twice");
  }
  if (all_new) {
    Unit& opened = set.ledger.open(rank, call, now);
    enter_unit(rank, set, opened, teller);
  } else if (failure != nullptr) {
    fail_call(rank, set, call, failure->status);
  } else {
    const std::string text = group_mismatch(call_of(*unit), call_of(rank, call));
    fail_call(rank, set, call, Status(Code::Mismatch, clipped(text, kMaxTextBytes)));
  }
  return {};
}

void Coordinator::State::enter_unit(Rank rank, Set& set, Unit& unit, const Teller& teller) {
  set.ledger.join(unit, rank, teller.call);
  if (teller.more && unit.held.add(rank)) ++set.ranks[static_cast<size_t>(rank)].held;
  for (size_t i = 0; i < teller.call.size(); ++i) {
    if (unit.entries[i].signature == teller.call[i].signature) continue;
    const Signature& theirs = signatures.at(unit.entries[i].signature)->signature;
    const Signature& ours = signatures.at(teller.call[i].signature)->signature;
    std::string text = signature_mismatch(unit.first, theirs, rank, ours);
    if (teller.call.size() > 1) text = cat(text, " (of ", text_of(teller.call[i].key), " in the same group)");
    fail_unit(set, unit, Status(Code::Mismatch, clipped(text, kMaxTextBytes)));
    return;
  }
  if (set.ledger.is_complete(unit)) on_complete(set, unit);
}

void Coordinator::State::on_complete(Set& set, Unit& unit) {
  if (const Status status = measure(unit); !status.ok()) {
    fail_unit(set, unit, status);
    return;
  }
  unit.ready_at = now;
  set.ready.push(unit);
}

int64_t Coordinator::State::bytes_of(const BatchEntry& entry) const {
  const int64_t rows = sum_of(entry.first_dims);
  return rows < 0 ? -1 : tensor_bytes(signatures.at(entry.signature)->signature, rows);
}

// Whether the complete unit can be run at all, and its bytes.
Status Coordinator::State::measure(Unit& unit) const {
  unit.bytes = 0;
  for (const BatchEntry& entry : unit.entries) {
    const int64_t bytes = bytes_of(entry);
    if (bytes < 0) return Status(Code::InvalidArgument, "the gathered tensor would have more than 2^60 bytes");
    if (encoded_bytes(entry) + kBatchHeadBytes > options.max_frame_bytes) {
      return Status(Code::ResourceExhausted,
                    cat("the first dimensions of ", entry.first_dims.size(), " ranks do not fit into a frame of ",
                        options.max_frame_bytes, " bytes"));
    }
    unit.bytes = std::min(unit.bytes + std::min(bytes, kMostCountedBytes), kMostCountedBytes);
  }
  return {};
}

void Coordinator::State::flush(Rank rank, Set& set) {
  set.ready.on_flush(rank);
  size_t& held = set.ranks[static_cast<size_t>(rank)].held;
  if (held == 0) return;
  for (const auto& unit : set.ledger.units()) {
    if (unit->held.remove(rank) && unit->held.empty() && set.ledger.is_complete(*unit)) set.ready.on_released(*unit);
  }
  held = 0;
}

// Failures

// The unit is about to leave the ledger: nobody holds it any more.
void Coordinator::State::let_go(Set& set, const Unit& unit) {
  for (const Rank rank : unit.held.ranks()) --set.ranks[static_cast<size_t>(rank)].held;
}

void Coordinator::State::fail_unit(Set& set, Unit& unit, const Status& status) {
  let_go(set, unit);
  set.ready.remove(unit);
  publish_end(set, status, set.ledger.fail(unit, status));
}

void Coordinator::State::fail_call(Rank rank, Set& set, const std::vector<Entry>& call, const Status& status) {
  std::unordered_set<const Unit*> met;
  for (const Entry& entry : call) {
    const Result<Ledger::Place> place = set.ledger.place(rank, entry.key);
    if (place.ok() && place.value().unit != nullptr && met.insert(place.value().unit).second) {
      let_go(set, *place.value().unit);
    }
  }
  for (const Ended& ended : set.ledger.fail_call(rank, call, status)) publish_end(set, status, ended);
}

void Coordinator::State::end_sets_of(Rank rank, const Status& why) {
  for (auto& [id, set] : sets) {
    if (!set.ledger.is_member(rank) || !set.gone.ok()) continue;
    set.gone = why;
    set.ready.clear();
    for (Set::OfRank& of_rank : set.ranks) of_rank.held = 0;
    for (Ended& ended : set.ledger.fail_everything()) {
      std::erase(ended.ranks, rank);  // its own are ended on its own side
      publish_end(set, why, ended);
    }
  }
}

void Coordinator::State::publish_end(const Set& set, const Status& status, const Ended& ended) {
  const auto slice = [](const auto& all, size_t from, size_t most) {
    return std::vector(all.begin() + static_cast<ptrdiff_t>(from),
                       all.begin() + static_cast<ptrdiff_t>(std::min(from + most, all.size())));
  };
  const std::string text = clipped(status.message(), kMaxTextBytes);
  for (size_t k = 0; k < ended.keys.size(); k += kMaxFailedKeys) {
    for (size_t r = 0; r < ended.ranks.size(); r += kMaxFailedRanks) {
      publish(Failed{set.id, status.code(), text, slice(ended.keys, k, kMaxFailedKeys),
                     slice(ended.ranks, r, kMaxFailedRanks)});
    }
  }
}

void Coordinator::State::raise_deadlines() {
  for (auto& [id, set] : sets) {
    while (!set.ledger.units().empty()) {
      Unit& oldest = *set.ledger.units().front();
      if (now < time_after(oldest.first_report, options.collective_timeout)) break;
      const Overdue late{set.ledger.missing(oldest), oldest.held.ranks(), now - oldest.first_report};
      fail_unit(set, oldest, Status(Code::Timeout, overdue(late)));
    }
  }
}

std::string Coordinator::State::text_of(const Key& key) const {
  return key.unnamed ? cat("unnamed ", key.value) : cat("'", names.at(key.value)->name, "'");
}

Call Coordinator::State::call_of(Rank rank, const std::vector<Entry>& call) const {
  Call out{rank, {}};
  for (const Entry& entry : call) out.keys.push_back(text_of(entry.key));
  return out;
}

Call Coordinator::State::call_of(const Unit& unit) const {
  Call out{unit.first, {}};
  for (const BatchEntry& entry : unit.entries) out.keys.push_back(text_of(entry.key));
  return out;
}

// Batches

void Coordinator::State::cut_all() {
  for (auto& [id, set] : sets) cut_set(set);
}

void Coordinator::State::cut_set(Set& set) {
  const std::vector<Unit*> units = set.ready.take_due(now);
  if (units.empty()) return;
  std::vector<Piece> pieces;
  std::vector<BatchEntry*> entries;
  for (uint32_t u = 0; u < units.size(); ++u) {
    for (BatchEntry& entry : units[u]->entries) {
      const uint32_t fusion_class = signatures.at(entry.signature)->fusion_class;
      pieces.push_back(Piece{fusion_class, u, std::min(bytes_of(entry), kMostCountedBytes), encoded_bytes(entry)});
      entries.push_back(&entry);
    }
  }
  CutLimits limits{.wire_bytes = options.max_frame_bytes - kBatchHeadBytes};
  if (options.cut_early) limits.batch_bytes = options.batch_bytes;
  for (const std::vector<uint32_t>& positions : cut(pieces, limits)) {
    BatchDecision batch{++last_batch, set.id, {}};
    for (const uint32_t position : positions) batch.entries.push_back(std::move(*entries[position]));
    ++counters.batches;
    // The ledger finds the unit by its keys, which stay; only the first dimensions were moved.
    publish(std::move(batch));
  }
  for (Unit* unit : units) {
    let_go(set, *unit);
    set.ledger.close(*unit);
  }
}

Coordinator::Coordinator(const CoordinatorOptions& options) : state_(std::make_unique<State>(options)) {}
Coordinator::~Coordinator() = default;

Status Coordinator::on_report(Rank rank, ByteSpan frame, Time now) {
  RONDE_CHECK(rank >= 0 && rank < state_->options.size, "a report of a rank that does not exist");
  state_->now = std::max(state_->now, now);
  Teller& teller = state_->tellers[static_cast<size_t>(rank)];
  if (teller.is_lost) return {};
  const auto context = [&](const Status& status) {
    return status.ok() ? status : status.with_context(cat("report of rank ", rank));
  };
  auto items = decode_report(frame);
  if (!items.ok()) return context(items.status());
  for (const ReportItem& item : *items) {
    if (teller.has_left) return context(protocol_error("more after its leave"));
    const Status status = std::visit([&](const auto& it) { return state_->take(rank, teller, it); }, item);
    if (!status.ok()) return context(status);
  }
  return {};
}

void Coordinator::on_lost(Rank rank, const Status& cause) {
  RONDE_CHECK(rank >= 0 && rank < state_->options.size && !cause.ok(), "a lost rank exists and has a cause");
  Teller& teller = state_->tellers[static_cast<size_t>(rank)];
  if (teller.is_lost) return;
  teller.is_lost = true;
  state_->end_sets_of(rank, cause);
}

void Coordinator::tick(Time now) {
  state_->now = std::max(state_->now, now);
  state_->cut_all();
  state_->raise_deadlines();
}

Time Coordinator::next_deadline() const {
  Time out = kNever;
  for (const auto& [id, set] : state_->sets) {
    out = std::min(out, set.ready.next_due());
    if (set.ledger.units().empty()) continue;
    out = std::min(out, time_after(set.ledger.units().front()->first_report, state_->options.collective_timeout));
  }
  return out;
}

std::vector<Bytes> Coordinator::take_decisions() {
  state_->cut_all();
  return state_->frames.take();
}

const Coordinator::Counters& Coordinator::counters() const {
  return state_->counters;
}

}  // namespace ronde::coord
