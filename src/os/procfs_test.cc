// SPDX-License-Identifier: Apache-2.0
#include "os/procfs.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "os/memory_kills.h"
#include "os/pipe.h"
#include "os/process.h"

namespace ronde::os {
namespace {

TEST(Stat, names_with_blanks_and_parentheses_do_not_mislead) {
  const auto info = parse_stat("17 (a) (b c)) S 5 17 9 0 -1 4194560 1 2");
  ASSERT_TRUE(info);
  EXPECT_EQ(info->pid, 17);
  EXPECT_EQ(info->state, 'S');
  EXPECT_EQ(info->parent, 5);
  EXPECT_EQ(info->session, 9);
}

TEST(Stat, what_is_no_stat_is_nothing) {
  for (const char* text : {"", "17", "17 (a", "x (a) S 1 2 3", "17 (a) S", "17 (a) S 1 2"})
    EXPECT_FALSE(parse_stat(text)) << text;
}

TEST(Descendants, are_found_at_every_depth_and_nobody_else) {
  const std::vector<ProcessInfo> processes = {{1, 0, 1, 'S'},   {10, 1, 1, 'S'}, {11, 10, 1, 'S'},
                                              {12, 11, 2, 'S'}, {20, 1, 1, 'S'}, {13, 10, 3, 'S'}};
  auto found = descendants(processes, 10);
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, (std::vector<pid_t>{11, 12, 13}));
  EXPECT_TRUE(descendants(processes, 20).empty());
}

TEST(Descendants, a_circle_of_parents_ends) {
  EXPECT_EQ(descendants({{2, 3, 0, 'S'}, {3, 2, 0, 'S'}}, 2).size(), 2u);
}

TEST(ListProcesses, has_this_one_with_its_parent) {
  const auto all = list_processes();
  const auto self = std::find_if(all.begin(), all.end(), [](const auto& process) { return process.pid == ::getpid(); });
  ASSERT_NE(self, all.end());
  EXPECT_EQ(self->parent, ::getppid());
  EXPECT_EQ(self->session, ::getsid(0));
}

TEST(HasEnvironment, means_the_whole_entry) {
  auto errors = make_pipe();
  auto output = make_pipe();
  ASSERT_TRUE(errors.ok() && output.ok());
  Program program;
  program.path = "/bin/cat";
  program.arguments = {"cat"};
  program.environment = {"MARK=abc", "OTHER=x"};
  auto input = make_pipe();
  ASSERT_TRUE(input.ok());
  program.stdin_fd = input->read.get();
  program.stdout_fd = output->write.get();
  const auto child = spawn(program, errors->write, 0);
  ASSERT_TRUE(child.ok());
  // It answers, so it has been executed.
  ASSERT_TRUE(write_blocking(input->write.get(), "x").ok());
  char byte = 0;
  ASSERT_EQ(::read(output->read.get(), &byte, 1), 1);
  EXPECT_TRUE(has_environment(child->pid, "MARK=abc"));
  EXPECT_FALSE(has_environment(child->pid, "MARK=ab"));
  EXPECT_FALSE(has_environment(child->pid, "ARK=abc"));
  const pid_t pid = child->pid;
  EXPECT_EQ(signal_processes([&](const ProcessInfo& process) { return process.pid == pid; }, SIGKILL), 1);
}

std::optional<uint64_t> kills(std::string_view groups, const std::vector<std::pair<std::string, std::string>>& files) {
  return count_memory_kills(groups, [&](const std::string& path) -> std::optional<std::string> {
    for (const auto& [name, text] : files) {
      if (name == path) return text;
    }
    return std::nullopt;
  });
}

TEST(MemoryKills, are_read_from_both_versions_of_control_groups) {
  EXPECT_EQ(kills("0::/a/b\n", {{"/sys/fs/cgroup/a/b/memory.events", "low 0\noom 4\noom_kill 3\n"}}), 3u);
  EXPECT_EQ(kills("0::/\n", {{"/sys/fs/cgroup/memory.events", "oom_kill 1\n"}}), 1u);
  EXPECT_EQ(kills("5:cpu:/x\n4:memory:/x\n",
                  {{"/sys/fs/cgroup/memory/x/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"}}),
            2u);
}

TEST(MemoryKills, are_unknown_where_nothing_tells) {
  EXPECT_FALSE(kills("", {}));
  EXPECT_FALSE(kills("0::/\n", {}));
  EXPECT_FALSE(kills("nonsense\n4:memory:/\n", {{"/sys/fs/cgroup/memory/memory.oom_control", "oom_kill\n"}}));
}

}  // namespace
}  // namespace ronde::os
