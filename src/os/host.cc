// SPDX-License-Identifier: Apache-2.0
#include "os/host.h"

#include <sys/stat.h>
#include <sys/utsname.h>

#include <fstream>

#include "base/text.h"

namespace ronde::os {

std::string host_name() {
  utsname names{};
  return uname(&names) == 0 ? names.nodename : "unknown";
}

std::string host_id() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat network {};
  const bool known = stat("/proc/self/ns/net", &network) == 0;
  return cat(boot, '/', known ? network.st_ino : 0, '/', host_name());
}

}  // namespace ronde::os
