// SPDX-License-Identifier: Apache-2.0
#include "coord/codec.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "coord/codec_wire.h"
#include "coord/frame_writer.h"
#include "coord/limits.h"

namespace ronde::coord {
namespace {

template <class Item>
Bytes encoded(const std::vector<Item>& items) {
  Writer out;
  for (const Item& item : items) encode(out, item);
  return out.take();
}

std::string hex(ByteSpan bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const std::byte byte : bytes) {
    out += kDigits[static_cast<size_t>(byte) >> 4];
    out += kDigits[static_cast<size_t>(byte) & 15];
  }
  return out;
}

Bytes bytes_of(std::initializer_list<unsigned> values) {
  Bytes out;
  for (const unsigned value : values) out.push_back(static_cast<std::byte>(value));
  return out;
}

Signature signature_of(const Request& request) {
  return request.signature;
}

std::vector<ReportItem> sample_report() {
  const auto average = signature_of(
      make_request(OpKind::Allreduce, "", DType::BF16, Shape{64, 3, 7, 7}, ReduceOp::Average, 0, 0.5, 2.0));
  const auto gather = signature_of(make_request(OpKind::Allgather, "", DType::I64, Shape{9, 300}));
  const auto broadcast = signature_of(make_request(OpKind::Broadcast, "", DType::F32, Shape{}, ReduceOp::Sum, 5));
  return {
      Submit{.set = 0, .more = true, .name = std::string("conv1.weight"), .signature = average},
      Group{3},
      Submit{.set = 7, .more = false, .name = NameId{300}, .signature = SignatureId{2}},
      Submit{.set = 0, .more = false, .name = Number{1u << 30}, .signature = gather, .first_dim = 9},
      Submit{.set = 0, .more = true, .name = std::string(200, 'n'), .signature = broadcast},
      Submit{.set = 0, .more = true, .name = NameId{UINT32_MAX}, .signature = SignatureId{UINT32_MAX}, .first_dim = 0},
      Flush{0},
      Flush{UINT32_MAX},
      Leave{}};
}

std::vector<DecisionItem> sample_decision() {
  const auto barrier = signature_of(make_request(OpKind::Barrier, "", DType::F32, Shape{}));
  const auto product =
      signature_of(make_request(OpKind::Allreduce, "", DType::U8, Shape{0, int64_t{1} << 40}, ReduceOp::Product));
  return {DefineName{0, 0, "x"},
          DefineSignature{0, barrier},
          DefineSignature{UINT32_MAX, product},
          BatchDecision{1, 0, {{Key{false, 0}, 0, {}}, {Key{true, kMaxNumber}, 1, {}}}},
          BatchDecision{kMaxNumber, 3, {{Key{false, 5}, 2, {1, 0, 300}}, {Key{false, 6}, 2, {0, 0, int64_t{1} << 50}}}},
          Failed{0, Code::Mismatch, "ranks differ", {Key{false, 1}, Key{true, 9}}, {0, 3, 70000}},
          Left{12}};
}

TEST(Codec, report_items_survive_the_wire) {
  const auto items = sample_report();
  const auto decoded = decode_report(encoded(items));
  ASSERT_TRUE(decoded.ok()) << decoded.status().message();
  EXPECT_EQ(*decoded, items);
}

TEST(Codec, decision_items_survive_the_wire) {
  const auto items = sample_decision();
  const auto decoded = decode_decision(encoded(items));
  ASSERT_TRUE(decoded.ok()) << decoded.status().message();
  EXPECT_EQ(*decoded, items);
}

// These bytes are the wire: a change here must change the build id of the hello.
TEST(Codec, golden_bytes_of_a_report) {
  const auto average =
      signature_of(make_request(OpKind::Allreduce, "", DType::BF16, Shape{300, 7}, ReduceOp::Average, 0, 0.5, 2.0));
  const auto gather = signature_of(make_request(OpKind::Allgather, "", DType::I64, Shape{9, 5}));
  EXPECT_EQ(hex(encoded<ReportItem>({Submit{.set = 0, .more = true, .name = std::string("ab"), .signature = average}})),
            "59"                                  // submit, more, whole name, whole signature
            "00"                                  // set
            "020000006162"                        // "ab"
            "000302"                              // allreduce, bfloat16, two dimensions
            "00000000000000e03f0000000000000040"  // average, 0.5, 2.0
            "ac0207");                            // 300, 7
  EXPECT_EQ(
      hex(encoded<ReportItem>({Submit{.set = 0, .more = false, .name = NameId{5}, .signature = SignatureId{130}}})),
      "0100058201");
  EXPECT_EQ(hex(encoded<ReportItem>({Submit{.set = 1, .name = Number{2}, .signature = gather, .first_dim = 9}})),
            "e1010202050205"
            "09");
  EXPECT_EQ(hex(encoded<ReportItem>({Group{3}, Flush{2}, Leave{}})), "0203030204");
}

TEST(Codec, golden_bytes_of_a_decision) {
  const auto broadcast = signature_of(make_request(OpKind::Broadcast, "", DType::F32, Shape{4}, ReduceOp::Sum, 5));
  EXPECT_EQ(hex(encoded<DecisionItem>({DefineName{1, 0, "ab"}})), "010100020000006162");
  EXPECT_EQ(hex(encoded<DecisionItem>({DefineSignature{2, broadcast}})), "02020100010504");
  EXPECT_EQ(hex(encoded<DecisionItem>({BatchDecision{200, 0, {{Key{false, 1}, 3, {}}, {Key{true, 1}, 4, {}}}}})),
            "03c801000202030304");
  EXPECT_EQ(hex(encoded<DecisionItem>({BatchDecision{1, 0, {{Key{false, 1}, 3, {7, 0}}}}})),
            "0b010001020203"
            "0700");
  EXPECT_EQ(hex(encoded<DecisionItem>({Failed{0, Code::Timeout, "t", {Key{false, 1}}, {0, 2}}})),
            "0400050100000074"
            "0102"
            "020002");
  EXPECT_EQ(hex(encoded<DecisionItem>({Left{3}})), "0503");
}

TEST(Codec, an_item_that_is_cut_short_anywhere_is_refused) {
  for (const ReportItem& item : sample_report()) {
    const Bytes whole = encoded<ReportItem>({item});
    for (size_t size = 1; size < whole.size(); ++size) {
      EXPECT_FALSE(decode_report(ByteSpan(whole).first(size)).ok()) << hex(whole) << " cut to " << size;
    }
  }
  for (const DecisionItem& item : sample_decision()) {
    const Bytes whole = encoded<DecisionItem>({item});
    for (size_t size = 1; size < whole.size(); ++size) {
      EXPECT_FALSE(decode_decision(ByteSpan(whole).first(size)).ok()) << hex(whole) << " cut to " << size;
    }
  }
}

TEST(Codec, a_byte_too_many_is_refused) {
  Bytes report = encoded<ReportItem>({Leave{}});
  report.push_back(std::byte{0});
  EXPECT_FALSE(decode_report(report).ok());
  Bytes decision = encoded<DecisionItem>({Left{1}});
  decision.push_back(std::byte{0});
  EXPECT_FALSE(decode_decision(decision).ok());
}

TEST(Codec, an_empty_frame_holds_nothing) {
  EXPECT_TRUE(decode_report({})->empty());
  EXPECT_TRUE(decode_decision({})->empty());
}

TEST(Codec, what_was_accepted_encodes_to_the_same_bytes) {
  // Of frames that were changed at random, every one that is accepted has one meaning only: it encodes to itself.
  std::mt19937_64 random(7);
  const Bytes report = encoded(sample_report());
  const Bytes decision = encoded(sample_decision());
  int accepted = 0;
  for (int round = 0; round < 4'000; ++round) {
    const bool is_report = round % 2 == 0;
    Bytes bytes = is_report ? report : decision;
    for (uint64_t changes = random() % 3 + 1; changes > 0; --changes) {
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    }
    if (is_report) {
      const auto items = decode_report(bytes);
      if (!items.ok()) continue;
      EXPECT_EQ(encoded(*items), bytes);
    } else {
      const auto items = decode_decision(bytes);
      if (!items.ok()) continue;
      EXPECT_EQ(encoded(*items), bytes);
    }
    ++accepted;
  }
  EXPECT_GT(accepted, 100);
}

TEST(Codec, random_bytes_never_do_harm) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 20'000; ++round) {
    Bytes bytes(random() % 64);
    // Small values are likelier to be read as kinds, ids and lengths.
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() % 4 == 0 ? random() : random() % 8);
    (void)decode_report(bytes).ok();
    (void)decode_decision(bytes).ok();
  }
}

