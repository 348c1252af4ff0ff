// SPDX-License-Identifier: Apache-2.0
// A submission goes from `held` (marked `more`) or directly to the outbox, is encoded there when reports are taken
// (with ids as far as decisions have defined them by then), and stays in flight under its key until a decision names
// that key.
#include "coord/member.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "coord/frame_writer.h"
#include "coord/limits.h"
#include "coord/tables.h"

namespace ronde::coord {
namespace {

// Held submissions beyond this are told early, so that the flush does not tell too much at once.
constexpr size_t kMostHeld = 1000;
constexpr size_t kMostHeldBytes = 48 * 1024;

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

struct Flight {
  Ticket ticket = 0;
  Signature signature;
};

// What is to be told: a tensor, or an item that needs no id.
struct Tensor {
  Request request;
  uint64_t number = 0;  // if unnamed
  bool more = false;
};
using Outgoing = std::variant<Tensor, Group, Flush, Leave>;

struct Set {
  std::vector<Rank> members;
  std::unordered_map<std::string, Flight, TextHash, std::equal_to<>> named;
  std::unordered_map<uint64_t, Flight> unnamed;
  uint64_t next_number = 0;
  std::vector<Outgoing> held;
  size_t held_bytes = 0;                 // of their names
  std::unordered_set<Ticket> unflushed;  // in flight, submitted with `more`
  bool needs_flush = false;              // something was submitted with `more` since the last flush
};

Status refuse(const Request& request, std::string_view why) {
  const auto& signature = request.signature;
  const std::string what = request.name.empty() ? cat("unnamed ", name_of(signature.op))
                                                : cat(name_of(signature.op), " '", request.name, "'");
  return Status(Code::InvalidArgument, cat(what, ": ", why));
}

}  // namespace

struct Member::State {
  explicit State(const MemberOptions& given) : options(given) {
    RONDE_CHECK(options.max_frame_bytes >= kMinFrameBytes, "frames must have room for any single item");
    Set& world = sets[kWorldSet];
    for (Rank rank = 0; rank < options.size; ++rank) world.members.push_back(rank);
  }

  Status check(const Set& set, const Request& request) const;
  Status check_all(std::span<const Request> requests) const;
  void enqueue(Set& set, std::span<const Request> requests, std::span<const Ticket> tickets, bool more);
  void release(Set& set);
  void flush(SetId id, Set& set);

  ReportItem item_of(const Tensor& tensor);

  Status take(const DefineName& item, std::vector<Event>& out);
  Status take(const DefineSignature& item, std::vector<Event>& out);
  Status take(const BatchDecision& item, std::vector<Event>& out);
  Status take(const Failed& item, std::vector<Event>& out);
  Status take(const Left& item, std::vector<Event>& out);
  Status check_batch(const BatchDecision& item) const;
  BatchReady ready_of(BatchDecision item, Set& set);
  Flight land(Set& set, const Key& key);
  std::vector<Ticket> clear();

