// SPDX-License-Identifier: Apache-2.0
#include "engine/submissions.h"

#include <utility>

namespace ronde::engine {
namespace {

std::string key_of(SetId set, const std::string& name) {
  return cat(set, ':', name);
}

}  // namespace

Status SubmissionQueue::push(QueuedSubmission submission) {
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < submission.requests.size(); ++i) {
    const Request& request = submission.requests[i];
    if (request.name.empty() || names_.insert(key_of(request.set, request.name)).second) continue;
    for (size_t k = 0; k < i; ++k) {
      const Request& earlier = submission.requests[k];
      if (!earlier.name.empty()) names_.erase(key_of(earlier.set, earlier.name));
    }
    return Status(
        Code::InvalidArgument,
        cat(describe(request.signature, request.name, 0),
            ": an operation with this name is still in flight on this rank; wait for it or use another name"));
  }
  if (submission.more) {
    held_.insert(submission.requests.front().set);
  } else if (!submission.requests.empty()) {
    held_.erase(submission.requests.front().set);
  }
  queue_.push_back(std::move(submission));
  count_.store(queue_.size(), std::memory_order_seq_cst);
  return {};
}

bool SubmissionQueue::push_flush() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(held_, {}).empty()) return false;
  queue_.push_back({.requests = {}, .tickets = {}, .more = false, .flush = true});
  count_.store(queue_.size(), std::memory_order_seq_cst);
  return true;
}

std::vector<QueuedSubmission> SubmissionQueue::take() {
  const std::lock_guard lock(mutex_);
  count_.store(0, std::memory_order_seq_cst);
  return std::exchange(queue_, {});
}

void SubmissionQueue::release_name(SetId set, const std::string& name) {
  if (name.empty()) return;
  const std::lock_guard lock(mutex_);
  names_.erase(key_of(set, name));
}

}  // namespace ronde::engine
