// SPDX-License-Identifier: Apache-2.0
#include "cli/say.h"

#include "os/pipe.h"

namespace ronde::cli {

// Whoever does not want to hear need not.
void say(std::string_view text) {
  const Status ignored = os::write_blocking(1, text);
}
void say_error(std::string_view text) {
  const Status ignored = os::write_blocking(2, text);
}

}  // namespace ronde::cli
