// SPDX-License-Identifier: Apache-2.0
// Descriptors over a Unix socket: messages of one byte, each with as many descriptors as the kernel takes at once.
#include <algorithm>
#include <array>
#include <cerrno>

#include "os/event_set.h"
#include "os/sockaddr.h"

namespace ronde::os {
namespace {

constexpr size_t kFdsPerMessage = 253;  // SCM_MAX_FD

struct FdMessage {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kFdsPerMessage * sizeof(int))> control{};
  char byte = 0;
  iovec vector{&byte, 1};
  msghdr header{};
  explicit FdMessage(size_t fds) {
    header.msg_iov = &vector;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(fds * sizeof(int));
  }
};

Status send_message(const Fd& fd, std::span<const int> fds, Time deadline) {
  FdMessage message(fds.size());
  cmsghdr* control = CMSG_FIRSTHDR(&message.header);
  control->cmsg_level = SOL_SOCKET;
  control->cmsg_type = SCM_RIGHTS;
  control->cmsg_len = CMSG_LEN(fds.size_bytes());
  std::memcpy(CMSG_DATA(control), fds.data(), fds.size_bytes());
  while (::sendmsg(fd.get(), &message.header, MSG_NOSIGNAL) < 0) {
    if (errno == EINTR) continue;
    if (errno == EPIPE || errno == ECONNRESET) return Status(Code::PeerLost, "closed the connection");
    if (errno != EAGAIN) return system_error("pass descriptors", errno);
    if (!sleep_until_writable(fd.get(), deadline)) return Status(Code::Timeout, "timed out passing descriptors");
  }
  return {};
}

void take_fds(msghdr& header, std::vector<Fd>& out) {
  for (cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr; control = CMSG_NXTHDR(&header, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int raw = -1;
      std::memcpy(&raw, CMSG_DATA(control) + i * sizeof raw, sizeof raw);
      out.emplace_back(raw);
    }
  }
}

Status recv_message(const Fd& fd, std::vector<Fd>& out, Time deadline) {
  FdMessage message(kFdsPerMessage);
  for (;;) {
    const ssize_t got = ::recvmsg(fd.get(), &message.header, MSG_CMSG_CLOEXEC);
    if (got > 0) break;
    if (got == 0 || errno == ECONNRESET) return Status(Code::PeerLost, "closed the connection");
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return system_error("take descriptors", errno);
    const int raw = fd.get();
    if (!sleep_until_readable({&raw, 1}, deadline)) {
      return Status(Code::Timeout, "timed out waiting for descriptors");
    }
  }
  const size_t before = out.size();
  take_fds(message.header, out);
  if ((message.header.msg_flags & MSG_CTRUNC) != 0) {
    return Status(Code::ResourceExhausted, "not all passed descriptors fit into this process; raise `ulimit -n`");
  }
  if (out.size() == before) return Status(Code::Internal, "expected descriptors, got bytes without any");
  return {};
}

}  // namespace

Status send_fds_by(const Fd& fd, std::span<const int> fds, Time deadline) {
  while (!fds.empty()) {
    const size_t now = std::min(fds.size(), kFdsPerMessage);
    RONDE_TRY(send_message(fd, fds.first(now), deadline));
    fds = fds.subspan(now);
  }
  return {};
}

Result<std::vector<Fd>> recv_fds_by(const Fd& fd, size_t count, Time deadline) {
  std::vector<Fd> out;
  while (out.size() < count) RONDE_TRY(recv_message(fd, out, deadline));
  if (out.size() > count) {
    return Status(Code::Internal, cat("expected ", count, " descriptors, got ", out.size()));
  }
  return out;
}

}  // namespace ronde::os
