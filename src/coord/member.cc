// SPDX-License-Identifier: Apache-2.0
// A submission waits in the outbox, is encoded when reports are taken (with ids as far as decisions have defined them
// by then), and stays in flight under its key until a decision names that key.
#include "coord/member.h"

#include <algorithm>
#include <map>
#include <utility>

#include "coord/flights.h"
#include "coord/frame_writer.h"
#include "coord/limits.h"
#include "coord/outbox.h"
#include "coord/submit_check.h"
#include "coord/tables.h"

namespace ronde::coord {
namespace {

struct Set {
  std::vector<Rank> members;  // ascending
  Flights flights;
  uint64_t next_number = 0;  // of the unnamed operations of this rank
  bool removed = false;      // kept, since failures of what was in flight may still come

  bool has(Rank rank) const { return std::binary_search(members.begin(), members.end(), rank); }
};

Status protocol_error(std::string what) {
  return Status(Code::Internal, std::move(what));
}

}  // namespace

struct Member::State {
  explicit State(const MemberOptions& given) : options(given), outbox(given.eager) {
    RONDE_CHECK(options.max_frame_bytes >= kMinFrameBytes, "frames must have room for any single item");
    Set& world = sets[kWorldSet];
    for (Rank rank = 0; rank < options.size; ++rank) world.members.push_back(rank);
  }

  Tensor launch(Set& set, const Request& request, Ticket ticket, bool more);
  ReportItem item_of(Tensor& tensor);

  Status take(const DefineName& item, std::vector<Event>& out);
  Status take(const DefineSignature& item, std::vector<Event>& out);
  Status take(const BatchDecision& item, std::vector<Event>& out);
  Status take(const Failed& item, std::vector<Event>& out);
  Status take(const Left& item, std::vector<Event>& out);
  Status check_batch(const BatchDecision& item) const;
  Status check_entry(const BatchEntry& entry, SetId set, size_t members) const;
  Status check_key(const Key& key, SetId set) const;
  Batch head_of(const BatchDecision& item, const Set& set) const;
  BatchTensor tensor_of(const BatchEntry& entry) const;
  Status take_set_change(const BatchDecision& item, std::vector<Event>& out);
  Flight land(Set& set, const Key& key);
  std::vector<Flights::Ended> clear();

