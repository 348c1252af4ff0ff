// SPDX-License-Identifier: Apache-2.0
// TcpLink: a Link over one TCP connection, which is made by it (the lower rank) or handed to it (the higher).
// Readiness, told by the EventSet, only sets bits; advance() reads and writes until the kernel says "not now". Thread:
// the one that drives the engine.
#pragma once

#include <memory>
#include <string>

#include "os/event_set.h"
#include "os/socket.h"
#include "transport/framing.h"
#include "transport/tcp_connector.h"

namespace ronde::transport {

// A socket that remembers that it would block, so that nobody asks again before an event.
class SocketStream final : public ByteStream {
 public:
  void attach(os::Fd fd);
  const os::Fd& fd() const { return fd_; }
  void reset() { fd_.reset(); }
  void ready(bool readable, bool writable);
  Result<size_t> read(std::span<std::byte> into) override;
  Result<size_t> write(std::span<const ByteSpan> pieces) override;

 private:
  os::Fd fd_;
  bool readable_ = false;
  bool writable_ = false;
};

class TcpLink final : public Link, private os::EventSet::Source {
 public:
  // `name` is what errors call the link; events and clock outlive it.
  TcpLink(std::string name, os::EventSet* events, const Clock* clock);
  ~TcpLink() override { drop_connection(); }

  // Makes the connection itself; `options.source` is filled in here.
  void connect(TcpConnector::Options options);
  // Takes a proven connection, once.
  Status attach(os::Fd fd);
  bool has_connection() const { return stream_.fd().valid(); }

  void post_send(const FrameTag& tag, std::span<const ByteSpan> pieces) override;
  void post_recv(const FrameTag& tag, std::span<std::byte> into) override;
  uint64_t sends_done() const override { return framing_.sends_done(); }
  uint64_t recvs_done() const override { return framing_.recvs_done(); }
  Status advance() override;
  void close(const Status& reason) override;

  uint64_t bytes_sent() const { return framing_.bytes_sent(); }
  Time next_deadline() const { return connector_ ? connector_->next_deadline() : kNever; }

 private:
  void on_ready(bool readable, bool writable) override;
  Status advance_connection();
  void drop_connection();

  std::string name_;
  os::EventSet* events_;
  const Clock* clock_;
  std::unique_ptr<TcpConnector> connector_;  // while it connects
  SocketStream stream_;
  Framing framing_;
  Status closed_;  // why, once it is closed
};

}  // namespace ronde::transport
