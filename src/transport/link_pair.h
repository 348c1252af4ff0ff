// SPDX-License-Identifier: Apache-2.0
// For tests: the two ends of one link, of whatever kind, in one process.
#pragma once

#include <cstddef>

#include "transport/link.h"

namespace ronde::transport {

class LinkPair {
 public:
  virtual ~LinkPair() = default;
  virtual Link& end(int which) = 0;  // 0 or 1
  // What the engine does beside advance(): accepts, collects readiness. Each end by the thread that drives it.
  virtual void pump(int which) = 0;
  // A payload that does not fit into what lies between the ends.
  virtual size_t more_than_it_buffers() const = 0;
  // As if the process of this end were gone.
  virtual void vanish(int which) = 0;
};

}  // namespace ronde::transport
