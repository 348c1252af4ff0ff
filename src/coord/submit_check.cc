// SPDX-License-Identifier: Apache-2.0
#include "coord/submit_check.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "coord/codec.h"
#include "coord/limits.h"

namespace ronde::coord {
namespace {

Status refuse(const Request& request, std::string_view why) {
  const std::string name = request.name.empty() ? "" : cat(" '", request.name, "'");
  const auto op = static_cast<uint8_t>(request.signature.op);
  const auto what = op <= static_cast<uint8_t>(kLastOp) ? name_of(request.signature.op) : "operation";
  return Status(Code::InvalidArgument, cat(what, name, ": ", why));
}

Status check_name(const Request& request, const Flights& flights) {
  const std::string& name = request.name;
  if (name.size() > kMaxNameBytes) {
    return Status(Code::InvalidArgument, cat("the name '", name.substr(0, 32), "...' has ", name.size(),
                                             " bytes; at most ", kMaxNameBytes, " are possible"));
  }
  if (flights.has(name)) {
    return refuse(request,
                  "an operation with this name is still in flight on this rank; wait for it or use another name");
  }
  return {};
}

Status check_one(const Request& request, const std::vector<Rank>& members) {
  const Signature& signature = request.signature;
  if (const Status status = check_signature(signature); !status.ok()) return refuse(request, status.message());
  const OpRow& op = row(signature.op);
  if (op.has_root && !std::binary_search(members.begin(), members.end(), signature.root)) {
    return refuse(request, cat("root rank ", signature.root, " is not one of the ", members.size(), " ranks (",
                               members.front(), " to ", members.back(), ")"));
  }
  if (op.changes_sets && request.set != kWorldSet) return refuse(request, "all ranks of the job change process sets");
  if (signature.op == OpKind::AddSet && !std::ranges::includes(members, signature.subject)) {
    return refuse(request, cat("rank ", signature.subject.back(), " is not one of the ", members.size(), " ranks"));
  }
  if (tensor_bytes(signature, request.first_dim) < 0) {
    return refuse(request,
                  cat("its first dimension ", request.first_dim, " is negative or makes more than 2^60 bytes"));
  }
  return {};
}

}  // namespace

Status check_call(std::span<const Request> requests, const std::vector<Rank>& members, const Flights& flights) {
  if (requests.size() > kMaxGroup) {
    return Status(Code::InvalidArgument, cat("a group of ", requests.size(), " operations; at most ", kMaxGroup));
  }
  std::unordered_set<std::string_view> seen;
  for (const Request& request : requests) {
    RONDE_TRY(check_name(request, flights));
    RONDE_TRY(check_one(request, members));
    if (request.set != requests.front().set) return refuse(request, "a group cannot span two process sets");
    if (requests.size() > 1 && !request.name.empty() && !seen.insert(request.name).second) {
      return refuse(request, "the name occurs twice in one group");
    }
  }
  return {};
}

}  // namespace ronde::coord