TEST(Codec, numbers_take_as_many_bytes_as_they_need_and_one_form) {
  for (const uint64_t value : {uint64_t{0}, uint64_t{127}, uint64_t{128}, uint64_t{16383}, uint64_t{16384},
                               uint64_t{1} << 35, (uint64_t{1} << 63) - 1, uint64_t{1} << 63, UINT64_MAX}) {
    Writer out;
    put_var(out, value);
    EXPECT_EQ(out.size(), var_bytes(value));
    WireReader in(out.bytes());
    EXPECT_EQ(in.get_var(UINT64_MAX), value);
    EXPECT_TRUE(in.finish("number").ok());
  }
  for (const Bytes& bad : {bytes_of({0x80, 0x00}), bytes_of({0x80}), bytes_of({}),
                           bytes_of({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02}),
                           bytes_of({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})}) {
    WireReader in(bad);
    EXPECT_EQ(in.get_var(UINT64_MAX), 0u);
    EXPECT_FALSE(in.good()) << hex(bad);
  }
  const Bytes nine = bytes_of({0x09});
  WireReader in(nine);
  in.get_var(8);
  EXPECT_FALSE(in.good());
}

TEST(Codec, dimensions_that_would_overflow_are_refused) {
  Writer out;
  out.put<uint8_t>(2);  // define signature
  put_var(out, 0);
  out.put(OpKind::Broadcast).put(DType::F32).put<uint8_t>(3);
  put_var(out, 0);
  for (int i = 0; i < 3; ++i) put_var(out, uint64_t{1} << 40);
  EXPECT_FALSE(decode_decision(out.bytes()).ok());
}

