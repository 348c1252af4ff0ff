// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

namespace ronde {
namespace {

TEST(Check, a_true_condition_is_evaluated_once) {
  int count = 0;
  RONDE_CHECK(++count == 1, "first");
  EXPECT_EQ(count, 1);
}

TEST(CheckDeathTest, a_false_condition_prints_place_condition_message_and_backtrace_then_aborts) {
  using testing::AllOf;
  using testing::ContainsRegex;
  using testing::HasSubstr;
  EXPECT_EXIT(RONDE_CHECK(1 + 1 == 3, "sums are broken"), testing::KilledBySignal(SIGABRT),
              AllOf(ContainsRegex("base/check_test.cc:[0-9]+: check failed: "),
                    HasSubstr("1 + 1 == 3: sums are broken\n"), ContainsRegex("\\[0x[0-9a-f]+\\]")));
}

}  // namespace
}  // namespace ronde
