// SPDX-License-Identifier: Apache-2.0
#include "base/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/edit_distance.h"
#include "base/settings_table.h"

namespace ronde {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

Result<ParsedSettings> with(const std::string& name, const std::string& value) {
  const NameValues environment{{name, value}};
  return parse_settings(environment);
}

std::string error_of(const std::string& name, const std::string& value) {
  const auto parsed = with(name, value);
  EXPECT_FALSE(parsed.ok()) << name << "=" << value;
  return parsed.status().message();
}

TEST(Settings, an_empty_environment_gives_the_defaults) {
  const ParsedSettings parsed = parse_settings({}).value();
  EXPECT_EQ(parsed.settings, Settings{});
  EXPECT_EQ(parsed.origins, std::vector<Origin>(setting_rows().size(), Origin::Default));
  EXPECT_TRUE(parsed.warnings.empty());
  EXPECT_TRUE(settings_environment(parsed).empty());
}

// One value for each row that is not the default.
const NameValues kOthers = {{"RONDE_TRANSPORT", "tcp"},     {"RONDE_LOG_LEVEL", "trace"},
                            {"RONDE_INIT_TIMEOUT", "12.5"}, {"RONDE_COLLECTIVE_TIMEOUT", "7"},
                            {"RONDE_BATCH_BYTES", "64K"},   {"RONDE_HOLD", "0"},
                            {"RONDE_SLOT_BYTES", "1M"},     {"RONDE_SLOTS", "8"},
                            {"RONDE_SEGMENT_BYTES", "100"}, {"RONDE_SPIN", "off"},
                            {"RONDE_HEARTBEAT", "0.25"},    {"RONDE_LISTEN", "10.0.0.1"}};

TEST(Settings, every_row_reaches_its_field_and_no_other) {
  Settings expected;
  expected.transport = TransportChoice::Tcp;
  expected.log_level = LogLevel::Trace;
  expected.init_timeout = 12500ms;
  expected.collective_timeout = 7s;
  expected.batch_bytes = 65536;
  expected.hold = 0ms;
  expected.slot_bytes = 1048576;
  expected.slots = 8;
  expected.segment_bytes = 100;
  expected.spin = Spin::Off;
  expected.heartbeat = 250ms;
  expected.listen = "10.0.0.1";
  EXPECT_EQ(kOthers.size(), setting_rows().size());
  EXPECT_EQ(parse_settings(kOthers).value().settings, expected);
}

TEST(Settings, every_row_alone_survives_the_way_through_text) {
  const std::vector<std::string> defaults = setting_values(Settings{});
  for (size_t i = 0; i < kOthers.size(); ++i) {
    const ParsedSettings parsed = with(kOthers[i].first, kOthers[i].second).value();
    EXPECT_THAT(settings_environment(parsed), ElementsAre(kOthers[i]));
    const std::vector<std::string> values = setting_values(parsed.settings);
    for (size_t k = 0; k < values.size(); ++k) {
      EXPECT_EQ(values[k] != defaults[k], k == i) << kOthers[i].first;
      EXPECT_EQ(parsed.origins[k], k == i ? Origin::Environment : Origin::Default);
    }
    const NameValues again{{kOthers[i].first, defaults[i]}};
    EXPECT_EQ(parse_settings(again).value().settings, Settings{});
  }
}

TEST(Settings, defaults_lie_in_their_own_ranges) {
  for (const SettingRow& row : setting_rows()) {
    Settings settings;
    EXPECT_TRUE(parse_setting(row.field, format_setting(row.field, Settings{}), settings).ok()) << row.name;
    EXPECT_EQ(settings, Settings{}) << row.name;
  }
}

TEST(Settings, a_bad_value_is_told_with_name_value_and_what_was_expected) {
  EXPECT_EQ(error_of("RONDE_BATCH_BYTES", "abc"),
            "RONDE_BATCH_BYTES=abc: not a size; expected a number of bytes such as 8388608 or 8M, from 4K to 1G");
  EXPECT_EQ(error_of("RONDE_SLOTS", "1"), "RONDE_SLOTS=1: out of range; expected a whole number from 2 to 64");
  EXPECT_EQ(error_of("RONDE_SPIN", "hard"),
            "RONDE_SPIN=hard: not one of the choices; expected auto, yield, pause or off");
  EXPECT_EQ(error_of("RONDE_HOLD", "5ms"),
            "RONDE_HOLD=5ms: not a number; expected a number of milliseconds from 0 to 10000");
  EXPECT_THAT(error_of("RONDE_SLOT_BYTES", "5000"), HasSubstr("not a multiple; expected"));
  EXPECT_THAT(error_of("RONDE_SLOT_BYTES", "5000"), HasSubstr("to 64M, a multiple of 4096"));
  EXPECT_EQ(with("RONDE_SLOTS", "x").status().code(), Code::InvalidArgument);
}

TEST(Settings, every_bad_value_is_told_at_once) {
  const NameValues environment{{"RONDE_SLOTS", "x"}, {"RONDE_HOLD", "y"}};
  const std::string text = parse_settings(environment).status().message();
  EXPECT_THAT(text, HasSubstr("RONDE_SLOTS=x: not a whole number"));
  EXPECT_THAT(text, HasSubstr("\nRONDE_HOLD=y: not a number"));
}

// The ends of each range are taken, what is just outside is not.
TEST(Settings, ranges_hold_at_both_ends) {
  const struct {
    const char* name;
    std::vector<const char*> good, bad;
  } rows[] = {
      {"RONDE_INIT_TIMEOUT", {"0.1", "86400", "1e3"}, {"0.09", "86401", "0", "-1", "inf", "nan", "1e400"}},
      {"RONDE_COLLECTIVE_TIMEOUT", {"0.1", "2592000"}, {"0.09", "2592001"}},
      {"RONDE_BATCH_BYTES", {"4096", "4K", "1G", "1024M", "8m"}, {"4095", "1025M", "2G", "0", "-4096"}},
      {"RONDE_HOLD", {"0", "10000", ".5"}, {"-0.1", "10001"}},
      {"RONDE_SLOT_BYTES", {"4K", "64M", "12288"}, {"0", "4097", "68M", "2K"}},
      {"RONDE_SLOTS", {"2", "64"}, {"1", "65", "-2", "4.0", "99999999999"}},
      {"RONDE_SEGMENT_BYTES", {"64", "64M", "65"}, {"63", "65M"}},
      {"RONDE_HEARTBEAT", {"0.01", "60"}, {"0.009", "60.1"}},
  };
  for (const auto& row : rows) {
    for (const char* value : row.good) EXPECT_TRUE(with(row.name, value).ok()) << row.name << "=" << value;
    for (const char* value : row.bad) EXPECT_FALSE(with(row.name, value).ok()) << row.name << "=" << value;
  }
}

TEST(Settings, sizes_take_suffixes_and_nothing_else) {
  EXPECT_EQ(with("RONDE_BATCH_BYTES", "5K").value().settings.batch_bytes, 5u * 1024);
  EXPECT_EQ(with("RONDE_BATCH_BYTES", "3M").value().settings.batch_bytes, 3u << 20);
  EXPECT_EQ(with("RONDE_BATCH_BYTES", "1g").value().settings.batch_bytes, 1u << 30);
  for (const char* bad : {"K", "8MB", "8 M", " 8M", "8M ", "+8M", "1.5M", "0x1000", "8T", "M8", "8KK"}) {
    EXPECT_THAT(error_of("RONDE_BATCH_BYTES", bad), HasSubstr("not a size")) << bad;
  }
  for (const char* huge : {"99999999999999999999999", "18446744073709551615", "17179869184G"}) {
    EXPECT_THAT(error_of("RONDE_BATCH_BYTES", huge), HasSubstr("out of range")) << huge;
  }
}

TEST(Settings, choices_ignore_case) {
  EXPECT_EQ(with("RONDE_TRANSPORT", "SHM").value().settings.transport, TransportChoice::Shm);
}

TEST(Settings, log_levels_are_those_of_the_log) {
  for (int level = 0; level <= 5; ++level) {
    const auto value = static_cast<LogLevel>(level);
    EXPECT_EQ(with("RONDE_LOG_LEVEL", std::string(log_level_name(value))).value().settings.log_level, value);
  }
}

TEST(Settings, an_empty_value_counts_as_not_set) {
  const ParsedSettings parsed = with("RONDE_SLOTS", "").value();
  EXPECT_EQ(parsed.settings, Settings{});
  EXPECT_EQ(parsed.origins, std::vector<Origin>(setting_rows().size(), Origin::Default));
}

TEST(Settings, the_last_of_two_equal_names_and_flags_over_the_environment_win) {
  const NameValues environment{{"RONDE_SLOTS", "8"}, {"RONDE_SLOTS", "16"}, {"RONDE_HOLD", "1"}};
  const NameValues flags{{"hold", "2"}, {"batch-bytes", "1M"}, {"segment_bytes", "2M"}};
  const ParsedSettings parsed = parse_settings(environment, flags).value();
  EXPECT_EQ(parsed.settings.slots, 16);
  EXPECT_EQ(parsed.settings.hold, 2ms);
  EXPECT_EQ(parsed.settings.batch_bytes, 1u << 20);
  EXPECT_EQ(parsed.settings.segment_bytes, 2u << 20);
  EXPECT_THAT(settings_listing(parsed), HasSubstr("hold                2        ms  flag\n"));
  EXPECT_THAT(settings_listing(parsed), HasSubstr("slots               16           environment\n"));
  EXPECT_THAT(settings_listing(parsed), HasSubstr("listen              (empty)      default\n"));
  EXPECT_THAT(settings_listing(parsed), HasSubstr("batch_bytes         1M       B   flag\n"));
  EXPECT_THAT(settings_listing(parsed), HasSubstr("init_timeout        300      s   default\n"));
}

TEST(Settings, bad_flags_are_told_as_they_were_typed) {
  const NameValues bad{{"batch_bytes", "x"}};
  EXPECT_THAT(parse_settings({}, bad).status().message(), HasSubstr("--batch-bytes x: not a size"));
  const NameValues unknown{{"bach-bytes", "1"}};
  EXPECT_THAT(parse_settings({}, unknown).status().message(), HasSubstr("--bach-bytes: no such setting"));
}

TEST(Settings, an_unknown_name_is_one_warning_with_the_nearest_known_one) {
  const NameValues environment{{"RONDE_BACH_BYTES", "1"}, {"RONDE_LOCALRANK", "0"}, {"RONDE_WHATEVER", "x"},
                               {"PATH", "/bin"},          {"MY_RONDE_X", "1"},      {"ronde_slots", "x"}};
  const ParsedSettings parsed = parse_settings(environment).value();
  EXPECT_THAT(parsed.warnings,
              ElementsAre("RONDE_BACH_BYTES is no setting of Ronde and has no effect; did you mean RONDE_BATCH_BYTES?",
                          "RONDE_LOCALRANK is no setting of Ronde and has no effect; did you mean RONDE_LOCAL_RANK?",
                          "RONDE_WHATEVER is no setting of Ronde and has no effect; `ronde settings` lists those that "
                          "are known"));
  EXPECT_EQ(parsed.settings, Settings{});
  EXPECT_EQ(with("RONDE_", "1").value().warnings.size(), 1u);
}

TEST(Settings, a_short_name_that_is_unknown_is_not_taken_for_any_other_short_one) {
  for (const char* name : {"RONDE_FOO", "RONDE_X", "RONDE_", "RONDE_LOG", "RONDE_HOST"}) {
    EXPECT_THAT(with(name, "1").value().warnings,
                ElementsAre(cat(name,
                                " is no setting of Ronde and has no effect; `ronde settings` lists those that are "
                                "known")));
  }
  EXPECT_THAT(with("RONDE_SLTS", "1").value().warnings, ElementsAre(HasSubstr("did you mean RONDE_SLOTS?")));
  EXPECT_THAT(with("RONDE_TRANSPRT", "1").value().warnings, ElementsAre(HasSubstr("did you mean RONDE_TRANSPORT?")));
}

TEST(Settings, names_that_say_who_a_process_is_are_known_and_not_looked_at) {
  NameValues environment;
  for (const char* name :
       {"RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE", "STORE", "KEY_FILE", "BROKER", "JOB", "RUN_DIR"}) {
    environment.emplace_back(cat("RONDE_", name), "?!");
  }
  EXPECT_EQ(environment.size(), identity_rows().size());
  const ParsedSettings parsed = parse_settings(environment).value();
  EXPECT_TRUE(parsed.warnings.empty());
  EXPECT_EQ(parsed.settings, Settings{});
}

TEST(Settings, the_page_has_a_line_for_each_row_and_no_broken_table) {
  const std::string page = settings_markdown();
  std::set<std::string> names;
  for (const SettingText& row : describe_settings()) {
    EXPECT_THAT(page, HasSubstr(cat("| `", row.environment, "` | `", row.flag, "` | ")));
    EXPECT_EQ(row.doc.find('|'), std::string_view::npos);
    EXPECT_EQ(row.expected.find('|'), std::string::npos);
    EXPECT_TRUE(names.insert(row.environment).second) << row.environment;
  }
  for (const IdentityRow& row : identity_rows()) EXPECT_TRUE(names.insert(std::string(row.environment)).second);
  EXPECT_THAT(page,
              HasSubstr("| `RONDE_BATCH_BYTES` | `--batch-bytes` | a number of bytes such as 8388608 or 8M, from 4K "
                        "to 1G | 8M | "));
  EXPECT_THAT(page, HasSubstr("| `RONDE_STORE` | "));
}

TEST(EditDistance, counts_insertions_removals_and_replacements) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("same", "same"), 0u);
  EXPECT_EQ(edit_distance("abcd", "bcda"), 2u);
}

}  // namespace
}  // namespace ronde
