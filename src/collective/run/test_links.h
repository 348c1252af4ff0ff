// SPDX-License-Identifier: Apache-2.0
// For tests: links with the least that Link promises. Nothing is buffered: a byte moves from the sender's memory to the
// receiver's only when both have posted it and one of them advances, and a send is done when its last byte was
// received. So a collective that counts on buffers stands still, and one that reuses memory too early sends wrong
// bytes. Thread: any, one per rank.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "transport/link.h"

namespace ronde::collective {

// One way of one stream between two ranks.
struct TestWay {
  struct Send {
    transport::FrameTag tag;
    std::vector<ByteSpan> pieces;
    size_t bytes = 0;
    size_t moved = 0;
  };
  struct Receive {
    transport::FrameTag tag;
    std::span<std::byte> into;
  };
  std::deque<Send> sends;
  std::deque<Receive> receives;
  uint64_t sends_done = 0;
  uint64_t recvs_done = 0;
  uint64_t bytes_moved = 0;
};

class TestNet {
 public:
  explicit TestNet(size_t bytes_a_call) : bytes_a_call_(bytes_a_call) {}

  std::mutex mutex;  // guards everything below, and the order in which memory of several ranks is touched
  TestWay& way(int32_t from, int32_t to, int stream) { return ways_[{from, to, stream}]; }

  uint64_t bytes_sent(int32_t from) const {
    uint64_t sum = 0;
    for (const auto& [key, way] : ways_)
      if (std::get<0>(key) == from) sum += way.bytes_moved;
    return sum;
  }

  Status move(TestWay& way) const {
    size_t budget = bytes_a_call_;
    while (!way.sends.empty() && !way.receives.empty()) {
      TestWay::Send& send = way.sends.front();
      const TestWay::Receive& receive = way.receives.front();
      if (!(send.tag == receive.tag) || send.bytes != receive.into.size())
        return Status(Code::Internal, cat("frame of step ", send.tag.step, " with ", send.bytes, " bytes where step ",
                                          receive.tag.step, " with ", receive.into.size(), " bytes was expected"));
      while (budget > 0 && send.moved < send.bytes) {
        const size_t count = copy_some(send, receive, budget);
        budget -= count;
        way.bytes_moved += count;
      }
      if (send.moved < send.bytes) break;
      way.sends.pop_front();
      way.receives.pop_front();
      ++way.sends_done;
      ++way.recvs_done;
    }
    return {};
  }

 private:
  // Bytes of one piece.
  static size_t copy_some(TestWay::Send& send, const TestWay::Receive& receive, size_t budget) {
    size_t skip = send.moved;
    for (const ByteSpan piece : send.pieces) {
      if (skip >= piece.size()) {
        skip -= piece.size();
        continue;
      }
      const size_t count = std::min(budget, piece.size() - skip);
      std::memcpy(receive.into.data() + send.moved, piece.data() + skip, count);
      send.moved += count;
      return count;
    }
    return 0;
  }

  size_t bytes_a_call_;
  std::map<std::tuple<int32_t, int32_t, int>, TestWay> ways_;
};

class TestLink final : public transport::Link {
 public:
  TestLink(TestNet& net, int32_t self, int32_t peer, int stream)
      : net_(net), out_(net.way(self, peer, stream)), in_(net.way(peer, self, stream)) {}

  void post_send(const transport::FrameTag& tag, std::span<const ByteSpan> pieces) override {
    const std::lock_guard lock(net_.mutex);
    TestWay::Send send{.tag = tag, .pieces = {pieces.begin(), pieces.end()}};
    for (const ByteSpan piece : pieces) send.bytes += piece.size();
    out_.sends.push_back(std::move(send));
  }
  void post_recv(const transport::FrameTag& tag, std::span<std::byte> into) override {
    const std::lock_guard lock(net_.mutex);
    in_.receives.push_back({.tag = tag, .into = into});
  }
  uint64_t sends_done() const override {
    const std::lock_guard lock(net_.mutex);
    return out_.sends_done;
  }
  uint64_t recvs_done() const override {
    const std::lock_guard lock(net_.mutex);
    return in_.recvs_done;
  }
  Status advance() override {
    const std::lock_guard lock(net_.mutex);
    if (!closed_.ok()) return closed_;
    RONDE_TRY(net_.move(out_));
    return net_.move(in_);
  }
  void close(const Status& reason) override {
    const std::lock_guard lock(net_.mutex);
    if (!closed_.ok()) return;
    closed_ = reason;
    out_.sends.clear();
    in_.receives.clear();
  }
  Status closed() const { return closed_; }

 private:
  TestNet& net_;
  TestWay& out_;
  TestWay& in_;
  Status closed_;
};

class TestLinkTable final : public transport::LinkTable {
 public:
  TestLinkTable(TestNet& net, int32_t self) : net_(net), self_(self) {}
  TestLink& link(int32_t peer, int stream) override {
    const std::lock_guard lock(net_.mutex);
    auto& made = links_[{peer, stream}];
    if (made == nullptr) made = std::make_unique<TestLink>(net_, self_, peer, stream);
    return *made;
  }
  size_t opened() const { return links_.size(); }

 private:
  TestNet& net_;
  int32_t self_;
  std::map<std::pair<int32_t, int>, std::unique_ptr<TestLink>> links_;
};

}  // namespace ronde::collective
