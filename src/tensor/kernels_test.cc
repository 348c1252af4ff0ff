// SPDX-License-Identifier: Apache-2.0
#include "tensor/kernels.h"

#include <gtest/gtest.h>

#include <string_view>

#include "base/text.h"
#include "tensor/kernels_reference.h"

namespace ronde {
namespace {

using reference::combined;
using reference::first_difference;
using reference::Random;
using reference::random_tensor;

constexpr Combine kCombines[] = {Combine::Sum, Combine::Min, Combine::Max, Combine::Product};
constexpr size_t kCounts[] = {0, 1, 3, 7, 8, 15, 16, 17, 31, 33, 63, 65, 1000, 4099};

// A tensor at a chosen distance from alignment, with bytes behind it that must stay as they are.
class Placed {
 public:
  Placed(const Bytes& content, size_t offset) : memory_(offset + content.size() + kGuard, std::byte{0xa5}) {
    begin_ = memory_.data() + offset;
    size_ = content.size();
    std::copy(content.begin(), content.end(), begin_);
  }
  std::byte* data() { return begin_; }
  Bytes content() const { return Bytes(begin_, begin_ + size_); }
  bool guard_is_whole() const {
    return std::all_of(begin_ + size_, begin_ + size_ + kGuard, [](std::byte b) { return b == std::byte{0xa5}; });
  }

 private:
  static constexpr size_t kGuard = 80;
  Bytes memory_;
  std::byte* begin_;
  size_t size_;
};

// Runs combine with all tensors `offset` bytes from alignment; `alias` < srcs.size(): the output is that source.
Bytes run_combine(Combine op, DType dtype, const std::vector<Bytes>& srcs, const Scale& scale, size_t offset,
                  size_t alias) {
  std::vector<Placed> placed;
  for (size_t k = 0; k < srcs.size(); ++k) placed.emplace_back(srcs[k], k % 2 == 0 ? offset : 2 * offset);
  placed.emplace_back(Bytes(srcs[0].size()), offset);
  std::vector<const void*> pointers;
  for (size_t k = 0; k < srcs.size(); ++k) pointers.push_back(placed[k].data());
  Placed& out = placed[std::min(alias, srcs.size())];
  combine(op, dtype, out.data(), pointers, srcs[0].size() / size_of(dtype), scale);
  for (size_t k = 0; k < srcs.size(); ++k) {
    EXPECT_TRUE(k == alias || placed[k].content() == srcs[k]) << "source " << k << " was written";
  }
  EXPECT_TRUE(out.guard_is_whole());
  return out.content();
}

class Kernels : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { use_kernel_set(GetParam()); }
  void TearDown() override { use_kernel_set(kernel_sets().back()); }
};
INSTANTIATE_TEST_SUITE_P(Sets, Kernels, testing::ValuesIn(kernel_sets().begin(), kernel_sets().end()),
                         [](const auto& each) { return std::string(each.param); });

void expect_as_reference(Combine op, DType dtype, const std::vector<Bytes>& srcs, const Scale& scale) {
  const Bytes expected = combined(op, dtype, srcs, scale);
  for (const size_t offset : {0, 1, 5}) {
    for (size_t alias = offset == 1 ? 0 : srcs.size(); alias <= srcs.size(); ++alias) {
      const Bytes got = run_combine(op, dtype, srcs, scale, offset, alias);
      const int64_t at = first_difference(dtype, got, expected);
      ASSERT_EQ(at, -1) << name_of(dtype) << " op " << static_cast<int>(op) << " sources " << srcs.size() << " bytes "
                        << got.size() << " offset " << offset << " alias " << alias;
    }
  }
}

std::vector<Bytes> random_tensors(DType dtype, size_t number, size_t count, Random& random) {
  std::vector<Bytes> out;
  for (size_t k = 0; k < number; ++k) out.push_back(random_tensor(dtype, count, random));
  return out;
}

bool is_possible(Combine op, DType dtype) {
  return op == Combine::Sum || row(dtype).kind != NumberKind::Complex;
}

TEST_P(Kernels, combine_equals_the_reference_for_every_dtype_op_and_count) {
  Random random(1);
  for (const DTypeRow& each : kDTypes) {
    for (const Combine op : kCombines) {
      if (!is_possible(op, each.dtype)) continue;
      for (size_t number = 1; number <= 5; ++number) {
        for (const size_t count : kCounts) {
          expect_as_reference(op, each.dtype, random_tensors(each.dtype, number, count, random), {});
        }
      }
    }
  }
}

TEST_P(Kernels, combine_scales_once_after_the_last_source) {
  Random random(2);
  const Scale scales[] = {{1.0, 2}, {1.0, 3}, {0.5, 1}, {-1.7, 3}, {1e30, 1}, {2.0, 2}, {3.0, 5}};
  for (const DTypeRow& each : kDTypes) {
    for (const Scale& scale : scales) {
      for (const size_t number : {1, 2, 3, 5}) {
        for (const size_t count : {1, 17, 1025, 2500}) {
          expect_as_reference(Combine::Sum, each.dtype, random_tensors(each.dtype, number, count, random), scale);
        }
      }
    }
  }
}

TEST_P(Kernels, random_shapes_and_scales_equal_the_reference) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    Random random(seed);
    const DType dtype = kDTypes[random() % kDTypes.size()].dtype;
    const Combine op = kCombines[is_possible(Combine::Min, dtype) ? random() % std::size(kCombines) : 0];
    const Scale scale{random() % 2 == 0 ? 1.0 : std::ldexp(static_cast<double>(random() % 1000), -7),
                      static_cast<int64_t>(1 + random() % 9)};
    const size_t number = 1 + random() % 9;
    expect_as_reference(op, dtype, random_tensors(dtype, number, random() % 200, random), scale);
  }
}

