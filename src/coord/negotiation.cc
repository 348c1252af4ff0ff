// SPDX-License-Identifier: Apache-2.0
#include "coord/negotiation.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>

#include "coord/cutter.h"
#include "coord/limits.h"

namespace ronde::coord {
namespace {

// For accounting only: sums of such numbers do not overflow.
constexpr int64_t kMostCountedBytes = int64_t{1} << 40;

std::vector<Key> keys_of(const std::vector<Entry>& call) {
  std::vector<Key> out;
  for (const Entry& entry : call) out.push_back(entry.key);
  return out;
}

bool names_twice(const std::vector<Entry>& call) {
  std::unordered_set<Key, KeyHash> seen;
  for (const Entry& entry : call) {
    if (!seen.insert(entry.key).second) return true;
  }
  return false;
}

}  // namespace

Negotiation::Negotiation(SetId set, std::vector<Rank> members, const CoordinatorOptions& options, Decisions* decisions)
    : set_(set),
      options_(options),
      decisions_(decisions),
      ledger_(members),
      ready_(HoldLimits{options.cut_early, options.batch_bytes, options.hold}, members),
      of_rank_(static_cast<size_t>(options.size)) {}

Status Negotiation::count_unnamed(Rank rank, uint64_t number) {
  uint64_t& next = of(rank).next_number;
  if (number != next) return Status(Code::Internal, cat("unnamed operation ", number, " instead of ", next));
  ++next;
  return {};
}

Status Negotiation::enter(Rank rank, const std::vector<Entry>& call, bool more, Time now) {
  if (gone_.ok()) {
    RONDE_TRY(place_call(rank, call, more, now));
  } else {
    decisions_->add_end(set_, gone_, Ended{keys_of(call), {rank}});
  }
  if (!more) flush(rank);
  return {};
}

// The common case is a call whose keys are, in order, those of one unit.
Status Negotiation::place_call(Rank rank, const std::vector<Entry>& call, bool more, Time now) {
  RONDE_ASSIGN(const Ledger::Place first, ledger_.place(rank, call.front().key));
  Unit* unit = first.unit;
  bool fits = unit != nullptr && unit->entries.size() == call.size();
  for (size_t i = 0; i < call.size(); ++i) {
    RONDE_ASSIGN(const Ledger::Place place, ledger_.place(rank, call[i].key));
    fits = fits && place.unit == unit && unit->entries[i].key == call[i].key;
  }
  if (!fits) return begin_or_fail(rank, call, more, now);
  join(rank, *unit, call, more, now);
  return {};
}

// The call opens a unit if all its keys are new; otherwise it contradicts other calls, or runs into a failure.
Status Negotiation::begin_or_fail(Rank rank, const std::vector<Entry>& call, bool more, Time now) {
  if (names_twice(call)) return Status(Code::Internal, "a group names an operation twice");
  if (const Failure* failure = ledger_.failure_met(rank, call)) {
    fail_call(rank, call, Status(failure->status));
  } else if (const auto struck = ledger_.struck_by(rank, call); !struck.empty()) {
    fail_call(rank, call, Status(Code::Mismatch, group_mismatch(call_of(*struck.front()), call_of(rank, call))));
  } else {
    join(rank, ledger_.open(rank, call, now), call, more, now);
  }
  return {};
}

void Negotiation::join(Rank rank, Unit& unit, const std::vector<Entry>& call, bool more, Time now) {
  ledger_.join(unit, rank, call);
  if (more) {
    unit.held.add(rank);
    of(rank).may_hold = true;
  }
  Status status = disagreement(rank, unit, call);
  if (status.ok() && !ledger_.is_complete(unit)) return;
  if (status.ok()) status = measure(unit);
  if (!status.ok()) {
    fail_unit(unit, status);
    return;
  }
  unit.ready_at = now;
  ready_.push(unit);
}

Status Negotiation::disagreement(Rank rank, const Unit& unit, const std::vector<Entry>& call) const {
  for (size_t i = 0; i < call.size(); ++i) {
    if (unit.entries[i].signature == call[i].signature) continue;
    const Signature& theirs = decisions_->signatures().at(unit.entries[i].signature)->signature;
    const Signature& ours = decisions_->signatures().at(call[i].signature)->signature;
    const std::string text = signature_mismatch(unit.first, theirs, rank, ours);
    if (call.size() == 1) return Status(Code::Mismatch, text);
    return Status(Code::Mismatch, cat("for ", decisions_->text_of(call[i].key), " of the same group ", text));
  }
  return {};
}

int64_t Negotiation::bytes_of(const BatchEntry& entry) const {
  const int64_t rows = sum_of(entry.first_dims);
  return rows < 0 ? -1 : tensor_bytes(decisions_->signatures().at(entry.signature)->signature, rows);
}

// The bytes of the complete unit; an error if it cannot be run at all.
Status Negotiation::measure(Unit& unit) const {
  unit.bytes = 0;
  for (const BatchEntry& entry : unit.entries) {
    const int64_t bytes = bytes_of(entry);
    if (bytes < 0) return Status(Code::InvalidArgument, "the gathered tensor would have more than 2^60 bytes");
    if (encoded_bytes(entry) + kBatchHeadBytes > options_.max_frame_bytes) {
      return Status(Code::ResourceExhausted,
                    cat("the first dimensions of ", entry.first_dims.size(), " ranks do not fit into a frame of ",
                        options_.max_frame_bytes, " bytes"));
    }
    unit.bytes = std::min(unit.bytes + std::min(bytes, kMostCountedBytes), kMostCountedBytes);
  }
  return {};
}

void Negotiation::flush(Rank rank) {
  ready_.on_flush(rank);
  if (!std::exchange(of(rank).may_hold, false)) return;
  for (const auto& unit : ledger_.units()) {
    if (unit->held.remove(rank) && unit->held.empty() && ledger_.is_complete(*unit)) ready_.on_released(*unit);
  }
}

void Negotiation::fail_unit(Unit& unit, const Status& status) {
  ready_.remove(unit);
  decisions_->add_end(set_, status, ledger_.fail(unit, status));
}

void Negotiation::fail_call(Rank rank, const std::vector<Entry>& call, const Status& status) {
  for (const Ended& ended : ledger_.fail_call(rank, call, status)) decisions_->add_end(set_, status, ended);
}

void Negotiation::end(const Status& why) {
  if (!gone_.ok()) return;
  gone_ = why;
  ready_.clear();
  for (const Ended& ended : ledger_.fail_everything()) {
    decisions_->add_end(set_, why, ended);
  }
}

void Negotiation::raise_deadlines(Time now) {
  while (!ledger_.units().empty()) {
    Unit& oldest = *ledger_.units().front();
    if (now < time_after(oldest.first_report, options_.collective_timeout)) return;
    const Overdue late{ledger_.missing(oldest), oldest.held.ranks(), now - oldest.first_report};
    fail_unit(oldest, Status(Code::Timeout, cat(overdue(late), options_.remark(now))));
  }
}

Time Negotiation::next_deadline() const {
  const Time due = ready_.next_due();
  if (ledger_.units().empty()) return due;
  return std::min(due, time_after(ledger_.units().front()->first_report, options_.collective_timeout));
}

std::vector<Signature> Negotiation::cut_due(Time now) {
  const std::vector<Unit*> units = ready_.take_due(now);
  std::vector<Signature> changes;
  if (units.empty()) return changes;
  std::vector<Piece> pieces;
  std::vector<BatchEntry> entries;
  for (uint32_t u = 0; u < units.size(); ++u) {
    for (const BatchEntry& entry : units[u]->entries) {
      const auto& known = *decisions_->signatures().at(entry.signature);
      const OpRow& op = row(known.signature.op);
      pieces.push_back(Piece{.fusion_class = known.fusion_class,
                             .unit = u,
                             .bytes = std::min(bytes_of(entry), kMostCountedBytes),
                             .wire_bytes = encoded_bytes(entry),
                             .alone = op.output == Output::Exchanged || op.changes_sets});
      if (op.changes_sets) changes.push_back(known.signature);
      entries.push_back(entry);
    }
  }
  for (Unit* unit : units) ledger_.close(*unit);
  CutLimits limits{.wire_bytes = options_.max_frame_bytes - kBatchHeadBytes};
  if (options_.cut_early) limits.batch_bytes = options_.batch_bytes;
  for (const std::vector<uint32_t>& positions : cut(pieces, limits)) {
    std::vector<BatchEntry> batch;
    for (const uint32_t position : positions) batch.push_back(std::move(entries[position]));
    decisions_->add_batch(set_, std::move(batch));
  }
  return changes;
}

Call Negotiation::call_of(Rank rank, const std::vector<Entry>& call) const {
  Call out{rank, {}};
  for (const Entry& entry : call) out.keys.push_back(decisions_->text_of(entry.key));
  return out;
}

Call Negotiation::call_of(const Unit& unit) const {
  Call out{unit.first, {}};
  for (const BatchEntry& entry : unit.entries) out.keys.push_back(decisions_->text_of(entry.key));
  return out;
}

}  // namespace ronde::coord
