// SPDX-License-Identifier: Apache-2.0
#include "engine/identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace ronde::engine {
namespace {

using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

Result<JobIdentity> parse(const Variables& variables) {
  return parse_identity([&](const char* name) -> std::optional<std::string> {
    const auto it = variables.find(name);
    if (it == variables.end()) return std::nullopt;
    return it->second;
  });
}

std::string error_of(const Variables& variables) {
  const auto identity = parse(variables);
  return identity.ok() ? "" : identity.status().message();
}

TEST(Identity, without_variables_it_is_rank_0_of_1) {
  const auto identity = parse({});
  ASSERT_TRUE(identity.ok());
  EXPECT_EQ(identity->rank, 0);
  EXPECT_EQ(identity->size, 1);
  EXPECT_FALSE(identity->launched);
}

TEST(Identity, without_a_word_about_hosts_all_ranks_are_on_one) {
  const auto identity =
      parse({{"RONDE_RANK", "2"}, {"RONDE_SIZE", "4"}, {"RONDE_STORE", "h:1"}, {"RONDE_KEY_FILE", "k"}});
  ASSERT_TRUE(identity.ok());
  EXPECT_EQ(identity->local_rank, 2);
  EXPECT_EQ(identity->local_size, 4);
}

TEST(Identity, numbers_that_are_none_or_do_not_fit_are_named) {
  EXPECT_THAT(error_of({{"RONDE_RANK", "x"}, {"RONDE_SIZE", "2"}}), HasSubstr("RONDE_RANK=x"));
  EXPECT_THAT(error_of({{"RONDE_RANK", "1x"}, {"RONDE_SIZE", "2"}}), HasSubstr("RONDE_RANK=1x"));
  EXPECT_THAT(error_of({{"RONDE_RANK", "2"}, {"RONDE_SIZE", "2"}}), HasSubstr("does not fit RONDE_SIZE=2"));
  EXPECT_THAT(error_of({{"RONDE_RANK", "-1"}, {"RONDE_SIZE", "2"}}), HasSubstr("RONDE_RANK=-1"));
  EXPECT_THAT(error_of({{"RONDE_RANK", "0"}, {"RONDE_SIZE", "0"}}), HasSubstr("RONDE_SIZE=0"));
  EXPECT_THAT(error_of({{"RONDE_RANK", "0"}, {"RONDE_SIZE", "99999999999"}}), HasSubstr("99999999999"));
}

TEST(Identity, half_a_pair_is_an_error_that_names_the_other_half) {
  EXPECT_THAT(error_of({{"RONDE_SIZE", "2"}}), HasSubstr("RONDE_RANK is not"));
  EXPECT_THAT(error_of({{"RONDE_LOCAL_RANK", "0"}}), HasSubstr("RONDE_LOCAL_SIZE is not"));
}

TEST(Identity, a_job_of_several_needs_a_store_and_a_key) {
  EXPECT_THAT(error_of({{"RONDE_RANK", "0"}, {"RONDE_SIZE", "2"}}), HasSubstr("RONDE_STORE"));
  EXPECT_THAT(error_of({{"RONDE_RANK", "0"}, {"RONDE_SIZE", "2"}, {"RONDE_STORE", "h:1"}}),
              HasSubstr("RONDE_KEY_FILE"));
  EXPECT_THAT(
      error_of({{"RONDE_RANK", "0"}, {"RONDE_SIZE", "2"}, {"RONDE_LOCAL_RANK", "0"}, {"RONDE_LOCAL_SIZE", "3"}}),
      HasSubstr("RONDE_LOCAL_SIZE=3"));
}

TEST(Identity, a_store_that_is_no_host_and_port_is_named_with_what_to_write) {
  const auto error_with = [](const std::string& store) {
    return error_of({{"RONDE_RANK", "0"}, {"RONDE_SIZE", "2"}, {"RONDE_STORE", store}, {"RONDE_KEY_FILE", "k"}});
  };
  const std::string where = ", where rank 0 is to listen, the same text on all ranks";
  EXPECT_EQ(error_with("127.0.0.1"),
            cat("RONDE_STORE: '127.0.0.1' has no port; expected HOST:PORT or [IPV6]:PORT", where));
  for (const char* port : {"0", "99999", "-1", "x", ""}) {
    EXPECT_EQ(error_with(cat("h:", port)),
              cat("RONDE_STORE: 'h:", port, "': '", port, "' is not a port; expected a number from 1 to 65535", where));
  }
  EXPECT_EQ(error_with("h:65535"), "");
}

}  // namespace
}  // namespace ronde::engine