// scale_copy of one value.
template <class T>
T scale_one(DType dtype, T x, Scale scale) {
  T out{};
  scale_copy(dtype, &out, &x, 1, scale);
  return out;
}

TEST_P(Kernels, integers_are_divided_toward_zero) {
  EXPECT_EQ(scale_one<int32_t>(DType::I32, 7, {1.0, 2}), 3);
  EXPECT_EQ(scale_one<int32_t>(DType::I32, -7, {1.0, 2}), -3);
  EXPECT_EQ(scale_one<int32_t>(DType::I32, -1, {1.0, 3}), 0);
  EXPECT_EQ(scale_one<int32_t>(DType::I32, INT32_MIN, {1.0, 3}), -715827882);
  EXPECT_EQ(scale_one<int32_t>(DType::I32, INT32_MAX, {1.0, INT64_MAX}), 0);
  EXPECT_EQ(scale_one<uint8_t>(DType::U8, 255, {1.0, 2}), 127);
  EXPECT_EQ(scale_one<int64_t>(DType::I64, INT64_MAX, {1.0, 2}), INT64_MAX / 2);
  EXPECT_EQ(scale_one<int64_t>(DType::I64, INT64_MIN + 1, {1.0, 2}), -(INT64_MAX / 2));
  EXPECT_EQ(scale_one<int64_t>(DType::I64, -9007199254740993, {1.0, 3}), -3002399751580331);
}

TEST_P(Kernels, division_of_32_bit_integers_is_exact_next_to_every_multiple) {
  for (int64_t divisor = 1; divisor <= 1000; divisor += 3) {
    for (const int64_t near : {int64_t{INT32_MAX} / divisor, int64_t{1}, int64_t{12345}}) {
      for (int64_t x = near * divisor - 1; x <= near * divisor + 1; ++x) {
        if (x > INT32_MAX) continue;
        ASSERT_EQ(scale_one<int32_t>(DType::I32, static_cast<int32_t>(x), {1.0, divisor}), x / divisor);
        ASSERT_EQ(scale_one<int32_t>(DType::I32, static_cast<int32_t>(-x), {1.0, divisor}), -x / divisor);
      }
    }
  }
}

TEST_P(Kernels, factors_of_integers_truncate_and_saturate) {
  EXPECT_EQ(scale_one<int32_t>(DType::I32, -5, {0.5, 1}), -2);
  EXPECT_EQ(scale_one<int32_t>(DType::I32, 5, {0.5, 1}), 2);
  EXPECT_EQ(scale_one<int32_t>(DType::I32, INT32_MAX, {2.0, 1}), INT32_MAX);
  EXPECT_EQ(scale_one<int32_t>(DType::I32, INT32_MAX, {-2.0, 1}), INT32_MIN);
  EXPECT_EQ(scale_one<int32_t>(DType::I32, INT32_MAX, {2.0, 2}), INT32_MAX);
  EXPECT_EQ(scale_one<uint8_t>(DType::U8, 200, {2.0, 1}), 255);
  EXPECT_EQ(scale_one<uint8_t>(DType::U8, 200, {-1.0, 1}), 0);
  EXPECT_EQ(scale_one<uint8_t>(DType::U8, 3, {HUGE_VAL, 1}), 255);
  EXPECT_EQ(scale_one<uint8_t>(DType::U8, 0, {HUGE_VAL, 1}), 0);  // 0 times infinity
}

