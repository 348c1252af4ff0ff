// SPDX-License-Identifier: Apache-2.0
// The two id tables of an epoch: names and signatures. The coordinator gives the ids, growing from 0 and never reused;
// a member fills its tables from decisions alone, so that they are equal everywhere.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "op/request.h"

namespace ronde::coord {

class NameTable {
 public:
  struct Row {
    SetId set;
    std::string name;
  };
  std::optional<uint32_t> find(SetId set, std::string_view name) const;
  // An error if `id` is not the next one, or the name has one.
  Status define(uint32_t id, SetId set, std::string name);
  uint32_t next_id() const { return static_cast<uint32_t>(rows_.size()); }
  // Null if there is no such id.
  const Row* at(uint64_t id) const { return id < rows_.size() ? &rows_[id] : nullptr; }

 private:
  std::deque<Row> rows_;  // stable: the ids below point into it
  std::unordered_map<SetId, std::unordered_map<std::string_view, uint32_t>> ids_;
};

struct SignatureHash {
  size_t operator()(const Signature& signature) const;
};

class SignatureTable {
 public:
  struct Row {
    Signature signature;
    // Signatures of one fusion class share everything but the shape: their tensors may go into one batch.
    uint32_t fusion_class;
  };
  std::optional<uint32_t> find(const Signature& signature) const;
  Status define(uint32_t id, const Signature& signature);
  uint32_t next_id() const { return static_cast<uint32_t>(rows_.size()); }
  const Row* at(uint64_t id) const { return id < rows_.size() ? &rows_[id] : nullptr; }

 private:
  std::vector<Row> rows_;
  std::unordered_map<Signature, uint32_t, SignatureHash> ids_;
  std::unordered_map<Signature, uint32_t, SignatureHash> classes_;  // by the signature with an empty shape
};

}  // namespace ronde::coord
