// SPDX-License-Identifier: Apache-2.0
// The rendezvous store: one TCP port of the job, in the launcher, or without one in rank 0. It opens epochs, lets ranks
// exchange small blobs while they set themselves up, and afterwards carries news: causes of death to the ranks,
// failures from the ranks.
//
// An exchange is an allgather of blobs under a tag, within the epoch. The exchange "open" opens a new epoch: when all
// `size` ranks have arrived. A rank that does not arrive by the deadline is named to those that did. A rank of the
// wrong size, a rank outside 0 ... size-1, and a second process with a rank that is taken get an error, and so does
// everybody who waits for them. All connections begin with a hello; frames are [u32 length][u8 kind][...], at most
// kMaxBlobBytes + kFrameOverhead (member/store_wire.h has each).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/status.h"
#include "member/hello.h"
#include "os/socket.h"

namespace ronde::member {

constexpr size_t kMaxBlobBytes = 64 * 1024;
constexpr size_t kFrameOverhead = 512;

// Why the epoch is over, as far as it is known: "rank 3 (host a, pid 17) was killed by signal 9".
struct Cause {
  int32_t rank = -1;  // the first failing rank; -1 if none is to blame
  Status status;
};

class StoreServer {
 public:
  struct Options {
    os::Address listen{"127.0.0.1", 0};
    Key key{};
    int32_t size = 1;
    // Without a launcher nobody knows more than the links tell: the server itself then reports a rank whose connection
    // ended without a leave as the cause.
    bool report_lost_connections = false;
  };
  struct Callbacks {  // on the server's thread; may be empty
    std::function<void(int32_t rank, const Status& what)> on_failure;
    // order: how many ranks of the epoch had left before
    std::function<void(int32_t rank, uint32_t order)> on_leave;
    std::function<void()> on_open;  // all ranks have arrived: an epoch begins
  };
  static Result<std::unique_ptr<StoreServer>> start(const Options& options, Callbacks callbacks = {});
  ~StoreServer();  // ends the thread "ronde-store" and closes everything

  const os::Address& address() const;
  // Thread: any. To every connected rank, and to those that connect in this epoch later. The first cause of an epoch
  // wins.
  void publish(const Cause& cause);

 private:
  struct State;
  explicit StoreServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Thread: one at a time.
class StoreClient {
 public:
  // Tries again until the deadline while nobody listens there yet. `who` ("host a, pid 17") is what the store calls
  // this process in its messages, beside rank and address.
  static Result<std::unique_ptr<StoreClient>> connect(std::span<const os::Address> addresses, const Key& key,
                                                      int32_t rank, Time deadline, std::string who = {});
  ~StoreClient();

  struct Opened {
    uint32_t epoch = 0;
    std::vector<Bytes> blobs;  // by rank
  };
  // Arrives, and waits until all have. Timeout: the message names the ranks that have not arrived.
  Result<Opened> open_epoch(int32_t size, ByteSpan blob, Time deadline);
  // Blobs of all ranks of the open epoch under `tag`.
  Result<std::vector<Bytes>> exchange(std::string_view tag, ByteSpan blob, Time deadline);

  // Readable when there is news. Edge- and level-triggered sets both work: take_news reads until EAGAIN.
  int fd() const;
  // A cause of the open epoch that arrived, or before an epoch is open the one that the store has; nothing if there is
  // none. An error: the store is gone.
  Result<std::optional<Cause>> take_news();
  // The following: one frame each, written without waiting for an answer. Thread: any.
  // This rank's own failure: an exception's text, and its code if it is an error of the engine's, else Internal.
  Status tell_failure(const Status& what);
  Status tell_leave(uint32_t order);
  // This rank ends the epoch; the others hear of it as news.
  Status tell_abort(const Status& cause);
  // The address under which this process reaches the store: a good address to listen on.
  os::Address own_address() const;

 private:
  struct State;
  explicit StoreClient(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ronde::member
