// SPDX-License-Identifier: Apache-2.0
#include "sim/referee.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace ronde::sim {
namespace {

std::string text_of(const Batch& batch) {
  std::string out =
      cat("batch ", batch.number, " of set ", batch.set, " ", name_of(batch.op), " ", name_of(batch.dtype), " ",
          name_of(batch.reduce), " root ", batch.root, " scales ", batch.prescale, " ", batch.postscale, " members");
  for (const Rank rank : batch.members) out += cat(" ", rank);
  for (const BatchTensor& tensor : batch.tensors) {
    out += cat("; '", tensor.name, "' ", tensor.number, " ", tensor.shape.to_string());
    for (const int64_t dim : tensor.first_dims) out += cat(" ", dim);
  }
  return out;
}

Signature signature_of(const Batch& batch, const BatchTensor& tensor) {
  Signature out;
  out.op = batch.op;
  out.dtype = batch.dtype;
  out.reduce = batch.reduce;
  out.root = batch.root;
  out.prescale = batch.prescale;
  out.postscale = batch.postscale;
  out.shape = tensor.shape;
  return out;
}

}  // namespace

Referee::Referee(const Program& program) : program_(program) {
  const auto size = static_cast<size_t>(program.size);
  pending_.resize(size);
  names_.resize(size);
  numbers_.resize(size);
  seen_.resize(size);
}

void Referee::blame(std::string what) {
  if (violation_.empty()) violation_ = cat("seed ", program_.seed, ": ", what);
}

std::string Referee::text_of(const Entry& entry) const {
  return cat("rank ", entry.rank, ", use ", entry.use, ", ",
             describe(entry.request.signature, entry.request.name, entry.number));
}

std::vector<coord::Ticket> Referee::issue(Rank rank, size_t use, const Call& call) {
  const auto r = static_cast<size_t>(rank);
  std::vector<coord::Ticket> out;
  for (const Request& request : call) {
    const uint64_t number = request.name.empty() ? numbers_[r]++ : 0;
    entries_.push_back(Entry{rank, use, request, number});
    out.push_back(entries_.size());
    pending_[r].insert(out.back());
    if (!request.name.empty()) names_[r].insert(request.name);
  }
  return out;
}

bool Referee::name_in_flight(Rank rank, const Call& call) const {
  const auto& names = names_[static_cast<size_t>(rank)];
  return std::ranges::any_of(call, [&](const Request& request) { return names.contains(request.name); });
}

void Referee::on_event(Rank rank, const coord::Event& event) {
  if (const auto* ready = std::get_if<coord::BatchReady>(&event)) on_batch(rank, *ready);
  if (const auto* failed = std::get_if<coord::TicketFailed>(&event)) on_failed(rank, *failed);
}

void Referee::on_batch(Rank rank, const coord::BatchReady& ready) {
  size_t& seen = seen_[static_cast<size_t>(rank)];
  const std::string text = sim::text_of(ready.batch);
  if (ready.batch.number != seen + 1) blame(cat("rank ", rank, " gets ", text, " after batch ", seen));
  if (seen == order_.size()) order_.push_back(text);
  if (seen < order_.size() && order_[seen] != text) {
    blame(cat("rank ", rank, " gets ", text, ", another rank ", order_[seen]));
  }
  ++seen;
  if (ready.tickets.size() != ready.batch.tensors.size()) return blame(cat("rank ", rank, ": tickets of ", text));
  for (size_t t = 0; t < ready.tickets.size(); ++t) on_tensor(rank, ready.batch, t, ready.tickets[t]);
}

void Referee::on_tensor(Rank rank, const Batch& batch, size_t t, coord::Ticket ticket) {
  const BatchTensor& tensor = batch.tensors[t];
  Entry* entry = close(rank, ticket);
  if (entry == nullptr) return blame(cat("rank ", rank, " has not submitted tensor ", t, " of ", sim::text_of(batch)));
  entry->batch = batch.number;
  const Request& request = entry->request;
  const bool same_key = tensor.name == request.name && (!request.name.empty() || tensor.number == entry->number);
  if (!same_key || signature_of(batch, tensor) != request.signature) {
    blame(cat(text_of(*entry), " ", request.signature.to_string(), " is not tensor ", t, " of ", sim::text_of(batch)));
  }
  if (row(batch.op).dims == DimsRule::All) return;
  const auto r = static_cast<size_t>(rank);
  if (tensor.first_dims.size() != batch.members.size() || tensor.first_dims[r] != request.first_dim) {
    blame(cat(text_of(*entry), " has another first dimension in ", sim::text_of(batch)));
  }
}

