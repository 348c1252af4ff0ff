// SPDX-License-Identifier: Apache-2.0
#include "os/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "os/fd.h"

namespace ronde::os {
namespace {

// Of the opened descriptor, not of the path: what is checked is what is read.
Status check_private(const std::string& path, const struct stat& st) {
  if (!S_ISREG(st.st_mode)) return Status(Code::InvalidArgument, cat(path, " is not a regular file"));
  if (st.st_uid != geteuid() && st.st_uid != 0) {
    return Status(Code::InvalidArgument, cat(path, " belongs to user ", st.st_uid, ", not to this process's user ",
                                             geteuid(), ": make the file anew as this user"));
  }
  if ((st.st_mode & 077) != 0) {
    constexpr char kOctal[] = "01234567";
    const char mode[] = {'0', kOctal[(st.st_mode >> 6) & 7], kOctal[(st.st_mode >> 3) & 7], kOctal[st.st_mode & 7], 0};
    return Status(Code::InvalidArgument, cat(path, " is open to other users (mode ", mode, "): run chmod 600 ", path));
  }
  return {};
}

Status read_to_end(const Fd& fd, const std::string& path, size_t max_bytes, std::string& out) {
  char piece[512];
  for (;;) {
    const ssize_t n = ::read(fd.get(), piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error(cat("read ", path), errno);
    if (n == 0) return {};
    out.append(piece, static_cast<size_t>(n));
    if (out.size() > max_bytes) {
      return Status(Code::InvalidArgument, cat(path, " is longer than ", max_bytes, " bytes"));
    }
  }
}

}  // namespace

Result<std::string> read_private_file(const std::string& path, size_t max_bytes) {
  // Not blocking: a FIFO in the place of the file must not hold up the process.
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return system_error(cat("open ", path), errno);
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return system_error(cat("stat ", path), errno);
  RONDE_TRY(check_private(path, st));
  std::string out;
  RONDE_TRY(read_to_end(fd, path, max_bytes, out));
  return out;
}

Status write_private_file(const std::string& path, const std::string& contents) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return system_error(cat("create ", path), errno);
  size_t done = 0;
  while (done < contents.size()) {
    const ssize_t n = ::write(fd.get(), contents.data() + done, contents.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error(cat("write ", path), errno);
    done += static_cast<size_t>(n);
  }
  return {};
}

}  // namespace ronde::os
