// SPDX-License-Identifier: Apache-2.0
// ronde agent: started by the launcher only, with their channel as standard input.
#include "launch/agent.h"

#include "cli/command.h"
#include "launch/launcher.h"
#include "os/pipe.h"

namespace ronde::cli {

int agent_command(Words) {
  auto channel = os::duplicate(0);
  if (!channel.ok() || !os::is_stream_socket(0)) {
    launch::complain("agent: this command is for `ronde run` itself");
    return kUsage;
  }
  return launch::run_agent(std::move(channel).value());
}

}  // namespace ronde::cli
