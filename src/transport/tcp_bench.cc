// SPDX-License-Identifier: Apache-2.0
// One TCP link over the loopback, a thread at each end: bytes per second of a stream of frames, and the time of a frame
// there and back. What arrives is compared with what was sent.
#include <benchmark/benchmark.h>

#include <array>
#include <cstring>
#include <thread>

#include "transport/tcp_ranks.h"

namespace ronde::transport {
namespace {

constexpr int kOutstanding = 4;

FrameTag tag_of(uint64_t batch) {
  return {.epoch = kTestEpoch, .step = 0, .batch = batch};
}

Bytes payload_of(size_t bytes) {
  Bytes out(bytes);
  for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(i * 31 + i / 255);
  return out;
}

struct End {
  TcpRanks& ranks;
  int32_t rank;
  Link& link{ranks.at(rank).table->link(1 - rank, 0)};

  // Drives until the counter has the value; sleeps where nothing can be done.
  template <class Counter>
  void until(const Counter& counter, uint64_t value) {
    for (;;) {
      ranks.pump(rank);
      const Status status = link.advance();
      RONDE_CHECK(status.ok(), status.message().c_str());
      if ((link.*counter)() >= value) return;
      const int fd = ranks.at(rank).events.fd();
      os::sleep_until_readable({&fd, 1}, kNever);
    }
  }
  void send(uint64_t batch, ByteSpan payload) { link.post_send(tag_of(batch), {&payload, 1}); }
};

// The far end: takes `frames` frames of the payload's size and answers the last, or each, with an empty one.
void far_end(TcpRanks& ranks, ByteSpan expected, uint64_t frames, bool answer_each) {
  End end{ranks, 1};
  std::array<Bytes, kOutstanding> into;
  into.fill(Bytes(expected.size()));
  uint64_t posted = 0;
  for (uint64_t done = 0; done < frames; ++done) {
    for (; posted < frames && posted < done + kOutstanding; ++posted) {
      end.link.post_recv(tag_of(posted), into[posted % kOutstanding]);
    }
    end.until(&Link::recvs_done, done + 1);
    RONDE_CHECK(std::equal(expected.begin(), expected.end(), into[done % kOutstanding].begin()), "other bytes arrived");
    if (answer_each || done + 1 == frames) end.send(done, {});
  }
  end.until(&Link::sends_done, answer_each ? frames : 1);
}

void stream(benchmark::State& state) {
  const Bytes payload = payload_of(static_cast<size_t>(state.range(0)));
  constexpr uint64_t kFrames = 64;
  for (auto _ : state) {
    state.PauseTiming();
    TcpRanks ranks(2);
    std::thread peer([&] { far_end(ranks, payload, kFrames, false); });
    End end{ranks, 0};
    state.ResumeTiming();
    for (uint64_t i = 0; i < kFrames; ++i) end.send(i, payload);
    end.link.post_recv(tag_of(kFrames - 1), {});
    end.until(&Link::recvs_done, 1);
    state.PauseTiming();
    peer.join();
    state.ResumeTiming();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kFrames * payload.size()));
}
BENCHMARK(stream)->Arg(4 << 10)->Arg(64 << 10)->Arg(256 << 10)->Arg(1 << 20)->Arg(4 << 20)->UseRealTime();

void there_and_back(benchmark::State& state) {
  const Bytes payload = payload_of(static_cast<size_t>(state.range(0)));
  TcpRanks ranks(2);
  const auto frames = static_cast<uint64_t>(state.max_iterations);
  std::thread peer([&] { far_end(ranks, payload, frames, true); });
  End end{ranks, 0};
  uint64_t i = 0;
  for (auto _ : state) {
    end.send(i, payload);
    end.link.post_recv(tag_of(i), {});
    end.until(&Link::recvs_done, ++i);
  }
  peer.join();
}
BENCHMARK(there_and_back)->Arg(8)->Arg(4 << 10)->Arg(256 << 10)->UseRealTime();

}  // namespace
}  // namespace ronde::transport
