// SPDX-License-Identifier: Apache-2.0
#include "engine/handles.h"

namespace ronde::engine {
namespace {

// Of the process, not of the engine: a handle that outlived its engine must not be taken for one of the next.
std::atomic<Ticket> next_ticket{1};

}  // namespace

std::shared_ptr<Handle> HandleTable::create(const std::function<void(Handle&)>& fill) {
  auto handle = std::make_shared<Handle>();
  fill(*handle);
  const std::lock_guard lock(mutex_);
  handle->ticket = next_ticket++;
  handles_.emplace(handle->ticket, handle);
  return handle;
}

std::shared_ptr<Handle> HandleTable::find(Ticket ticket) const {
  const std::lock_guard lock(mutex_);
  const auto it = handles_.find(ticket);
  return it == handles_.end() ? nullptr : it->second;
}

void HandleTable::erase(Ticket ticket) {
  const std::lock_guard lock(mutex_);
  handles_.erase(ticket);
}

size_t HandleTable::size() const {
  const std::lock_guard lock(mutex_);
  return handles_.size();
}

void HandleTable::complete(Handle& handle, Status status) {
  handle.status = std::move(status);
  const std::lock_guard lock(mutex_);
  handle.complete.store(true, std::memory_order_release);
  if (sleepers_ > 0) changed_.notify_all();
}

void HandleTable::sleep(const Handle& handle, Time deadline) {
  std::unique_lock lock(mutex_);
  const auto is_complete = [&] { return handle.complete.load(std::memory_order_acquire); };
  ++sleepers_;
  if (deadline == kNever) {
    changed_.wait(lock, is_complete);
  } else {
    changed_.wait_until(lock, deadline, is_complete);
  }
  --sleepers_;
}

}  // namespace ronde::engine
