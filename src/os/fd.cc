// SPDX-License-Identifier: Apache-2.0
#include "os/fd.h"

#include <unistd.h>

#include <cerrno>

namespace ronde::os {

void Fd::reset() {
  if (fd_ < 0) return;
  const int kept = errno;           // often closed on the way out with an error
  ::close(std::exchange(fd_, -1));  // not repeated on EINTR: Linux has closed it then
  errno = kept;
}

}  // namespace ronde::os
