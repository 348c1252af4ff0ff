// SPDX-License-Identifier: Apache-2.0
// Links between ranks of one process, for tests: the frames of TCP over queues of bytes, each with a settable capacity,
// so that full buffers and torn frames happen on purpose. A link wakes nobody: tests call advance() in turn or from
// several threads.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "transport/framing.h"

namespace ronde::transport {

// One direction of a stream. Thread: any.
class BytePipe {
 public:
  explicit BytePipe(size_t capacity) : capacity_(capacity) {}

  Result<size_t> write(std::span<const ByteSpan> pieces) {
    const std::lock_guard lock(mutex_);
    if (closed_) return gone();
    size_t total = 0;
    for (const ByteSpan piece : pieces) {
      const size_t count = std::min(piece.size(), capacity_ - bytes_.size());
      bytes_.insert(bytes_.end(), piece.begin(), piece.begin() + static_cast<ptrdiff_t>(count));
      total += count;
    }
    return total;
  }
  // What was written before the end is still read.
  Result<size_t> read(std::span<std::byte> into) {
    const std::lock_guard lock(mutex_);
    if (closed_ && bytes_.empty()) return gone();
    const size_t count = std::min(into.size(), bytes_.size());
    const auto end = bytes_.begin() + static_cast<ptrdiff_t>(count);
    std::copy(bytes_.begin(), end, into.begin());
    bytes_.erase(bytes_.begin(), end);
    return count;
  }
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }

 private:
  static Status gone() { return Status(Code::PeerLost, "closed the connection"); }
  const size_t capacity_;
  std::mutex mutex_;  // guards what follows
  Bytes bytes_;
  bool closed_ = false;
};

class MemoryLink final : public Link, private ByteStream {
 public:
  MemoryLink(std::string name, std::shared_ptr<BytePipe> out, std::shared_ptr<BytePipe> in)
      : name_(std::move(name)), out_(std::move(out)), in_(std::move(in)) {}

  void post_send(const FrameTag& tag, std::span<const ByteSpan> pieces) override {
    if (closed_.ok()) framing_.post_send(tag, pieces);
  }
  void post_recv(const FrameTag& tag, std::span<std::byte> into) override {
    if (closed_.ok()) framing_.post_recv(tag, into);
  }
  uint64_t sends_done() const override { return framing_.sends_done(); }
  uint64_t recvs_done() const override { return framing_.recvs_done(); }
  Status advance() override {
    if (!closed_.ok()) return closed_;
    if (const Status status = framing_.advance(*this); !status.ok()) close(status.with_context(name_));
    return closed_;
  }
  void close(const Status& reason) override {
    closed_ = reason;
    framing_.clear();
    out_->close();
    in_->close();
  }

 private:
  Result<size_t> read(std::span<std::byte> into) override { return in_->read(into); }
  Result<size_t> write(std::span<const ByteSpan> pieces) override { return out_->write(pieces); }

  std::string name_;
  std::shared_ptr<BytePipe> out_, in_;
  Framing framing_;
  Status closed_;
};

// All links of a job of `size` ranks. Each rank drives its own table; tables of different ranks may be driven by
// different threads.
class MemoryNetwork {
 public:
  explicit MemoryNetwork(int32_t size, size_t capacity = 64 * 1024) : capacity_(capacity) {
    for (int32_t rank = 0; rank < size; ++rank) tables_.push_back(std::make_unique<Table>(this, rank));
  }
  LinkTable& table(int32_t rank) { return *tables_[static_cast<size_t>(rank)]; }
  // As if the process of this rank were gone. Called by the thread that drives it, or after it has ended.
  void vanish(int32_t rank) {
    const std::lock_guard lock(mutex_);
    for (auto& [key, pipe] : pipes_) {
      if (std::get<0>(key) == rank || std::get<1>(key) == rank) pipe->close();
    }
  }

 private:
  class Table final : public LinkTable {
   public:
    Table(MemoryNetwork* network, int32_t rank) : network_(network), rank_(rank) {}
    Link& link(int32_t peer, int stream) override {
      auto& link = links_[{peer, stream}];
      if (!link) {
        link = std::make_unique<MemoryLink>(cat("memory link of rank ", rank_, " to rank ", peer),
                                            network_->pipe(rank_, peer, stream), network_->pipe(peer, rank_, stream));
      }
      return *link;
    }

   private:
    MemoryNetwork* network_;
    int32_t rank_;
    std::map<std::pair<int32_t, int>, std::unique_ptr<MemoryLink>> links_;
  };

  std::shared_ptr<BytePipe> pipe(int32_t from, int32_t to, int stream) {
    const std::lock_guard lock(mutex_);
    auto& pipe = pipes_[{from, to, stream}];
    if (!pipe) pipe = std::make_shared<BytePipe>(capacity_);
    return pipe;
  }

  const size_t capacity_;
  std::vector<std::unique_ptr<Table>> tables_;
  std::mutex mutex_;  // guards pipes_
  std::map<std::tuple<int32_t, int32_t, int>, std::shared_ptr<BytePipe>> pipes_;
};

}  // namespace ronde::transport
