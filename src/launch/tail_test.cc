// SPDX-License-Identifier: Apache-2.0
#include "launch/tail.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace ronde::launch {
namespace {

using Strings = std::vector<std::string>;

TEST(Tail, keeps_the_last_twenty_lines) {
  Tail tail;
  for (int i = 0; i < 50; ++i) tail.feed(1, cat("line ", i, "\n"));
  const auto lines = tail.lines();
  ASSERT_EQ(lines.size(), Tail::kLines);
  EXPECT_EQ(lines.front(), "line 30");
  EXPECT_EQ(lines.back(), "line 49");
}

TEST(Tail, an_unfinished_line_counts_and_empty_ones_stay) {
  Tail tail;
  tail.feed(2, "a\n\nb");
  EXPECT_EQ(tail.lines(), (Strings{"a", "", "b"}));
  EXPECT_TRUE(Tail().lines().empty());
}

TEST(Tail, streams_do_not_run_into_one_another) {
  Tail tail;
  tail.feed(1, "working...");
  tail.feed(2, "Traceback\n");
  EXPECT_EQ(tail.lines(), (Strings{"working...", "Traceback"}));
}

TEST(Tail, of_an_overwritten_line_the_last_state_is_kept) {
  Tail tail;
  tail.feed(2, "10%\r20%\r30%\nwindows\r\n");
  EXPECT_EQ(tail.lines(), (Strings{"30%", "windows"}));
}

TEST(Tail, endless_output_does_not_fill_the_memory_and_the_end_is_right) {
  Tail tail;
  for (int i = 0; i < 1000; ++i) tail.feed(1, std::string(5000, 'x'));
  tail.feed(1, std::string(200'000, 'y') + "\nend\n");
  EXPECT_EQ(tail.lines().back(), "end");
  size_t bytes = 0;
  for (const auto& line : tail.lines()) bytes += line.size();
  EXPECT_LE(bytes, 2 * Tail::kKeptBytes);
}

}  // namespace
}  // namespace ronde::launch
