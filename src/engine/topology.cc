// SPDX-License-Identifier: Apache-2.0
#include "engine/topology.h"

#include <algorithm>
#include <map>

namespace ronde::engine {
namespace {

constexpr size_t kMaxText = 1024;

// Which host each rank is on, numbered in the order of their lowest ranks.
std::vector<int> number_hosts(std::span<const Arrival> arrivals) {
  std::map<std::string, int> numbers;
  std::vector<int> out;
  for (const Arrival& arrival : arrivals) {
    const auto next = static_cast<int>(numbers.size());
    out.push_back(numbers.try_emplace(arrival.host_id, next).first->second);
  }
  return out;
}

Status check_settings(std::span<const Arrival> arrivals) {
  for (size_t r = 1; r < arrivals.size(); ++r) {
    if (arrivals[r].agreed_settings == arrivals[0].agreed_settings) continue;
    return Status(Code::InvalidArgument,
                  cat("rank 0 runs with ", arrivals[0].agreed_settings, ", rank ", r, " with ",
                      arrivals[r].agreed_settings, ": give all ranks the same RONDE_* settings"));
  }
  return {};
}

// The local ranks of a host must be 0 ... n-1, each once, and n what everybody there believes.
Status check_host(std::span<const Arrival> arrivals, std::span<const Rank> ranks) {
  std::vector<bool> taken(ranks.size(), false);
  for (const Rank r : ranks) {
    const Arrival& arrival = arrivals[r];
    if (static_cast<size_t>(arrival.local_size) != ranks.size()) {
      return Status(Code::InvalidArgument, cat("rank ", r, " has RONDE_LOCAL_SIZE=", arrival.local_size, ", but ",
                                               ranks.size(), " of the ranks are on its host ", arrival.host_name));
    }
    if (arrival.local_rank < 0 || arrival.local_rank >= arrival.local_size || taken[arrival.local_rank]) {
      return Status(Code::InvalidArgument,
                    cat("rank ", r, " has RONDE_LOCAL_RANK=", arrival.local_rank, ": on host ", arrival.host_name,
                        " each of 0 ... ", ranks.size() - 1, " must be there once"));
    }
    taken[arrival.local_rank] = true;
  }
  return {};
}

}  // namespace

Bytes encode(const Arrival& arrival) {
  Writer out;
  out.put_string(arrival.host_id).put_string(arrival.host_name).put(arrival.pid);
  out.put(arrival.local_rank).put(arrival.local_size).put_string(arrival.broker);
  out.put_string(arrival.agreed_settings);
  return out.take();
}

Result<Arrival> decode_arrival(ByteSpan bytes) {
  Reader in(bytes);
  Arrival out;
  out.host_id = in.get_string(kMaxText);
  out.host_name = in.get_string(kMaxText);
  out.pid = in.get<int32_t>();
  out.local_rank = in.get<int32_t>();
  out.local_size = in.get<int32_t>();
  out.broker = in.get_string(kMaxText);
  out.agreed_settings = in.get_string(kMaxText);
  RONDE_TRY(in.finish("arrival"));
  return out;
}

Result<Topology> make_topology(Rank rank, uint32_t epoch, std::span<const Arrival> arrivals) {
  RONDE_CHECK(rank >= 0 && static_cast<size_t>(rank) < arrivals.size(), "the store checked the rank");
  RONDE_TRY(check_settings(arrivals));
  const std::vector<int> hosts = number_hosts(arrivals);
  const int host_count = *std::ranges::max_element(hosts) + 1;

  Topology out;
  out.rank = rank;
  out.size = static_cast<Rank>(arrivals.size());
  out.epoch = epoch;
  std::vector<std::vector<Rank>> ranks_of(host_count);
  for (Rank r = 0; r < out.size; ++r) {
    const Arrival& arrival = arrivals[r];
    ranks_of[hosts[r]].push_back(r);
    out.peers.push_back({arrival, hosts[r], cat("rank ", r, " (host ", arrival.host_name, ", pid ", arrival.pid, ")")});
  }
  for (const auto& ranks : ranks_of) {
    RONDE_TRY(check_host(arrivals, ranks));
    out.is_homogeneous = out.is_homogeneous && ranks.size() == ranks_of[0].size();
  }
  out.local_rank = arrivals[rank].local_rank;
  out.local_size = arrivals[rank].local_size;
  out.local_ranks = ranks_of[hosts[rank]];
  std::ranges::sort(out.local_ranks, {}, [&](Rank r) { return arrivals[r].local_rank; });

  out.cross_size = 0;
  for (int host = 0; host < host_count; ++host) {
    if (ranks_of[host].size() <= static_cast<size_t>(out.local_rank)) continue;
    if (host < hosts[rank]) ++out.cross_rank;
    ++out.cross_size;
  }
  return out;
}

}  // namespace ronde::engine
