// SPDX-License-Identifier: Apache-2.0
// Rendezvous: what the store decides. Frames, ends of connections and times in; frames and news of ranks out. Pure.
//
// Idea: a gathering collects the arrivals of all ranks under a tag and then answers all of them, or fails and answers
// all that have arrived. There is one gathering that opens the next epoch, and one per tag within the open epoch.
//
//  - The epoch's first failure is its last word: every later exchange of the epoch fails alike.
//  - A failed opening is told to each rank once, also to those that come after it: who comes too late hears at once
//  what happened,
//    instead of waiting for ranks that have given up. A rank that was told and comes again begins a new attempt.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "member/store_wire.h"

namespace ronde::member {

class Rendezvous {
 public:
  using ConnId = uint64_t;
  struct Outgoing {
    ConnId to;
    WireFrame frame;
  };
  // What the server's callbacks hear of.
  struct RankFailed {
    int32_t rank;
    Status what;
  };
  struct RankLeft {
    int32_t rank;
    uint32_t order;
  };
  struct EpochOpened {};
  using Notice = std::variant<RankFailed, RankLeft, EpochOpened>;

  Rendezvous(int32_t size, bool report_lost_connections) : size_(size), report_lost_(report_lost_connections) {}

  void connected(ConnId conn, int32_t rank, std::string address);
  // Error: nothing that a rank would send; the connection is to be closed.
  Status on_frame(ConnId conn, ByteSpan frame, Time now);
  void disconnected(ConnId conn);
  void publish(const Cause& cause);
  void tick(Time now);
  Time next_deadline() const;
  std::vector<Outgoing> take_outgoing() { return std::exchange(outgoing_, {}); }
  std::vector<Notice> take_notices() { return std::exchange(notices_, {}); }

 private:
  struct Peer {
    int32_t rank = -1;
    std::string address;
    std::string who;
    uint32_t epoch = 0;  // that it takes part in; 0: none yet
    bool left = false;
  };
  struct Arrival {
    ConnId conn;
    uint32_t request;
    Bytes blob;
    Time deadline;
    Duration patience;
  };
  using Gathering = std::map<int32_t, Arrival>;  // by rank
  struct FailedOpening {
    Status status;
    std::set<int32_t> told;
  };

  void on(ConnId conn, store_wire::Open&& open, Time now);
  void on(ConnId conn, store_wire::Exchange&& exchange, Time now);
  void on(ConnId conn, store_wire::Failure&& failure, Time now);
  void on(ConnId conn, store_wire::Leave&& leave, Time now);
  void on(ConnId conn, store_wire::Abort&& abort, Time now);
  template <class ServersOwn>
  void on(ConnId conn, ServersOwn&& message, Time now);

  Status check_open(ConnId conn, const store_wire::Open& open) const;
  Status check_exchange(const Peer& peer, const store_wire::Exchange& exchange) const;
  bool is_seat_taken(ConnId conn, int32_t rank) const;
  bool takes_part(const Peer& peer) const { return epoch_ > 0 && peer.epoch == epoch_ && !peer.left; }
  bool is_running() const;

  void withdraw(ConnId conn);
  bool is_complete(const Gathering& gathering) const { return gathering.size() == static_cast<size_t>(size_); }
  void open_next_epoch();
  void answer_all(Gathering& gathering);
  void fail_all(Gathering& gathering, const Status& status);
  void fail_opening(const Status& status);
  void fail_epoch(const Status& status);
  void end_epoch(const Cause& cause);
  void send(ConnId to, const store_wire::Message& message) { outgoing_.push_back({to, store_wire::encode(message)}); }
  Status missing(const Gathering& gathering, Duration patience) const;
  std::string name(const Peer& peer) const;

  int32_t size_;
  bool report_lost_;
  std::map<ConnId, Peer> peers_;
  uint32_t epoch_ = 0;  // the last one opened
  Gathering opening_;
  std::optional<FailedOpening> failed_opening_;
  std::map<std::string, Gathering> exchanges_;
  Status epoch_failure_;
  std::optional<Cause> cause_;  // of this epoch, for those that connect later
  std::vector<Outgoing> outgoing_;
  std::vector<Notice> notices_;
};

}  // namespace ronde::member
