// SPDX-License-Identifier: Apache-2.0
// Who drives, and how they sleep.
//
// A user's thread that waits takes the progress lock and drives until its handle is complete; when it has to sleep it
// does so on the waiter's bell, so that the loop thread, asleep on its own bell, is not woken for nothing. When it
// leaves, the loop thread is rung only if something is left to be done. The loop thread never sleeps with the lock;
// where it finds the lock taken it parks, and the driver unparks it when it leaves.
#include <algorithm>

#include "engine/engine.h"
#include "os/cores.h"
#include "os/thread.h"

namespace ronde::engine {
namespace {

constexpr int kPausesPerLook = 16;

}  // namespace

void Engine::drive(Time deadline, const Handle& handle) {
  const Clock& clock = *parts_.time.clock;
  parts_.board->set_sleeping(control::Sleeping::Awake);
  parts_.board->set_in_wait(true);
  waiting_.worked(clock.now());
  while (!handle.complete.load(std::memory_order_acquire)) {
    if (step()) {
      waiting_.worked(clock.now());
      continue;
    }
    if (clock.now() >= deadline) break;
    rest(deadline);
  }
  parts_.board->set_in_wait(false);
}

void Engine::rest(Time deadline) {
  const Clock& clock = *parts_.time.clock;
  const Time now = clock.now();
  switch (waiting_.next(now, parts_.board->all_in_wait(locals_))) {
    case Rest::Pause:
      for (int i = 0; i < kPausesPerLook; ++i) os::pause();
      break;
    case Rest::Yield: {
      os::yield();
      const Time after = clock.now();
      waiting_.yielded(after - now, after);
      break;
    }
    case Rest::Sleep:
      parts_.board->set_sleeping(control::Sleeping::OnWaiterBell);
      // What came between the last look and the word would not ring.
      if (!step()) sleep(control::Sleeping::OnWaiterBell, std::min(deadline, next_deadline()));
      next_look_ = {};
      parts_.board->set_sleeping(control::Sleeping::Awake);
      break;
  }
}

void Engine::sleep(control::Sleeping which, Time deadline) {
  const auto& bells = parts_.memory->bells[static_cast<size_t>(parts_.board->local_rank())];
  const os::Doorbell& bell = bells[which == control::Sleeping::OnLoopBell ? 0 : 1];
  const int fds[] = {bell.fd(), parts_.events->fd()};
  ++counted_.wakeups;
  parts_.time.sleeper->sleep(fds, deadline);
  bell.drain();
}

void Engine::loop() {
  os::name_this_thread("ronde-loop");
  while (!stop_) {
    std::unique_lock progress(progress_, std::try_to_lock);
    if (!progress.owns_lock()) {
      // Parked before the second try: a driver that leaves sees either the word or a free lock.
      loop_parked_ = 1;
      if (!progress.try_lock()) {
        loop_parked_.wait(1);
        continue;
      }
      loop_parked_ = 0;
    }
    next_look_ = {};
    while (step()) {
    }
    const Time now = parts_.time.clock->now();
    if (serving_self_ && !serves(now)) break;
    parts_.board->set_sleeping(control::Sleeping::OnLoopBell);
    if (step()) continue;
    const Time until = serving_self_ ? std::min(next_deadline(), serve_until_) : next_deadline();
    loop_sleeps_until_ = until;
    progress.unlock();
    sleep(control::Sleeping::OnLoopBell, until);
  }
  // The last owner goes with this thread.
  const std::shared_ptr<Engine> self = std::exchange(serving_self_, nullptr);
}

void Engine::hand_over(std::unique_lock<std::mutex> progress) {
  parts_.board->set_sleeping(control::Sleeping::OnLoopBell);
  const bool worked = step();
  const bool ring = worked || !batches_.empty() || next_deadline() < loop_sleeps_until_.load();
  progress.unlock();
  if (loop_parked_.exchange(0) == 1) loop_parked_.notify_one();
  if (ring) parts_.memory->bells[static_cast<size_t>(parts_.board->local_rank())][0].ring();
}

void Engine::stop_loop() {
  stop_ = true;
  if (loop_parked_.exchange(0) == 1) loop_parked_.notify_one();
  parts_.memory->bells[static_cast<size_t>(parts_.board->local_rank())][0].ring();
  thread_.join();
}

void Engine::wake_driver() {
  const int self = parts_.board->local_rank();
  parts_.board->wake(std::span(&self, 1));
}

bool Engine::serves(Time now) const {
  return parts_.topology.rank == 0 && !failed_ && now < serve_until_ && has_left() &&
         left_.size() < static_cast<size_t>(parts_.topology.size);
}

}  // namespace ronde::engine
