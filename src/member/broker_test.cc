// SPDX-License-Identifier: Apache-2.0
#include "member/broker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "member/broker_wire.h"
#include "member/greeter.h"
#include "os/event_set.h"

namespace ronde::member {
namespace {

using ::testing::HasSubstr;
constexpr Duration kPatience = std::chrono::seconds(30);

Time soon() {
  return SteadyClock().now() + kPatience;
}

HostMemoryRequest request(uint32_t epoch, int32_t local_rank, int32_t local_size = 2) {
  return {
      .epoch = epoch, .local_rank = local_rank, .local_size = local_size, .board_bytes = 8192, .arena_bytes = 65536};
}

struct Broker {
  explicit Broker(BrokerServer::Create create = os::Region::create_shared)
      : server(BrokerServer::start(name, key, std::move(create)).value()) {}
  Result<HostMemory> fetch(const HostMemoryRequest& wanted) { return fetch_host_memory(name, key, wanted, soon()); }

  const std::string name = random_broker_name();
  const Key key = random_key();
  std::unique_ptr<BrokerServer> server;
};

bool rings(const os::Doorbell& bell) {
  const int fd = bell.fd();
  return os::sleep_until_readable({&fd, 1}, SteadyClock().now() + std::chrono::milliseconds(1));
}

TEST(Broker, local_ranks_share_memory_and_bells) {
  Broker broker;
  auto a = broker.fetch(request(1, 0));
  auto b = broker.fetch(request(1, 1));
  ASSERT_TRUE(a.ok()) << a.status().message();
  ASSERT_TRUE(b.ok()) << b.status().message();
  ASSERT_EQ(a->board.bytes(), 8192u);
  ASSERT_EQ(b->arena.bytes(), 65536u);
  a->board.data()[8191] = std::byte{7};
  a->arena.data()[65535] = std::byte{9};
  EXPECT_EQ(b->board.data()[8191], std::byte{7});
  EXPECT_EQ(b->arena.data()[65535], std::byte{9});
  ASSERT_EQ(a->bells.size(), 2u);
  for (size_t rank = 0; rank < 2; ++rank) {
    for (size_t which = 0; which < 2; ++which) {
      a->bells[rank][which].ring();
      for (size_t other = 0; other < 4; ++other) {
        EXPECT_EQ(rings(b->bells[other / 2][other % 2]), other == rank * 2 + which);
      }
      b->bells[rank][which].drain();
    }
  }
}

TEST(Broker, every_epoch_has_memory_of_its_own) {
  Broker broker;
  auto old = broker.fetch(request(1, 0, 1));
  ASSERT_TRUE(old.ok());
  old->board.data()[0] = std::byte{1};
  for (uint32_t epoch = 2; epoch < 50; ++epoch) {
    auto fresh = broker.fetch(request(epoch, 0, 1));
    ASSERT_TRUE(fresh.ok()) << fresh.status().message();
    EXPECT_EQ(fresh->board.data()[0], std::byte{0});
    fresh->board.data()[0] = std::byte{1};
  }
}

TEST(Broker, an_unfinished_epoch_makes_way_for_the_next_and_does_not_come_back) {
  Broker broker;
  ASSERT_TRUE(broker.fetch(request(1, 0)).ok());
  ASSERT_TRUE(broker.fetch(request(2, 0)).ok());
  EXPECT_EQ(broker.fetch(request(1, 1)).status().code(), Code::Aborted);
  EXPECT_TRUE(broker.fetch(request(2, 1)).ok());
}

TEST(Broker, different_wishes_of_one_host_are_refused_with_both) {
  Broker broker;
  ASSERT_TRUE(broker.fetch(request(1, 0)).ok());
  auto wrong = request(1, 1);
  wrong.arena_bytes = 4096;
  const auto refused = broker.fetch(wrong);
  EXPECT_EQ(refused.status().code(), Code::Mismatch);
  EXPECT_THAT(refused.status().message(),
              HasSubstr("local rank 0 asks for 2 local ranks, a board of 8192 and an arena of 65536"));
  EXPECT_THAT(refused.status().message(),
              HasSubstr("local rank 1 asks for 2 local ranks, a board of 8192 and an arena of 4096"));
  EXPECT_TRUE(broker.fetch(request(1, 1)).ok());
}

TEST(Broker, a_seat_is_given_once_also_when_all_have_theirs) {
  Broker broker;
  ASSERT_TRUE(broker.fetch(request(1, 0)).ok());
  EXPECT_THAT(broker.fetch(request(1, 0)).status().message(), HasSubstr("RONDE_LOCAL_RANK"));
  ASSERT_TRUE(broker.fetch(request(1, 1)).ok());
  EXPECT_THAT(broker.fetch(request(1, 1)).status().message(), HasSubstr("has been taken already"));
}

TEST(Broker, impossible_wishes_are_refused) {
  Broker broker;
  auto none = request(1, 0);
  none.board_bytes = 0;
  EXPECT_EQ(broker.fetch(none).status().code(), Code::InvalidArgument);
  auto huge = request(1, 0);
  huge.arena_bytes = ~uint64_t{0};
  EXPECT_EQ(broker.fetch(huge).status().code(), Code::InvalidArgument);
  EXPECT_EQ(broker.fetch(request(1, 2)).status().code(), Code::InvalidArgument);
  EXPECT_EQ(broker.fetch(request(1, -1)).status().code(), Code::InvalidArgument);
}

TEST(Broker, without_memfd_every_rank_gets_the_same_reason) {
  int calls = 0;
  Broker broker([&](const char*, size_t) {
    ++calls;
    return Result<os::Region>(Status(Code::Unsupported, "memfd_create: Function not implemented"));
  });
  for (int32_t rank = 0; rank < 2; ++rank) {
    const auto none = broker.fetch(request(1, rank));
    EXPECT_EQ(none.status().code(), Code::Unsupported);
    EXPECT_THAT(none.status().message(), HasSubstr("Function not implemented"));
  }
  broker.server.reset();
  EXPECT_EQ(calls, 1) << "ranks of one epoch must not differ in what they get";
}

TEST(Broker, more_bells_than_one_message_carries_arrive) {
  Broker broker;
  auto many = broker.fetch(request(1, 0, 200));
  ASSERT_TRUE(many.ok()) << many.status().message();
  ASSERT_EQ(many->bells.size(), 200u);
  many->bells[199][1].ring();
  EXPECT_TRUE(rings(many->bells[199][1]));
  EXPECT_FALSE(rings(many->bells[199][0]));
}

TEST(Broker, a_wrong_key_and_another_purpose_get_nothing) {
  Broker broker;
  EXPECT_EQ(fetch_host_memory(broker.name, random_key(), request(1, 0), soon()).status().code(), Code::InvalidArgument);
  auto fd = os::connect_unix_by(broker.name, soon());
  ASSERT_TRUE(fd.ok());
  auto peer = greet_by(std::move(fd).value(), Hello::Role::Initiator, broker.key,
                       {.purpose = Purpose::Store, .rank = 0}, soon());
  ASSERT_TRUE(peer.ok());
  std::byte byte;
  EXPECT_EQ(os::read_all_by(peer->fd, {&byte, 1}, soon()).code(), Code::PeerLost);
}

TEST(Broker, silent_and_senseless_customers_do_not_hold_up_the_others) {
  Broker broker;
  const auto stranger = os::connect_unix_by(broker.name, soon());
  ASSERT_TRUE(os::write_all_by(*stranger, Bytes(100, std::byte{'x'}), soon()).ok());
  const Identity self{.purpose = Purpose::Broker};
  auto silent =
      greet_by(os::connect_unix_by(broker.name, soon()).value(), Hello::Role::Initiator, broker.key, self, soon());
  auto absurd =
      greet_by(os::connect_unix_by(broker.name, soon()).value(), Hello::Role::Initiator, broker.key, self, soon());
  ASSERT_TRUE(os::write_all_by(absurd->fd, Bytes(4, std::byte{0xff}), soon()).ok());
  EXPECT_TRUE(broker.fetch(request(1, 0)).ok());
  std::byte byte;
  EXPECT_FALSE(os::read_all_by(absurd->fd, {&byte, 1}, soon()).ok());
  EXPECT_FALSE(os::read_all_by(silent->fd, {&byte, 1}, soon()).ok()) << "closed after a while";
}

TEST(Broker, no_broker_is_an_error_at_once) {
  const auto none = fetch_host_memory(random_broker_name(), random_key(), request(1, 0), soon());
  EXPECT_EQ(none.status().code(), Code::System);
}

TEST(Broker, two_names_differ) {
  EXPECT_NE(random_broker_name(), random_broker_name());
  EXPECT_EQ(random_broker_name().size(), 6u + 32u);
}

TEST(BrokerWire, a_cut_or_overlong_frame_is_refused) {
  const WireFrame frame = broker_wire::encode(request(3, 1));
  const ByteSpan whole = ByteSpan(*frame).subspan(4);
  EXPECT_EQ(*broker_wire::decode_request(whole), request(3, 1));
  for (size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(broker_wire::decode_request(whole.first(size)).ok());
  EXPECT_FALSE(broker_wire::decode_request(*frame).ok());
  EXPECT_FALSE(broker_wire::decode_answer(whole).ok());
}

// What a child does: takes its memory, waits for its bell, checks what the other wrote, writes and rings the other.
int run_child(const std::string& name, const Key& key, int32_t rank) {
  auto memory = fetch_host_memory(name, key, request(5, rank), soon());
  if (!memory.ok()) return 1;
  const auto own = static_cast<size_t>(rank);
  const size_t other = 1 - own;
  memory->arena.data()[own] = static_cast<std::byte>(40 + rank);
  memory->bells[other][0].ring();
  const int bell = memory->bells[own][0].fd();
  if (!os::sleep_until_readable({&bell, 1}, soon())) return 2;
  return memory->arena.data()[other] == static_cast<std::byte>(40 + other) ? 0 : 3;
}

TEST(Broker, two_processes_map_the_same_memory_and_ring_each_others_bells) {
  const std::string name = random_broker_name();
  const Key key = random_key();
  int go[2];
  ASSERT_EQ(::pipe(go), 0);
  pid_t children[2];
  for (int32_t rank = 0; rank < 2; ++rank) {  // before this process has threads
    children[rank] = ::fork();
    ASSERT_GE(children[rank], 0);
    if (children[rank] != 0) continue;
    ::close(go[1]);
    char byte;
    const ssize_t none = ::read(go[0], &byte, 1);  // ends when the broker is there
    ::_exit(none == 0 ? run_child(name, key, rank) : 4);
  }
  const auto server = BrokerServer::start(name, key);
  ::close(go[0]);
  ::close(go[1]);
  for (const pid_t child : children) {
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  }
  EXPECT_TRUE(server.ok());
}

}  // namespace
}  // namespace ronde::member
