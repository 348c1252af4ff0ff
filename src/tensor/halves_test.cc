// SPDX-License-Identifier: Apache-2.0
// Conversions between float32 and the halves, over every value that a half has.
#include <gtest/gtest.h>

#include <bit>
#include <numeric>

#include "base/text.h"
#include "tensor/kernels.h"
#include "tensor/kernels_reference.h"

namespace ronde {
namespace {

using reference::half_value;
using reference::mantissa_bits_of;

struct Case {
  const char* set;
  DType half;
};

std::vector<Case> all_cases() {
  std::vector<Case> out;
  for (const char* set : kernel_sets()) {
    out.push_back({set, DType::F16});
    out.push_back({set, DType::BF16});
  }
  return out;
}

class Halves : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override { use_kernel_set(GetParam().set); }
  void TearDown() override { use_kernel_set(kernel_sets().back()); }
  DType half() const { return GetParam().half; }
  int mantissa_bits() const { return mantissa_bits_of(half()); }
  uint16_t infinity() const { return half() == DType::F16 ? 0x7c00 : 0x7f80; }

  std::vector<uint16_t> narrow(const std::vector<float>& in) const {
    std::vector<uint16_t> out(in.size());
    convert(half(), out.data(), DType::F32, in.data(), in.size());
    return out;
  }
  std::vector<float> widen(const std::vector<uint16_t>& in) const {
    std::vector<float> out(in.size());
    convert(DType::F32, out.data(), half(), in.data(), in.size());
    return out;
  }
};
INSTANTIATE_TEST_SUITE_P(Sets, Halves, testing::ValuesIn(all_cases()),
                         [](const auto& each) { return cat(each.param.set, "_", name_of(each.param.half)); });

std::vector<uint16_t> every_half() {
  std::vector<uint16_t> out(65536);
  std::iota(out.begin(), out.end(), uint16_t{0});
  return out;
}

bool is_nan_half(uint16_t bits, int mantissa_bits) {
  return std::isnan(half_value(bits, mantissa_bits));
}

TEST_P(Halves, every_value_widens_exactly) {
  const auto halves = every_half();
  const auto floats = widen(halves);
  for (size_t i = 0; i < halves.size(); ++i) {
    const double exact = half_value(halves[i], mantissa_bits());
    if (std::isnan(exact)) {
      ASSERT_TRUE(std::isnan(floats[i])) << i;
    } else {
      ASSERT_EQ(static_cast<double>(floats[i]), exact) << i;
    }
    ASSERT_EQ(std::signbit(floats[i]), halves[i] >= 0x8000) << i;
  }
}

TEST_P(Halves, every_value_comes_back_from_float32) {
  const auto halves = every_half();
  const auto back = narrow(widen(halves));
  for (size_t i = 0; i < halves.size(); ++i) {
    if (!is_nan_half(halves[i], mantissa_bits())) {
      ASSERT_EQ(back[i], halves[i]);
      continue;
    }
    ASSERT_TRUE(is_nan_half(back[i], mantissa_bits())) << i;
    ASSERT_EQ(back[i] | 1 << (mantissa_bits() - 1), halves[i] | 1 << (mantissa_bits() - 1)) << "sign and payload";
  }
}

TEST_P(Halves, between_two_neighbours_the_nearer_wins_and_ties_go_to_even) {
  std::vector<float> floats;
  std::vector<uint16_t> expected;
  const auto expect = [&](float x, uint16_t bits) {
    floats.insert(floats.end(), {x, -x});
    expected.insert(expected.end(), {bits, static_cast<uint16_t>(bits | 0x8000)});
  };
  for (uint16_t low = 0; low < infinity(); ++low) {
    const auto high = static_cast<uint16_t>(low + 1);
    // From the largest value to infinity the step is as wide as the one below it.
    const double step = high == infinity() ? half_value(low, mantissa_bits()) - half_value(low - 1, mantissa_bits())
                                           : half_value(high, mantissa_bits()) - half_value(low, mantissa_bits());
    const auto middle = static_cast<float>(half_value(low, mantissa_bits()) + step / 2);
    expect(middle, low % 2 == 0 ? low : high);
    expect(std::nextafterf(middle, 0.0f), low);
    expect(std::nextafterf(middle, HUGE_VALF), high);
  }
  const auto got = narrow(floats);
  for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], expected[i]) << floats[i];
}

TEST_P(Halves, what_is_too_large_is_infinite_and_what_is_too_small_is_zero) {
  const auto got = narrow({HUGE_VALF, -HUGE_VALF, 3.4028235e38f, -3.4028235e38f, 1e-45f, -1e-45f, 0.0f, -0.0f});
  const auto inf = infinity();
  const auto negative = static_cast<uint16_t>(inf | 0x8000);
  EXPECT_EQ(got, (std::vector<uint16_t>{inf, negative, inf, negative, 0, 0x8000, 0, 0x8000}));
}

TEST_P(Halves, a_nan_stays_one_whatever_its_payload) {
  std::vector<float> nans;
  for (int bit = 0; bit < 23; ++bit) {
    nans.push_back(std::bit_cast<float>(0x7f800000u | 1u << bit));
    nans.push_back(std::bit_cast<float>(0xff800000u | 1u << bit));
  }
  nans.push_back(std::bit_cast<float>(0x7fffffffu));
  const auto got = narrow(nans);
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(is_nan_half(got[i], mantissa_bits())) << i;
    EXPECT_EQ(got[i] >= 0x8000, std::signbit(nans[i])) << i;
  }
}

TEST_P(Halves, random_floats_equal_the_reference_and_the_base_set_bit_for_bit) {
  reference::Random random(4);
  std::vector<float> floats(50'000);
  for (float& each : floats) each = std::bit_cast<float>(static_cast<uint32_t>(random()));
  const auto got = narrow(floats);
  use_kernel_set("base");
  EXPECT_EQ(got, narrow(floats));
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(floats[i])) continue;
    ASSERT_EQ(got[i], reference::nearest_half(static_cast<double>(floats[i]), mantissa_bits())) << floats[i];
  }
}

TEST_P(Halves, short_and_unaligned_runs_are_converted_whole) {
  reference::Random random(5);
  for (size_t count = 0; count < 70; ++count) {
    Bytes halves(2 * count + 1 + 16, std::byte{0x5a});
    Bytes floats(4 * count + 1);
    for (size_t i = 0; i < count; ++i) {
      const auto x = static_cast<float>(random() % 100);
      std::memcpy(floats.data() + 1 + 4 * i, &x, 4);
    }
    convert(half(), halves.data() + 1, DType::F32, floats.data() + 1, count);
    for (size_t i = 2 * count + 1; i < halves.size(); ++i) ASSERT_EQ(halves[i], std::byte{0x5a});
    Bytes back(4 * count + 1);
    convert(DType::F32, back.data() + 1, half(), halves.data() + 1, count);
    ASSERT_EQ(back, floats);
  }
}

TEST_P(Halves, one_half_becomes_the_other_through_float32) {
  const DType other = half() == DType::F16 ? DType::BF16 : DType::F16;
  const auto halves = every_half();
  std::vector<uint16_t> got(halves.size());
  convert(other, got.data(), half(), halves.data(), halves.size());
  std::vector<uint16_t> expected(halves.size());
  convert(other, expected.data(), DType::F32, widen(halves).data(), halves.size());
  EXPECT_EQ(got, expected);
  std::vector<uint16_t> same(halves.size());
  convert(half(), same.data(), half(), halves.data(), halves.size());
  EXPECT_EQ(same, halves);
}

}  // namespace
}  // namespace ronde
