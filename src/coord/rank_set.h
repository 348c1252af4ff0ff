// SPDX-License-Identifier: Apache-2.0
// RankSet: a set of ranks as bits; no allocation below 64 ranks.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "op/request.h"

namespace ronde::coord {

class RankSet {
 public:
  RankSet() = default;
  explicit RankSet(const std::vector<Rank>& ranks) {
    for (const Rank rank : ranks) add(rank);
  }

  bool has(Rank rank) const { return (word(index(rank)) & bit(rank)) != 0; }
  // True if it was not there.
  bool add(Rank rank) {
    uint64_t& bits = grown(index(rank));
    const bool is_new = (bits & bit(rank)) == 0;
    bits |= bit(rank);
    return is_new;
  }
  // True if it was there.
  bool remove(Rank rank) {
    if (!has(rank)) return false;
    grown(index(rank)) &= ~bit(rank);
    return true;
  }
  void add_all(const RankSet& other) {
    for (size_t i = 0; i < other.words(); ++i) grown(i) |= other.word(i);
  }
  bool covers(const RankSet& other) const {
    for (size_t i = 0; i < other.words(); ++i) {
      if ((other.word(i) & ~word(i)) != 0) return false;
    }
    return true;
  }
  size_t count() const {
    size_t out = 0;
    for (size_t i = 0; i < words(); ++i) out += static_cast<size_t>(std::popcount(word(i)));
    return out;
  }
  bool empty() const { return count() == 0; }
  void clear() { *this = RankSet(); }
  // Ascending.
  std::vector<Rank> ranks() const {
    std::vector<Rank> out;
    for (size_t i = 0; i < words(); ++i) {
      for (uint64_t bits = word(i); bits != 0; bits &= bits - 1) {
        out.push_back(static_cast<Rank>(i * 64 + static_cast<size_t>(std::countr_zero(bits))));
      }
    }
    return out;
  }

 private:
  static size_t index(Rank rank) { return static_cast<size_t>(rank) / 64; }
  static uint64_t bit(Rank rank) { return uint64_t{1} << (static_cast<size_t>(rank) % 64); }
  size_t words() const { return 1 + high_.size(); }
  uint64_t word(size_t i) const {
    if (i == 0) return low_;
    return i <= high_.size() ? high_[i - 1] : 0;
  }
  uint64_t& grown(size_t i) {
    if (i == 0) return low_;
    if (i > high_.size()) high_.resize(i);
    return high_[i - 1];
  }

  uint64_t low_ = 0;
  std::vector<uint64_t> high_;
};

}  // namespace ronde::coord
