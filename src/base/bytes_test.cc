// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.h"

#include <gtest/gtest.h>

namespace ronde {
namespace {

enum class Colour : uint8_t { Red = 0, Blue = 1 };

Bytes bytes_of(std::initializer_list<int> values) {
  Bytes out;
  for (const int value : values) out.push_back(static_cast<std::byte>(value));
  return out;
}

TEST(Bytes, what_is_written_is_read_back) {
  Writer writer;
  writer.put<uint8_t>(7).put<int32_t>(-2).put(3.5).put(true).put(Colour::Blue).put_string("ab").put_string("");
  const Bytes bytes = writer.take();
  Reader reader(bytes);
  EXPECT_EQ(reader.get<uint8_t>(), 7);
  EXPECT_EQ(reader.get<int32_t>(), -2);
  EXPECT_EQ(reader.get<double>(), 3.5);
  EXPECT_TRUE(reader.get_bool());
  EXPECT_EQ(reader.get_enum(Colour::Blue), Colour::Blue);
  EXPECT_EQ(reader.get_string(2), "ab");
  EXPECT_EQ(reader.get_string(0), "");
  EXPECT_TRUE(reader.finish("test").ok());
  EXPECT_EQ(writer.size(), 0u);
}

TEST(Bytes, the_wire_is_little_endian_and_without_padding) {
  Writer writer;
  writer.put<uint8_t>(1).put<uint32_t>(0x01020304).put_string("z");
  EXPECT_EQ(writer.bytes(), bytes_of({1, 4, 3, 2, 1, 1, 0, 0, 0, 'z'}));
}

TEST(Bytes, a_short_read_makes_the_reader_bad_for_good) {
  const Bytes bytes = bytes_of({1, 2, 3});
  Reader reader(bytes);
  EXPECT_EQ(reader.get<uint32_t>(), 0u);
  EXPECT_EQ(reader.get<uint8_t>(), 0);
  EXPECT_FALSE(reader.good());
  EXPECT_EQ(reader.finish("report").message(), "malformed report: too short or out of range");
  EXPECT_EQ(reader.finish("report").code(), Code::Internal);
}

TEST(Bytes, left_over_bytes_are_an_error) {
  const Bytes bytes = bytes_of({1, 2});
  Reader reader(bytes);
  reader.get<uint8_t>();
  EXPECT_EQ(reader.left(), 1u);
  EXPECT_EQ(reader.finish("report").message(), "malformed report: bytes left over");
}

TEST(Bytes, values_that_no_writer_makes_are_refused) {
  const Bytes two = bytes_of({2});
  Reader as_bool(two);
  EXPECT_FALSE(as_bool.get_bool());
  EXPECT_FALSE(as_bool.good());
  Reader as_enum(two);
  EXPECT_EQ(as_enum.get_enum(Colour::Blue), Colour::Red);
  EXPECT_FALSE(as_enum.good());
}

TEST(Bytes, a_length_above_the_cap_or_the_bytes_is_refused) {
  const Bytes three = bytes_of({3, 0, 0, 0, 'a', 'b', 'c'});
  Reader capped(three);
  EXPECT_EQ(capped.get_string(2), "");
  EXPECT_FALSE(capped.good());
  const Bytes huge = bytes_of({255, 255, 255, 255, 'a'});
  Reader lying(huge);
  EXPECT_EQ(lying.get_string(SIZE_MAX), "");
  EXPECT_FALSE(lying.good());
}

}  // namespace
}  // namespace ronde
