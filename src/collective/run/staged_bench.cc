// SPDX-License-Identifier: Apache-2.0
// staged_bench [ranks...]: allreduce(sum) of float32 by threads that share an arena, and beside it the time that as
// many threads take to copy the same bytes at the same time. Both are measured alternately, so that their ratio means
// something on a busy machine. Each result is checked.
#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "collective/run/staged.h"
#include "os/region.h"

namespace ronde::collective {
namespace {

using Seconds = std::chrono::duration<double>;

class NoWaker final : public transport::Waker {
 public:
  void wake(std::span<const int> /*local_ranks*/) override {}
};

double now() {
  return Seconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// What the ranks share during one line of the table.
struct Line {
  int ranks;
  int64_t elements;
  int rounds;   // alternations of the two measurements
  int repeats;  // operations in one measurement
  std::barrier<> gate;
  std::vector<double> reduce_times;
  std::vector<double> copy_times;
  std::atomic<bool> wrong{false};

  Line(int n, int64_t count) : ranks(n), elements(count), rounds(15), repeats(repeats_for(count * 4)), gate(n) {}
  static int repeats_for(int64_t bytes) { return static_cast<int>(std::clamp<int64_t>((32 << 20) / bytes, 1, 2000)); }
};

struct Member {
  Rank rank;
  StagedContext context;
  uint64_t batches = 0;
};

Batch batch_of(const Line& line, uint64_t number) {
  Batch batch;
  batch.number = number;
  for (Rank rank = 0; rank < line.ranks; ++rank) batch.members.push_back(rank);
  batch.tensors.push_back({.name = "bench", .number = 0, .shape = Shape{line.elements}, .first_dims = {}});
  return batch;
}

// Aligned as PyTorch aligns tensors; lives to the end of the program.
std::span<float> aligned_floats(size_t count) {
  const size_t bytes = (count * sizeof(float) + 63) / 64 * 64;
  return {static_cast<float*>(std::memset(std::aligned_alloc(64, bytes), 0, bytes)), count};
}

void run_to_end(Running& running, bool may_spin) {
  for (int idle = 0;;) {
    const Progress progress = running.advance().value();
    if (progress == Progress::Done) return;
    idle = progress == Progress::Blocked ? idle + 1 : 0;
    if (idle > (may_spin ? 10'000 : 20)) std::this_thread::yield();
  }
}

void check_result(Line& line, std::span<const float> out) {
  const auto sum = static_cast<float>(line.ranks * (line.ranks + 1) / 2);
  for (size_t i = 0; i < out.size(); ++i)
    if (out[i] != sum * static_cast<float>(i % 7)) line.wrong = true;
}

// One rank's part of a line.
void work(Line& line, Member& member) {
  const auto count = static_cast<size_t>(line.elements);
  const std::span<float> in = aligned_floats(count);
  const std::span<float> out = aligned_floats(count);
  for (size_t i = 0; i < count; ++i) in[i] = static_cast<float>((member.rank + 1) * static_cast<int>(i % 7));
  BoundBatch bound{.batch = batch_of(line, 0), .bindings = {{.in = in.data(), .out = out.data()}}};
  const bool may_spin = line.ranks <= static_cast<int>(std::thread::hardware_concurrency());
  const auto measure = [&](std::vector<double>& times, const auto& operation) {
    line.gate.arrive_and_wait();
    const double start = now();
    for (int i = 0; i < line.repeats; ++i) operation();
    line.gate.arrive_and_wait();
    if (member.rank == 0) times.push_back((now() - start) / line.repeats);
  };
  for (int round = 0; round < line.rounds; ++round) {
    measure(line.reduce_times, [&] {
      bound.batch.number = ++member.batches;
      run_to_end(*start_staged(member.context, bound), may_spin);
    });
    check_result(line, out);
    measure(line.copy_times, [&] { std::memcpy(out.data(), in.data(), count * sizeof(float)); });
  }
}

double median(std::vector<double> times) {
  std::ranges::nth_element(times, times.begin() + static_cast<ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2];
}

bool bench(int ranks) {
  const transport::ArenaLayout layout{.ranks = ranks};
  const os::Region region = os::Region::create_shared("staged-bench", layout.bytes()).value();
  transport::Arena arena(region.data(), layout);
  NoWaker waker;
  std::vector<int> locals;
  for (int i = 0; i < ranks; ++i) locals.push_back(i);
  std::vector<Member> members;
  for (Rank rank = 0; rank < ranks; ++rank) members.push_back({rank, StagedContext(arena, waker, rank, locals)});

  bool right = true;
  std::printf("%d ranks\n%12s %12s %12s %8s\n", ranks, "bytes", "median us", "memcpy us", "ratio");
  for (const int64_t bytes : {8, 256, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20}) {
    Line line(ranks, bytes / 4);
    std::vector<std::jthread> threads;
    for (Member& member : members) threads.emplace_back([&line, &member] { work(line, member); });
    threads.clear();
    const double reduce = median(line.reduce_times);
    const double copy = median(line.copy_times);
    std::printf("%12ld %12.1f %12.1f %8.2f%s\n", static_cast<long>(bytes), reduce * 1e6, copy * 1e6, reduce / copy,
                line.wrong ? "  WRONG" : "");
    right = right && !line.wrong;
  }
  return right;
}

}  // namespace
}  // namespace ronde::collective

int main(int argc, char** argv) {
  bool right = true;
  if (argc == 1) right = ronde::collective::bench(2) && ronde::collective::bench(4);
  for (int i = 1; i < argc; ++i) right = ronde::collective::bench(std::atoi(argv[i])) && right;
  return right ? 0 : 1;
}
