// SPDX-License-Identifier: Apache-2.0
#include "os/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/clock.h"
#include "os/event_set.h"
#include "os/pipe.h"

namespace ronde::os {
namespace {

using namespace std::chrono_literals;

class Processes : public testing::Test {
 protected:
  void SetUp() override {
    auto errors = make_pipe();
    auto output = make_pipe();
    ASSERT_TRUE(errors.ok() && output.ok());
    errors_ = std::move(errors).value();
    output_ = std::move(output).value();
    ASSERT_TRUE(set_nonblocking(errors_.read).ok());
    ASSERT_TRUE(set_nonblocking(output_.read).ok());
  }
  Program shell(const std::string& script) {
    Program program;
    program.path = "/bin/sh";
    program.arguments = {"sh", "-c", script};
    program.environment = {"PATH=/usr/bin:/bin"};
    program.stdout_fd = output_.write.get();
    return program;
  }
  Child start(const Program& program) {
    auto child = spawn(program, errors_.write, 5);
    EXPECT_TRUE(child.ok()) << child.status().message();
    return std::move(child).value();
  }
  static Exit wait(const Child& child) {
    const int fd = child.pidfd.get();
    EXPECT_TRUE(sleep_until_readable({&fd, 1}, std::chrono::steady_clock::now() + 20s)) << "the process does not end";
    const auto exit = reap(child.pidfd);
    EXPECT_TRUE(exit);
    return exit.value_or(Exit{});
  }
  std::string output() {
    char bytes[4096];
    const auto got = read_pipe(output_.read, bytes);
    return std::string(bytes, got.bytes);
  }
  Pipe errors_;
  Pipe output_;
};

TEST_F(Processes, the_exit_status_and_the_signal_are_told_apart) {
  const Exit status = wait(start(shell("exit 9")));
  EXPECT_FALSE(status.by_signal);
  EXPECT_EQ(status.code, 9);
  const Exit killed = wait(start(shell("kill -9 $$")));
  EXPECT_TRUE(killed.by_signal);
  EXPECT_EQ(killed.code, 9);
}

TEST_F(Processes, a_running_process_is_not_reaped) {
  const Child child = start(shell("sleep 60"));
  EXPECT_FALSE(reap(child.pidfd));
  signal_group(child, SIGKILL);
  EXPECT_TRUE(wait(child).by_signal);
  EXPECT_FALSE(reap(child.pidfd)) << "reaped twice";
}

TEST_F(Processes, a_signal_is_not_lost_while_the_child_is_still_being_made) {
  for (int i = 0; i < 50; ++i) {
    const Child child = start(shell("sleep 60"));
    signal_group(child, SIGTERM);
    EXPECT_TRUE(wait(child).by_signal);
  }
}

TEST_F(Processes, the_environment_is_exactly_what_was_given) {
  Program program = shell("");
  program.path = "/usr/bin/env";
  program.arguments = {"env", "-0"};
  program.environment = {"A=line\nbreak", "B=\"'\xc3\xa9\xff", "C="};
  wait(start(program));
  EXPECT_EQ(output(), std::string("A=line\nbreak\0B=\"'\xc3\xa9\xff\0C=\0", 24));
}

TEST_F(Processes, a_session_of_its_own_and_the_parents_one) {
  const Child own = start(shell("cut -d' ' -f6 /proc/$$/stat"));
  wait(own);
  EXPECT_EQ(output(), std::to_string(own.pid) + "\n");
  Program same = shell("cut -d' ' -f6 /proc/$$/stat");
  same.own_session = false;
  wait(start(same));
  EXPECT_EQ(output(), std::to_string(::getsid(0)) + "\n");
}

TEST_F(Processes, a_program_that_cannot_be_executed_tells_errno_under_its_tag) {
  Program program = shell("");
  program.path = "/nowhere/at/all";
  EXPECT_EQ(wait(start(program)).code, 127);
  const auto error = take_spawn_error(errors_.read);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->tag, 5);
  EXPECT_EQ(error->error, ENOENT);
  EXPECT_FALSE(take_spawn_error(errors_.read));
}

TEST_F(Processes, a_script_without_an_interpreter_line_is_run_by_the_shell) {
  std::string pattern = (std::filesystem::temp_directory_path() / "script-XXXXXX").string();
  const std::string folder = ::mkdtemp(pattern.data());
  const std::string path = folder + "/script";
  std::ofstream(path) << "echo \"$0 $1\"\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  Program program = shell("");
  program.path = path;
  program.arguments = {"script", "word"};
  EXPECT_EQ(wait(start(program)).code, 0);
  EXPECT_EQ(output(), path + " word\n");
  std::filesystem::remove_all(folder);
}

TEST_F(Processes, descriptors_are_not_inherited_unless_named) {
  auto named = duplicate(output_.write.get());
  auto hidden = duplicate(output_.write.get());
  ASSERT_TRUE(named.ok() && hidden.ok());
  Program program = shell("ls /proc/$$/fd");
  program.inherited = {named->get()};
  wait(start(program));
  const std::string listed = "\n" + output();
  EXPECT_NE(listed.find("\n" + std::to_string(named->get()) + "\n"), std::string::npos) << listed;
  EXPECT_EQ(listed.find("\n" + std::to_string(hidden->get()) + "\n"), std::string::npos) << listed;
}

TEST_F(Processes, strangers_are_reaped_and_kept_ones_are_not) {
  const Child kept = start(shell("exit 3"));
  const int fd = kept.pidfd.get();
  ASSERT_TRUE(sleep_until_readable({&fd, 1}, std::chrono::steady_clock::now() + 20s));
  EXPECT_TRUE(reap_strangers({kept.pid}));
  EXPECT_EQ(wait(kept).code, 3);
  EXPECT_FALSE(reap_strangers({})) << "there are no children left";
}

TEST(RandomName, is_32_hexadecimal_digits_and_differs) {
  const std::string name = random_name();
  EXPECT_EQ(name.size(), 32u);
  EXPECT_EQ(name.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(name, random_name());
}

}  // namespace
}  // namespace ronde::os