TEST(Codec, scale_factors_that_are_no_numbers_are_refused) {
  Signature signature;
  signature.prescale = std::numeric_limits<double>::quiet_NaN();
  Writer out;
  out.put<uint8_t>(2);
  put_var(out, 0);
  put_signature(out, signature);
  EXPECT_FALSE(decode_decision(out.bytes()).ok());
}

TEST(Codec, long_lists_are_capped_before_memory_is_taken) {
  EXPECT_FALSE(decode_report(encoded<ReportItem>({Group{1}})).ok());
  EXPECT_FALSE(decode_report(bytes_of({0x02, 0xff, 0xff, 0xff, 0x7f})).ok());
  // A batch that claims 2^30 entries in 4 bytes.
  EXPECT_FALSE(decode_decision(bytes_of({0x03, 0x01, 0x00, 0x80, 0x80, 0x80, 0x80, 0x04, 0x02, 0x03})).ok());
  const Failed many{0, Code::Timeout, "t", std::vector<Key>(kMaxFailedKeys + 1), {0}};
  EXPECT_FALSE(decode_decision(encoded<DecisionItem>({many})).ok());
  const Failed long_text{0, Code::Timeout, std::string(kMaxTextBytes + 1, 't'), {Key{}}, {0}};
  EXPECT_FALSE(decode_decision(encoded<DecisionItem>({long_text})).ok());
  const DefineName long_name{0, 0, std::string(kMaxNameBytes + 1, 'n')};
  EXPECT_FALSE(decode_decision(encoded<DecisionItem>({long_name})).ok());
}

TEST(Codec, the_largest_items_fit_into_the_least_frame) {
  FrameWriter frames(kMinFrameBytes);
  Signature widest;
  widest.shape = Shape(std::vector<int64_t>(Shape::kMaxDims, 1));
  frames.add(ReportItem(
      Submit{.set = UINT32_MAX, .name = std::string(kMaxNameBytes, 'n'), .signature = widest, .first_dim = INT64_MAX}));
  frames.add(DecisionItem(DefineName{UINT32_MAX, UINT32_MAX, std::string(kMaxNameBytes, 'n')}));
  frames.add(DecisionItem(Failed{UINT32_MAX, Code::Timeout, std::string(kMaxTextBytes, 't'),
                                 std::vector<Key>(kMaxFailedKeys, Key{true, kMaxNumber}),
                                 std::vector<Rank>(kMaxFailedRanks, INT32_MAX)}));
  for (const Bytes& frame : frames.take()) EXPECT_LE(frame.size(), kMinFrameBytes);
}

TEST(FrameWriter, items_are_packed_and_never_torn) {
  FrameWriter frames(kMinFrameBytes);
  for (int i = 0; i < 10; ++i) frames.add(DecisionItem(DefineName{0, 0, std::string(3000, 'n')}));
  const auto taken = frames.take();
  ASSERT_EQ(taken.size(), 5u);
  for (const Bytes& frame : taken) EXPECT_EQ(decode_decision(frame)->size(), 2u);
  EXPECT_TRUE(frames.empty());
  EXPECT_TRUE(frames.take().empty());
}

TEST(Codec, the_size_of_a_batch_is_known_before_it_is_encoded) {
  const BatchEntry entry{Key{true, 12345}, 700, {1, 2000, 0}};
  const Bytes one = encoded<DecisionItem>({BatchDecision{kMaxNumber, UINT32_MAX, {entry}}});
  const Bytes two = encoded<DecisionItem>({BatchDecision{kMaxNumber, UINT32_MAX, {entry, entry}}});
  EXPECT_EQ(two.size() - one.size(), encoded_bytes(entry));
  EXPECT_LE(one.size() - encoded_bytes(entry), kBatchHeadBytes);
}

}  // namespace
}  // namespace ronde::coord
