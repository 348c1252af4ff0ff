// SPDX-License-Identifier: Apache-2.0
#include "os/pipe.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace ronde::os {

Result<Pipe> make_pipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return system_error("create a pipe", errno);
  return Pipe{Fd(fds[0]), Fd(fds[1])};
}

Result<std::pair<Fd, Fd>> make_socket_pair() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0) {
    return system_error("create a pair of sockets", errno);
  }
  return std::pair<Fd, Fd>(Fd(fds[0]), Fd(fds[1]));
}

Status set_nonblocking(const Fd& fd) {
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags < 0 || ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) != 0) return system_error("set O_NONBLOCK", errno);
  return {};
}

void set_close_on_exec(int fd, bool close) {
  ::fcntl(fd, F_SETFD, close ? FD_CLOEXEC : 0);
}

Result<Fd> duplicate(int fd) {
  Fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
  if (!copy.valid()) return system_error(cat("duplicate descriptor ", fd), errno);
  return copy;
}

Result<Fd> open_null() {
  Fd fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!fd.valid()) return system_error("open /dev/null", errno);
  return fd;
}

Result<Fd> create_file(const std::string& path) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666));
  if (!fd.valid()) return system_error(cat("create ", path), errno);
  return fd;
}

PipeRead read_pipe(const Fd& fd, std::span<char> into) {
  for (;;) {
    const ssize_t got = ::read(fd.get(), into.data(), into.size());
    if (got > 0) return {static_cast<size_t>(got), false};
    if (got < 0 && errno == EINTR) continue;
    return {0, got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)};
  }
}

Status write_blocking(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(fd, bytes.data(), bytes.size());
    if (done >= 0) {
      bytes.remove_prefix(static_cast<size_t>(done));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EPIPE) return Status(Code::PeerLost, system_error("write", errno).message());
    if (errno != EAGAIN && errno != EWOULDBLOCK) return system_error("write", errno);
    // Whoever gave us the descriptor had made it non-blocking.
    pollfd polled{.fd = fd, .events = POLLOUT, .revents = 0};
    ::poll(&polled, 1, -1);
  }
  return {};
}

void write_if_room(int fd, std::string_view bytes) {
  pollfd polled{.fd = fd, .events = POLLOUT, .revents = 0};
  if (::poll(&polled, 1, 0) != 1 || polled.revents != POLLOUT) return;
  const ssize_t ignored = ::write(fd, bytes.data(), std::min<size_t>(bytes.size(), PIPE_BUF));
  (void)ignored;
}

void fill_standard_streams() {
  int fd = 0;
  do {
    fd = ::open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= 2);
  if (fd > 2) ::close(fd);
}

bool is_stream_socket(int fd) {
  int type = 0;
  socklen_t length = sizeof type;
  return ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM;
}

bool is_terminal(int fd) {
  return ::isatty(fd) == 1;
}

bool edits_line(int fd) {
  termios modes{};
  return ::tcgetattr(fd, &modes) == 0 && (modes.c_lflag & ICANON) == 0;
}

bool is_same_file(int a, int b) {
  struct stat first {};
  struct stat second {};
  return ::fstat(a, &first) == 0 && ::fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

}  // namespace ronde::os
