// SPDX-License-Identifier: Apache-2.0
// The carrier within one rank: two queues in its memory, bounded like a ring of the board.
#include <deque>
#include <mutex>

#include "control/ring.h"
#include "control/tcp_carrier.h"

namespace ronde::control {
namespace {

struct Queue {
  std::deque<Bytes> frames;
  size_t bytes = 0;
};

// Shared by the two ends, of which either may go first.
struct Pipe {
  std::mutex mutex;  // guards all below
  Queue queues[2];
  bool closed = false;
};

class LocalCarrier final : public Carrier {
 public:
  LocalCarrier(std::shared_ptr<Pipe> pipe, int side) : pipe_(std::move(pipe)), side_(side) {}
  ~LocalCarrier() override {
    const std::lock_guard lock(pipe_->mutex);
    pipe_->closed = true;
  }

  Result<bool> try_send(ByteSpan frame) override {
    RONDE_CHECK(frame.size() <= kMaxFrameBytes, "a control frame is at most kMaxFrameBytes");
    const std::lock_guard lock(pipe_->mutex);
    if (pipe_->closed) return closed();
    auto& queue = pipe_->queues[1 - side_];
    const size_t bytes = frame.size() + sizeof(uint32_t);  // so that empty frames count too
    if (queue.bytes + bytes > kRingBytes) return false;
    queue.bytes += bytes;
    queue.frames.emplace_back(frame.begin(), frame.end());
    return true;
  }

  Result<std::optional<Bytes>> try_recv() override {
    const std::lock_guard lock(pipe_->mutex);
    auto& queue = pipe_->queues[side_];
    if (queue.frames.empty()) {
      if (pipe_->closed) return closed();
      return std::optional<Bytes>();
    }
    Bytes frame = std::move(queue.frames.front());
    queue.frames.pop_front();
    queue.bytes -= frame.size() + sizeof(uint32_t);
    return std::optional(std::move(frame));
  }

 private:
  static Status closed() { return Status(Code::PeerLost, "this rank's own end of the control carrier is closed"); }
  std::shared_ptr<Pipe> pipe_;
  int side_;
};

}  // namespace

std::pair<std::unique_ptr<Carrier>, std::unique_ptr<Carrier>> make_local_carrier() {
  auto pipe = std::make_shared<Pipe>();
  return {std::make_unique<LocalCarrier>(pipe, 0), std::make_unique<LocalCarrier>(pipe, 1)};
}

}  // namespace ronde::control
