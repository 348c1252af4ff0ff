// SPDX-License-Identifier: Apache-2.0
// The engine as its users see it, on the virtual cluster: over shared memory and over TCP.
#include "engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <latch>
#include <numeric>
#include <random>

#include "engine/virtual_cluster.h"

namespace ronde::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;

Submission allreduce(std::string name, std::vector<float>& data, ReduceOp op = ReduceOp::Sum) {
  return {.request = make_request(OpKind::Allreduce, std::move(name), DType::F32,
                                  Shape{static_cast<int64_t>(data.size())}, op),
          .binding = {.in = data.data(), .out = data.data()}};
}

Ticket submit(Engine& engine, const Submission& submission, bool more = false) {
  const auto tickets = engine.submit(std::span(&submission, 1), more);
  EXPECT_TRUE(tickets.ok()) << tickets.status().message();
  return tickets.ok() ? tickets->front() : 0;
}

Status run(Engine& engine, const Submission& submission) {
  return engine.wait(submit(engine, submission), kNever);
}

struct Mode {
  const char* name;
  int size;
  TransportChoice transport;
};

class OnEveryTransport : public testing::TestWithParam<Mode> {
 protected:
  VirtualCluster::Options options() const {
    Settings settings;
    settings.transport = GetParam().transport;
    settings.slot_bytes = 4096;
    settings.segment_bytes = 4096;
    return {.size = GetParam().size, .settings = settings, .time = nullptr, .no_memory = ""};
  }
};

INSTANTIATE_TEST_SUITE_P(Engine, OnEveryTransport,
                         testing::Values(Mode{"alone", 1, TransportChoice::Auto}, Mode{"shm2", 2, TransportChoice::Shm},
                                         Mode{"shm3", 3, TransportChoice::Shm}, Mode{"shm8", 8, TransportChoice::Shm},
                                         Mode{"tcp2", 2, TransportChoice::Tcp}, Mode{"tcp3", 3, TransportChoice::Tcp},
                                         Mode{"tcp5", 5, TransportChoice::Tcp}),
                         [](const auto& mode) { return mode.param.name; });

TEST_P(OnEveryTransport, allreduce_gives_the_sum_of_all_ranks_everywhere) {
  VirtualCluster cluster(options());
  const int n = cluster.size();
  cluster.run([n](Rank rank, Engine& engine) {
    for (const size_t count : {size_t{0}, size_t{1}, size_t{7}, size_t{5000}, size_t{40000}}) {
      std::vector<float> data(count);
      for (size_t i = 0; i < count; ++i) data[i] = static_cast<float>(rank + 1) * static_cast<float>(i % 100);
      ASSERT_TRUE(run(engine, allreduce(cat("t", count), data)).ok());
      for (size_t i = 0; i < count; ++i) {
        ASSERT_EQ(data[i], static_cast<float>(n * (n + 1) / 2) * static_cast<float>(i % 100)) << count << " " << i;
      }
    }
  });
}

TEST_P(OnEveryTransport, broadcast_gives_the_roots_values_and_leaves_the_input_alone) {
  VirtualCluster cluster(options());
  const Rank root = cluster.size() - 1;
  cluster.run([root](Rank rank, Engine& engine) {
    const std::vector<int64_t> in(3000, rank);
    std::vector<int64_t> out(3000, -1);
    const Submission submission{
        .request = make_request(OpKind::Broadcast, "", DType::I64, Shape{3000}, ReduceOp::Sum, root),
        .binding = {.in = in.data(), .out = out.data()}};
    ASSERT_TRUE(run(engine, submission).ok());
    EXPECT_EQ(out, std::vector<int64_t>(3000, root));
    EXPECT_EQ(in, std::vector<int64_t>(3000, rank));
  });
}