TEST_P(Kernels, int64_is_scaled_with_all_its_digits) {
  EXPECT_EQ(scale_one<int64_t>(DType::I64, 9007199254740993, {3.0, 1}), 27021597764222979);
  EXPECT_EQ(scale_one<int64_t>(DType::I64, INT64_MAX, {4.0, 4}), INT64_MAX);
  EXPECT_EQ(scale_one<int64_t>(DType::I64, INT64_MAX, {2.0, 1}), INT64_MAX);
  EXPECT_EQ(scale_one<int64_t>(DType::I64, INT64_MIN, {2.0, 1}), INT64_MIN);
  EXPECT_EQ(scale_one<int64_t>(DType::I64, INT64_MIN, {-1.0, 1}), INT64_MAX);
  EXPECT_EQ(scale_one<int64_t>(DType::I64, -7, {0.5, 1}), -3);
}

TEST_P(Kernels, sums_and_products_of_integers_wrap) {
  const int32_t many[2] = {INT32_MAX, INT32_MIN};
  const int32_t two[2] = {1, -1};
  const void* const srcs[] = {many, two};
  int32_t out[2];
  combine(Combine::Sum, DType::I32, out, srcs, 2);
  EXPECT_EQ(out[0], INT32_MIN);
  EXPECT_EQ(out[1], INT32_MAX);
  const uint8_t a = 200;
  const uint8_t b = 100;
  const void* const bytes[] = {&a, &b};
  uint8_t byte = 0;
  combine(Combine::Sum, DType::U8, &byte, bytes, 1);
  EXPECT_EQ(byte, 44);
  combine(Combine::Product, DType::U8, &byte, bytes, 1);
  EXPECT_EQ(byte, 20000 % 256);
}

TEST_P(Kernels, small_integers_wrap_and_saturate_at_their_own_limits) {
  const int8_t bytes[2] = {100, -100};
  const void* const twice[] = {bytes, bytes};
  int8_t sums[2];
  combine(Combine::Sum, DType::I8, sums, twice, 2);
  EXPECT_EQ(std::vector<int>(sums, sums + 2), (std::vector<int>{-56, 56}));
  EXPECT_EQ(scale_one<int8_t>(DType::I8, -100, {2.0, 1}), -128);
  EXPECT_EQ(scale_one<int8_t>(DType::I8, -7, {1.0, 2}), -3);
  EXPECT_EQ(scale_one<int16_t>(DType::I16, 30000, {2.0, 1}), INT16_MAX);
  EXPECT_EQ(scale_one<uint16_t>(DType::U16, 65535, {1.0, 2}), 32767);
  EXPECT_EQ(scale_one<uint16_t>(DType::U16, 65535, {-1.0, 1}), 0);
  const uint16_t large = 65535;
  const void* const squares[] = {&large, &large};
  uint16_t product = 0;
  combine(Combine::Product, DType::U16, &product, squares, 1);
  EXPECT_EQ(product, 1);
}

TEST_P(Kernels, complex_numbers_are_added_and_scaled_by_their_parts) {
  const float a[4] = {1, 2, 3, -4};
  const float b[4] = {10, -20, 0.5, 4};
  const void* const srcs[] = {a, b};
  float out[4];
  combine(Combine::Sum, DType::C64, out, srcs, 2, {1.0, 2});
  EXPECT_EQ(std::vector<float>(out, out + 4), (std::vector<float>{5.5f, -9.0f, 1.75f, 0.0f}));
  double z[2] = {3, -5};
  scale_copy(DType::C128, z, z, 1, {2.0, 1});
  EXPECT_EQ(z[0], 6);
  EXPECT_EQ(z[1], -10);
}

TEST_P(Kernels, a_nan_on_any_side_survives_min_and_max) {
  const float nan = std::nanf("");
  for (const Combine op : {Combine::Min, Combine::Max}) {
    for (size_t place = 0; place < 4; ++place) {
      std::vector<float> values{1.0f, -2.0f, 3.0f, HUGE_VALF};
      values[place] = nan;
      const void* const srcs[] = {&values[0], &values[1], &values[2], &values[3]};
      float out = 0;
      combine(op, DType::F32, &out, srcs, 1);
      EXPECT_TRUE(std::isnan(out)) << place;
    }
  }
}