  MemberOptions options;
  std::map<SetId, Set> sets;
  Outbox outbox;
  NameTable names;
  SignatureTable signatures;
  uint64_t last_batch = 0;
  SetId next_set = 1;
  uint64_t whole_entries = 0;
  bool has_left = false;
};

// Submissions

Tensor Member::State::launch(Set& set, const Request& request, Ticket ticket, bool more) {
  const Flight flight{ticket, request.signature};
  Tensor out{request, 0, more};
  if (request.name.empty()) {
    out.number = set.next_number++;
    set.flights.add(out.number, flight, more);
  } else {
    set.flights.add(request.name, flight, more);
  }
  return out;
}

ReportItem Member::State::item_of(Tensor& tensor) {
  Request& request = tensor.request;
  const auto name_id = request.name.empty() ? std::nullopt : names.find(request.set, request.name);
  const auto signature_id = signatures.find(request.signature);
  if (!signature_id || (!name_id && !request.name.empty())) ++whole_entries;
  Submit out;
  out.set = request.set;
  out.more = tensor.more;
  if (row(request.signature.op).tells_first_dim()) out.first_dim = request.first_dim;
  if (request.name.empty()) {
    out.name = Number{tensor.number};
  } else if (name_id) {
    out.name = NameId{*name_id};
  } else {
    out.name = std::move(request.name);
  }
  if (signature_id) {
    out.signature = SignatureId{*signature_id};
  } else {
    out.signature = request.signature;
  }
  return out;
}

// Decisions

Status Member::State::take(const DefineName& item, std::vector<Event>&) {
  if (!sets.contains(item.set))
    return protocol_error(cat("a name in process set ", item.set, ", which does not exist"));
  return names.define(item.id, item.set, item.name);
}

Status Member::State::take(const DefineSignature& item, std::vector<Event>&) {
  return signatures.define(item.id, item.signature);
}

Status Member::State::check_key(const Key& key, SetId set) const {
  if (key.unnamed) return {};
  const auto* name = names.at(key.value);
  if (name == nullptr || name->set != set) return protocol_error(cat("there is no name ", key.value, " in set ", set));
  return {};
}

Status Member::State::check_entry(const BatchEntry& entry, SetId set, size_t members) const {
  const auto* known = signatures.at(entry.signature);
  if (known == nullptr) return protocol_error(cat("there is no signature ", entry.signature));
  const bool varies = row(known->signature.op).tells_first_dim();
  const int64_t rows = sum_of(entry.first_dims);
  if (entry.first_dims.size() != (varies ? members : 0)) return protocol_error("wrong number of first dimensions");
  if (rows < 0 || tensor_bytes(known->signature, rows) < 0) return protocol_error("a tensor of more than 2^60 bytes");
  return check_key(entry.key, set);
}

// What decoding could not know: that ids exist and that the entries fit together.
Status Member::State::check_batch(const BatchDecision& item) const {
  if (item.number != last_batch + 1) return protocol_error(cat("batch ", item.number, " after batch ", last_batch));
  const auto set = sets.find(item.set);
  if (set == sets.end()) return protocol_error(cat("there is no process set ", item.set));
  for (const BatchEntry& entry : item.entries) {
    RONDE_TRY(check_entry(entry, item.set, set->second.members.size()));
    if (signatures.at(entry.signature)->fusion_class != signatures.at(item.entries[0].signature)->fusion_class) {
      return protocol_error("tensors that do not fit into one batch");
    }
  }
  return {};
}

Batch Member::State::head_of(const BatchDecision& item, const Set& set) const {
  const Signature& shared = signatures.at(item.entries.front().signature)->signature;
  return Batch{.number = item.number,
               .set = item.set,
               .members = set.members,
               .op = shared.op,
               .dtype = shared.dtype,
               .reduce = shared.reduce,
               .root = shared.root,
               .prescale = shared.prescale,
               .postscale = shared.postscale,
               .tensors = {}};
}

BatchTensor Member::State::tensor_of(const BatchEntry& entry) const {
  BatchTensor out;
  if (entry.key.unnamed) {
    out.number = entry.key.value;
  } else {
    out.name = names.at(entry.key.value)->name;
  }
  out.shape = signatures.at(entry.signature)->signature.shape;
  out.first_dims = entry.first_dims;
  return out;
}

Status Member::State::take(const BatchDecision& item, std::vector<Event>& out) {
  RONDE_TRY(check_batch(item));
  last_batch = item.number;
  if (row(signatures.at(item.entries.front().signature)->signature.op).changes_sets) return take_set_change(item, out);
  Set& set = sets.at(item.set);
  if (!set.has(options.rank)) return {};
  auto& ready = std::get<BatchReady>(out.emplace_back(std::in_place_type<BatchReady>));
  ready.batch = head_of(item, set);
  ready.batch.tensors.reserve(item.entries.size());
  ready.tickets.reserve(item.entries.size());
  for (const BatchEntry& entry : item.entries) {
    ready.batch.tensors.push_back(tensor_of(entry));
    ready.tickets.push_back(land(set, entry.key).ticket);
  }
  return {};
}

Status Member::State::take_set_change(const BatchDecision& item, std::vector<Event>& out) {
  if (item.entries.size() != 1 || item.set != kWorldSet)
    return protocol_error("a change of sets is a batch of its own");
  const Signature& change = signatures.at(item.entries.front().signature)->signature;
  const Ticket ticket = land(sets.at(kWorldSet), item.entries.front().key).ticket;
  if (ticket == 0) return protocol_error(cat(change.to_string(), ", which this rank did not submit"));
  if (change.op == OpKind::AddSet) {
    const SetId id = next_set++;
    sets[id].members = change.subject;
    out.push_back(SetAdded{id, change.subject, ticket});
    return {};
  }
  const auto id = static_cast<SetId>(change.subject.front());
  const auto found = sets.find(id);
  if (found == sets.end()) return protocol_error(cat("there is no process set ", id));
  found->second.removed = true;
  out.push_back(SetRemoved{id, ticket});
  return {};
}

Flight Member::State::land(Set& set, const Key& key) {
  return key.unnamed ? set.flights.land(key.value) : set.flights.land(names.at(key.value)->name);
}

Status Member::State::take(const Failed& item, std::vector<Event>& out) {
  const auto set = sets.find(item.set);
  if (set == sets.end()) return protocol_error(cat("there is no process set ", item.set));
  for (const Key& key : item.keys) RONDE_TRY(check_key(key, item.set));
  if (std::find(item.ranks.begin(), item.ranks.end(), options.rank) == item.ranks.end()) return {};
  for (const Key& key : item.keys) {
    const Flight flight = land(set->second, key);
    if (flight.ticket == 0) continue;
    const std::string_view name = key.unnamed ? std::string_view() : names.at(key.value)->name;
    const Status status = Status(item.code, item.text).with_context(describe(flight.signature, name, key.value));
    out.push_back(TicketFailed{flight.ticket, status});
  }
  return {};
}

Status Member::State::take(const Left& item, std::vector<Event>& out) {
  if (item.rank >= options.size) return protocol_error(cat("rank ", item.rank, " left, which does not exist"));
  if (item.rank == options.rank) {
    const Status status(Code::RankLeft, "this rank has shut down before all ranks had submitted the operation");
    for (const Flights::Ended& one : clear()) out.push_back(TicketFailed{one.ticket, status.with_context(one.what)});
  }
  out.push_back(RankLeft{item.rank});
  return {};
}

// Nothing is in flight or to be told any more: what was, in ascending order of the tickets.
std::vector<Flights::Ended> Member::State::clear() {
  std::vector<Flights::Ended> out;
  for (auto& [id, set] : sets) std::ranges::move(set.flights.clear(), std::back_inserter(out));
  outbox.clear();
  std::ranges::sort(out, {}, &Flights::Ended::ticket);
  return out;
}

Member::Member(const MemberOptions& options) : state_(std::make_unique<State>(options)) {}
Member::Member(Rank rank, Rank size, size_t max_frame_bytes)
    : Member(MemberOptions{.rank = rank, .size = size, .max_frame_bytes = max_frame_bytes}) {}
Member::~Member() = default;

Status Member::submit(std::span<const Request> requests, std::span<const Ticket> tickets, bool more) {
  RONDE_CHECK(requests.size() == tickets.size(), "one ticket per tensor");
  if (requests.empty()) return {};
  if (state_->has_left) return Status(Code::NotInitialized, "this rank has shut down");
  const auto found = state_->sets.find(requests.front().set);
  if (found == state_->sets.end() || !found->second.has(state_->options.rank)) {
    return Status(Code::InvalidArgument, cat("this rank is not in a process set ", requests.front().set));
  }
  if (found->second.removed) {
    return Status(Code::InvalidArgument, cat("process set ", requests.front().set, " was removed"));
  }
  Set& set = found->second;
  RONDE_TRY(check_call(requests, set.members, set.flights));
  std::vector<Tensor> call;
  for (size_t i = 0; i < requests.size(); ++i) call.push_back(state_->launch(set, requests[i], tickets[i], more));
  state_->outbox.submit(std::move(call));
  if (!more) set.flights.on_flush();
  return {};
}

void Member::flush() {
  for (auto& [id, set] : state_->sets) {
    state_->outbox.flush(id);
    set.flights.on_flush();
  }
}

void Member::leave() {
  if (!std::exchange(state_->has_left, true)) state_->outbox.leave();
}

bool Member::has_reports() const {
  return !state_->outbox.empty();
}

std::vector<Bytes> Member::take_reports() {
  FrameWriter frames(state_->options.max_frame_bytes);
  for (Outgoing& outgoing : state_->outbox.take()) {
    if (auto* tensor = std::get_if<Tensor>(&outgoing)) frames.add(state_->item_of(*tensor));
    if (const auto* group = std::get_if<Group>(&outgoing)) frames.add(ReportItem(*group));
    if (const auto* flush = std::get_if<Flush>(&outgoing)) frames.add(ReportItem(*flush));
    if (std::holds_alternative<Leave>(outgoing)) frames.add(ReportItem(Leave{}));
  }
  return frames.take();
}

Result<std::vector<Event>> Member::on_decision(ByteSpan frame) {
  RONDE_ASSIGN(const auto items, decode_decision(frame));
  std::vector<Event> out;
  for (const DecisionItem& item : items) {
    RONDE_TRY(std::visit([&](const auto& it) { return state_->take(it, out); }, item));
  }
  return out;
}

std::vector<Ticket> Member::fail_all() {
  std::vector<Ticket> out;
  for (const Flights::Ended& one : state_->clear()) out.push_back(one.ticket);
  return out;
}

size_t Member::in_flight() const {
  size_t out = 0;
  for (const auto& [id, set] : state_->sets) out += set.flights.size();
  return out;
}

bool Member::is_held(Ticket ticket) const {
  return std::any_of(state_->sets.begin(), state_->sets.end(),
                     [&](const auto& set) { return set.second.flights.is_unflushed(ticket); });
}

uint64_t Member::whole_entries() const {
  return state_->whole_entries;
}

}  // namespace ronde::coord