// The entry of a ticket that ends now; null if it is not this rank's, or has ended before.
Referee::Entry* Referee::close(Rank rank, coord::Ticket ticket) {
  if (ticket == 0 || ticket > entries_.size()) return nullptr;
  Entry& entry = entries_[ticket - 1];
  if (entry.rank != rank || !std::exchange(entry.pending, false)) return nullptr;
  const auto r = static_cast<size_t>(rank);
  pending_[r].erase(ticket);
  if (!entry.request.name.empty()) names_[r].erase(names_[r].find(entry.request.name));
  return &entry;
}

void Referee::on_failed(Rank rank, const coord::TicketFailed& failed) {
  Entry* entry = close(rank, failed.ticket);
  if (entry == nullptr) return blame(cat("rank ", rank, ": ticket ", failed.ticket, " fails but is not in flight"));
  entry->code = failed.status.code();
  ++failures_;
  check_failure(*entry, failed.status);
}

void Referee::check_failure(const Entry& entry, const Status& status) {
  const std::string& text = status.message();
  const std::string name = describe(entry.request.signature, entry.request.name, entry.number);
  if (!text.starts_with(name)) blame(cat(text_of(entry), " fails under another name: ", text));
  const bool is_forgotten = program_.forgotten == entry.use;
  bool expected = false;
  if (status.code() == Code::Mismatch) expected = !program_.uses[entry.use].agreed;
  if (status.code() == Code::RankLeft) expected = program_.fault == Fault::Leaves;
  if (status.code() == Code::Timeout) {
    expected = is_forgotten && text.find(cat("rank ", program_.culprit)) != std::string::npos;
  }
  if (!expected) blame(cat(text_of(entry), " must not fail: ", status.to_string()));
}

void Referee::on_end(Rank rank, const std::vector<coord::Ticket>& in_flight) {
  const auto& mine = pending(rank);
  if (std::set(in_flight.begin(), in_flight.end()) != mine || in_flight.size() != mine.size()) {
    blame(cat("rank ", rank, " ends with ", mine.size(), " submissions in flight and is told of ", in_flight.size()));
  }
  pending_[static_cast<size_t>(rank)].clear();
}

void Referee::check_use(size_t use) {
  const Entry* run = nullptr;
  const Entry* failed = nullptr;
  std::map<std::pair<std::string, uint64_t>, uint64_t> batches;
  for (const Entry& entry : entries_) {
    if (entry.use != use || entry.pending) continue;
    (entry.batch != 0 ? run : failed) = &entry;
    if (entry.batch == 0) continue;
    const auto [it, is_new] = batches.emplace(std::pair(entry.request.name, entry.number), entry.batch);
    if (!is_new && it->second != entry.batch) {
      blame(cat(text_of(entry), " runs in batch ", entry.batch, ", elsewhere in ", it->second));
    }
  }
  if (run != nullptr && failed != nullptr) blame(cat(text_of(*failed), " fails, but ", text_of(*run), " runs"));
  if (run != nullptr && !program_.uses[use].agreed) blame(cat(text_of(*run), " runs though ranks differ"));
  if (run != nullptr && program_.forgotten == use) blame(cat(text_of(*run), " runs without rank ", program_.culprit));
}

void Referee::finish(const std::vector<bool>& complete) {
  for (Rank rank = 0; rank < program_.size; ++rank) {
    const auto r = static_cast<size_t>(rank);
    if (has_pending(rank)) blame(cat("stalled: ", text_of(entries_[*pending(rank).begin() - 1])));
    if (!complete[r]) blame(cat("rank ", rank, " has not come to the end of its script"));
    const bool stays = program_.fault != Fault::Dies && (program_.fault == Fault::None || rank != program_.culprit);
    if (stays && seen_[r] != order_.size())
      blame(cat("rank ", rank, " saw ", seen_[r], " of ", order_.size(), " batches"));
  }
  for (size_t use = 0; use < program_.uses.size(); ++use) check_use(use);
}

}  // namespace ronde::sim
