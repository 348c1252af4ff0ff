// SPDX-License-Identifier: Apache-2.0
#include "member/hello.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "member/mac.h"

namespace ronde::member {
namespace {

using ::testing::HasSubstr;
using Role = Hello::Role;

const Identity kAlice{.purpose = Purpose::Data, .rank = 3, .called = 5, .epoch = 7, .stream = 1};
const Identity kBob{.purpose = Purpose::Store, .rank = 5};

// Two hellos and the four messages between them; a test changes a message on its way.
struct Dialogue {
  explicit Dialogue(const Key& key) : Dialogue(key, key) {}
  Dialogue(const Key& a, const Key& b) : alice(Role::Initiator, a, kAlice), bob(Role::Acceptor, b, kBob) {}

  Hello alice;
  Hello bob;
  std::array<Bytes, 4> said;
  Status alice_says;
  Status bob_says;

  template <class Change>
  void run(Change change) {
    said[0] = alice.start();
    change(0, said[0]);
    bob_says = bob.feed(said[0], said[1]);
    if (said[1].empty()) return;
    change(1, said[1]);
    alice_says = alice.feed(said[1], said[2]);
    if (!bob_says.ok() || said[2].empty()) return;
    change(2, said[2]);
    bob_says = bob.feed(said[2], said[3]);
    if (!bob_says.ok()) return;
    change(3, said[3]);
    Bytes nothing;
    alice_says = alice.feed(said[3], nothing);
  }
  void run() {
    run([](int, Bytes&) {});
  }
  bool both_done() const { return alice.done() && bob.done(); }
};

TEST(Hello, right_key_is_accepted_and_both_know_who_speaks) {
  Dialogue talk(random_key());
  talk.run();
  ASSERT_TRUE(talk.alice_says.ok()) << talk.alice_says.message();
  ASSERT_TRUE(talk.bob_says.ok()) << talk.bob_says.message();
  ASSERT_TRUE(talk.both_done());
  EXPECT_EQ(talk.bob.peer(), kAlice);
  EXPECT_EQ(talk.alice.peer(), (Identity{.purpose = Purpose::Data, .rank = 5, .called = 3, .epoch = 7, .stream = 1}));
  EXPECT_EQ(talk.alice.session_key(), talk.bob.session_key());
}

TEST(Hello, an_initiator_is_not_done_before_it_is_welcomed) {
  Dialogue talk(random_key());
  Bytes second;
  Bytes third;
  ASSERT_TRUE(talk.bob.feed(talk.alice.start(), second).ok());
  ASSERT_TRUE(talk.alice.feed(second, third).ok());
  EXPECT_FALSE(talk.alice.done());
  EXPECT_EQ(talk.alice.wants(), 32u);
}

TEST(Hello, a_call_for_another_rank_ends_on_both_sides_before_a_proof_is_given) {
  const Key key = random_key();
  Hello alice(Role::Initiator, key, {.purpose = Purpose::Data, .rank = 3, .called = 4});
  Hello bob(Role::Acceptor, key, kBob);
  Bytes second;
  Bytes third;
  EXPECT_EQ(bob.feed(alice.start(), second).message(), "rank 5 answered a call for rank 4");
  EXPECT_EQ(alice.feed(second, third).message(), "rank 5 answered a call for rank 4");
  EXPECT_TRUE(third.empty());
}

TEST(Hello, two_sessions_have_two_session_keys) {
  const Key key = random_key();
  Dialogue one(key);
  Dialogue two(key);
  one.run();
  two.run();
  EXPECT_NE(one.alice.session_key(), two.alice.session_key());
  EXPECT_NE(one.alice.session_key(), key);
}

TEST(Hello, wrong_key_is_refused_on_both_sides) {
  Dialogue talk(random_key(), random_key());
  talk.run();
  EXPECT_EQ(talk.alice_says.code(), Code::InvalidArgument);
  EXPECT_THAT(talk.alice_says.message(), HasSubstr("RONDE_KEY_FILE"));
  EXPECT_TRUE(talk.said[2].empty()) << "a refused acceptor gets no proof";

  // An initiator that goes on regardless, with the proof that its own key makes; and, as a control, with the right key.
  const Key right = random_key();
  for (const bool knows : {false, true}) {
    Hello alice(Role::Initiator, right, kAlice);
    Hello bob(Role::Acceptor, right, kBob);
    const Bytes first = alice.start();
    Bytes second;
    Bytes nothing;
    ASSERT_TRUE(bob.feed(first, second).ok());
    Key proof;
    const ByteSpan pieces[] = {std::as_bytes(std::span("initiator", 9)), first, ByteSpan(second).first(first.size())};
    make_mac(knows ? right : random_key(), pieces, proof);
    EXPECT_EQ(bob.feed(proof, nothing).ok(), knows);
    EXPECT_EQ(bob.done(), knows);
  }
}

TEST(Hello, another_build_is_refused_and_both_builds_are_named_on_both_sides) {
  Dialogue talk(random_key());
  talk.run([](int message, Bytes& bytes) {
    if (message < 2) bytes[8] ^= std::byte{1};
  });
  EXPECT_THAT(talk.bob_says.message(), HasSubstr("peer runs ronde build"));
  EXPECT_THAT(talk.alice_says.message(), HasSubstr("peer runs ronde build"));
  EXPECT_FALSE(talk.alice.done() || talk.bob.done());
}

TEST(Hello, a_stranger_is_told_apart_by_its_first_bytes) {
  Hello bob(Role::Acceptor, random_key(), kBob);
  Bytes http(bob.wants(), std::byte{'G'});
  Bytes out;
  EXPECT_THAT(bob.feed(http, out).message(), HasSubstr("no process of ronde"));
  EXPECT_TRUE(out.empty());
  EXPECT_EQ(bob.wants(), 0u);
}

TEST(Hello, a_flipped_bit_at_any_byte_of_any_message_is_refused) {
  const Key key = random_key();
  const std::array<size_t, 4> sizes{65, 97, 32, 32};
  for (int message = 0; message < 4; ++message) {
    for (size_t at = 0; at < sizes[static_cast<size_t>(message)]; ++at) {
      for (const auto bit : {std::byte{1}, std::byte{0x80}}) {
        Dialogue talk(key);
        talk.run([&](int which, Bytes& bytes) {
          if (which == message) bytes.at(at) ^= bit;
        });
        EXPECT_FALSE(talk.both_done()) << "message " << message << " byte " << at;
        EXPECT_FALSE(talk.alice_says.ok() && talk.bob_says.ok()) << "message " << message << " byte " << at;
      }
    }
  }
}

TEST(Hello, truncated_and_overlong_messages_are_refused) {
  const Key key = random_key();
  for (int message = 0; message < 4; ++message) {
    for (const int change : {-1, +1, -1000}) {
      Dialogue talk(key);
      talk.run([&](int which, Bytes& bytes) {
        if (which != message) return;
        bytes.resize(static_cast<size_t>(std::max(0, static_cast<int>(bytes.size()) + change)));
      });
      EXPECT_FALSE(talk.both_done());
      EXPECT_FALSE(talk.alice_says.ok() && talk.bob_says.ok()) << message << " " << change;
    }
  }
}

TEST(Hello, a_replayed_transcript_is_refused) {
  const Key key = random_key();
  Dialogue old(key);
  old.run();
  ASSERT_TRUE(old.both_done());

  Hello bob(Role::Acceptor, key, kBob);  // the same initiator's messages to a new acceptor
  Bytes out;
  ASSERT_TRUE(bob.feed(old.said[0], out).ok());
  EXPECT_FALSE(bob.feed(old.said[2], out).ok());
  EXPECT_FALSE(bob.done());

  Hello alice(Role::Initiator, key, kAlice);  // the same acceptor's answer to a new initiator
  alice.start();
  EXPECT_FALSE(alice.feed(old.said[1], out).ok());
}

TEST(Hello, an_acceptor_s_own_proof_does_not_serve_an_initiator) {
  Hello bob(Role::Acceptor, random_key(), kBob);
  Dialogue talk(random_key());
  Bytes answer;
  Bytes nothing;
  ASSERT_TRUE(bob.feed(talk.alice.start(), answer).ok());
  EXPECT_FALSE(bob.feed(ByteSpan(answer).last(32), nothing).ok());
}

TEST(Hello, never_wants_more_than_a_hello_has) {
  const Key key = random_key();
  Hello alice(Role::Initiator, key, kAlice);
  Hello bob(Role::Acceptor, key, kBob);
  EXPECT_EQ(alice.wants(), 97u);
  EXPECT_EQ(bob.wants(), 65u);
  Bytes out;
  ASSERT_TRUE(bob.feed(alice.start(), out).ok());
  EXPECT_EQ(bob.wants(), 32u);
  EXPECT_FALSE(bob.done());
}

TEST(Hello, nothing_can_be_fed_after_an_error_or_after_the_end) {
  Dialogue talk(random_key());
  talk.run();
  Bytes out;
  EXPECT_EQ(talk.bob.wants(), 0u);
  EXPECT_FALSE(talk.bob.feed({}, out).ok());
  EXPECT_FALSE(talk.bob.feed(talk.said[2], out).ok());
}

}  // namespace
}  // namespace ronde::member
