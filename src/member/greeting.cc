// SPDX-License-Identifier: Apache-2.0
// One connection's hello. It reads what the hello wants and no byte more: what follows is the owner's.
#include "member/greeter.h"

namespace ronde::member {
namespace {

Status unfinished() {
  return Status(Code::Timeout, "the peer did not finish its hello in time");
}

}  // namespace

Greeting::Greeting(os::Fd fd, Hello hello, Time deadline)
    : fd_(std::move(fd)), hello_(std::move(hello)), deadline_(deadline) {}

// True: all is written.
Result<bool> Greeting::write_out() {
  if (written_ < out_.size()) {
    const ByteSpan rest = ByteSpan(out_).subspan(written_);
    RONDE_ASSIGN(const size_t wrote, os::write_some(fd_, {&rest, 1}));
    written_ += wrote;
  }
  return written_ == out_.size();
}

// True: a message has come and was good.
Result<bool> Greeting::read_in() {
  in_.resize(hello_.wants());
  RONDE_ASSIGN(const size_t got, os::read_some(fd_, std::span(in_).subspan(read_)));
  read_ += got;
  if (read_ < in_.size()) return false;
  read_ = 0;
  const Status status = hello_.feed(in_, out_);
  if (status.ok()) return true;
  (void)write_out();  // the peer's copy of the error; it is lost if there is no room now
  return status;
}

Result<bool> Greeting::advance(Time now) {
  if (!started_) {
    RONDE_TRY(os::connect_error(fd_));
    out_ = hello_.start();
    started_ = true;
  }
  for (;;) {
    RONDE_ASSIGN(const bool written, write_out());
    if (written && hello_.done()) return true;
    bool fed = false;
    if (written) {
      RONDE_ASSIGN(fed, read_in());
    }
    if (fed) continue;
    if (now < deadline()) return false;
    return unfinished();
  }
}

Greeted Greeting::take() {
  RONDE_CHECK(hello_.done(), "a connection is taken after its hello");
  return {std::move(fd_), hello_.peer(), hello_.session_key()};
}

Result<Greeted> greet_by(os::Fd fd, Hello::Role role, const Key& key, const Identity& self, Time deadline) {
  const SteadyClock clock;
  Greeting greeting(std::move(fd), Hello(role, key, self), deadline);
  for (;;) {
    RONDE_ASSIGN(const bool done, greeting.advance(clock.now()));
    if (done) return greeting.take();
    if (clock.now() >= deadline) return unfinished();
    // A hello is shorter than any socket's buffer, so what this side waits for is always the peer's answer.
    const int raw = greeting.fd();
    os::sleep_until_readable({&raw, 1}, deadline);
  }
}

Result<Greeted> call_by(const std::function<Result<os::Fd>()>& connect, const Key& key, const Identity& self,
                        Time deadline) {
  for (int call = 1;; ++call) {
    RONDE_ASSIGN(os::Fd fd, connect());
    auto greeted = greet_by(std::move(fd), Hello::Role::Initiator, key, self, deadline);
    if (greeted.ok() || greeted.status().code() != Code::PeerLost || call == kCalls) return greeted;
  }
}

}  // namespace ronde::member
