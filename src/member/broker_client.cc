// SPDX-License-Identifier: Apache-2.0
#include "member/broker_wire.h"
#include "member/greeter.h"

namespace ronde::member {
namespace {

Result<HostMemory> map_all(std::vector<os::Fd> fds, const HostMemoryRequest& request) {
  HostMemory memory;
  RONDE_ASSIGN(memory.board, os::Region::map_shared(std::move(fds[0]), request.board_bytes));
  RONDE_ASSIGN(memory.arena, os::Region::map_shared(std::move(fds[1]), request.arena_bytes));
  for (size_t i = 2; i < fds.size(); i += 2) {
    memory.bells.push_back({os::Doorbell(std::move(fds[i])), os::Doorbell(std::move(fds[i + 1]))});
  }
  return memory;
}

Result<HostMemory> fetch(const std::string& name, const Key& key, const HostMemoryRequest& request, Time deadline) {
  const Identity self{.purpose = Purpose::Broker, .rank = request.local_rank, .epoch = request.epoch};
  RONDE_ASSIGN(auto greeted, call_by([&] { return os::connect_unix_by(name, deadline); }, key, self, deadline));
  RONDE_TRY(os::write_all_by(greeted.fd, *broker_wire::encode(request), deadline));
  FrameStream stream(std::move(greeted.fd), broker_wire::kMaxFrameBytes);
  RONDE_ASSIGN(const Bytes answer, stream.next_by(deadline));
  RONDE_TRY(broker_wire::decode_answer(answer));
  RONDE_ASSIGN(auto fds, os::recv_fds_by(stream.fd(), broker_wire::fd_count(request.local_size), deadline));
  return map_all(std::move(fds), request);
}

}  // namespace

Result<HostMemory> fetch_host_memory(const std::string& broker_name, const Key& key, const HostMemoryRequest& request,
                                     Time deadline) {
  auto memory = fetch(broker_name, key, request, deadline);
  if (memory.ok()) return memory;
  return memory.status().with_context("the shared memory of this host");
}

}  // namespace ronde::member
