// SPDX-License-Identifier: Apache-2.0
// OutputWriter: writes to descriptors that may block for as long as their reader likes (a pager, a stopped terminal),
// on a thread of its own, so that the launcher goes on to hear of failures. How much waits is bounded by the credit
// that the agents have. Thread: "ronde-output" writes; everything else from one thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "os/doorbell.h"

namespace ronde::launch {

class OutputWriter {
 public:
  struct Target {
    int fd = -1;  // outlives the writer
    std::string name;
  };
  struct Failure {
    size_t target = 0;
    std::string text;
    bool no_reader = false;  // a closed pipe, and not a full disk
  };
  struct Progress {
    size_t credit = 0;              // of what was written or given up since the last call
    std::vector<Failure> failures;  // one per target; what goes there later is dropped
    bool idle = false;              // nothing waits
  };

  static Result<std::unique_ptr<OutputWriter>> start(std::vector<Target> targets);
  // What is still waiting is lost.
  ~OutputWriter();

  void write(size_t target, std::string bytes, size_t credit);
  int fd() const { return shared_->bell.fd(); }  // readable when there is progress
  Progress take();

 private:
  struct Block {
    size_t target;
    std::string bytes;
    size_t credit;
  };
  // Owned by both threads: a blocked one may be left behind.
  struct Shared {
    explicit Shared(os::Doorbell doorbell) : bell(std::move(doorbell)) {}
    os::Doorbell bell;
    std::vector<Target> targets;
    std::mutex mutex;  // guards what follows
    std::condition_variable wake;
    std::deque<Block> blocks;
    Progress progress;
    bool writing = false;
    bool stop = false;
  };
  explicit OutputWriter(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  static void work(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace ronde::launch
