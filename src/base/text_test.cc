// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace ronde {
namespace {

TEST(Cat, joins_texts_characters_numbers_and_truth_values) {
  EXPECT_EQ(cat("rank ", 3, ' ', std::string("of"), ' ', uint64_t{8}, ", ", 2.5, " s, ", true, '/', false),
            "rank 3 of 8, 2.5 s, true/false");
  EXPECT_EQ(cat(), "");
}

TEST(Cat, holds_the_longest_numbers) {
  EXPECT_EQ(cat(std::numeric_limits<int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(cat(std::numeric_limits<uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(cat(-std::numeric_limits<double>::max()), "-1.7976931348623157e+308");
}

TEST(Listed, reads_like_a_sentence_and_stays_short) {
  EXPECT_EQ(listed({}), "");
  EXPECT_EQ(listed({"a"}), "a");
  EXPECT_EQ(listed({"a", "b"}), "a and b");
  EXPECT_EQ(listed({"a", "b", "c"}), "a, b and c");
  EXPECT_EQ(listed(std::vector<std::string>(9, "a")), "a, a, a, a, a, a, a and 2 more");
}

}  // namespace
}  // namespace ronde
