// SPDX-License-Identifier: Apache-2.0
// Places on a ring of `size` members.
#pragma once

namespace ronde::collective {

struct Ring {
  int index;
  int size;
  // The place that `steps` reaches when counted around the ring; steps may be negative.
  int wrap(int steps) const { return ((steps % size) + size) % size; }
  int left() const { return wrap(index - 1); }
  int right() const { return wrap(index + 1); }
};

}  // namespace ronde::collective
