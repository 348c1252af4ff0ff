// SPDX-License-Identifier: Apache-2.0
// The store over real sockets; what it decides is in rendezvous_test.cc. Ranks are threads.
#include "member/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "member/greeter.h"
#include "os/event_set.h"

namespace ronde::member {
namespace {

using ::testing::HasSubstr;
constexpr Duration kPatience = std::chrono::seconds(30);
constexpr Duration kShort = std::chrono::milliseconds(200);

Time after(Duration duration) {
  return SteadyClock().now() + duration;
}

Bytes bytes(const std::string& text) {
  const auto raw = std::as_bytes(std::span(text.data(), text.size()));
  return {raw.begin(), raw.end()};
}

struct Store {
  explicit Store(int32_t size, bool report_lost = false, StoreServer::Callbacks callbacks = {})
      : server(
            StoreServer::start({.key = key, .size = size, .report_lost_connections = report_lost}, std::move(callbacks))
                .value()) {}
  std::unique_ptr<StoreClient> client(int32_t rank) {
    return StoreClient::connect({&server->address(), 1}, key, rank, after(kPatience), cat("host h, pid ", rank))
        .value();
  }
  Key key = random_key();
  std::unique_ptr<StoreServer> server;
};

// One thread per rank; the threads end before this returns.
template <class Body>
void as_ranks(int32_t size, Body body) {
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < size; ++rank) threads.emplace_back([rank, &body] { body(rank); });
  for (auto& thread : threads) thread.join();
}

// The next cause, waiting for it.
Result<Cause> news_by(StoreClient& client, Time deadline) {
  for (;;) {
    RONDE_ASSIGN(const auto news, client.take_news());
    if (news) return *news;
    const int fd = client.fd();
    if (!os::sleep_until_readable({&fd, 1}, deadline)) return Status(Code::Timeout, "no news");
  }
}

TEST(Store, one_to_eight_ranks_open_an_epoch_and_exchange) {
  for (int32_t size = 1; size <= 8; ++size) {
    Store store(size);
    as_ranks(size, [&](int32_t rank) {
      const auto client = store.client(rank);
      const auto opened = client->open_epoch(size, bytes(cat("hello ", rank)), after(kPatience));
      ASSERT_TRUE(opened.ok()) << opened.status().message();
      EXPECT_EQ(opened->epoch, 1u);
      ASSERT_EQ(opened->blobs.size(), static_cast<size_t>(size));
      const auto mine = Bytes(static_cast<size_t>(rank) * 1000, static_cast<std::byte>(rank));
      const auto all = client->exchange("sizes", mine, after(kPatience));
      ASSERT_TRUE(all.ok()) << all.status().message();
      for (int32_t other = 0; other < size; ++other) {
        const auto index = static_cast<size_t>(other);
        EXPECT_EQ(opened->blobs[index], bytes(cat("hello ", other)));
        EXPECT_EQ((*all)[index], Bytes(index * 1000, static_cast<std::byte>(other)));
      }
      EXPECT_TRUE(client->tell_leave(0).ok());
    });
  }
}

TEST(Store, a_hundred_epochs_in_a_row_by_the_same_and_by_new_connections) {
  Store store(2);
  as_ranks(2, [&](int32_t rank) {
    auto client = store.client(rank);
    for (uint32_t epoch = 1; epoch <= 100; ++epoch) {
      const auto opened = client->open_epoch(2, {}, after(kPatience));
      ASSERT_TRUE(opened.ok()) << opened.status().message();
      ASSERT_EQ(opened->epoch, epoch);
      const auto all = client->exchange("x", bytes(cat(epoch)), after(kPatience));
      ASSERT_TRUE(all.ok()) << all.status().message();
      ASSERT_EQ((*all)[1 - static_cast<size_t>(rank)], bytes(cat(epoch)));
      if (epoch % 3 != 0) continue;
      ASSERT_TRUE(client->tell_leave(0).ok());
      client = store.client(rank);
    }
  });
}

TEST(Store, the_largest_blobs_of_all_ranks_arrive) {
  constexpr int32_t kSize = 4;
  Store store(kSize);
  as_ranks(kSize, [&](int32_t rank) {
    const auto client = store.client(rank);
    const Bytes blob(kMaxBlobBytes, static_cast<std::byte>(rank + 1));
    const auto opened = client->open_epoch(kSize, blob, after(kPatience));
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    for (size_t other = 0; other < kSize; ++other) {
      EXPECT_EQ(opened->blobs[other], Bytes(kMaxBlobBytes, static_cast<std::byte>(other + 1)));
    }
    EXPECT_EQ(client->exchange("x", Bytes(kMaxBlobBytes + 1), after(kPatience)).status().code(), Code::InvalidArgument);
  });
}

TEST(Store, a_missing_rank_is_named_by_the_deadline) {
  Store store(3);
  as_ranks(2, [&](int32_t rank) {
    const auto client = store.client(rank);
    const auto opened = client->open_epoch(3, {}, after(rank == 0 ? kShort : kPatience));
    EXPECT_EQ(opened.status().code(), Code::Timeout);
    EXPECT_THAT(opened.status().message(), HasSubstr("has not arrived within 0."));
  });
}

TEST(Store, a_wrong_size_is_told_to_both) {
  Store store(2);
  as_ranks(2, [&](int32_t rank) {
    const auto opened = store.client(rank)->open_epoch(rank == 0 ? 2 : 5, {}, after(kPatience));
    EXPECT_THAT(opened.status().message(), HasSubstr("rank 1 says the job has 5 ranks, the store says 2"));
  });
}

TEST(Store, a_wrong_key_is_told_to_the_client) {
  Store store(1);
  const auto client = StoreClient::connect({&store.server->address(), 1}, random_key(), 0, after(kPatience));
  EXPECT_EQ(client.status().code(), Code::InvalidArgument);
  EXPECT_THAT(client.status().message(), HasSubstr("RONDE_KEY_FILE"));
}

TEST(Store, a_store_that_starts_later_is_waited_for) {
  os::Address address;
  {
    const auto listener = os::listen_tcp({"127.0.0.1", 0});
    address = listener->bound;
  }
  const Key key = random_key();
  Result<std::unique_ptr<StoreClient>> client(Status(Code::Internal, "did not run"));
  std::thread rank([&] { client = StoreClient::connect({&address, 1}, key, 0, after(kPatience)); });
  os::sleep_until_readable({}, after(kShort));
  const auto server = StoreServer::start({.listen = address, .key = key});
  rank.join();
  ASSERT_TRUE(server.ok()) << server.status().message();
  EXPECT_TRUE(client.ok()) << client.status().message();
}

TEST(Store, no_store_is_told_with_what_to_do_by_the_deadline) {
  os::Address address;
  {
    const auto listener = os::listen_tcp({"127.0.0.1", 0});
    address = listener->bound;
  }
  const auto client = StoreClient::connect({&address, 1}, random_key(), 0, after(kShort));
  EXPECT_THAT(client.status().message(), HasSubstr("check RONDE_STORE"));
  EXPECT_THAT(client.status().message(), HasSubstr(address.to_string()));
}

TEST(Store, strangers_and_a_slow_frame_do_not_hold_up_the_job) {
  Store store(2);
  const auto& address = store.server->address();
  const auto stranger = os::connect_tcp_by({&address, 1}, after(kPatience));
  ASSERT_TRUE(os::write_all_by(*stranger, Bytes(300, std::byte{'x'}), after(kPatience)).ok());
  const auto silent = os::connect_tcp_by({&address, 1}, after(kPatience));
  // A proven process that stops within a frame.
  auto raw = os::connect_tcp_by({&address, 1}, after(kPatience));
  auto slow = greet_by(std::move(raw).value(), Hello::Role::Initiator, store.key, {}, after(kPatience));
  ASSERT_TRUE(slow.ok());
  ASSERT_TRUE(os::write_all_by(slow->fd, Bytes{std::byte{200}, {}, {}, {}, {}}, after(kPatience)).ok());
  as_ranks(2, [&](int32_t rank) { EXPECT_TRUE(store.client(rank)->open_epoch(2, {}, after(kPatience)).ok()); });
}

TEST(Store, a_proven_process_that_sends_nonsense_is_closed) {
  Store store(1);
  for (const Bytes& nonsense : {Bytes(4, std::byte{0xff}), Bytes{std::byte{1}, {}, {}, {}, std::byte{77}}}) {
    auto raw = os::connect_tcp_by({&store.server->address(), 1}, after(kPatience));
    auto peer = greet_by(std::move(raw).value(), Hello::Role::Initiator, store.key, {}, after(kPatience));
    ASSERT_TRUE(peer.ok());
    ASSERT_TRUE(os::write_all_by(peer->fd, nonsense, after(kPatience)).ok());
    std::byte byte;
    EXPECT_EQ(os::read_all_by(peer->fd, {&byte, 1}, after(kPatience)).code(), Code::PeerLost);
  }
}

TEST(Store, connections_are_bounded_and_room_comes_back) {
  Store store(1);
  for (int round = 0; round < 2; ++round) {
    std::vector<std::unique_ptr<StoreClient>> clients;
    for (int i = 0; i < 4 + 64; ++i) clients.push_back(store.client(-1));
    const auto beyond = store.client(-1);
    EXPECT_EQ(news_by(*beyond, after(kPatience)).status().code(), Code::PeerLost);
  }
  EXPECT_TRUE(store.client(0)->open_epoch(1, {}, after(kPatience)).ok());
}

TEST(Store, a_published_cause_reaches_all_connected_and_later_ones_and_those_in_an_exchange) {
  constexpr int32_t kSize = 3;
  Store store(kSize);
  std::mutex mutex;  // guards opened
  std::condition_variable all_opened;
  int opened = 0;
  std::thread agent([&] {
    std::unique_lock lock(mutex);
    all_opened.wait(lock, [&] { return opened == kSize; });
    store.server->publish({2, Status(Code::PeerLost, "rank 2 (pid 17) was killed by signal 9")});
  });
  as_ranks(kSize, [&](int32_t rank) {
    const auto client = store.client(rank);
    ASSERT_TRUE(client->open_epoch(kSize, {}, after(kPatience)).ok());
    {
      const std::lock_guard lock(mutex);
      ++opened;
    }
    all_opened.notify_one();
    if (rank == 0) {
      const auto all = client->exchange("x", {}, after(kPatience));
      EXPECT_EQ(all.status().code(), Code::PeerLost);
      EXPECT_THAT(all.status().message(), HasSubstr("signal 9"));
    }
    const auto news = news_by(*client, after(kPatience));
    ASSERT_TRUE(news.ok()) << news.status().message();
    EXPECT_EQ(news->rank, 2);
    EXPECT_EQ(news->status.message(), "rank 2 (pid 17) was killed by signal 9");
  });
  agent.join();
  EXPECT_EQ(news_by(*store.client(1), after(kPatience))->rank, 2);
}

TEST(Store, a_rank_that_dies_in_an_exchange_is_named_at_once_to_those_that_wait) {
  constexpr int32_t kSize = 3;
  Store store(kSize, true);
  as_ranks(kSize, [&](int32_t rank) {
    auto client = store.client(rank);
    ASSERT_TRUE(client->open_epoch(kSize, {}, after(kPatience)).ok());
    if (rank == 1) return;  // the end of its connection
    const auto all = client->exchange("x", {}, after(std::chrono::minutes(10)));
    EXPECT_EQ(all.status().code(), Code::PeerLost);
    EXPECT_THAT(all.status().message(), HasSubstr("rank 1 (host h, pid 1, 127.0.0.1:"));
  });
}

TEST(Store, openings_failures_and_leaves_are_called_back) {
  std::mutex mutex;  // guards said
  std::condition_variable changed;
  std::vector<std::string> said;
  const auto note = [&](std::string text) {
    const std::lock_guard lock(mutex);
    said.push_back(std::move(text));
    changed.notify_one();
  };
  Store store(
      1, false,
      {.on_failure = [&](int32_t rank, const Status& what) { note(cat("failure ", rank, " ", what.message())); },
       .on_leave = [&](int32_t rank, uint32_t) { note(cat("leave ", rank)); },
       .on_open = [&] { note("open"); }});
  auto client = store.client(0);
  ASSERT_TRUE(client->open_epoch(1, {}, after(kPatience)).ok());
  EXPECT_TRUE(client->tell_failure(Status(Code::Internal, "ValueError: x")).ok());
  EXPECT_TRUE(client->tell_leave(0).ok());
  std::unique_lock lock(mutex);
  ASSERT_TRUE(changed.wait_for(lock, kPatience, [&] { return said.size() == 3; }));
  EXPECT_EQ(said, (std::vector<std::string>{"open", "failure 0 ValueError: x", "leave 0"}));
}

TEST(Store, a_leave_is_no_loss) {
  Store store(2, true);
  std::unique_ptr<StoreClient> other;
  as_ranks(2, [&](int32_t rank) {
    auto client = store.client(rank);
    ASSERT_TRUE(client->open_epoch(2, {}, after(kPatience)).ok());
    if (rank == 1) {
      EXPECT_TRUE(client->tell_leave(0).ok());
    }
    if (rank == 0) other = std::move(client);
  });
  EXPECT_EQ(news_by(*other, after(kShort)).status().code(), Code::Timeout) << "nobody was lost";
}

TEST(Store, what_ends_the_epoch_on_one_rank_is_news_on_the_others) {
  Store store(2);
  std::unique_ptr<StoreClient> other;
  std::unique_ptr<StoreClient> aborter;
  as_ranks(2, [&](int32_t rank) {
    auto client = store.client(rank);
    ASSERT_TRUE(client->open_epoch(2, {}, after(kPatience)).ok());
    (rank == 0 ? other : aborter) = std::move(client);
  });
  EXPECT_TRUE(aborter->tell_abort(Status(Code::Timeout, "batch 3 is late")).ok());
  const auto news = news_by(*other, after(kPatience));
  ASSERT_TRUE(news.ok()) << news.status().message();
  EXPECT_EQ(news->status.code(), Code::Timeout);
  EXPECT_EQ(news->rank, 1);
  EXPECT_THAT(news->status.message(), HasSubstr("gave up: batch 3 is late"));
}

TEST(Store, the_end_of_the_store_is_an_error_for_its_clients) {
  Store store(2);
  const auto client = store.client(0);
  std::thread rank([&] {
    const auto opened = client->open_epoch(2, {}, after(std::chrono::minutes(10)));
    EXPECT_EQ(opened.status().code(), Code::PeerLost);
    EXPECT_THAT(opened.status().message(), HasSubstr("the store at 127.0.0.1:"));
  });
  os::sleep_until_readable({}, after(kShort));
  store.server.reset();
  rank.join();
  EXPECT_FALSE(client->take_news().ok());
}

TEST(Store, a_client_says_under_which_address_it_reaches_the_store) {
  Store store(1);
  EXPECT_EQ(store.client(0)->own_address().host, "127.0.0.1");
}

TEST(Store, a_port_in_use_is_named) {
  Store store(1);
  const auto second = StoreServer::start({.listen = store.server->address()});
  EXPECT_THAT(second.status().message(), HasSubstr(store.server->address().to_string()));
}

}  // namespace
}  // namespace ronde::member
