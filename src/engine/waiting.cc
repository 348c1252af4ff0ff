// SPDX-License-Identifier: Apache-2.0
#include "engine/waiting.h"

#include <algorithm>

#include "os/cores.h"

namespace ronde::engine {

HostLoad host_load(int local_size) {
  return {.threads = local_size * std::max(1, os::omp_threads()), .cores = os::usable_cores()};
}

Waiting::Waiting(Spin mode, const HostLoad& load)
    : pause_(mode == Spin::Pause || (mode == Spin::Auto && load.threads <= load.cores)), off_(mode == Spin::Off) {}

Rest Waiting::next(Time now, bool all_in_wait) const {
  if (off_ || now < back_off_until_) return Rest::Sleep;
  if (now - worked_ > (all_in_wait ? kTogether : kAlone)) return Rest::Sleep;
  return pause_ && all_in_wait ? Rest::Pause : Rest::Yield;
}

void Waiting::yielded(Duration took, Time now) {
  if (took > kLongYield) back_off_until_ = now + kBackOff;
}

}  // namespace ronde::engine
