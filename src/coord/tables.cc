// SPDX-License-Identifier: Apache-2.0
#include "coord/tables.h"

#include <functional>

namespace ronde::coord {

std::optional<uint32_t> NameTable::find(SetId set, std::string_view name) const {
  const auto of_set = ids_.find(set);
  if (of_set == ids_.end()) return std::nullopt;
  const auto it = of_set->second.find(name);
  if (it == of_set->second.end()) return std::nullopt;
  return it->second;
}

Status NameTable::define(uint32_t id, SetId set, std::string name) {
  if (id != next_id()) return Status(Code::Internal, cat("name id ", id, " instead of ", next_id()));
  if (find(set, name)) return Status(Code::Internal, cat("the name '", name, "' has an id already"));
  const Row& row = rows_.emplace_back(Row{set, std::move(name)});
  ids_[set].emplace(row.name, id);
  return {};
}

size_t SignatureHash::operator()(const Signature& signature) const {
  size_t out = static_cast<size_t>(signature.op) | static_cast<size_t>(signature.dtype) << 8 |
               static_cast<size_t>(signature.reduce) << 16 | signature.shape.ndim() << 24;
  const auto mix = [&](size_t value) { out = (out ^ value) * 0x9e3779b97f4a7c15u + (out >> 29); };
  mix(static_cast<size_t>(signature.root));
  mix(std::hash<double>()(signature.prescale));
  mix(std::hash<double>()(signature.postscale));
  for (const int64_t dim : signature.shape.dims()) mix(static_cast<size_t>(dim));
  for (const int32_t number : signature.subject) mix(static_cast<size_t>(number));
  return out;
}

std::optional<uint32_t> SignatureTable::find(const Signature& signature) const {
  const auto it = ids_.find(signature);
  if (it == ids_.end()) return std::nullopt;
  return it->second;
}

Status SignatureTable::define(uint32_t id, const Signature& signature) {
  if (id != next_id()) return Status(Code::Internal, cat("signature id ", id, " instead of ", next_id()));
  if (find(signature)) return Status(Code::Internal, cat(signature.to_string(), " has an id already"));
  Signature shapeless = signature;
  shapeless.shape = Shape();
  const uint32_t fusion_class = classes_.try_emplace(shapeless, static_cast<uint32_t>(classes_.size())).first->second;
  rows_.push_back(Row{signature, fusion_class});
  ids_.emplace(signature, id);
  return {};
}

}  // namespace ronde::coord