TEST_P(Kernels, halves_are_added_in_float32_and_rounded_once) {
  // 2048 + 1 + 1: a float16 sum that is rounded after each step stays at 2048.
  const uint16_t big = reference::nearest_half(2048, 10);
  const uint16_t one = reference::nearest_half(1, 10);
  const void* const srcs[] = {&big, &one, &one};
  uint16_t out = 0;
  combine(Combine::Sum, DType::F16, &out, srcs, 1);
  EXPECT_EQ(reference::half_value(out, 10), 2050);
  // 40000 + 40000 is beyond float16, its average is not.
  const uint16_t large = reference::nearest_half(40000, 10);
  const void* const twice[] = {&large, &large};
  combine(Combine::Sum, DType::F16, &out, twice, 1, {1.0, 2});
  EXPECT_EQ(reference::half_value(out, 10), 40000);
  combine(Combine::Sum, DType::F16, &out, twice, 1);
  EXPECT_EQ(reference::half_value(out, 10), HUGE_VAL);
}

TEST_P(Kernels, one_source_is_copied_and_its_bools_become_0_or_1) {
  const uint8_t in[3] = {0, 1, 0x80};
  const void* const srcs[] = {in};
  for (const Combine op : kCombines) {
    uint8_t out[3];
    combine(op, DType::Bool, out, srcs, 3);
    EXPECT_EQ(std::vector<int>(out, out + 3), (std::vector<int>{0, 1, 1}));
  }
  const uint32_t signalling = 0x7f800001;
  uint32_t copy = 0;
  const void* const nan[] = {&signalling};
  combine(Combine::Sum, DType::F32, &copy, nan, 1);
  EXPECT_EQ(copy, signalling);
}

TEST_P(Kernels, scale_copy_works_in_place_and_leaves_bools_alone) {
  float x[3] = {1, 2, 3};
  scale_copy(DType::F32, x, x, 3, {3.0, 2});
  EXPECT_EQ(std::vector<float>(x, x + 3), (std::vector<float>{1.5f, 3.0f, 4.5f}));
  EXPECT_EQ(scale_one<uint8_t>(DType::Bool, 1, {0.0, 7}), 1);
}

TEST_P(Kernels, scale_copy_equals_the_reference_for_every_dtype) {
  Random random(3);
  for (const DTypeRow& each : kDTypes) {
    if (each.dtype == DType::Bool) continue;
    for (const size_t count : kCounts) {
      for (const Scale& scale : {Scale{}, Scale{1.0, 3}, Scale{0.3, 1}, Scale{-40.0, 7}}) {
        const Bytes in = random_tensor(each.dtype, count, random);
        Placed from(in, 1);
        Placed to(Bytes(in.size()), 3);
        scale_copy(each.dtype, to.data(), from.data(), count, scale);
        ASSERT_EQ(first_difference(each.dtype, to.content(), combined(Combine::Sum, each.dtype, {in}, scale)), -1)
            << each.name << " " << count << " " << scale.factor << "/" << scale.divisor;
        EXPECT_TRUE(to.guard_is_whole());
        scale_copy(each.dtype, from.data(), from.data(), count, scale);
        ASSERT_EQ(from.content(), to.content());
      }
    }
  }
}

TEST(KernelSets, base_is_always_there_and_none_comes_twice) {
  const auto sets = kernel_sets();
  ASSERT_FALSE(sets.empty());
  EXPECT_STREQ(sets.front(), "base");
  for (size_t i = 1; i < sets.size(); ++i) EXPECT_STRNE(sets[i], sets[i - 1]);
}

TEST(KernelSetsDeathTest, misuse_is_a_bug_of_the_caller) {
  float x = 0;
  EXPECT_DEATH(use_kernel_set("mmx"), "no such kernel set");
  EXPECT_DEATH(convert(DType::F64, &x, DType::F32, &x, 0), "only float32");
  EXPECT_DEATH(scale_copy(DType::F32, &x, &x, 1, {1.0, 0}), "number of ranks");
  EXPECT_DEATH(combine(Combine::Sum, DType::F32, &x, {}, 1), "nothing to combine");
  const void* const srcs[] = {&x};
  EXPECT_DEATH(combine(Combine::Max, DType::C64, &x, srcs, 0), "only added");
}

}  // namespace
}  // namespace ronde
