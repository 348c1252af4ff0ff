// SPDX-License-Identifier: Apache-2.0
// Time as a value that is handed in. Nothing below engine/wiring asks the system for the time.
#pragma once

#include <atomic>
#include <chrono>

namespace ronde {

using Time = std::chrono::steady_clock::time_point;
using Duration = std::chrono::nanoseconds;

// "Never", as a deadline.
constexpr Time kNever = Time::max();

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time now() const = 0;
};

class SteadyClock final : public Clock {
 public:
  Time now() const override { return std::chrono::steady_clock::now(); }
};

// Time that a test moves. Thread: any.
class ManualClock final : public Clock {
 public:
  Time now() const override { return Time(Duration(nanos_.load())); }
  void advance(Duration by) { nanos_.fetch_add(by.count()); }

 private:
  std::atomic<int64_t> nanos_{1'000'000'000};
};

}  // namespace ronde
