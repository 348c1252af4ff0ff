// SPDX-License-Identifier: Apache-2.0
// Bytes over connected sockets. SIGPIPE is never raised.
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

#include "os/event_set.h"
#include "os/sockaddr.h"

namespace ronde::os {
namespace {

bool would_block(int error) {
  return error == EAGAIN || error == EWOULDBLOCK;
}

Status closed() {
  return Status(Code::PeerLost, "closed the connection");
}

// The errno of a read or a write, as what it tells about the peer.
Status stream_error(std::string_view what, int error) {
  if (error == EPIPE) return closed();
  const Status status = system_error(what, error);
  const bool lost = error == ECONNRESET || error == ETIMEDOUT || error == ECONNABORTED || error == ECONNREFUSED ||
                    error == EHOSTUNREACH || error == ENETUNREACH || error == ENETDOWN || error == ENOTCONN;
  return lost ? Status(Code::PeerLost, status.message()) : status;
}

// The first pieces after `index` and `offset`, as the system wants them.
size_t gather(std::span<const ByteSpan> pieces, size_t index, size_t offset, std::span<iovec> out) {
  size_t count = 0;
  for (; index < pieces.size() && count < out.size(); ++index, offset = 0) {
    const ByteSpan rest = pieces[index].subspan(offset);
    if (rest.empty()) continue;
    out[count++] = {const_cast<std::byte*>(rest.data()), rest.size()};
  }
  return count;
}

}  // namespace

Result<size_t> read_some(const Fd& fd, std::span<std::byte> into) {
  size_t total = 0;
  while (total < into.size()) {
    const ssize_t got = ::recv(fd.get(), into.data() + total, into.size() - total, 0);
    if (got > 0) {
      total += static_cast<size_t>(got);
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (total > 0 || (got < 0 && would_block(errno))) break;
    return got == 0 ? closed() : stream_error("read", errno);
  }
  return total;
}

Result<size_t> write_some(const Fd& fd, std::span<const ByteSpan> pieces) {
  size_t total = 0;
  size_t index = 0;
  size_t offset = 0;
  for (;;) {
    iovec vectors[64];
    msghdr message{};
    message.msg_iov = vectors;
    message.msg_iovlen = gather(pieces, index, offset, vectors);
    if (message.msg_iovlen == 0) return total;
    const ssize_t sent = ::sendmsg(fd.get(), &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (total > 0 || would_block(errno))) return total;
    if (sent < 0) return stream_error("write", errno);
    total += static_cast<size_t>(sent);
    for (offset += static_cast<size_t>(sent); index < pieces.size() && offset >= pieces[index].size(); ++index) {
      offset -= pieces[index].size();
    }
  }
}

Status read_all_by(const Fd& fd, std::span<std::byte> into, Time deadline) {
  for (size_t done = 0; done < into.size();) {
    RONDE_ASSIGN(const size_t got, read_some(fd, into.subspan(done)));
    done += got;
    const int raw = fd.get();
    if (got == 0 && !sleep_until_readable({&raw, 1}, deadline)) {
      return Status(Code::Timeout, cat("timed out with ", done, " of ", into.size(), " bytes read"));
    }
  }
  return {};
}

Status write_all_by(const Fd& fd, ByteSpan bytes, Time deadline) {
  for (size_t done = 0; done < bytes.size();) {
    const ByteSpan rest = bytes.subspan(done);
    RONDE_ASSIGN(const size_t sent, write_some(fd, {&rest, 1}));
    done += sent;
    if (sent == 0 && !sleep_until_writable(fd.get(), deadline)) {
      return Status(Code::Timeout, cat("timed out with ", done, " of ", bytes.size(), " bytes written"));
    }
  }
  return {};
}

}  // namespace ronde::os
