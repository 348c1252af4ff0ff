// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/bench.h"

namespace ronde::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(BenchSizes, a_range_goes_up_by_four_and_includes_both_ends) {
  EXPECT_THAT(*parse_sizes("8:128"), ElementsAre(8, 32, 128));
  EXPECT_THAT(*parse_sizes("8:100"), ElementsAre(8, 32, 100));
  EXPECT_THAT(*parse_sizes("64M:64M"), ElementsAre(64 << 20));
}

TEST(BenchSizes, a_list_is_taken_as_it_is) {
  EXPECT_THAT(*parse_sizes("4K,8,1M"), ElementsAre(4096, 8, 1 << 20));
}

TEST(BenchSizes, what_is_no_size_is_named) {
  for (const char* text : {"", "x", "8:", "8:4", "7", "8,9", "-8", "8T", "1:2:3", "99999999999G"}) {
    const auto sizes = parse_sizes(text);
    ASSERT_FALSE(sizes.ok()) << text;
    EXPECT_THAT(sizes.status().message(), HasSubstr("'"));
  }
}

}  // namespace
}  // namespace ronde::cli
