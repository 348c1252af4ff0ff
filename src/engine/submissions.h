// SPDX-License-Identifier: Apache-2.0
// SubmissionQueue: from the users' threads to the driver. Knows which names are in flight, so that a name used twice is
// an error at once, at the caller. Thread: any.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "engine/handles.h"
#include "op/request.h"

namespace ronde::engine {

struct QueuedSubmission {
  std::vector<Request> requests;
  std::vector<Ticket> tickets;
  bool more = false;
  bool flush = false;  // everything before this may be cut; no requests
  bool leave = false;  // this rank's shutdown; one ticket, no requests
};

class SubmissionQueue {
 public:
  // Reserves the names; an error names the one that is taken, and reserves none.
  Status push(QueuedSubmission submission);
  // Asks for a flush if something was submitted with `more` since the last one. True if it was asked.
  bool push_flush();
  std::vector<QueuedSubmission> take();
  bool empty() const { return count_.load(std::memory_order_seq_cst) == 0; }
  void release_name(SetId set, const std::string& name);

 private:
  std::mutex mutex_;  // guards everything below
  std::vector<QueuedSubmission> queue_;
  std::unordered_set<std::string> names_;  // "set:name"
  std::unordered_set<SetId> held_;         // in which something was submitted with `more` since the last flush
  // So that the driver's look costs no lock.
  std::atomic<size_t> count_{0};
};

}  // namespace ronde::engine
