// SPDX-License-Identifier: Apache-2.0
#include "launch/prefixer.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/text.h"

namespace ronde::launch {
namespace {

using namespace std::chrono_literals;

constexpr Time kStart{std::chrono::seconds(100)};

class Console {
 public:
  explicit Console(int sources) {
    for (int i = 0; i < sources; ++i) prefixer.add_source(cat("[", i, "]"));
  }
  std::string feed(int source, std::string_view bytes) {
    std::string out;
    prefixer.feed(source, bytes, now, out);
    return out;
  }
  std::string wait(Duration time) {
    now += time;
    std::string out;
    prefixer.show_due(now, out);
    return out;
  }
  std::string end(int source) {
    std::string out;
    prefixer.end(source, out);
    return out;
  }
  Prefixer prefixer;
  Time now = kStart;
};

TEST(Prefixer, every_line_gets_the_prefix_of_its_source) {
  Console console(2);
  EXPECT_EQ(console.feed(0, "a\nb\n"), "[0] a\n[0] b\n");
  EXPECT_EQ(console.feed(1, "c\n"), "[1] c\n");
}

TEST(Prefixer, an_empty_line_is_shown_with_its_prefix) {
  Console console(1);
  EXPECT_EQ(console.feed(0, "\n\n"), "[0] \n[0] \n");
}

TEST(Prefixer, a_line_written_in_pieces_stays_whole) {
  Console console(2);
  EXPECT_EQ(console.feed(0, "hel"), "");
  EXPECT_EQ(console.feed(1, "other\n"), "[1] other\n");
  EXPECT_EQ(console.feed(0, "lo\n"), "[0] hello\n");
}

TEST(Prefixer, an_unfinished_line_is_shown_after_100_ms_and_not_before) {
  Console console(1);
  EXPECT_EQ(console.feed(0, "name? "), "");
  EXPECT_EQ(console.prefixer.next_deadline(), kStart + 100ms);
  EXPECT_EQ(console.wait(99ms), "");
  EXPECT_EQ(console.wait(1ms), "[0] name? ");
  EXPECT_EQ(console.prefixer.next_deadline(), kNever);
}

TEST(Prefixer, the_wait_counts_from_the_first_byte_that_is_held) {
  Console console(1);
  console.feed(0, "a");
  console.wait(60ms);
  console.feed(0, "b");
  EXPECT_EQ(console.wait(40ms), "[0] ab");
}

TEST(Prefixer, a_shown_line_goes_on_without_a_prefix_and_at_once) {
  Console console(1);
  console.feed(0, "a");
  console.wait(100ms);
  EXPECT_EQ(console.feed(0, "b"), "b");
  EXPECT_EQ(console.feed(0, "c\nd\n"), "c\n[0] d\n");
}

TEST(Prefixer, another_source_breaks_an_open_line_and_the_rest_of_it_is_marked) {
  Console console(2);
  console.feed(0, "start");
  EXPECT_EQ(console.wait(100ms), "[0] start");
  EXPECT_EQ(console.feed(1, "x\n"), "\n[1] x\n");
  EXPECT_EQ(console.feed(0, "end\n"), "[0]+ end\n");
  EXPECT_EQ(console.feed(0, "next\n"), "[0] next\n");
}

TEST(Prefixer, a_broken_line_whose_rest_is_only_its_end_is_marked_too) {
  Console console(2);
  console.feed(0, "start");
  console.wait(100ms);
  console.feed(1, "x\n");
  EXPECT_EQ(console.feed(0, "\n"), "[0]+ \n");
}

TEST(Prefixer, a_held_line_is_not_broken_by_another_source) {
  Console console(2);
  console.feed(0, "held");
  EXPECT_EQ(console.feed(1, "x\n"), "[1] x\n");
  EXPECT_EQ(console.feed(0, "\n"), "[0] held\n");
}

TEST(Prefixer, carriage_return_begins_a_line_and_progress_bars_keep_their_prefix) {
  Console console(1);
  EXPECT_EQ(console.feed(0, "10%\r20%\r"), "[0] 10%\r[0] 20%\r");
  EXPECT_EQ(console.feed(0, "done\n"), "[0] done\n");
}

TEST(Prefixer, carriage_return_and_newline_are_one_line_end_even_when_split) {
  Console console(2);
  EXPECT_EQ(console.feed(0, "a\r\nb\r\n"), "[0] a\r\n[0] b\r\n");
  EXPECT_EQ(console.feed(0, "c\r"), "[0] c\r");
  EXPECT_EQ(console.feed(0, "\nd\n"), "\n[0] d\n");
  EXPECT_EQ(console.feed(0, "e\r"), "[0] e\r");
  EXPECT_EQ(console.feed(1, "x\n"), "[1] x\n");
  EXPECT_EQ(console.feed(0, "\n"), "[0] \n");
}

TEST(Prefixer, split_multibyte_and_invalid_bytes_pass_through) {
  Console console(1);
  EXPECT_EQ(console.feed(0, "\xe2\x82"), "");
  EXPECT_EQ(console.feed(0, "\xac \xff\xfe\n"), "[0] \xe2\x82\xac \xff\xfe\n");
  EXPECT_EQ(console.feed(0, std::string_view("\0a\0\n", 4)), std::string("[0] \0a\0\n", 8));
}

TEST(Prefixer, a_line_without_end_is_shown_before_it_fills_the_memory) {
  Console console(1);
  const std::string much(Prefixer::kMaxHeld + 1, 'x');
  EXPECT_EQ(console.feed(0, much), "[0] " + much);
}

TEST(Prefixer, the_end_of_a_source_shows_what_is_held) {
  Console console(1);
  console.feed(0, "last words");
  EXPECT_EQ(console.end(0), "[0] last words");
  EXPECT_EQ(console.end(0), "");
}

TEST(Prefixer, own_text_of_the_caller_begins_at_a_line_start) {
  Console console(1);
  std::string out;
  console.prefixer.start_line(out);
  EXPECT_EQ(out, "");
  console.feed(0, "open");
  console.wait(100ms);
  console.prefixer.start_line(out);
  EXPECT_EQ(out, "\n");
  EXPECT_EQ(console.feed(0, "on\n"), "[0]+ on\n");
}

// The reverse of the prefixer, as its header describes it: a source's bytes are its pieces without prefixes, and before
// a mark without the line end that was put in.
std::map<int, std::string> decode(std::string_view console) {
  std::map<int, std::string> out;
  int last = -1;
  while (!console.empty()) {
    if (console[0] == '\n') {  // the rest of \r\n
      out[last] += '\n';
      console.remove_prefix(1);
      continue;
    }
    last = console[1] - '0';
    const bool marked = console[3] == '+';
    console.remove_prefix(marked ? 5 : 4);
    if (marked) out[last].pop_back();
    const auto end = std::min(console.find_first_of("\r\n"), console.size() - 1);
    out[last] += console.substr(0, end + 1);
    console.remove_prefix(end + 1);
  }
  return out;
}

TEST(Prefixer, the_bytes_of_each_source_can_be_recovered_whatever_the_order) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    Console console(3);
    std::map<int, std::string> written;
    std::string shown;
    for (int step = 0; step < 60; ++step) {
      const int source = static_cast<int>(random() % 3);
      std::string bytes;
      for (size_t i = random() % 6; i > 0; --i) bytes += "ab\n\rc\n"[random() % 6];
      written[source] += bytes;
      shown += console.feed(source, bytes);
      if (random() % 3 == 0) shown += console.wait(Duration(random() % 150'000'000));
    }
    for (int source = 0; source < 3; ++source) {
      written[source] += "|\n";
      shown += console.feed(source, "|\n");
    }
    EXPECT_EQ(decode(shown), written) << "seed " << seed << "\n" << shown;
  }
}

}  // namespace
}  // namespace ronde::launch
