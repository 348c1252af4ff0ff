// SPDX-License-Identifier: Apache-2.0
#include "launch/output_writer.h"

#include <gtest/gtest.h>

#include <csignal>

#include "base/clock.h"
#include "os/event_set.h"
#include "os/pipe.h"

namespace ronde::launch {
namespace {

using namespace std::chrono_literals;

// Until nothing waits, at most ten seconds.
OutputWriter::Progress finish(OutputWriter& writer) {
  OutputWriter::Progress total;
  const Time deadline = std::chrono::steady_clock::now() + 10s;
  for (;;) {
    auto progress = writer.take();
    total.credit += progress.credit;
    total.failures.insert(total.failures.end(), progress.failures.begin(), progress.failures.end());
    total.idle = progress.idle;
    const int fd = writer.fd();
    if (total.idle || !os::sleep_until_readable({&fd, 1}, deadline)) return total;
  }
}

TEST(OutputWriter, writes_in_order_and_gives_the_credit_back) {
  auto pipe = os::make_pipe();
  ASSERT_TRUE(pipe.ok());
  ASSERT_TRUE(os::set_nonblocking(pipe->read).ok());
  auto writer = OutputWriter::start({{pipe->write.get(), "it"}});
  ASSERT_TRUE(writer.ok());
  (*writer)->write(0, "ab", 1);
  (*writer)->write(0, "cd", 2);
  const auto progress = finish(**writer);
  EXPECT_EQ(progress.credit, 3u);
  EXPECT_TRUE(progress.idle);
  char bytes[8];
  EXPECT_EQ(os::read_pipe(pipe->read, bytes).bytes, 4u);
  EXPECT_EQ(std::string_view(bytes, 4), "abcd");
}

TEST(OutputWriter, a_broken_target_is_told_once_and_the_others_go_on) {
  std::signal(SIGPIPE, SIG_IGN);
  auto broken = os::make_pipe();
  auto good = os::make_pipe();
  ASSERT_TRUE(broken.ok() && good.ok());
  broken->read.reset();
  auto writer = OutputWriter::start({{broken->write.get(), "broken"}, {good->write.get(), "good"}});
  ASSERT_TRUE(writer.ok());
  (*writer)->write(0, "x", 1);
  (*writer)->write(0, "y", 1);
  (*writer)->write(1, "z", 1);
  const auto progress = finish(**writer);
  ASSERT_EQ(progress.failures.size(), 1u);
  EXPECT_EQ(progress.failures[0].target, 0u);
  EXPECT_EQ(progress.failures[0].text, "broken: write: Broken pipe");
  EXPECT_TRUE(progress.failures[0].no_reader);
  EXPECT_EQ(progress.credit, 3u);
}

TEST(OutputWriter, a_full_disk_is_no_closed_reader) {
  auto full = os::create_file("/dev/full");
  ASSERT_TRUE(full.ok());
  auto writer = OutputWriter::start({{full->get(), "full"}});
  ASSERT_TRUE(writer.ok());
  (*writer)->write(0, "x", 1);
  const auto progress = finish(**writer);
  ASSERT_EQ(progress.failures.size(), 1u);
  EXPECT_EQ(progress.failures[0].text, "full: write: No space left on device");
  EXPECT_FALSE(progress.failures[0].no_reader);
}

TEST(OutputWriter, a_reader_that_does_not_read_holds_up_neither_the_caller_nor_the_end) {
  std::signal(SIGPIPE, SIG_IGN);
  auto pipe = os::make_pipe();
  ASSERT_TRUE(pipe.ok());
  {
    // Not closed: the thread that is left behind still writes to it.
    auto writer = OutputWriter::start({{pipe->write.release(), "it"}});
    ASSERT_TRUE(writer.ok());
    (*writer)->write(0, std::string(1 << 20, 'x'), 1 << 20);
    EXPECT_FALSE((*writer)->take().idle);
  }
  pipe->read.reset();  // and with its reader the thread goes
}

}  // namespace
}  // namespace ronde::launch
