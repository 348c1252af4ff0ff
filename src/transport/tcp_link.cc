// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp_link.h"

namespace ronde::transport {

void SocketStream::attach(os::Fd fd) {
  fd_ = std::move(fd);
  readable_ = writable_ = true;  // unknown: to be tried
}

void SocketStream::ready(bool readable, bool writable) {
  readable_ = readable_ || readable;
  writable_ = writable_ || writable;
}

Result<size_t> SocketStream::read(std::span<std::byte> into) {
  if (!readable_) return size_t{0};
  RONDE_ASSIGN(const size_t got, os::read_some(fd_, into));
  readable_ = got != 0;
  return got;
}

Result<size_t> SocketStream::write(std::span<const ByteSpan> pieces) {
  if (!writable_) return size_t{0};
  RONDE_ASSIGN(const size_t sent, os::write_some(fd_, pieces));
  writable_ = sent != 0;
  return sent;
}

TcpLink::TcpLink(std::string name, os::EventSet* events, const Clock* clock)
    : name_(std::move(name)), events_(events), clock_(clock) {}

void TcpLink::connect(TcpConnector::Options options) {
  options.source = this;
  connector_ = std::make_unique<TcpConnector>(options, clock_->now());
}

Status TcpLink::attach(os::Fd fd) {
  if (!closed_.ok()) return closed_;
  RONDE_TRY(events_->add(fd.get(), this));
  stream_.attach(std::move(fd));
  return {};
}

void TcpLink::post_send(const FrameTag& tag, std::span<const ByteSpan> pieces) {
  if (closed_.ok()) framing_.post_send(tag, pieces);
}

void TcpLink::post_recv(const FrameTag& tag, std::span<std::byte> into) {
  if (closed_.ok()) framing_.post_recv(tag, into);
}

Status TcpLink::advance_connection() {
  RONDE_ASSIGN(auto fd, connector_->advance(clock_->now()));
  if (!fd) return {};
  connector_.reset();
  stream_.attach(std::move(*fd));
  return {};
}

Status TcpLink::advance() {
  if (!closed_.ok()) return closed_;
  Status status;
  if (connector_) status = advance_connection();
  if (status.ok() && has_connection()) status = framing_.advance(stream_);
  if (!status.ok()) close(status.with_context(name_));
  return closed_;
}

void TcpLink::close(const Status& reason) {
  RONDE_CHECK(!reason.ok(), "a link is closed with a reason");
  closed_ = reason;
  framing_.clear();
  drop_connection();
}

void TcpLink::drop_connection() {
  connector_.reset();
  if (!has_connection()) return;
  events_->remove(stream_.fd().get());
  stream_.reset();
}

void TcpLink::on_ready(bool readable, bool writable) {
  stream_.ready(readable, writable);
}

}  // namespace ronde::transport
