// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <thread>

#include "cli/bench.h"
#include "ronde/ronde.hpp"

namespace ronde::cli {
namespace {

using Seconds = std::chrono::duration<double>;
using SteadyTime = std::chrono::steady_clock;

constexpr double kTimePerSize = 0.5;  // seconds, at least `repeats` timings
constexpr int kMostRepeats = 20000;

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

// The slowest rank's time of each repeat, since an operation is over when all have it.
double median_over_ranks(Session& session, std::vector<double> times) {
  session.allreduce(std::span(times), "", RONDE_MAX).wait();
  return median(std::move(times));
}

std::vector<double> time_all(Session& session, int repeats, const std::function<void()>& once) {
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) {
    session.barrier().wait();
    const auto begin = SteadyTime::now();
    once();
    times.push_back(Seconds(SteadyTime::now() - begin).count());
  }
  return times;
}

// As many as fit the time, equal on all ranks.
int choose_repeats(Session& session, int least, double once) {
  std::vector<double> longest{once};
  session.allreduce(std::span(longest), "", RONDE_MAX).wait();
  const double fit = kTimePerSize / std::max(longest[0], 1e-7);
  return std::clamp(static_cast<int>(fit), least, kMostRepeats);
}

// Small whole numbers: every sum is exact, and differs by rank and place.
float value_at(int rank, size_t i) {
  return static_cast<float>((i * 7 + static_cast<size_t>(rank) * 3) % 64);
}

bool check_allreduce(Session& session, std::vector<float>& data, const std::string& name) {
  for (size_t i = 0; i < data.size(); ++i) data[i] = value_at(session.rank(), i);
  session.allreduce(std::span(data), name).wait();
  for (size_t i = 0; i < data.size(); ++i) {
    float expected = 0;
    for (int r = 0; r < session.size(); ++r) expected += value_at(r, i);
    if (data[i] != expected) return false;
  }
  std::ranges::fill(data, 0.0f);
  return true;
}

struct Row {
  double reduce = 0;
  double copy = 0;
  bool right = false;
};

Row measure(Session& session, int64_t bytes, int least) {
  std::vector<float> data(static_cast<size_t>(bytes) / sizeof(float));
  std::vector<float> copy(data.size());
  const std::string name = "bench" + std::to_string(bytes);
  Row row;
  // Twice: the second finds the name known and the memory touched, and says how often the size can be run.
  row.right = check_allreduce(session, data, name);
  const auto begin = SteadyTime::now();
  row.right = check_allreduce(session, data, name) && row.right;
  const int repeats = choose_repeats(session, least, Seconds(SteadyTime::now() - begin).count());
  row.reduce =
      median_over_ranks(session, time_all(session, repeats, [&] { session.allreduce(std::span(data), name).wait(); }));
  row.copy = median_over_ranks(session, time_all(session, repeats, [&] {
                                 std::memcpy(copy.data(), data.data(), static_cast<size_t>(bytes));
                                 asm volatile("" : : "r"(copy.data()) : "memory");
                               }));
  return row;
}

// Takes a core for itself, as a neighbour that computes would.
void compute(const std::stop_token& stop) {
  volatile double x = 1;
  while (!stop.stop_requested()) x = x * 1.0000001;
}

template <class Body>
int guarded(const Body& body) {
  try {
    return body();
  } catch (const Error& error) {
    std::fprintf(stderr, "ronde bench: %s\n", error.what());
    return 1;
  }
}

int print_latency(Session& session, std::vector<double> times) {
  session.allreduce(std::span(times), "", RONDE_MAX).wait();
  std::ranges::sort(times);
  const auto at = [&](double share) {
    return times[static_cast<size_t>(share * static_cast<double>(times.size() - 1))] * 1e6;
  };
  if (session.rank() != 0) return 0;
  std::printf("allreduce of 8 B, %d ranks, submit to done: median %.1f us, 90%% %.1f us, 99%% %.1f us (%zu timings)\n",
              session.size(), at(0.5), at(0.9), at(0.99), times.size());
  return 0;
}

}  // namespace

int run_bench(const AllreduceBench& bench) {
  return guarded([&] {
    Session session;
    const char* reason = "";
    const char* transport = ronde_transport(session.engine(), &reason);
    if (session.rank() == 0) {
      std::printf(
          "# allreduce, float32 sum in place, %d ranks over %s; memcpy: each rank copies as many bytes at the same "
          "time\n",
          session.size(), transport);
      std::printf("%12s %12s %10s %12s %8s  %s\n", "bytes", "median us", "bus GB/s", "memcpy us", "ratio", "result");
    }
    bool all_right = true;
    for (const int64_t bytes : bench.sizes) {
      const Row row = measure(session, bytes, bench.repeats);
      std::vector<uint8_t> right{static_cast<uint8_t>(row.right)};
      session.allreduce(std::span(right), "", RONDE_MIN).wait();
      all_right = all_right && right[0] == 1;
      if (session.rank() != 0) continue;
      const double bus = 2.0 * (session.size() - 1) / session.size() * static_cast<double>(bytes) / row.reduce / 1e9;
      std::printf("%12lld %12.1f %10.2f %12.1f %8.2f  %s\n", static_cast<long long>(bytes), row.reduce * 1e6, bus,
                  row.copy * 1e6, row.reduce / row.copy, right[0] == 1 ? "ok" : "WRONG");
      std::fflush(stdout);
    }
    return all_right ? 0 : 1;
  });
}

int run_bench(const LatencyBench& bench) {
  return guarded([&] {
    const std::jthread neighbour = bench.busy ? std::jthread(compute) : std::jthread();
    Session session;
    std::vector<double> data(1);
    std::vector<double> times;
    constexpr int kWarmUp = 1000;
    for (int i = 0; i < bench.repeats + kWarmUp; ++i) {
      data[0] = session.rank() + 1;
      const auto begin = SteadyTime::now();
      session.allreduce(std::span(data), "latency").wait();
      if (i >= kWarmUp) times.push_back(Seconds(SteadyTime::now() - begin).count());
      if (data[0] != session.size() * (session.size() + 1) / 2.0) {
        std::fprintf(stderr, "ronde bench: wrong result\n");
        return 1;
      }
    }
    return print_latency(session, std::move(times));
  });
}

}  // namespace ronde::cli
