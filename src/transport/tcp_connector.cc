// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp_connector.h"

namespace ronde::transport {

Status TcpConnector::start(const os::Address& address, Time now) {
  RONDE_ASSIGN(os::Fd fd, os::start_connect_tcp(address));
  RONDE_TRY(options_.events->add(fd.get(), options_.source));
  const auto addresses_left = static_cast<int64_t>(options_.addresses.size() - next_);
  attempt_deadline_ = options_.deadline == kNever ? kNever : now + (options_.deadline - now) / addresses_left;
  attempt_.emplace(std::move(fd), member::Hello(member::Hello::Role::Initiator, options_.key, options_.self),
                   attempt_deadline_);
  return {};
}

Result<std::optional<os::Fd>> TcpConnector::try_current(Time now) {
  if (!attempt_) RONDE_TRY(start(options_.addresses[next_], now));
  RONDE_ASSIGN(const bool done, attempt_->advance(now));
  if (!done) return std::optional<os::Fd>();
  const int fd = attempt_->fd();
  member::Greeted greeted = attempt_->take();
  attempt_.reset();
  if (greeted.peer.rank == options_.peer) return std::optional(std::move(greeted.fd));
  options_.events->remove(fd);
  return Status(Code::PeerLost, cat("answered as rank ", greeted.peer.rank));
}

Result<std::optional<os::Fd>> TcpConnector::advance(Time now) {
  do {
    for (; next_ < options_.addresses.size(); ++next_) {
      auto fd = try_current(now);
      if (fd.ok()) return fd;
      abandon();
      was_closed_ = was_closed_ || fd.status().code() == Code::PeerLost;
      if (fd.status().code() == Code::ResourceExhausted) code_ = Code::ResourceExhausted;
      tried_ += cat(tried_.empty() ? "" : "; ", options_.addresses[next_].to_string(), ": ", fd.status().message());
    }
  } while (begin_round(now));
  return Status(code_, cat("cannot connect (", tried_.empty() ? "it has no address" : tried_, ")"));
}

bool TcpConnector::begin_round(Time now) {
  if (!was_closed_ || round_ == kRounds) return false;
  ++round_;
  was_closed_ = false;
  next_ = 0;
  tried_.clear();
  if (options_.deadline != kNever) options_.deadline = now + options_.patience;
  return true;
}

void TcpConnector::abandon() {
  if (attempt_) options_.events->remove(attempt_->fd());
  attempt_.reset();
}

}  // namespace ronde::transport
