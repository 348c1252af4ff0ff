// SPDX-License-Identifier: Apache-2.0
// What the launcher and the agent of a host say to one another. Pure: values to bytes and back.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "launch/ending.h"
#include "launch/plan.h"
#include "member/hello.h"

namespace ronde::launch {

constexpr size_t kMaxFrameBytes = 64 * 1024 * 1024;  // a start plan carries the environment
constexpr size_t kMaxOutputBytes = 64 * 1024;        // in one frame

// Launcher to agent.
struct StartOrder {
  HostPlan host;
  std::vector<std::string> command;
  std::string program;  // found
  std::string job;
  std::string run_dir;  // the agent makes it, puts the key in, and removes it
  member::Key key{};
  int stdin_fd = -1;            // the launcher's own, inherited by the agent; for rank 0
  bool inherit_output = false;  // the only rank writes where the launcher would
  int stdout_fd = -1;
  int stderr_fd = -1;
  int group = -1;  // the rank stays in the launcher's session, in this process group; -1: a session of its own
};
struct SignalOrder {
  int signal = 0;
};
// So many bytes of output have been written, and as many may be sent again.
struct Credit {
  uint64_t bytes = 0;
};
using Order = std::variant<StartOrder, SignalOrder, Credit>;
Bytes encode(const Order& order);
Result<Order> decode_order(ByteSpan bytes);

// Agent to launcher.
struct RankStarted {
  int rank = 0;
  int pid = 0;
};
struct RankEnded {
  int rank = 0;
  Ending ending;
};
struct RankOutput {
  int rank = 0;
  int stream = 1;  // 1: stdout, 2: stderr
  std::string bytes;
};
struct RankClosed {  // nothing more comes from this stream
  int rank = 0;
  int stream = 1;
};
struct AgentSays {  // a warning, or with `fatal` why nothing was started
  bool fatal = false;
  std::string text;
};
struct AgentDone {};  // every process has ended, nothing is left
using Report = std::variant<RankStarted, RankEnded, RankOutput, RankClosed, AgentSays, AgentDone>;
Bytes encode(const Report& report);
Result<Report> decode_report(ByteSpan bytes);

}  // namespace ronde::launch
