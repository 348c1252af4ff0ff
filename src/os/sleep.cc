// SPDX-License-Identifier: Apache-2.0
// The one place where threads sleep on descriptors.
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <vector>

#include "os/event_set.h"

namespace ronde::os {
namespace {

timespec until(Time deadline) {
  const auto left = std::max(deadline - std::chrono::steady_clock::now(), Duration::zero());
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
  return {static_cast<time_t>(seconds.count()), static_cast<long>((left - seconds).count())};
}

bool sleep_on(std::span<pollfd> fds, Time deadline) {
  for (;;) {
    const timespec left = deadline == kNever ? timespec{} : until(deadline);
    const int ready = ::ppoll(fds.data(), fds.size(), deadline == kNever ? nullptr : &left, nullptr);
    if (ready == 0) return false;
    if (ready < 0) {
      RONDE_CHECK(errno == EINTR, "ppoll was asked for something impossible");
      continue;
    }
    for (const pollfd& fd : fds) RONDE_CHECK((fd.revents & POLLNVAL) == 0, "slept on a closed descriptor");
    return true;
  }
}

}  // namespace

bool sleep_until_readable(std::span<const int> fds, Time deadline) {
  constexpr size_t kFew = 16;
  pollfd few[kFew];
  std::vector<pollfd> many(fds.size() > kFew ? fds.size() : 0);
  const std::span<pollfd> polled = many.empty() ? std::span(few).first(fds.size()) : std::span(many);
  for (size_t i = 0; i < fds.size(); ++i) polled[i] = {.fd = fds[i], .events = POLLIN, .revents = 0};
  return sleep_on(polled, deadline);
}

bool sleep_until_writable(int fd, Time deadline) {
  pollfd polled{.fd = fd, .events = POLLOUT, .revents = 0};
  return sleep_on({&polled, 1}, deadline);
}

}  // namespace ronde::os