TEST_P(OnEveryTransport, allgather_concatenates_uneven_rows_in_rank_order) {
  VirtualCluster cluster(options());
  const int n = cluster.size();
  cluster.run([n](Rank rank, Engine& engine) {
    for (int round = 0; round < 3; ++round) {
      // Rank 0 has none in the first round.
      const int64_t rows = rank * 700 + round;
      const std::vector<uint8_t> in(static_cast<size_t>(rows) * 2, static_cast<uint8_t>(rank + 1));
      const Submission submission{.request = make_request(OpKind::Allgather, "gather", DType::U8, Shape{rows, 2}),
                                  .binding = {.in = in.data(), .out = nullptr}};
      const Ticket ticket = submit(engine, submission);
      ASSERT_TRUE(engine.wait(ticket, kNever).ok());
      const auto output = engine.take_output(ticket);
      ASSERT_TRUE(output.ok());
      std::vector<uint8_t> expected;
      for (int r = 0; r < n; ++r)
        expected.insert(expected.end(), static_cast<size_t>(r * 700 + round) * 2, static_cast<uint8_t>(r + 1));
      const auto* rows_out = static_cast<const uint8_t*>(output->data.get());
      EXPECT_EQ(std::vector<uint8_t>(rows_out, rows_out + output->bytes), expected);
      EXPECT_EQ(output->shape, (Shape{static_cast<int64_t>(expected.size() / 2), 2}));
      ASSERT_EQ(output->member_count, n);
      for (int r = 0; r < n; ++r) EXPECT_EQ(output->first_dims[r], r * 700 + round);
    }
  });
}

// What a rank gets of an operation whose output the engine allocates.
std::vector<int32_t> output_of(Engine& engine, Ticket ticket) {
  const Status status = engine.wait(ticket, kNever);
  EXPECT_TRUE(status.ok()) << status.message();
  const auto output = engine.take_output(ticket);
  if (!output.ok()) return {};
  const auto* first = static_cast<const int32_t*>(output->data.get());
  return {first, first + output->bytes / static_cast<int64_t>(sizeof(int32_t))};
}

