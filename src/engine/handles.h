// SPDX-License-Identifier: Apache-2.0
// Handles: one per submitted tensor. Completed once, with a status, after the engine has let go of the tensor's memory.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "coord/member.h"
#include "op/batch.h"

namespace ronde::engine {

using coord::Ticket;

// An output that the engine allocated, since its size was known only when all ranks were ready. Freed with std::free.
struct OwnedOutput {
  struct Free {
    void operator()(void* data) const { std::free(data); }
  };
  std::unique_ptr<void, Free> data;  // the rows, then first_dims
  int64_t bytes = 0;                 // of the rows
  Shape shape;
  const int64_t* first_dims = nullptr;  // rows from each member; inside data
  int32_t member_count = 0;
};

struct Handle {
  // Set before the handle is shared.
  Ticket ticket = 0;
  SetId set = kWorldSet;
  std::string name;
  std::string what;  // "allreduce 'fc1.weight'", for messages
  Binding binding;
  // Written by the driving thread before `complete`, read after it.
  Status status;
  OwnedOutput output;
  std::atomic<bool> complete{false};
};

// Thread: any.
class HandleTable {
 public:
  // `fill` sets what is set before the handle is shared.
  std::shared_ptr<Handle> create(const std::function<void(Handle&)>& fill);
  std::shared_ptr<Handle> find(Ticket ticket) const;
  void erase(Ticket ticket);
  size_t size() const;

  // Makes the handle complete and wakes those who sleep on it.
  void complete(Handle& handle, Status status);

  // Sleeps until the handle is complete or the (real) deadline has passed; for waiters while another thread drives.
  void sleep(const Handle& handle, Time deadline);

 private:
  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  std::unordered_map<Ticket, std::shared_ptr<Handle>> handles_;
  int sleepers_ = 0;
};

}  // namespace ronde::engine
