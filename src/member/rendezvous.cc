// SPDX-License-Identifier: Apache-2.0
#include "member/rendezvous.h"

#include <algorithm>

namespace ronde::member {
namespace {

// "3.0 s"
std::string seconds(Duration duration) {
  const auto tenths = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count() / 100;
  return cat(tenths / 10, ".", tenths % 10, " s");
}

Time deadline_after(Time now, Duration patience) {
  return patience < kNever - now ? now + std::max(patience, Duration::zero()) : kNever;
}

// Ranks as a text; long lists are cut.
class RankList {
 public:
  void add(int32_t rank) {
    ++count_;
    if (count_ <= kShown) text_ += cat(count_ > 1 ? ", " : "", rank);
  }
  int count() const { return count_; }
  std::string text() const { return count_ > kShown ? cat(text_, " and ", count_ - kShown, " more") : text_; }

 private:
  static constexpr int kShown = 64;
  int count_ = 0;
  std::string text_;
};

}  // namespace

void Rendezvous::connected(ConnId conn, int32_t rank, std::string address) {
  peers_[conn] = Peer{.rank = rank, .address = std::move(address), .who = {}};
  if (cause_) send(conn, store_wire::News{epoch_, *cause_});
}

Status Rendezvous::on_frame(ConnId conn, ByteSpan frame, Time now) {
  RONDE_ASSIGN(auto message, store_wire::decode(frame));
  if (message.index() >= store_wire::kMessagesOfRanks) return Status(Code::Internal, "sent what only a store sends");
  std::visit([&](auto&& one) { on(conn, std::move(one), now); }, std::move(message));
  return {};
}

template <class ServersOwn>
void Rendezvous::on(ConnId, ServersOwn&&, Time) {
  RONDE_CHECK(false, "refused by on_frame");
}

std::string Rendezvous::name(const Peer& peer) const {
  return cat("rank ", peer.rank, " (", peer.who.empty() ? "" : peer.who + ", ", peer.address, ")");
}

bool Rendezvous::is_running() const {
  return std::any_of(peers_.begin(), peers_.end(), [&](const auto& entry) { return takes_part(entry.second); });
}

bool Rendezvous::is_seat_taken(ConnId conn, int32_t rank) const {
  if (!epoch_failure_.ok()) return false;  // who is in a failed epoch may be replaced
  return std::any_of(peers_.begin(), peers_.end(), [&](const auto& entry) {
    return entry.first != conn && entry.second.rank == rank && takes_part(entry.second);
  });
}

Status Rendezvous::check_open(ConnId conn, const store_wire::Open& open) const {
  const Peer& peer = peers_.at(conn);
  if (open.size != size_) {
    return Status(Code::InvalidArgument,
                  cat("rank ", peer.rank, " says the job has ", open.size, " ranks, the store says ", size_,
                      ": start all ranks with the same RONDE_SIZE"));
  }
  if (peer.rank < 0 || peer.rank >= size_) {
    return Status(Code::InvalidArgument,
                  cat("a process (", peer.address, ") says it is rank ", peer.rank,
                      ", the ranks of this job are 0 ... ", size_ - 1, ": correct its RONDE_RANK"));
  }
  const auto other = opening_.find(peer.rank);
  if (other != opening_.end()) {
    return Status(Code::InvalidArgument,
                  cat("two processes say they are rank ", peer.rank, ": ", name(peers_.at(other->second.conn)), " and ",
                      name(peer), ": give each process a RONDE_RANK of its own"));
  }
  return {};
}

void Rendezvous::on(ConnId conn, store_wire::Open&& open, Time now) {
  withdraw(conn);
  Peer& peer = peers_.at(conn);
  peer.who = open.who;
  if (Status status = check_open(conn, open); !status.ok()) {
    send(conn, store_wire::Failed{open.request, status});
    fail_opening(status);
    failed_opening_->told.insert(peer.rank);
    return;
  }
  if (is_seat_taken(conn, peer.rank)) {  // nobody has waited for it: the running job goes on
    const Status status(Code::InvalidArgument, cat("rank ", peer.rank, " is taken by a process that runs in epoch ",
                                                   epoch_, ": give each process a RONDE_RANK of its own"));
    send(conn, store_wire::Failed{open.request, status});
    return;
  }
  if (failed_opening_ && failed_opening_->told.insert(peer.rank).second) {
    send(conn, store_wire::Failed{open.request, failed_opening_->status});
    return;
  }
  failed_opening_.reset();
  opening_[peer.rank] = {conn, open.request, std::move(open.blob), deadline_after(now, open.patience), open.patience};
  if (is_complete(opening_)) open_next_epoch();
}

void Rendezvous::open_next_epoch() {
  fail_epoch(Status(Code::Aborted, cat("epoch ", epoch_, " is over: the next one has been opened")));
  ++epoch_;
  epoch_failure_ = {};
  cause_.reset();
  for (const auto& [rank, arrival] : opening_) {
    Peer& peer = peers_.at(arrival.conn);
    peer.epoch = epoch_;
    peer.left = false;
  }
  notices_.emplace_back(std::in_place_type<EpochOpened>);
  answer_all(opening_);
}

Status Rendezvous::check_exchange(const Peer& peer, const store_wire::Exchange& exchange) const {
  if (peer.epoch == 0 || peer.epoch != epoch_ || exchange.epoch != epoch_) {
    return Status(Code::Aborted,
                  cat("rank ", peer.rank, " is in epoch ", exchange.epoch, ", the job in epoch ", epoch_));
  }
  return epoch_failure_;
}

void Rendezvous::on(ConnId conn, store_wire::Exchange&& exchange, Time now) {
  withdraw(conn);
  const Peer& peer = peers_.at(conn);
  if (const Status status = check_exchange(peer, exchange); !status.ok()) {
    send(conn, store_wire::Failed{exchange.request, status});
    return;
  }
  Gathering& gathering = exchanges_[exchange.tag];
  gathering[peer.rank] = {conn, exchange.request, std::move(exchange.blob), deadline_after(now, exchange.patience),
                          exchange.patience};
  if (!is_complete(gathering)) return;
  answer_all(gathering);
  exchanges_.erase(exchange.tag);
}

void Rendezvous::on(ConnId conn, store_wire::Failure&& failure, Time) {
  const Peer& peer = peers_.at(conn);
  const bool current = failure.epoch == peer.epoch && (peer.epoch == 0 || peer.epoch == epoch_);
  if (!current || peer.rank < 0) return;
  // With a launcher that one decides who is to blame, because it sees how processes end.
  if (report_lost_ && takes_part(peer))
    end_epoch({peer.rank, Status(Code::PeerLost, cat(name(peer), " failed: ", failure.what.message()))});
  notices_.push_back(RankFailed{peer.rank, std::move(failure.what)});
}

void Rendezvous::on(ConnId conn, store_wire::Leave&& leave, Time) {
  Peer& peer = peers_.at(conn);
  if (leave.epoch != peer.epoch || !takes_part(peer)) return;
  peer.left = true;
  notices_.push_back(RankLeft{peer.rank, leave.order});
  fail_epoch(Status(Code::RankLeft, cat(name(peer), " has left the job")));  // nothing can be exchanged any more
}

void Rendezvous::on(ConnId conn, store_wire::Abort&& abort, Time) {
  const Peer& peer = peers_.at(conn);
  if (abort.epoch != peer.epoch || !takes_part(peer)) return;
  end_epoch({peer.rank, abort.status.with_context(cat(name(peer), " gave up"))});
}

void Rendezvous::withdraw(ConnId conn) {
  const auto mine = [&](const auto& entry) { return entry.second.conn == conn; };
  std::erase_if(opening_, mine);
  for (auto& [tag, gathering] : exchanges_) std::erase_if(gathering, mine);
  std::erase_if(exchanges_, [](const auto& entry) { return entry.second.empty(); });
}

void Rendezvous::disconnected(ConnId conn) {
  const auto found = peers_.find(conn);
  if (found == peers_.end()) return;
  const Peer peer = found->second;
  const auto waiting = opening_.find(peer.rank);
  const bool was_waiting = waiting != opening_.end() && waiting->second.conn == conn;
  withdraw(conn);
  peers_.erase(found);
  if (!report_lost_) return;
  const Cause cause{peer.rank, Status(Code::PeerLost, cat(name(peer),
                                                          " ended its connection to the store without "
                                                          "leaving: its process has probably died"))};
  if (was_waiting) fail_opening(cause.status);
  if (takes_part(peer)) end_epoch(cause);
}

void Rendezvous::publish(const Cause& cause) {
  const bool running = is_running();
  if (!running || !opening_.empty()) fail_opening(cause.status);
  end_epoch(cause);
}

// The first cause of an epoch wins.
void Rendezvous::end_epoch(const Cause& cause) {
  if (cause_) return;
  cause_ = cause;
  fail_epoch(cause.status);
  const WireFrame frame = store_wire::encode(store_wire::News{epoch_, cause});
  for (const auto& [conn, peer] : peers_) outgoing_.push_back({conn, frame});
}

void Rendezvous::fail_epoch(const Status& status) {
  if (epoch_failure_.ok()) epoch_failure_ = status;
  for (auto& [tag, gathering] : exchanges_) fail_all(gathering, status);
  exchanges_.clear();
}

void Rendezvous::fail_opening(const Status& status) {
  failed_opening_ = FailedOpening{status, {}};
  for (const auto& [rank, arrival] : opening_) failed_opening_->told.insert(rank);
  fail_all(opening_, status);
}

void Rendezvous::fail_all(Gathering& gathering, const Status& status) {
  for (const auto& [rank, arrival] : gathering) send(arrival.conn, store_wire::Failed{arrival.request, status});
  gathering.clear();
}

void Rendezvous::answer_all(Gathering& gathering) {
  std::vector<WireFrame> parts;
  for (auto& [rank, arrival] : gathering)
    parts.push_back(store_wire::encode(store_wire::Part{rank, std::move(arrival.blob)}));
  for (const auto& [rank, arrival] : gathering) {
    for (const auto& part : parts) outgoing_.push_back({arrival.conn, part});
    send(arrival.conn, store_wire::Done{arrival.request, epoch_});
  }
  gathering.clear();
}

Status Rendezvous::missing(const Gathering& gathering, Duration patience) const {
  RankList arrived;
  RankList absent;
  for (int32_t rank = 0; rank < size_; ++rank) (gathering.contains(rank) ? arrived : absent).add(rank);
  return Status(Code::Timeout,
                cat(absent.count() == 1 ? "rank " : "ranks ", absent.text(), absent.count() == 1 ? " has" : " have",
                    " not arrived within ", seconds(patience), " (init_timeout); arrived: ", arrived.text()));
}

void Rendezvous::tick(Time now) {
  const auto late = [&](const Gathering& gathering) {
    return std::find_if(gathering.begin(), gathering.end(),
                        [&](const auto& one) { return one.second.deadline <= now; });
  };
  if (const auto one = late(opening_); one != opening_.end()) fail_opening(missing(opening_, one->second.patience));
  for (const auto& [tag, gathering] : exchanges_) {
    const auto one = late(gathering);
    if (one == gathering.end()) continue;
    fail_epoch(missing(gathering, one->second.patience));
    return;  // that was all of them
  }
}

Time Rendezvous::next_deadline() const {
  Time next = kNever;
  for (const auto& [rank, arrival] : opening_) next = std::min(next, arrival.deadline);
  for (const auto& [tag, gathering] : exchanges_) {
    for (const auto& [rank, arrival] : gathering) next = std::min(next, arrival.deadline);
  }
  return next;
}

}  // namespace ronde::member
