// SPDX-License-Identifier: Apache-2.0
// For tests: groups of ranks that run batches in one process, over an arena or over links, driven by one thread in a
// random order or by a thread each.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>

#include "collective/run/alone.h"
#include "collective/run/ring.h"
#include "collective/run/staged.h"
#include "collective/run/test_batches.h"
#include "collective/run/test_links.h"
#include "os/region.h"
#include "transport/memory_link.h"

namespace ronde::collective {

// Ranks that can start a batch.
class TestGroup {
 public:
  virtual ~TestGroup() = default;
  virtual std::unique_ptr<Running> start(Rank rank, const BoundBatch& bound) = 0;
};

class CountingWaker final : public transport::Waker {
 public:
  void wake(std::span<const int> local_ranks) override {
    ++calls;
    ranks += local_ranks.size();
  }
  std::atomic<uint64_t> calls{0};
  std::atomic<uint64_t> ranks{0};
};

// Local ranks run against the global ones, so that a mix-up shows.
class StagedGroup final : public TestGroup {
 public:
  StagedGroup(int ranks, int slots, size_t slot_bytes)
      : layout_{.ranks = ranks, .slots = slots, .slot_bytes = slot_bytes},
        region_(os::Region::create_heap(layout_.bytes()).value()),
        arena_(region_.data(), layout_) {
    std::vector<int> locals;
    for (int rank = 0; rank < ranks; ++rank) locals.push_back(ranks - 1 - rank);
    for (int rank = 0; rank < ranks; ++rank)
      contexts_.push_back(std::make_unique<StagedContext>(arena_, waker_, rank, locals));
  }
  std::unique_ptr<Running> start(Rank rank, const BoundBatch& bound) override {
    if (bound.batch.members.size() == 1) return start_alone(bound);
    return start_staged(context(rank), bound);
  }
  StagedContext& context(Rank rank) { return *contexts_[static_cast<size_t>(rank)]; }
  const CountingWaker& waker() const { return waker_; }

 private:
  transport::ArenaLayout layout_;
  os::Region region_;
  transport::Arena arena_;
  CountingWaker waker_;
  std::vector<std::unique_ptr<StagedContext>> contexts_;
};

// Ranks with a ring over some links.
class LinkGroup : public TestGroup {
 public:
  std::unique_ptr<Running> start(Rank rank, const BoundBatch& bound) override {
    if (bound.batch.members.size() == 1) return start_alone(bound);
    return start_ring(*contexts_[static_cast<size_t>(rank)], bound);
  }

 protected:
  // The next rank.
  void add(transport::LinkTable& links, size_t segment_bytes) {
    const RingOptions options{.self = static_cast<Rank>(contexts_.size()), .epoch = 7, .segment_bytes = segment_bytes};
    contexts_.push_back(std::make_unique<RingContext>(links, options));
  }

 private:
  std::vector<std::unique_ptr<RingContext>> contexts_;
};

class RingGroup final : public LinkGroup {
 public:
  // bytes_a_call: what a link moves in one advance() at most.
  RingGroup(int ranks, size_t segment_bytes, size_t bytes_a_call = SIZE_MAX) : net_(bytes_a_call) {
    for (int rank = 0; rank < ranks; ++rank) {
      tables_.push_back(std::make_unique<TestLinkTable>(net_, rank));
      add(*tables_.back(), segment_bytes);
    }
  }
  TestLinkTable& table(Rank rank) { return *tables_[static_cast<size_t>(rank)]; }
  uint64_t bytes_sent(Rank rank) const { return net_.bytes_sent(rank); }

 private:
  TestNet net_;
  std::vector<std::unique_ptr<TestLinkTable>> tables_;
};

// With the frames of TCP, torn by buffers of `capacity` bytes.
class FramedGroup final : public LinkGroup {
 public:
  FramedGroup(int ranks, size_t segment_bytes, size_t capacity) : net_(ranks, capacity) {
    for (int rank = 0; rank < ranks; ++rank) add(net_.table(rank), segment_bytes);
  }

 private:
  transport::MemoryNetwork net_;
};

// One rank's way through the batches that concern it, one after another.
class RankWalk {
 public:
  RankWalk(TestGroup& group, Rank rank, const std::vector<TestBatch*>& batches) : group_(group), rank_(rank) {
    for (TestBatch* test : batches)
      for (size_t m = 0; m < test->batch.members.size(); ++m)
        if (test->batch.members[m] == rank) todo_.push_back(&test->bound[m]);
  }
  bool done() const { return at_ == todo_.size(); }
  size_t batches_done() const { return at_; }
  // One advance() of the current batch.
  Result<Progress> step() {
    if (running_ == nullptr) running_ = group_.start(rank_, *todo_[at_]);
    auto progress = running_->advance();
    if (progress.ok() && *progress == Progress::Done) {
      running_.reset();
      ++at_;
    }
    return progress;
  }

 private:
  TestGroup& group_;
  Rank rank_;
  std::vector<const BoundBatch*> todo_;
  size_t at_ = 0;
  std::unique_ptr<Running> running_;
};

// Steps the ranks in a random order, with runs of random length for one rank, until all are through. A group that
// stands still fails.
inline void run_interleaved(TestGroup& group, int ranks, const std::vector<TestBatch*>& batches, Random& random) {
  std::vector<RankWalk> walks;
  for (Rank rank = 0; rank < ranks; ++rank) walks.emplace_back(group, rank, batches);
  std::vector<size_t> open;
  for (size_t i = 0; i < walks.size(); ++i)
    if (!walks[i].done()) open.push_back(i);
  int idle = 0;
  while (!open.empty()) {
    const auto pick = static_cast<size_t>(uniform(random, 0, static_cast<int>(open.size()) - 1));
    RankWalk& walk = walks[open[pick]];
    for (int burst = uniform(random, 1, 6); burst > 0 && !walk.done(); --burst) {
      const auto progress = walk.step();
      ASSERT_TRUE(progress.ok()) << progress.status().to_string();
      idle = *progress == Progress::Blocked ? idle + 1 : 0;
    }
    if (walk.done()) open.erase(open.begin() + static_cast<ptrdiff_t>(pick));
    ASSERT_LT(idle, 200'000) << "every rank is blocked";
  }
}

// A thread for each rank. Yields while blocked: the tests have no engine to sleep in.
inline void run_threads(TestGroup& group, int ranks, const std::vector<TestBatch*>& batches) {
  std::vector<std::jthread> threads;
  for (Rank rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&group, rank, &batches] {
      RankWalk walk(group, rank, batches);
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
      while (!walk.done()) {
        const auto progress = walk.step();
        ASSERT_TRUE(progress.ok()) << progress.status().to_string();
        if (*progress == Progress::Blocked) std::this_thread::yield();
        ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "rank " << rank << " is blocked";
      }
    });
  }
}

}  // namespace ronde::collective
