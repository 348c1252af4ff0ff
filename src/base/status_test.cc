// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <set>

namespace ronde {
namespace {

TEST(Status, default_is_ok_and_says_nothing) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), Code::Ok);
  EXPECT_EQ(status.message(), "");
  EXPECT_EQ(status.to_string(), "OK");
}

TEST(Status, error_keeps_code_message_and_place) {
  const Status status(Code::PeerLost, "rank 3 is gone");
  const int line = __LINE__ - 1;
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), Code::PeerLost);
  EXPECT_EQ(status.message(), "rank 3 is gone");
  EXPECT_EQ(status.to_string(), cat("PEER_LOST: rank 3 is gone [", __builtin_FILE(), ":", line, "]"));
}

TEST(Status, context_goes_in_front_and_keeps_code_and_place) {
  const Status inner(Code::Timeout, "no answer in 3 s");
  const Status outer = inner.with_context("allreduce 'w'").with_context("rank 1");
  EXPECT_EQ(outer.code(), Code::Timeout);
  EXPECT_EQ(outer.message(), "rank 1: allreduce 'w': no answer in 3 s");
  const auto place = [](const Status& status) { return status.to_string().substr(status.to_string().find('[')); };
  EXPECT_EQ(place(inner), place(outer));
  EXPECT_EQ(inner.message(), "no answer in 3 s");
}

TEST(Status, context_of_ok_stays_ok) {
  EXPECT_TRUE(Status().with_context("x").ok());
}

TEST(Status, every_code_has_a_name_of_its_own) {
  std::set<std::string_view> names;
  for (int code = 0; code <= 12; ++code) names.insert(code_name(static_cast<Code>(code)));
  EXPECT_EQ(names.size(), 13u);
  EXPECT_EQ(names.count("UNKNOWN"), 0u);
  EXPECT_EQ(code_name(static_cast<Code>(13)), "UNKNOWN");
  EXPECT_EQ(code_name(Code::RankLeft), "RANK_LEFT");
}

TEST(Status, system_error_tells_what_and_the_text_of_the_errno) {
  const Status status = system_error("open /x", ENOENT);
  EXPECT_EQ(status.code(), Code::System);
  EXPECT_EQ(status.message(), "open /x: No such file or directory");
}

TEST(Status, system_error_for_lack_of_something_is_resource_exhausted) {
  for (const int error : {ENOMEM, ENOSPC, EMFILE, ENFILE, ENOBUFS}) {
    EXPECT_EQ(system_error("x", error).code(), Code::ResourceExhausted) << error;
  }
}

TEST(StatusDeathTest, error_without_a_code_is_a_bug) {
  EXPECT_DEATH(Status(Code::Ok, "x"), "an error needs a code");
}

Result<int> half(int value) {
  if (value % 2 != 0) return Status(Code::InvalidArgument, cat(value, " is odd"));
  return value / 2;
}

Result<int> quarter(int value) {
  RONDE_ASSIGN(const int once, half(value));
  RONDE_ASSIGN(const int twice, half(once));
  return twice;
}

Status must_halve(int value) {
  RONDE_TRY(half(value).status());
  return {};
}

TEST(Result, macros_pass_values_on_and_return_errors) {
  EXPECT_EQ(quarter(8).value(), 2);
  EXPECT_EQ(quarter(6).status().message(), "3 is odd");
  EXPECT_TRUE(must_halve(2).ok());
  EXPECT_EQ(must_halve(1).code(), Code::InvalidArgument);
}

TEST(Result, holds_values_that_only_move) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(7));
  const auto taken = std::move(result).value();
  EXPECT_EQ(*taken, 7);
}

TEST(ResultDeathTest, value_of_an_error_is_a_bug_that_shows_the_error) {
  EXPECT_DEATH((void)half(3).value(), "3 is odd");
}

}  // namespace
}  // namespace ronde
