// SPDX-License-Identifier: Apache-2.0
// Outbox: what a rank has still to tell the coordinator, in order. Submissions marked `more` are held apart, per set,
// until a flush or a submission without `more` in their set sends them on; or at once if the member is eager, or when
// they become very many.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "coord/codec.h"
#include "op/request.h"

namespace ronde::coord {

// A submission that is not encoded yet: its ids are looked up when it is sent.
struct Tensor {
  Request request;
  uint64_t number = 0;  // if unnamed
  bool more = false;
};
using Outgoing = std::variant<Tensor, Group, Flush, Leave>;

class Outbox {
 public:
  explicit Outbox(bool eager) : eager_(eager) {}

  // One call of the user: one tensor or a group, all of one set and with the same `more`.
  void submit(std::vector<Tensor> call);
  void flush(SetId set);
  // What is held is not told any more.
  void leave();

  bool empty() const { return sending_.empty(); }
  std::vector<Outgoing> take() { return std::exchange(sending_, {}); }
  void clear();

 private:
  struct Held {
    std::vector<Outgoing> items;
    size_t name_bytes = 0;
    bool needs_flush = false;  // something was submitted with `more` since the last flush
  };
  void release(Held& held);

  bool eager_;
  std::map<SetId, Held> held_;
  std::vector<Outgoing> sending_;
};

}  // namespace ronde::coord
