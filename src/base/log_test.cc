// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "base/text.h"

namespace ronde {
namespace {

using testing::MatchesRegex;

std::string read_file(int fd) {
  std::string text;
  char piece[4096];
  ::lseek(fd, 0, SEEK_SET);
  for (ssize_t got; (got = ::read(fd, piece, sizeof piece)) > 0;) text.append(piece, static_cast<size_t>(got));
  return text;
}

// What `body` writes to stderr.
template <class Body>
std::string stderr_of(const Body& body) {
  char name[] = "/tmp/ronde-log-XXXXXX";
  const int file = ::mkstemp(name);
  ::unlink(name);
  const int kept = ::dup(STDERR_FILENO);
  ::dup2(file, STDERR_FILENO);
  body();
  ::dup2(kept, STDERR_FILENO);
  ::close(kept);
  const std::string text = read_file(file);
  ::close(file);
  return text;
}

class Log : public testing::Test {
 protected:
  void TearDown() override {
    set_log_level(LogLevel::Warning);
    set_log_context(-1);
  }
};

TEST_F(Log, a_line_tells_time_rank_level_and_text) {
  set_log_context(3);
  const std::string text = stderr_of([] { log_warning("slow {} %s"); });
  EXPECT_THAT(text,
              MatchesRegex("\\[ronde [0-2][0-9]:[0-5][0-9]:[0-6][0-9]\\.[0-9]{3} rank 3\\] warning: slow \\{\\} %s\n"));
}

TEST_F(Log, a_process_without_a_rank_shows_none) {
  const std::string text = stderr_of([] { log_error("x"); });
  EXPECT_THAT(text, MatchesRegex("\\[ronde [0-9:.]{12}\\] error: x\n"));
}

TEST_F(Log, each_level_shows_itself_and_what_is_above) {
  for (int level = 0; level <= 5; ++level) {
    set_log_level(static_cast<LogLevel>(level));
    const std::string text = stderr_of([] {
      log_trace("0");
      log_debug("1");
      log_info("2");
      log_warning("3");
      log_error("4");
    });
    for (int line = 0; line < 5; ++line) {
      const std::string expected = cat(log_level_name(static_cast<LogLevel>(line)), ": ", line, "\n");
      EXPECT_EQ(text.find(expected) != std::string::npos, line >= level) << "level " << level << " line " << line;
      EXPECT_EQ(log_enabled(static_cast<LogLevel>(line)), line >= level);
    }
    EXPECT_FALSE(log_enabled(LogLevel::Off));
  }
}

TEST_F(Log, lines_of_several_threads_stay_whole) {
  const std::string text = stderr_of([] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([t] {
        for (int i = 0; i < 50; ++i) log_error(std::string(200, static_cast<char>('a' + t)));
      });
    }
    for (auto& thread : threads) thread.join();
  });
  const auto whole = MatchesRegex("\\[ronde [0-9:.]{12}\\] error: (a{200}|b{200}|c{200}|d{200})");
  size_t lines = 0;
  for (size_t at = 0; at < text.size(); ++lines) {
    const size_t end = text.find('\n', at);
    ASSERT_NE(end, std::string::npos);
    EXPECT_THAT(text.substr(at, end - at), whole);
    at = end + 1;
  }
  EXPECT_EQ(lines, 200u);
}

TEST_F(Log, a_forked_child_can_log) {
  const std::string text = stderr_of([] {
    const pid_t child = ::fork();
    if (child == 0) {
      log_error("from the child");
      ::_exit(0);
    }
    int status = 1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  });
  EXPECT_NE(text.find("error: from the child\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace ronde
