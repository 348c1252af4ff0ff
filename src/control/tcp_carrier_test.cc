// SPDX-License-Identifier: Apache-2.0
// What only the TCP carrier has: MACs, credits. The test plays the peer on a bare socket.
#include "control/tcp_carrier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <thread>

#include "control/sealer.h"
#include "os/event_set.h"

namespace ronde::control {
namespace {

using ::testing::HasSubstr;
constexpr uint32_t kCreditMark = 0x80000000;
constexpr uint32_t kBeatMark = 0x40000000;

Time soon() {
  return SteadyClock().now() + std::chrono::seconds(30);
}

// A carrier, the acceptor's side, and the bare socket at its other end.
struct Link {
  Link() : events(os::EventSet::create().value()) {
    const auto listener = os::listen_tcp({"127.0.0.1", 0});
    peer = os::connect_tcp_by({&listener->bound, 1}, soon()).value();
    const int raw = listener->fd.get();
    os::sleep_until_readable({&raw, 1}, soon());
    auto accepted = os::accept_now(listener->fd);
    carrier = make_tcp_carrier({std::move(accepted).value(), {}, session}, false, "rank 5 (host b)", &events).value();
  }
  ~Link() { carrier.reset(); }

  Bytes sealed(uint32_t word, const Bytes& payload) {
    const Seal made = seal.next(word, payload);
    Writer writer;
    writer.put(word).put_bytes(made).put_bytes(payload);
    return writer.take();
  }
  Bytes frame(const std::string& text) {
    const auto raw = std::as_bytes(std::span(text.data(), text.size()));
    return sealed(static_cast<uint32_t>(text.size()), {raw.begin(), raw.end()});
  }
  Bytes credit(uint64_t taken) {
    const auto raw = std::as_bytes(std::span(&taken, 1));
    return sealed(kCreditMark | sizeof taken, {raw.begin(), raw.end()});
  }
  void say(const Bytes& bytes) { ASSERT_TRUE(os::write_all_by(peer, bytes, soon()).ok()); }
  // The carrier's next frame as text, or its error.
  std::string hear() {
    for (;;) {
      const auto got = carrier->try_recv();
      if (!got.ok()) return cat(code_name(got.status().code()), ": ", got.status().message());
      if (got->has_value()) return {reinterpret_cast<const char*>((*got)->data()), (*got)->size()};
      const int fd = events.fd();
      if (!os::sleep_until_readable({&fd, 1}, soon())) return "nothing";
      events.collect();
    }
  }