TEST_P(OnEveryTransport, reducescatter_gives_each_rank_its_part_of_the_sum) {
  VirtualCluster cluster(options());
  const int n = cluster.size();
  cluster.run([n](Rank rank, Engine& engine) {
    for (const int64_t rows : {int64_t{0}, int64_t{1}, int64_t{9}, int64_t{20'003}}) {
      std::vector<int32_t> in(static_cast<size_t>(rows));
      for (int64_t i = 0; i < rows; ++i) in[static_cast<size_t>(i)] = static_cast<int32_t>(i * (rank + 1));
      const Submission submission{.request = make_request(OpKind::Reducescatter, "s", DType::I32, Shape{rows}),
                                  .binding = {.in = in.data(), .out = nullptr, .splits = {}}};
      const std::vector<int32_t> mine = output_of(engine, submit(engine, submission));
      const int64_t left = rows % n;
      const int64_t begin = rank * (rows / n) + std::min<int64_t>(rank, left);
      ASSERT_EQ(static_cast<int64_t>(mine.size()), rows / n + (rank < left ? 1 : 0));
      for (size_t i = 0; i < mine.size(); ++i) {
        ASSERT_EQ(mine[i], (begin + static_cast<int64_t>(i)) * n * (n + 1) / 2) << rows << " " << i;
      }
    }
  });
}

TEST_P(OnEveryTransport, alltoall_brings_the_rows_of_each_rank_in_rank_order) {
  VirtualCluster cluster(options());
  const int n = cluster.size();
  cluster.run([n](Rank rank, Engine& engine) {
    const auto rows_of = [](Rank from, Rank to) { return int64_t{(from * 7 + to * 3) % 5} * 1000; };
    std::vector<int64_t> splits;
    std::vector<int32_t> in;
    for (Rank to = 0; to < n; ++to) {
      splits.push_back(rows_of(rank, to));
      in.insert(in.end(), static_cast<size_t>(splits.back()), rank * 100 + to);
    }
    const Shape shape{static_cast<int64_t>(in.size())};
    const Submission submission{.request = make_request(OpKind::Alltoall, "x", DType::I32, shape),
                                .binding = {.in = in.data(), .out = nullptr, .splits = splits}};
    for (int round = 0; round < 3; ++round) {
      std::vector<int32_t> expected;
      for (Rank from = 0; from < n; ++from) {
        expected.insert(expected.end(), static_cast<size_t>(rows_of(from, rank)), from * 100 + rank);
      }
      EXPECT_EQ(output_of(engine, submit(engine, submission)), expected);
    }
  });
}

// All ranks add the set; its id.
SetId add_set(Engine& engine, std::vector<Rank> ranks) {
  const Ticket ticket = submit(engine, {.request = make_set_request(OpKind::AddSet, std::move(ranks)), .binding = {}});
  EXPECT_TRUE(engine.wait(ticket, kNever).ok());
  const auto output = engine.take_output(ticket);
  return output.ok() ? static_cast<SetId>(*static_cast<const int64_t*>(output->data.get())) : 0;
}

TEST_P(OnEveryTransport, process_sets_that_overlap_work_side_by_side) {
  VirtualCluster cluster(options());
  const int n = cluster.size();
  cluster.run([n](Rank rank, Engine& engine) {
    std::vector<SetId> sets{add_set(engine, {0})};  // of one rank
    for (Rank first = 0; first + 1 < n; ++first) sets.push_back(add_set(engine, {first, first + 1}));
    for (int step = 0; step < 5; ++step) {
      for (Rank first = 0; first + 1 < n; ++first) {
        std::vector<float> data(3000, static_cast<float>(rank));
        Submission submission = allreduce("x", data);
        submission.request.set = sets[static_cast<size_t>(first) + 1];
        const bool is_member = rank == first || rank == first + 1;
        if (!is_member) {
          EXPECT_EQ(engine.submit({&submission, 1}, false).status().code(), Code::InvalidArgument);
          continue;
        }
        ASSERT_TRUE(run(engine, submission).ok());
        EXPECT_EQ(data, std::vector<float>(3000, static_cast<float>(2 * first + 1)));
      }
    }
    const Submission removal{.request = make_set_request(OpKind::RemoveSet, {static_cast<int32_t>(sets[0])}),
                             .binding = {}};
    ASSERT_TRUE(run(engine, removal).ok());
    std::vector<float> data(1);
    Submission late = allreduce("x", data);
    late.request.set = sets[0];
    const auto refused = engine.submit({&late, 1}, false);
    EXPECT_THAT(refused.status().message(), HasSubstr("was removed"));
  });
}

TEST_P(OnEveryTransport, ranks_may_submit_in_any_order_and_names_come_again_each_step) {
  VirtualCluster cluster(options());
  const int n = cluster.size();
  cluster.run([n](Rank rank, Engine& engine) {
    std::mt19937 random(static_cast<unsigned>(rank) + 1);
    constexpr int kTensors = 40;
    for (int step = 0; step < 5; ++step) {
      std::vector<std::vector<float>> data(kTensors);
      std::vector<int> order(kTensors);
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random);
      std::vector<Ticket> tickets;
      for (const int t : order) {
        data[static_cast<size_t>(t)].assign(static_cast<size_t>(t * 13 + 1), static_cast<float>(t + rank));
        tickets.push_back(submit(engine, allreduce(cat("layer", t), data[static_cast<size_t>(t)]), random() % 2 == 0));
      }
      for (const Ticket ticket : tickets) ASSERT_TRUE(engine.wait(ticket, kNever).ok());
      for (int t = 0; t < kTensors; ++t) {
        for (const float value : data[static_cast<size_t>(t)])
          ASSERT_EQ(value, static_cast<float>(n * t + n * (n - 1) / 2));
      }
    }
  });
}

TEST_P(OnEveryTransport, barrier_holds_everybody_until_the_last_has_come) {
  VirtualCluster cluster(options());
  std::atomic<int> came{0};
  cluster.run([&](Rank rank, Engine& engine) {
    if (rank == 0) std::this_thread::sleep_for(milliseconds(50));
    ++came;
    ASSERT_TRUE(run(engine, {.request = make_request(OpKind::Barrier, "", DType::U8, Shape{}), .binding = {}}).ok());
    EXPECT_EQ(came, cluster.size());
  });
}

TEST_P(OnEveryTransport, a_mismatch_is_told_to_all_and_the_next_valid_call_works) {
  VirtualCluster cluster(options());
  if (cluster.size() == 1) return;
  cluster.run([&](Rank rank, Engine& engine) {
    std::vector<float> data(rank == 1 ? 11 : 10, 1.0f);
    const Status status = run(engine, allreduce("fc.weight", data));
    EXPECT_EQ(status.code(), Code::Mismatch);
    EXPECT_THAT(status.message(), HasSubstr("fc.weight"));
    EXPECT_THAT(status.message(), HasSubstr("[10]"));
    EXPECT_THAT(status.message(), HasSubstr("[11]"));
    std::vector<float> again(10, 1.0f);
    ASSERT_TRUE(run(engine, allreduce("fc.weight", again)).ok());
    EXPECT_EQ(again, std::vector<float>(10, static_cast<float>(cluster.size())));
  });
}

TEST_P(OnEveryTransport, epochs_follow_one_another_in_one_process) {
  VirtualCluster cluster(options());
  const int n = cluster.size();
  for (int epoch = 0; epoch < 5; ++epoch) {
    cluster.run([n](Rank, Engine& engine) {
      std::vector<float> data(100, 1.0f);
      ASSERT_TRUE(run(engine, allreduce("x", data)).ok());
      EXPECT_EQ(data[99], static_cast<float>(n));
    });
    cluster.leave_all();
    cluster.open_epoch();
  }
}

TEST_P(OnEveryTransport, an_average_of_integers_divides_the_exact_sum_toward_zero) {
  VirtualCluster cluster(options());
  const int n = cluster.size();
  cluster.run([n](Rank rank, Engine& engine) {
    std::vector<uint8_t> bytes(20000, 255);
    std::vector<int32_t> ints = {INT32_MAX, INT32_MIN, rank == 0 ? -1 : 0, 7 * n + 1};
    const auto average = [](std::string name, DType dtype, void* data, size_t count) -> Submission {
      return {.request = make_request(OpKind::Allreduce, std::move(name), dtype, Shape{static_cast<int64_t>(count)},
                                      ReduceOp::Average),
              .binding = {.in = data, .out = data}};
    };
    ASSERT_TRUE(run(engine, average("bytes", DType::U8, bytes.data(), bytes.size())).ok());
    ASSERT_TRUE(run(engine, average("ints", DType::I32, ints.data(), ints.size())).ok());
    EXPECT_TRUE(std::ranges::all_of(bytes, [](uint8_t byte) { return byte == 255; }));
    EXPECT_EQ(ints, (std::vector<int32_t>{INT32_MAX, INT32_MIN, n == 1 ? -1 : 0, 7 * n + 1}));
  });
}

TEST_P(OnEveryTransport, a_handle_of_an_engine_that_is_gone_is_unknown_to_the_next) {
  VirtualCluster cluster(options());
  std::vector<Ticket> old(static_cast<size_t>(cluster.size()));
  const auto one = [&](Rank rank, Engine& engine) {
    std::vector<float> data(1, 1.0f);
    const Ticket ticket = submit(engine, allreduce("x", data));
    ASSERT_TRUE(engine.wait(ticket, kNever).ok());
    EXPECT_NE(ticket, old[static_cast<size_t>(rank)]);
    old[static_cast<size_t>(rank)] = ticket;
  };
  cluster.run(one);
  cluster.leave_all();
  cluster.open_epoch();
  cluster.run([&](Rank rank, Engine& engine) {
    one(rank, engine);
    EXPECT_EQ(engine.poll(old[static_cast<size_t>(rank)] - 1), std::nullopt);
  });
}

TEST_P(OnEveryTransport, several_threads_of_a_rank_may_submit_and_wait_at_once) {
  VirtualCluster cluster(options());
  const int n = cluster.size();
  cluster.run([n](Rank rank, Engine& engine) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 30; ++i) {
          std::vector<float> data(static_cast<size_t>(50 * t + 1), static_cast<float>(rank + i));
          ASSERT_TRUE(run(engine, allreduce(cat("thread", t), data)).ok());
          ASSERT_EQ(data.back(), static_cast<float>(n * i + n * (n - 1) / 2));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

TEST_P(OnEveryTransport, the_loop_finishes_what_nobody_waits_for) {
  VirtualCluster cluster(options());
  const int n = cluster.size();
  cluster.run([n](Rank, Engine& engine) {
    std::vector<float> data(30000, 1.0f);
    const Ticket ticket = submit(engine, allreduce("x", data));
    const auto give_up = std::chrono::steady_clock::now() + seconds(20);
    // Not poll(): that would drive.
    while (engine.counters().tensors == 0 && std::chrono::steady_clock::now() < give_up)
      std::this_thread::sleep_for(milliseconds(1));
    EXPECT_EQ(engine.poll(ticket), true);
    ASSERT_TRUE(engine.wait(ticket, kNever).ok());
    EXPECT_EQ(data[29999], static_cast<float>(n));
  });
}

TEST_P(OnEveryTransport, a_cause_from_the_store_ends_every_wait_and_every_later_submission) {
  VirtualCluster cluster(options());
  if (cluster.size() == 1) return;
  cluster.run([&](Rank rank, Engine& engine) {
    std::vector<float> data(100, 1.0f);
    if (rank == 0) {
      std::this_thread::sleep_for(milliseconds(50));
      cluster.store().publish(
          {.rank = 1, .status = Status(Code::PeerLost, "rank 1 (host h, pid 17) was killed by signal 9")});
    }
    if (rank == 1) return;
    const Status status = run(engine, allreduce("x", data));
    EXPECT_EQ(status.code(), Code::PeerLost);
    EXPECT_THAT(status.message(), HasSubstr("killed by signal 9"));
    EXPECT_THAT(status.message(), HasSubstr("'x'"));
    EXPECT_EQ(run(engine, allreduce("y", data)).code(), Code::PeerLost);
  });
}

TEST_P(OnEveryTransport, an_operation_that_needs_a_rank_that_has_left_fails_and_names_it) {
  VirtualCluster cluster(options());
  if (cluster.size() == 1) return;
  const Rank leaver = cluster.size() - 1;
  cluster.run([&](Rank rank, Engine& engine) {
    if (rank == leaver) return engine.leave(engine.clock().now() + seconds(10));
    std::vector<float> data(10, 1.0f);
    const Status status = run(engine, allreduce("x", data));
    EXPECT_EQ(status.code(), Code::RankLeft);
    EXPECT_THAT(status.message(), HasSubstr(cat("rank ", leaver)));
  });
}

TEST_P(OnEveryTransport, a_wait_that_runs_out_leaves_the_handle_alive) {
  VirtualCluster cluster(options());
  if (cluster.size() == 1) return;
  cluster.run([&](Rank rank, Engine& engine) {
    std::vector<float> data(10, 1.0f);
    if (rank == 0) std::this_thread::sleep_for(milliseconds(100));
    const Ticket ticket = submit(engine, allreduce("x", data));
    if (rank != 0) {
      EXPECT_EQ(engine.wait(ticket, engine.clock().now() + milliseconds(10)).code(), Code::Interrupted);
    }
    EXPECT_TRUE(engine.wait(ticket, kNever).ok());
    EXPECT_EQ(engine.wait(ticket, kNever).code(), Code::InvalidArgument);
  });
}

TEST(Engine, a_name_in_flight_is_refused_on_the_rank_that_uses_it_twice) {
  VirtualCluster cluster({.size = 2, .settings = {}, .time = nullptr, .no_memory = ""});
  cluster.run([&](Rank rank, Engine& engine) {
    std::vector<float> a(10, 1.0f);
    std::vector<float> b(10, 1.0f);
    if (rank == 1) std::this_thread::sleep_for(milliseconds(30));
    const Ticket ticket = submit(engine, allreduce("x", a));
    if (rank == 0) {
      const Submission twice = allreduce("x", b);
      const auto refused = engine.submit(std::span(&twice, 1), false);
      ASSERT_FALSE(refused.ok());
      EXPECT_EQ(refused.status().code(), Code::InvalidArgument);
      EXPECT_THAT(refused.status().message(), HasSubstr("still in flight"));
    }
    EXPECT_TRUE(engine.wait(ticket, kNever).ok());
  });
}

TEST(Engine, tensors_marked_more_make_one_batch_when_flushed) {
  VirtualCluster cluster({.size = 2, .settings = {}, .time = nullptr, .no_memory = ""});
  cluster.run([&](Rank, Engine& engine) {
    for (int step = 0; step < 3; ++step) {
      const uint64_t before = engine.counters().batches;
      std::vector<std::vector<float>> data(50, std::vector<float>(100, 1.0f));
      std::vector<Ticket> tickets;
      for (size_t t = 0; t < data.size(); ++t) tickets.push_back(submit(engine, allreduce(cat("t", t), data[t]), true));
      engine.flush();
      for (const Ticket ticket : tickets) ASSERT_TRUE(engine.wait(ticket, kNever).ok());
      EXPECT_EQ(engine.counters().batches - before, 1u);
    }
  });
}

TEST(Engine, from_the_second_step_on_no_whole_request_travels) {
  VirtualCluster cluster({.size = 3, .settings = {}, .time = nullptr, .no_memory = ""});
  cluster.run([&](Rank rank, Engine& engine) {
    uint64_t full = 0;
    uint64_t bytes = 0;
    for (int64_t step = 0; step < 4; ++step) {
      const Counters before = engine.counters();
      std::vector<float> named(10, 1.0f);
      std::vector<float> unnamed(20, 1.0f);
      ASSERT_TRUE(run(engine, allreduce("x", named)).ok());
      ASSERT_TRUE(run(engine, allreduce("", unnamed)).ok());
      const std::vector<float> rows(static_cast<size_t>(step + rank) * 3, 1.0f);
      const Ticket ticket =
          submit(engine, {.request = make_request(OpKind::Allgather, "g", DType::F32, Shape{step + rank, 3}),
                          .binding = {.in = rows.data(), .out = nullptr}});
      ASSERT_TRUE(engine.wait(ticket, kNever).ok());
      ASSERT_TRUE(engine.take_output(ticket).ok());
      const Counters after = engine.counters();
      full = after.full_requests - before.full_requests;
      bytes = after.control_bytes_sent - before.control_bytes_sent;
      if (step == 0) {
        EXPECT_LE(full, 3u);
      }
    }
    EXPECT_EQ(full, 0u);
    EXPECT_LE(bytes, 3 * 48u);
  });
}

TEST(Engine, without_shared_memory_data_goes_over_tcp_and_the_reason_is_known) {
  Settings settings;
  VirtualCluster cluster({.size = 2, .settings = settings, .time = nullptr, .no_memory = "memfd is forbidden here"});
  cluster.run([&](Rank, Engine& engine) {
    EXPECT_EQ(engine.transport(), "tcp");
    EXPECT_THAT(engine.transport_reason(), HasSubstr("memfd is forbidden here"));
    std::vector<float> data(1000, 1.0f);
    ASSERT_TRUE(run(engine, allreduce("x", data)).ok());
    EXPECT_EQ(data[0], 2.0f);
  });
}

class InManualTime : public testing::Test {
 protected:
  VirtualCluster::Options options(int size) {
    Settings settings;
    settings.spin = Spin::Off;
    return {.size = size, .settings = settings, .time = &time_, .no_memory = ""};
  }
  static ManualTime time_;
};

ManualTime InManualTime::time_;

TEST_F(InManualTime, an_operation_that_a_rank_never_joins_ends_at_its_deadline_and_names_the_rank) {
  VirtualCluster cluster(options(3));
  std::thread clock([&] {
    std::this_thread::sleep_for(milliseconds(100));
    time_.advance(minutes(29));
    std::this_thread::sleep_for(milliseconds(50));
    time_.advance(minutes(2));
  });
  cluster.run([&](Rank rank, Engine& engine) {
    if (rank == 1) return;
    std::vector<float> data(10, 1.0f);
    const Status status = run(engine, allreduce("x", data));
    EXPECT_EQ(status.code(), Code::Timeout);
    EXPECT_THAT(status.message(), HasSubstr("1"));
    EXPECT_THAT(status.message(), HasSubstr("'x'"));
  });
  clock.join();
}

// Eight ranks in time that one of them moves.
class EightRanks : public InManualTime {
 protected:
  static constexpr int kSize = 8;
  static constexpr Rank kAbsent = 5;
  static constexpr Rank kLeaver = 7;

  // The clock moves while operations are in flight.
  static void reduce_and_meet(Rank rank, Engine& engine) {
    for (int step = 0; step < 20; ++step) {
      if (rank == step % kSize) time_.advance(seconds(1));
      std::vector<float> data(static_cast<size_t>(step * 700 + 1), static_cast<float>(rank + step));
      ASSERT_TRUE(run(engine, allreduce(cat("layer", step % 4, "/", data.size()), data)).ok());
      EXPECT_EQ(data, std::vector<float>(data.size(), static_cast<float>(kSize * step + kSize * (kSize - 1) / 2)));
      ASSERT_TRUE(run(engine, {.request = make_request(OpKind::Barrier, "", DType::U8, Shape{}), .binding = {}}).ok());
    }
  }

  // All but one submit "late"; that one moves the clock until the others have given up.
  void miss_one(Rank rank, Engine& engine) {
    if (rank == kAbsent) {
      submitted_.wait();
      while (!given_up_.try_wait()) {
        time_.advance(minutes(1));
        std::this_thread::sleep_for(milliseconds(1));
      }
    }
    const Time begin = engine.clock().now();
    std::vector<float> data(10, 1.0f);
    const Ticket ticket = submit(engine, allreduce("late", data));
    if (rank != kAbsent) submitted_.count_down();
    // The end of the wait is far behind the operation's, so that a lost deadline fails and does not hang.
    const Status status = engine.wait(ticket, begin + minutes(100000));
    EXPECT_EQ(status.code(), Code::Timeout) << rank << " " << status.message();
    EXPECT_THAT(status.message(), HasSubstr("'late'"));
    EXPECT_THAT(status.message(), HasSubstr(cat("rank ", kAbsent)));
    if (rank == kAbsent) return;
    EXPECT_GE(engine.clock().now() - begin, minutes(30));
    given_up_.count_down();
  }

  static void leave_one_after_another(Rank rank, Engine& engine) {
    if (rank == kLeaver) return engine.leave(engine.clock().now() + seconds(10));
    std::vector<float> data(10, 1.0f);
    const Status status = run(engine, allreduce("without the leaver", data));
    EXPECT_EQ(status.code(), Code::RankLeft);
    EXPECT_THAT(status.message(), HasSubstr(cat("rank ", kLeaver)));
    engine.leave(engine.clock().now() + seconds(10));
  }

 private:
  std::latch submitted_{kSize - 1};
  std::latch given_up_{kSize - 1};
};

TEST_F(EightRanks, reduce_meet_give_up_on_an_absent_rank_go_on_and_leave) {
  VirtualCluster cluster(options(kSize));
  cluster.run([&](Rank rank, Engine& engine) {
    reduce_and_meet(rank, engine);
    miss_one(rank, engine);
    reduce_and_meet(rank, engine);
    leave_one_after_another(rank, engine);
  });
}

TEST_F(InManualTime, an_idle_engine_wakes_once_per_second) {
  VirtualCluster cluster(options(4));
  // Let every loop come to rest.
  std::this_thread::sleep_for(milliseconds(200));
  std::vector<uint64_t> before;
  for (Rank r = 0; r < 4; ++r) before.push_back(cluster.engine(r).counters().wakeups);
  for (int i = 0; i < 10; ++i) {
    time_.advance(seconds(1));
    std::this_thread::sleep_for(milliseconds(30));
  }
  for (Rank r = 0; r < 4; ++r) {
    const uint64_t wakeups = cluster.engine(r).counters().wakeups - before[static_cast<size_t>(r)];
    EXPECT_GE(wakeups, 9u);
    EXPECT_LE(wakeups, 11u);
  }
}

}  // namespace
}  // namespace ronde::engine
