// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"

#include <gtest/gtest.h>

namespace ronde::cli {
namespace {

using Strings = std::vector<std::string>;

const Usage kUsageOfIt{.command = "ronde it",
                       .line = "[options]",
                       .about = "Does it.",
                       .options = {{"--np", "N", "how many"},
                                   {"--env", "NAME=VALUE", "a variable", true},
                                   {"--flag", "", "a flag"},
                                   {"--dir", "DIR", "where to"}}};

Arguments parsed(const Strings& words) {
  auto arguments = parse_arguments(kUsageOfIt, words);
  EXPECT_TRUE(arguments.ok()) << arguments.status().message();
  return std::move(arguments).value();
}

std::string error_of(const Strings& words) {
  const auto arguments = parse_arguments(kUsageOfIt, words);
  return arguments.ok() ? "(ok)" : arguments.status().message();
}

TEST(Arguments, values_stand_behind_a_space_or_an_equals_sign_and_may_look_like_anything) {
  for (const Strings& words : {Strings{"-np", "4"}, {"-np=4"}, {"--np", "4"}, {"--np=4"}, {"-n", "4"}}) {
    EXPECT_EQ(parsed(words).text("--np"), "4");
  }
  EXPECT_EQ(parsed({"--env", "A=b=c", "--env=-x", "--env", "--flag"}).texts("--env"),
            (Strings{"A=b=c", "-x", "--flag"}));
  EXPECT_EQ(parsed({"--dir", "a", "--dir", ""}).text("--dir"), "");
  EXPECT_EQ(parsed({}).text("--dir"), std::nullopt);
}

TEST(Arguments, a_flag_is_there_or_not) {
  EXPECT_TRUE(parsed({"--flag"}).has("--flag"));
  EXPECT_FALSE(parsed({"-np", "1"}).has("--flag"));
}

TEST(Arguments, mistakes_name_the_word_and_what_to_do) {
  EXPECT_EQ(error_of({"-np"}), "-np needs a value, as in -np N: how many");
  EXPECT_EQ(error_of({"--flag", "--dir"}), "--dir needs a value, as in --dir DIR: where to");
  EXPECT_EQ(error_of({"--flag=x"}), "--flag=x: --flag takes no value; write it alone");
  EXPECT_EQ(error_of({"-np2"}), "there is no option -np2; write -np 2");
  EXPECT_EQ(error_of({"-n16"}), "there is no option -n16; write -np 16");
  for (const char* word : {"--what", "--what=x", "-x", "-npx", "-", "--", "--fla"}) {
    EXPECT_EQ(error_of({word}), cat("there is no option ", word, "; `ronde it --help` lists the options"));
  }
  for (const char* word : {"x", ""}) {
    EXPECT_EQ(error_of({word}), cat("'", word, "' is not expected here; `ronde it --help` lists the options"));
  }
}

TEST(Arguments, help_shows_each_option_with_the_name_of_its_value) {
  const std::string help = parsed({"-h"}).help();
  EXPECT_TRUE(help.starts_with("Usage: ronde it [options]\n\nDoes it.\n\nOptions:\n")) << help;
  EXPECT_NE(help.find("  -np N             how many\n"), help.npos) << help;
  EXPECT_NE(help.find("  --flag            a flag\n"), help.npos) << help;
  EXPECT_EQ(parsed({"--help"}).help(), help);
  EXPECT_EQ(parsed({"--flag"}).help(), "");
}

}  // namespace
}  // namespace ronde::cli
