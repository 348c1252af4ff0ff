// SPDX-License-Identifier: Apache-2.0
// ronde version
#include "base/text.h"
#include "cli/command.h"
#include "cli/say.h"
#include "ronde/ronde.h"

namespace ronde::cli {

int version_command(Words) {
  say(cat("ronde ", ronde_version(), "\n"));
  return 0;
}

}  // namespace ronde::cli