  MemberOptions options;
  std::map<SetId, Set> sets;
  std::vector<Outgoing> outbox;
  NameTable names;
  SignatureTable signatures;
  uint64_t last_batch = 0;
  uint64_t whole_entries = 0;
  bool has_left = false;
};

Status Member::State::check(const Set& set, const Request& request) const {
  const Signature& signature = request.signature;
  if (const Status status = check_signature(signature); !status.ok()) return refuse(request, status.message());
  const OpRow& op = row(signature.op);
  if (op.has_root && !std::binary_search(set.members.begin(), set.members.end(), signature.root)) {
    return refuse(request, cat("root rank ", signature.root, " is not one of its ", set.members.size(), " ranks"));
  }
  if (op.dims == DimsRule::AllButFirst && tensor_bytes(signature, request.first_dim) < 0) {
    return refuse(request,
                  cat("the first dimension ", request.first_dim, " is negative or makes more than 2^60 bytes"));
  }
  if (request.name.size() > kMaxNameBytes) {
    return Status(Code::InvalidArgument, cat("a name of ", request.name.size(), " bytes; at most ", kMaxNameBytes,
                                             " are possible: '", request.name.substr(0, 32), "...'"));
  }
  if (!request.name.empty() && set.named.contains(request.name)) {
    return refuse(request,
                  "an operation with this name is still in flight on this rank; wait for it or use another name");
  }
  return {};
}

Status Member::State::check_all(std::span<const Request> requests) const {
  if (has_left) return Status(Code::NotInitialized, "this rank has shut down");
  if (requests.size() > kMaxGroup)
    return Status(Code::InvalidArgument, cat("a group of ", requests.size(), " tensors"));
  std::unordered_set<std::string_view> names_seen;
  for (const Request& request : requests) {
    const auto set = sets.find(request.set);
    if (set == sets.end()) return refuse(request, cat("there is no process set ", request.set));
    if (request.set != requests.front().set) return refuse(request, "a group cannot span two process sets");
    RONDE_TRY(check(set->second, request));
    if (!request.name.empty() && !names_seen.insert(request.name).second) {
      return refuse(request, "the name occurs twice in one group");
    }
  }
  return {};
}

void Member::State::enqueue(Set& set, std::span<const Request> requests, std::span<const Ticket> tickets, bool more) {
  std::vector<Outgoing>& queue = more && !options.eager ? set.held : outbox;
  if (requests.size() > 1) queue.push_back(Group{static_cast<uint32_t>(requests.size())});
  for (size_t i = 0; i < requests.size(); ++i) {
    const Request& request = requests[i];
    const Flight flight{tickets[i], request.signature};
    Tensor tensor{request, 0, more};
    if (request.name.empty()) {
      tensor.number = set.next_number++;
      set.unnamed.emplace(tensor.number, flight);
    } else {
      set.named.emplace(request.name, flight);
    }
    if (more) set.unflushed.insert(tickets[i]);
    set.held_bytes += more ? request.name.size() : 0;
    queue.push_back(std::move(tensor));
  }
}

// What is held goes to the outbox, in its order.
void Member::State::release(Set& set) {
  outbox.insert(outbox.end(), std::make_move_iterator(set.held.begin()), std::make_move_iterator(set.held.end()));
  set.held.clear();
  set.held_bytes = 0;
}

void Member::State::flush(SetId id, Set& set) {
  release(set);
  if (set.needs_flush) outbox.push_back(Flush{id});
  set.needs_flush = false;
  set.unflushed.clear();
}

ReportItem Member::State::item_of(const Tensor& tensor) {
  const Request& request = tensor.request;
  Submit out;
  out.set = request.set;
  out.more = tensor.more;
  bool is_whole = false;
  if (request.name.empty()) {
    out.name = Number{tensor.number};
  } else if (const auto id = names.find(request.set, request.name)) {
    out.name = NameId{*id};
  } else {
    out.name = request.name;
    is_whole = true;
  }
  if (const auto id = signatures.find(request.signature)) {
    out.signature = SignatureId{*id};
  } else {
    out.signature = request.signature;
    is_whole = true;
  }
  if (row(request.signature.op).dims == DimsRule::AllButFirst) out.first_dim = request.first_dim;
  whole_entries += is_whole ? 1 : 0;
  return out;
}

// Decisions

Status Member::State::take(const DefineName& item, std::vector<Event>&) {
  return names.define(item.id, item.set, item.name);
}

Status Member::State::take(const DefineSignature& item, std::vector<Event>&) {
  return signatures.define(item.id, item.signature);
}

// What decoding could not know: that ids exist and that the entries fit together.
Status Member::State::check_batch(const BatchDecision& item) const {
  const auto malformed = [&](std::string_view why) {
    return Status(Code::Internal, cat("batch ", item.number, ": ", why));
  };
  if (item.number != last_batch + 1) return malformed(cat("follows batch ", last_batch));
  const auto set = sets.find(item.set);
  if (set == sets.end()) return malformed(cat("there is no process set ", item.set));
  const auto* first = signatures.at(item.entries.front().signature);
  for (const BatchEntry& entry : item.entries) {
    const auto* signature = signatures.at(entry.signature);
    if (signature == nullptr) return malformed(cat("there is no signature ", entry.signature));
    if (signature->fusion_class != first->fusion_class) return malformed("its tensors do not fit together");
    const bool varies = row(signature->signature.op).dims == DimsRule::AllButFirst;
    if (entry.first_dims.size() != (varies ? set->second.members.size() : 0))
      return malformed("wrong number of first dimensions");
    const int64_t rows = sum_of(entry.first_dims);
    if (rows < 0 || tensor_bytes(signature->signature, rows) < 0) return malformed("a tensor of more than 2^60 bytes");
    if (entry.key.unnamed) continue;
    const auto* name = names.at(entry.key.value);
    if (name == nullptr || name->set != item.set) return malformed(cat("there is no name ", entry.key.value));
  }
  return {};
}

Status Member::State::take(const BatchDecision& item, std::vector<Event>& out) {
  RONDE_TRY(check_batch(item));
  last_batch = item.number;
  Set& set = sets.at(item.set);
  if (!std::binary_search(set.members.begin(), set.members.end(), options.rank)) return {};
  out.push_back(ready_of(item, set));
  return {};
}

BatchReady Member::State::ready_of(BatchDecision item, Set& set) {
  const Signature& shared = signatures.at(item.entries.front().signature)->signature;
  BatchReady out;
  Batch& batch = out.batch;
  batch.number = item.number;
  batch.set = item.set;
  batch.members = set.members;
  batch.op = shared.op;
  batch.dtype = shared.dtype;
  batch.reduce = shared.reduce;
  batch.root = shared.root;
  batch.prescale = shared.prescale;
  batch.postscale = shared.postscale;
  batch.tensors.reserve(item.entries.size());
  out.tickets.reserve(item.entries.size());
  for (BatchEntry& entry : item.entries) {
    BatchTensor& tensor = batch.tensors.emplace_back();
    if (entry.key.unnamed) {
      tensor.number = entry.key.value;
    } else {
      tensor.name = names.at(entry.key.value)->name;
    }
    tensor.shape = signatures.at(entry.signature)->signature.shape;
    tensor.first_dims = std::move(entry.first_dims);
    out.tickets.push_back(land(set, entry.key).ticket);
  }
  return out;
}

// Takes the submission under `key` out of flight; ticket 0 if there is none.
Flight Member::State::land(Set& set, const Key& key) {
  Flight out;
  if (key.unnamed) {
    if (auto node = set.unnamed.extract(key.value)) out = std::move(node.mapped());
  } else if (const auto it = set.named.find(names.at(key.value)->name); it != set.named.end()) {
    out = std::move(it->second);
    set.named.erase(it);
  }
  set.unflushed.erase(out.ticket);
  return out;
}

Status Member::State::take(const Failed& item, std::vector<Event>& out) {
  const auto set = sets.find(item.set);
  if (set == sets.end()) return Status(Code::Internal, cat("failure: there is no process set ", item.set));
  const bool concerns = std::find(item.ranks.begin(), item.ranks.end(), options.rank) != item.ranks.end();
  for (const Key& key : item.keys) {
    const auto* name = key.unnamed ? nullptr : names.at(key.value);
    if (!key.unnamed && (name == nullptr || name->set != item.set)) {
      return Status(Code::Internal, cat("failure: there is no name ", key.value));
    }
    if (!concerns) continue;
    const Flight flight = land(set->second, key);
    if (flight.ticket == 0) continue;
    const std::string what = describe(flight.signature, name != nullptr ? name->name : "", key.value);
    out.push_back(TicketFailed{flight.ticket, Status(item.code, item.text).with_context(what)});
  }
  return {};
}

Status Member::State::take(const Left& item, std::vector<Event>& out) {
  if (item.rank >= options.size)
    return Status(Code::Internal, cat("rank ", item.rank, " has left, but does not exist"));
  if (item.rank == options.rank) {
    const Status status(Code::RankLeft, "this rank has shut down before all ranks had submitted the operation");
    for (const Ticket ticket : clear()) out.push_back(TicketFailed{ticket, status});
  }
  out.push_back(RankLeft{item.rank});
  return {};
}

// Nothing is in flight or to be told any more: the tickets that were, ascending.
std::vector<Ticket> Member::State::clear() {
  std::vector<Ticket> out;
  for (auto& [id, set] : sets) {
    for (const auto& [name, flight] : set.named) out.push_back(flight.ticket);
    for (const auto& [number, flight] : set.unnamed) out.push_back(flight.ticket);
    set.named.clear();
    set.unnamed.clear();
    set.held.clear();
    set.held_bytes = 0;
    set.unflushed.clear();
    set.needs_flush = false;
  }
  outbox.clear();
  std::sort(out.begin(), out.end());
  return out;
}

Member::Member(const MemberOptions& options) : state_(std::make_unique<State>(options)) {}
Member::Member(Rank rank, Rank size, size_t max_frame_bytes)
    : Member(MemberOptions{.rank = rank, .size = size, .max_frame_bytes = max_frame_bytes}) {}
Member::~Member() = default;

Status Member::submit(std::span<const Request> requests, std::span<const Ticket> tickets, bool more) {
  RONDE_CHECK(requests.size() == tickets.size(), "one ticket per tensor");
  if (requests.empty()) return {};
  RONDE_TRY(state_->check_all(requests));
  Set& set = state_->sets.at(requests.front().set);
  if (!more) state_->release(set);
  state_->enqueue(set, requests, tickets, more);
  if (more) {
    set.needs_flush = true;
    if (set.held.size() > kMostHeld || set.held_bytes > kMostHeldBytes) state_->release(set);
  } else {
    // A submission without `more` is a flush of those before it.
    set.needs_flush = false;
    set.unflushed.clear();
  }
  return {};
}

void Member::flush(SetId set) {
  const auto it = state_->sets.find(set);
  if (it != state_->sets.end()) state_->flush(set, it->second);
}

void Member::leave() {
  if (std::exchange(state_->has_left, true)) return;
  state_->outbox.push_back(Leave{});
}

bool Member::has_reports() const {
  return !state_->outbox.empty();
}

std::vector<Bytes> Member::take_reports() {
  FrameWriter frames(state_->options.max_frame_bytes);
  for (const Outgoing& outgoing : std::exchange(state_->outbox, {})) {
    if (const auto* tensor = std::get_if<Tensor>(&outgoing)) frames.add(state_->item_of(*tensor));
    if (const auto* group = std::get_if<Group>(&outgoing)) frames.add(ReportItem(*group));
    if (const auto* one = std::get_if<Flush>(&outgoing)) frames.add(ReportItem(*one));
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
  return state_->clear();
}

size_t Member::in_flight() const {
  size_t out = 0;
  for (const auto& [id, set] : state_->sets) out += set.named.size() + set.unnamed.size();
  return out;
}

bool Member::is_held(Ticket ticket) const {
  return std::any_of(state_->sets.begin(), state_->sets.end(),
                     [&](const auto& set) { return set.second.unflushed.contains(ticket); });
}

uint64_t Member::whole_entries() const {
  return state_->whole_entries;
}

}  // namespace ronde::coord
