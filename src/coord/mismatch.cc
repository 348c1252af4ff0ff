// SPDX-License-Identifier: Apache-2.0
#include "coord/mismatch.h"

#include <algorithm>
#include <string_view>

namespace ronde::coord {
namespace {

constexpr size_t kMaxKeyText = 96;  // bytes of a key within a list

std::string list_keys(const std::vector<std::string>& keys) {
  std::vector<std::string> words;
  for (const std::string& key : keys) words.push_back(clipped(key, kMaxKeyText));
  return listed(words);
}

std::string describe_call(const Call& call) {
  if (call.keys.size() == 1) return cat(list_keys(call.keys), " alone");
  return cat("the group of ", call.keys.size(), ": ", list_keys(call.keys));
}

std::string difference(const Signature& a, const Signature& b) {
  if (a.op != b.op) return "the operation";
  std::vector<std::string> out;
  if (a.reduce != b.reduce) out.emplace_back("the reduce op");
  if (a.dtype != b.dtype) out.emplace_back("the dtype");
  if (!(a.shape == b.shape)) {
    out.emplace_back(row(a.op).dims == DimsRule::All ? "the shape" : "all dimensions but the first");
  }
  if (a.root != b.root) out.emplace_back("the root rank");
  if (a.prescale != b.prescale || a.postscale != b.postscale) out.emplace_back("the scale factors");
  if (a.subject != b.subject) out.emplace_back("which one");
  return listed(out);
}

std::string seconds(Duration age) {
  const auto tenths = std::chrono::duration_cast<std::chrono::milliseconds>(age).count() / 100;
  return cat(tenths / 10, ".", tenths % 10, " s");
}

}  // namespace

std::string clipped(std::string text, size_t max_bytes) {
  constexpr std::string_view kDots = "...";
  if (text.size() <= max_bytes) return text;
  size_t end = max_bytes - kDots.size();
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  text.resize(end);
  return text.append(kDots);
}

std::string list_ranks(const std::vector<Rank>& ranks) {
  std::vector<std::string> words;
  for (const Rank rank : ranks) words.push_back(cat(rank));
  return cat(ranks.size() == 1 ? "rank " : "ranks ", listed(words));
}

std::string signature_mismatch(Rank first, const Signature& a, Rank second, const Signature& b) {
  return cat("rank ", first, " asks for ", a.to_string(), ", rank ", second, " for ", b.to_string(),
             "; all ranks must agree on ", difference(a, b));
}

std::string group_mismatch(const Call& first, const Call& second) {
  const auto [a, b] = std::mismatch(first.keys.begin(), first.keys.end(), second.keys.begin(), second.keys.end());
  std::string where;
  if (a != first.keys.end() && b != second.keys.end()) {
    where = cat("; number ", a - first.keys.begin() + 1, " is ", clipped(*a, kMaxKeyText), " on rank ", first.rank,
                " and ", clipped(*b, kMaxKeyText), " on rank ", second.rank);
  }
  return cat("rank ", first.rank, " submits ", describe_call(first), ", rank ", second.rank, " ", describe_call(second),
             where, "; all ranks must group the same operations in the same order");
}

std::string overdue(const Overdue& what) {
  if (!what.missing.empty()) {
    return cat("timed out: ", list_ranks(what.missing), what.missing.size() == 1 ? " has" : " have",
               " not submitted it for ", seconds(what.age), " (collective_timeout)");
  }
  return cat("timed out: ", list_ranks(what.unflushed), what.unflushed.size() == 1 ? " has" : " have",
             " submitted it with more to follow, and not flushed for ", seconds(what.age), " (collective_timeout)");
}

}  // namespace ronde::coord
