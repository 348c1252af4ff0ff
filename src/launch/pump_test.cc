// SPDX-License-Identifier: Apache-2.0
#include "launch/pump.h"

#include <gtest/gtest.h>

#include <map>

namespace ronde::launch {
namespace {

using namespace std::chrono_literals;

struct Sink {
  std::map<size_t, std::string> targets;
  size_t credit = 0;
  Pump::Write write() {
    return [this](size_t target, std::string bytes, size_t part) {
      targets[target] += bytes;
      credit += part;
    };
  }
};
constexpr Time kNow{std::chrono::seconds(5)};

TEST(Pump, streams_go_to_their_console_with_a_prefix) {
  Sink sink;
  Pump pump({.ranks = 2}, sink.write());
  pump.output(0, 1, "out\n", kNow);
  pump.output(1, 2, "err\n", kNow);
  EXPECT_EQ(sink.targets[0], "[0] out\n");
  EXPECT_EQ(sink.targets[1], "[1] err\n");
}

TEST(Pump, credit_counts_what_the_ranks_wrote_and_not_the_prefixes) {
  Sink sink;
  Pump pump({.ranks = 1}, sink.write());
  pump.output(0, 1, "a\nb\nheld", kNow);
  EXPECT_EQ(sink.credit, 8u);
  pump.tick(kNow + 1s);
  EXPECT_EQ(sink.credit, 8u);
  EXPECT_EQ(sink.targets[0], "[0] a\n[0] b\n[0] held");
}

TEST(Pump, on_one_console_an_open_line_of_one_stream_is_broken_by_the_other) {
  Sink sink;
  Pump pump({.ranks = 1, .one_console = true}, sink.write());
  pump.output(0, 1, "question? ", kNow);
  pump.tick(kNow + 100ms);
  pump.output(0, 2, "warning\n", kNow);
  EXPECT_EQ(sink.targets[0], "[0] question? ");
  EXPECT_EQ(sink.targets[1], "\n[0] warning\n");
}

TEST(Pump, plain_and_files_are_byte_exact) {
  const std::string bytes("a\r\0\xff\nb", 6);
  Sink plain;
  Pump(Pump::Options{.ranks = 2, .style = Pump::Style::Plain}, plain.write()).output(1, 1, bytes, kNow);
  EXPECT_EQ(plain.targets[0], bytes);
  Sink files;
  Pump(Pump::Options{.ranks = 2, .style = Pump::Style::Files}, files.write()).output(1, 2, bytes, kNow);
  EXPECT_EQ(files.targets[5], bytes);
}

TEST(Pump, own_lines_begin_at_a_line_start) {
  Sink sink;
  Pump pump({.ranks = 1}, sink.write());
  pump.output(0, 2, "open", kNow);
  pump.tick(kNow + 100ms);
  pump.say("ronde: word");
  EXPECT_EQ(sink.targets[1], "[0] open\nronde: word\n");
  Sink plain;
  Pump raw({.ranks = 1, .style = Pump::Style::Plain}, plain.write());
  raw.output(0, 2, "open", kNow);
  raw.say("one");
  raw.say("two");
  EXPECT_EQ(plain.targets[1], "open\none\ntwo\n");
}

TEST(Pump, the_end_of_a_stream_shows_its_unfinished_line) {
  Sink sink;
  Pump pump({.ranks = 1}, sink.write());
  pump.output(0, 1, "last", kNow);
  pump.close(0, 1);
  EXPECT_EQ(sink.targets[0], "[0] last");
  EXPECT_EQ(pump.next_deadline(), kNever);
}

TEST(Pump, the_last_lines_are_kept_whatever_the_style) {
  Sink sink;
  Pump pump({.ranks = 2, .style = Pump::Style::Files}, sink.write());
  pump.output(1, 1, "one\n", kNow);
  pump.output(1, 2, "two\n", kNow);
  EXPECT_EQ(pump.last_lines(1), (std::vector<std::string>{"one", "two"}));
  EXPECT_TRUE(pump.last_lines(0).empty());
}

}  // namespace
}  // namespace ronde::launch
