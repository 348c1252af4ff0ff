// SPDX-License-Identifier: Apache-2.0
#include "launch/options.h"

#include <gtest/gtest.h>

namespace ronde::launch {
namespace {

using namespace std::chrono_literals;
using Strings = std::vector<std::string>;

std::string error_of(RunTexts texts) {
  const auto options = check_run(texts);
  return options.ok() ? "(ok)" : options.status().message();
}
RunTexts good() {
  return {.np = "2", .env = {}, .output_dir = {}, .grace = {}, .command = {"true"}};
}

TEST(RunOptions, a_good_line_becomes_values) {
  auto texts = good();
  texts.grace = "0.5";
  texts.env = {"A=b=c", "B="};
  texts.no_prefix = true;
  const auto options = check_run(texts);
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->np, 2);
  EXPECT_EQ(options->grace, 500ms);
  EXPECT_FALSE(options->prefix);
  EXPECT_EQ(options->env, (std::vector<std::pair<std::string, std::string>>{{"A", "b=c"}, {"B", ""}}));
  EXPECT_EQ(check_run(good())->grace, 3s);
}

TEST(RunOptions, errors_name_the_value) {
  for (const char* np : {"0", "-1", "4097", "two", "2x", "1.5", "99999999999"}) {
    auto texts = good();
    texts.np = np;
    EXPECT_EQ(error_of(texts), cat("-np ", np, ": the number of ranks must be a whole number from 1 to 4096"));
  }
  for (const char* grace : {"-1", "soon", "nan", "inf", "1e9"}) {
    auto texts = good();
    texts.grace = grace;
    EXPECT_EQ(error_of(texts), cat("--grace ", grace, ": the time must be a number of seconds from 0 to 1000000"));
  }
  for (const char* env : {"A", "=b", ""}) {
    auto texts = good();
    texts.env = {env};
    EXPECT_EQ(error_of(texts), cat("--env ", *env == 0 ? "''" : env, ": must be NAME=VALUE"));
  }
}

TEST(RunOptions, what_is_missing_is_named) {
  auto texts = good();
  texts.np = std::nullopt;
  EXPECT_TRUE(error_of(texts).starts_with("-np is missing"));
  for (const Strings& command : {Strings{}, Strings{""}}) {
    texts = good();
    texts.command = command;
    EXPECT_TRUE(error_of(texts).starts_with("the command is missing"));
  }
}

TEST(RunOptions, an_empty_value_is_not_the_same_as_none) {
  auto texts = good();
  texts.np = "";
  EXPECT_EQ(error_of(texts), "-np '': the number of ranks must be a whole number from 1 to 4096");
  texts = good();
  texts.grace = "";
  EXPECT_EQ(error_of(texts), "--grace '': the time must be a number of seconds from 0 to 1000000");
  texts = good();
  texts.output_dir = "";
  EXPECT_EQ(error_of(texts), "--output-dir '': name a folder, or leave the option out to see the output here");
}

TEST(RunOptions, who_a_rank_is_cannot_be_given) {
  auto texts = good();
  texts.env = {"RONDE_RANK=3"};
  EXPECT_EQ(error_of(texts), "--env RONDE_RANK=3: RONDE_RANK is given by ronde itself to each rank");
}

SplitArguments split(const Strings& words) {
  return split_command(words, [](std::string_view name) { return name == "--np" || name == "--env" || name == "-n"; });
}

TEST(SplitCommand, the_command_begins_at_the_first_word_that_is_no_option) {
  const auto out = split({"-np", "2", "--flag", "prog", "-np", "3", "--", "x"});
  EXPECT_EQ(out.options, (Strings{"--np", "2", "--flag"}));
  EXPECT_EQ(out.command, (Strings{"prog", "-np", "3", "--", "x"}));
}

TEST(SplitCommand, two_dashes_end_the_options_and_only_the_first_are_ours) {
  const auto out = split({"-np", "2", "--", "--odd", "--", "x"});
  EXPECT_EQ(out.options, (Strings{"--np", "2"}));
  EXPECT_EQ(out.command, (Strings{"--odd", "--", "x"}));
}

TEST(SplitCommand, values_may_look_like_options_and_stand_behind_an_equals_sign) {
  const auto out = split({"-np=4", "--env", "-x=1", "--env=A=b", "-n", "2", "cmd"});
  EXPECT_EQ(out.options, (Strings{"--np=4", "--env", "-x=1", "--env=A=b", "-n", "2"}));
  EXPECT_EQ(out.command, Strings{"cmd"});
}

TEST(SplitCommand, an_option_without_its_value_leaves_no_command) {
  const auto out = split({"-np"});
  EXPECT_EQ(out.options, Strings{"--np"});
  EXPECT_TRUE(out.command.empty());
}

}  // namespace
}  // namespace ronde::launch
