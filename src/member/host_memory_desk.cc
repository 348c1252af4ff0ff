// SPDX-License-Identifier: Apache-2.0
#include "member/host_memory_desk.h"

namespace ronde::member {
namespace {

std::string describe(const HostMemoryRequest& request) {
  return cat("local rank ", request.local_rank, " asks for ", request.local_size, " local ranks, a board of ",
             request.board_bytes, " and an arena of ", request.arena_bytes, " bytes");
}

bool same_memory(HostMemoryRequest a, const HostMemoryRequest& b) {
  a.local_rank = b.local_rank;
  return a == b;
}

}  // namespace

Status HostMemoryDesk::check(const HostMemoryRequest& request) const {
  if (!set_ || request.epoch > set_->first.epoch) return {};
  if (request.epoch < set_->first.epoch) {
    return Status(Code::Aborted, cat("epoch ", request.epoch, " is over on this host: epoch ", set_->first.epoch,
                                     " has been asked for"));
  }
  if (!same_memory(request, set_->first)) {
    return Status(Code::Mismatch, cat("the ranks of this host ask for different shared memory: ", describe(set_->first),
                                      ", ", describe(request), ": start all ranks with the same settings"));
  }
  if (set_->taken.contains(request.local_rank)) {
    return Status(Code::InvalidArgument,
                  cat("the shared memory of local rank ", request.local_rank, " in epoch ", request.epoch,
                      " has been taken already: give each process of this host a "
                      "RONDE_LOCAL_RANK of its own"));
  }
  return {};
}

Result<HostMemory> HostMemoryDesk::make(const HostMemoryRequest& request, const BrokerServer::Create& create) {
  HostMemory memory;
  RONDE_ASSIGN(memory.board, create("ronde-board", request.board_bytes));
  RONDE_ASSIGN(memory.arena, create("ronde-arena", request.arena_bytes));
  for (int32_t rank = 0; rank < request.local_size; ++rank) {
    RONDE_ASSIGN(auto loop, os::Doorbell::create());
    RONDE_ASSIGN(auto waiter, os::Doorbell::create());
    memory.bells.push_back({std::move(loop), std::move(waiter)});
  }
  return memory;
}

std::vector<int> HostMemoryDesk::descriptors(const HostMemory& memory) {
  std::vector<int> fds{memory.board.fd(), memory.arena.fd()};
  for (const auto& [loop, waiter] : memory.bells) {
    fds.push_back(loop.fd());
    fds.push_back(waiter.fd());
  }
  return fds;
}

Result<std::vector<int>> HostMemoryDesk::ask(const HostMemoryRequest& request) {
  handed_out_.reset();
  RONDE_TRY(check(request));
  if (!set_ || request.epoch > set_->first.epoch) {
    set_.reset();  // before the new memory is taken
    auto made = make(request, create_);
    set_ = Set{.first = request, .failure = made.status(), .memory = {}, .taken = {}};
    if (made.ok()) set_->memory = std::move(made).value();
  }
  if (!set_->failure.ok()) return set_->failure;
  set_->taken.insert(request.local_rank);
  std::vector<int> fds = descriptors(set_->memory);
  if (set_->taken.size() == static_cast<size_t>(request.local_size)) handed_out_ = std::exchange(set_->memory, {});
  return fds;
}

}  // namespace ronde::member
