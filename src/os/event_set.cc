// SPDX-License-Identifier: Apache-2.0
#include "os/event_set.h"

#include <sys/epoll.h>

#include <cerrno>

namespace ronde::os {

Result<EventSet> EventSet::create() {
  Fd fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!fd.valid()) return system_error("create an event set (epoll)", errno);
  return EventSet(std::move(fd));
}

Status EventSet::add(int fd, Source* source) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.fd = fd;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return system_error(cat("watch descriptor ", fd), errno);
  }
  sources_[fd] = source;
  return {};
}

void EventSet::remove(int fd) {
  if (sources_.erase(fd) != 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

// Events name the descriptor, not the source: a source may be gone by the time that its event is looked at.
int EventSet::collect() {
  constexpr int kAtOnce = 64;
  int told = 0;
  for (;;) {
    epoll_event events[kAtOnce];
    const int count = ::epoll_wait(epoll_.get(), events, kAtOnce, 0);
    if (count < 0 && errno == EINTR) continue;
    RONDE_CHECK(count >= 0, "an event set that cannot be asked");
    for (int i = 0; i < count; ++i) {
      const auto found = sources_.find(events[i].data.fd);
      if (found == sources_.end()) continue;
      const uint32_t what = events[i].events;
      const bool broken = (what & (EPOLLERR | EPOLLHUP)) != 0;
      found->second->on_ready(broken || (what & (EPOLLIN | EPOLLRDHUP)) != 0, broken || (what & EPOLLOUT) != 0);
      ++told;
    }
    if (count < kAtOnce) return told;
  }
}

}  // namespace ronde::os
