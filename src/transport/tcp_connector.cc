// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp_connector.h"

namespace ronde::transport {

Status TcpConnector::start(const os::Address& address, Time now) {
  RONDE_ASSIGN(os::Fd fd, os::start_connect_tcp(address));
  RONDE_TRY(options_.events->add(fd.get(), options_.source));
  const auto addresses_left = static_cast<int64_t>(options_.addresses.size() - next_);
  attempt_.emplace(std::move(fd), member::Hello(member::Hello::Role::Initiator, options_.key, options_.self),
                   now + (round_ends_ - now) / addresses_left);
  return {};
}

Result<std::optional<os::Fd>> TcpConnector::try_current(Time now) {
  if (!attempt_) RONDE_TRY(start(options_.addresses[next_], now));
  RONDE_ASSIGN(const bool done, attempt_->advance(now));
  if (!done) return std::optional<os::Fd>();
  member::Greeted greeted = attempt_->take();
  attempt_.reset();
  return std::optional(std::move(greeted.fd));
}

Result<std::optional<os::Fd>> TcpConnector::advance(Time now) {
  for (;;) {
    for (; next_ < options_.addresses.size(); ++next_) {
      auto fd = try_current(now);
      if (fd.ok()) return fd;
      note(fd.status());
      abandon();
    }
    const bool again = silent_ || (closed_ && --rounds_left_ > 0);
    if (!again) break;
    begin_round(now);
  }
  return Status(code_, cat("cannot connect (", tried_.empty() ? "it has no address" : tried_, ")"));
}

void TcpConnector::note(const Status& why) {
  const bool stood = attempt_ && attempt_->connected();
  closed_ = closed_ || (stood && why.code() == Code::PeerLost);
  silent_ = silent_ || (stood && why.code() == Code::Timeout);
  if (why.code() == Code::ResourceExhausted) code_ = Code::ResourceExhausted;
  tried_ += cat(tried_.empty() ? "" : "; ", options_.addresses[next_].to_string(), ": ", why.message());
}

void TcpConnector::begin_round(Time now) {
  closed_ = silent_ = false;
  next_ = 0;
  tried_.clear();
  round_ends_ = now + options_.patience;
}

void TcpConnector::abandon() {
  if (attempt_) options_.events->remove(attempt_->fd());
  attempt_.reset();
}

}  // namespace ronde::transport
