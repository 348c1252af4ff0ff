// SPDX-License-Identifier: Apache-2.0
#include "engine/identity.h"

#include <charconv>

#include "os/socket.h"

namespace ronde::engine {
namespace {

using Getter = std::function<std::optional<std::string>(const char*)>;

constexpr int32_t kMaxRanks = 1 << 20;

Result<int32_t> parse_number(const char* name, const std::string& text, int32_t least, int32_t most) {
  int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most) return value;
  return Status(Code::InvalidArgument, cat(name, "=", text, ": expected a whole number from ", least, " to ", most));
}

// A pair such as RONDE_RANK, RONDE_SIZE: both or none.
Status parse_pair(const Getter& get, const char* index_name, const char* count_name, int32_t& index, int32_t& count) {
  const auto index_text = get(index_name);
  const auto count_text = get(count_name);
  if (!index_text && !count_text) return {};
  if (!index_text || !count_text) {
    return Status(Code::InvalidArgument, cat(index_text ? index_name : count_name, " is set, but ",
                                             index_text ? count_name : index_name, " is not: set both or none"));
  }
  RONDE_ASSIGN(count, parse_number(count_name, *count_text, 1, kMaxRanks));
  RONDE_ASSIGN(index, parse_number(index_name, *index_text, 0, kMaxRanks));
  if (index < count) return {};
  return Status(Code::InvalidArgument,
                cat(index_name, "=", index, " does not fit ", count_name, "=", count, ": it must be below"));
}

Status check_store(const std::string& store) {
  const auto address = os::parse_host_port(store);
  if (address.ok()) return {};
  return Status(Code::InvalidArgument, cat("RONDE_STORE: ", address.status().message(),
                                           ", where rank 0 is to listen, the same text on all ranks"));
}

}  // namespace

Result<JobIdentity> parse_identity(const Getter& get) {
  JobIdentity out;
  RONDE_TRY(parse_pair(get, "RONDE_RANK", "RONDE_SIZE", out.rank, out.size));
  // Without a word about hosts all ranks are taken to be on one.
  out.local_rank = out.rank;
  out.local_size = out.size;
  RONDE_TRY(parse_pair(get, "RONDE_LOCAL_RANK", "RONDE_LOCAL_SIZE", out.local_rank, out.local_size));
  if (out.local_size > out.size) {
    return Status(Code::InvalidArgument, cat("RONDE_LOCAL_SIZE=", out.local_size, " does not fit RONDE_SIZE=", out.size,
                                             ": a host cannot have more ranks than the job"));
  }
  out.store = get("RONDE_STORE").value_or("");
  out.key_file = get("RONDE_KEY_FILE").value_or("");
  out.broker = get("RONDE_BROKER").value_or("");
  out.launched = get("RONDE_JOB").has_value();
  if (out.size == 1 && out.store.empty()) return out;
  if (out.store.empty()) {
    return Status(Code::InvalidArgument, cat("RONDE_SIZE=", out.size,
                                             ", but RONDE_STORE is not set: give the host:port on which rank 0 is to "
                                             "listen, equal on all ranks, or start with `ronde run -np ",
                                             out.size, "`"));
  }
  RONDE_TRY(check_store(out.store));
  if (out.key_file.empty()) {
    return Status(Code::InvalidArgument, cat("RONDE_SIZE=", out.size,
                                             ", but RONDE_KEY_FILE is not set: it names a file of mode 0600 with 64 "
                                             "random hex digits, the same on all hosts"));
  }
  return out;
}

}  // namespace ronde::engine