  os::EventSet events;
  const member::Key session = member::random_key();
  Sealer seal{session, true};
  os::Fd peer;
  std::unique_ptr<Carrier> carrier;
};

TEST(TcpCarrier, frames_that_come_byte_by_byte_are_put_together) {
  Link link;
  for (const std::byte byte : link.frame("hello")) {
    EXPECT_FALSE(link.carrier->try_recv()->has_value());
    link.say({byte});
    const int fd = link.events.fd();
    os::sleep_until_readable({&fd, 1}, soon());
    link.events.collect();
  }
  EXPECT_EQ(link.hear(), "hello");
}

TEST(TcpCarrier, a_flipped_bit_anywhere_ends_the_link_for_good) {
  const size_t size = Link().frame("hello").size();
  for (size_t at = 0; at < size; ++at) {
    Link link;
    Bytes bad = link.frame("hello");
    bad[at] ^= std::byte{1};
    link.say(bad);
    link.say(link.frame(std::string(1000, 'x')));  // so that a longer length finds its bytes
    EXPECT_THAT(link.hear(), HasSubstr("INTERNAL: rank 5 (host b): ")) << "byte " << at;
    EXPECT_THAT(link.hear(), HasSubstr("INTERNAL: rank 5 (host b): "));
    EXPECT_FALSE(link.carrier->try_send(Bytes(1)).ok());
  }
}

TEST(TcpCarrier, a_replayed_frame_ends_the_link) {
  Link link;
  const Bytes once = link.frame("hello");
  link.say(once);
  link.say(once);
  EXPECT_EQ(link.hear(), "hello");
  EXPECT_THAT(link.hear(), HasSubstr("INTERNAL"));
}

TEST(TcpCarrier, a_dropped_frame_ends_the_link) {
  Link link;
  link.frame("lost");
  link.say(link.frame("hello"));
  EXPECT_THAT(link.hear(), HasSubstr("INTERNAL"));
}

TEST(TcpCarrier, a_frame_sent_back_to_its_sender_ends_the_link) {
  Link link;
  ASSERT_TRUE(*link.carrier->try_send(Bytes(3)));
  Bytes own(4 + kSealBytes + 3);
  ASSERT_TRUE(os::read_all_by(link.peer, own, soon()).ok());
  link.say(own);
  EXPECT_THAT(link.hear(), HasSubstr("INTERNAL"));
}

TEST(TcpCarrier, an_absurd_length_ends_the_link_before_anything_is_read) {
  Link link;
  link.say(link.sealed(0x7fffffff, {}));
  EXPECT_THAT(link.hear(), HasSubstr("sent a control frame of 2147483647 bytes"));
}

TEST(TcpCarrier, a_beat_is_a_sign_of_life_and_no_frame) {
  Link link;
  EXPECT_FALSE(link.carrier->take_sign_of_life());
  link.say(link.sealed(kBeatMark, {}));
  link.say(link.frame("hello"));
  EXPECT_EQ(link.hear(), "hello");
  EXPECT_TRUE(link.carrier->take_sign_of_life());
  EXPECT_FALSE(link.carrier->take_sign_of_life());
}

TEST(TcpCarrier, a_peer_that_says_nothing_gets_one_beat_only) {
  Link link;
  for (int i = 0; i < 3; ++i) link.carrier->beat();
  const size_t size = 4 + kSealBytes;
  Bytes beat(size);
  ASSERT_TRUE(os::read_all_by(link.peer, beat, soon()).ok());
  int unread = 0;
  ASSERT_EQ(::ioctl(link.peer.get(), SIOCINQ, &unread), 0);
  EXPECT_EQ(unread, 0);
  link.say(link.sealed(kBeatMark, {}));
  link.say(link.frame("hello"));
  EXPECT_EQ(link.hear(), "hello");
  link.carrier->beat();
  EXPECT_TRUE(os::read_all_by(link.peer, beat, soon()).ok());
}

TEST(TcpCarrier, a_half_frame_and_an_end_name_the_peer) {
  Link link;
  Bytes half = link.frame("hello");
  half.resize(10);
  link.say(half);
  link.peer.reset();
  EXPECT_THAT(link.hear(), HasSubstr("PEER_LOST: rank 5 (host b): closed the connection"));
}

TEST(TcpCarrier, a_peer_that_takes_nothing_leaves_less_than_the_credit_unread) {
  Link link;
  size_t sent = 0;
  while (*link.carrier->try_send(Bytes(1000))) sent += 1000 + 4 + kSealBytes;
  EXPECT_LE(sent, kCreditBytes);
  EXPECT_GT(sent, kCreditBytes - 2 * 1020);
  Bytes unread(sent);
  ASSERT_TRUE(os::read_all_by(link.peer, unread, soon()).ok()) << "all that was accepted went out";
  EXPECT_FALSE(*link.carrier->try_send(Bytes(1000))) << "what the kernel has read is not yet taken by the owner";
  link.say(link.credit(sent));
  link.say(link.frame("x"));
  EXPECT_EQ(link.hear(), "x");
  EXPECT_TRUE(*link.carrier->try_send(Bytes(1000)));
}

// Or its kernel would close the window, and the sender's would give the link up for dead.
TEST(TcpCarrier, what_an_owner_that_is_stopped_leaves_unread_fits_its_receive_buffer) {
  for (const size_t size : {size_t{1}, size_t{100}, size_t{5000}, kMaxFrameBytes}) {
    const auto listener = os::listen_tcp({"127.0.0.1", 0});
    auto a = os::connect_tcp_by({&listener->bound, 1}, soon());
    const int raw = listener->fd.get();
    os::sleep_until_readable({&raw, 1}, soon());
    auto b = os::accept_now(listener->fd);
    const int sender_fd = a->get();
    auto events = os::EventSet::create();
    const auto key = member::random_key();
    auto sender = make_tcp_carrier({std::move(a).value(), {}, key}, true, "b", &*events).value();
    auto stopped = make_tcp_carrier({std::move(b).value(), {}, key}, false, "a", &*events).value();
    while (*sender->try_send(Bytes(size))) {
    }
    int unacknowledged = -1;
    for (const Time until = soon(); unacknowledged != 0 && SteadyClock().now() < until;) {
      events->collect();
      ASSERT_TRUE(sender->try_recv().ok());  // writes what is left
      ASSERT_EQ(::ioctl(sender_fd, SIOCOUTQ, &unacknowledged), 0);
      os::sleep_until_readable({}, SteadyClock().now() + std::chrono::milliseconds(5));
    }
    EXPECT_EQ(unacknowledged, 0) << "frames of " << size;
  }
}

TEST(TcpCarrier, credits_that_cannot_be_end_the_link) {
  Link link;
  ASSERT_TRUE(*link.carrier->try_send(Bytes(100)));
  link.say(link.credit(100000));
  EXPECT_THAT(link.hear(), HasSubstr("sent a credit of 100000 bytes of 120"));
}

TEST(TcpCarrier, a_malformed_credit_ends_the_link) {
  Link link;
  link.say(link.sealed(kCreditMark | 3, Bytes(3)));
  EXPECT_THAT(link.hear(), HasSubstr("malformed credit"));
}

TEST(TcpCarrier, frames_beyond_the_credit_end_the_link) {
  Link link;
  size_t good = 0;
  std::thread peer([&] {  // more than the socket holds
    for (size_t i = 0; i < kCreditBytes / 1020 + 10; ++i) {
      if (!os::write_all_by(link.peer, link.sealed(1000, Bytes(1000)), soon()).ok()) return;
    }
  });
  for (;;) {  // a full carrier looks for credits, and its owner takes nothing
    const auto sent = link.carrier->try_send(Bytes(1000));
    if (!sent.ok()) break;
    if (*sent) continue;
    const int fd = link.events.fd();
    ASSERT_TRUE(os::sleep_until_readable({&fd, 1}, soon()));
    link.events.collect();
  }
  while (link.carrier->try_recv().ok()) ++good;
  peer.join();
  EXPECT_EQ(good, kCreditBytes / 1020);
  EXPECT_THAT(link.hear(), HasSubstr("beyond its credit"));
}

}  // namespace
}  // namespace ronde::control
