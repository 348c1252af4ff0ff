// SPDX-License-Identifier: Apache-2.0
#include "member/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace ronde::member {
namespace {

using ::testing::HasSubstr;
namespace wire = store_wire;
constexpr Duration kSecond = std::chrono::seconds(1);

// Ranks as connections 100 + rank; answers are kept by connection.
struct Job {
  explicit Job(int32_t size, bool report_lost = false) : ranks(size), store(size, report_lost) {
    for (int32_t rank = 0; rank < size; ++rank) connect(100 + static_cast<uint64_t>(rank), rank);
  }
  void connect(uint64_t conn, int32_t rank) {
    store.connected(conn, rank, cat("10.0.0.", rank, ":1"));
    collect();
  }
  void say(uint64_t conn, const wire::Message& message) {
    const WireFrame frame = wire::encode(message);
    const Status status = store.on_frame(conn, ByteSpan(*frame).subspan(4), clock.now());
    EXPECT_TRUE(status.ok()) << status.message();
    collect();
  }
  void open(uint64_t conn, std::string blob = "", Duration patience = 3 * kSecond, int32_t size = -1) {
    say(conn, wire::Open{++request, patience, size < 0 ? ranks : size, cat("host ", conn), bytes(blob)});
  }
  void exchange(uint64_t conn, uint32_t epoch, std::string tag, std::string blob = "",
                Duration patience = 3 * kSecond) {
    say(conn, wire::Exchange{++request, patience, epoch, tag, bytes(blob)});
  }
  void open_all() {
    for (int32_t rank = 0; rank < ranks; ++rank) open(100 + static_cast<uint64_t>(rank));
    heard.clear();
  }
  void wait(Duration time) {
    clock.advance(time);
    store.tick(clock.now());
    collect();
  }
  void collect() {
    for (const auto& [to, frame] : store.take_outgoing()) {
      heard[to].push_back(wire::decode(ByteSpan(*frame).subspan(4)).value());
    }
  }
  // What the connection was last told, as text: "done 1", "MISMATCH: text", "news: text", "" for nothing. Forgets it.
  std::string last(uint64_t conn) {
    const auto all = std::exchange(heard[conn], {});
    if (all.empty()) return "";
    if (const auto* done = std::get_if<wire::Done>(&all.back())) return cat("done ", done->epoch);
    if (const auto* news = std::get_if<wire::News>(&all.back())) return cat("news: ", news->cause.status.message());
    if (const auto* failed = std::get_if<wire::Failed>(&all.back())) {
      return cat(code_name(failed->status.code()), ": ", failed->status.message());
    }
    return "part";
  }
  // What the server's callbacks would hear of: "opened, 1 left, 0 failed: text".
  std::string notices() {
    std::string out;
    for (const auto& notice : store.take_notices()) {
      out += out.empty() ? "" : ", ";
      if (const auto* failed = std::get_if<Rendezvous::RankFailed>(&notice)) {
        out += cat(failed->rank, " failed: ", failed->what.message());
      } else if (const auto* left = std::get_if<Rendezvous::RankLeft>(&notice)) {
        out += cat(left->rank, " left");
      } else {
        out += "opened";
      }
    }
    return out;
  }
  std::string blobs(uint64_t conn) {
    std::string out;
    for (const auto& message : heard[conn]) {
      if (const auto* part = std::get_if<wire::Part>(&message)) {
        out += cat(part->rank, std::string(reinterpret_cast<const char*>(part->blob.data()), part->blob.size()), " ");
      }
    }
    return out;
  }
  static Bytes bytes(const std::string& text) {
    const auto raw = std::as_bytes(std::span(text.data(), text.size()));
    return {raw.begin(), raw.end()};
  }

  int32_t ranks;
  Rendezvous store;
  ManualClock clock;
  uint32_t request = 0;
  std::map<uint64_t, std::vector<wire::Message>> heard;
};

TEST(Rendezvous, an_epoch_opens_when_the_last_rank_arrives) {
  Job job(3);
  job.open(102, "c");
  job.open(100, "a");
  EXPECT_EQ(job.last(100), "");
  job.open(101, "b");
  for (uint64_t conn = 100; conn < 103; ++conn) {
    EXPECT_EQ(job.blobs(conn), "0a 1b 2c ");
    EXPECT_EQ(job.last(conn), "done 1");
  }
  EXPECT_EQ(job.store.next_deadline(), kNever);
}

TEST(Rendezvous, epochs_grow_for_the_same_and_for_new_connections) {
  Job job(2);
  job.open_all();
  for (uint32_t epoch = 2; epoch < 10; ++epoch) {
    const uint64_t conn = 200 + epoch;
    job.say(epoch == 2 ? 101 : conn - 1, wire::Leave{epoch - 1, 0});
    job.store.disconnected(epoch == 2 ? 101 : conn - 1);
    job.connect(conn, 1);
    job.open(100);
    job.open(conn);
    EXPECT_EQ(job.last(100), cat("done ", epoch));
    EXPECT_EQ(job.last(conn), cat("done ", epoch));
  }
}

TEST(Rendezvous, missing_ranks_are_named_at_the_first_deadline_to_those_that_wait) {
  Job job(6);
  for (const uint64_t conn : {100, 101, 103}) job.open(conn);
  job.open(104, "", kSecond * 10);
  job.wait(3 * kSecond);
  const std::string text = "TIMEOUT: ranks 2, 5 have not arrived within 3.0 s (init_timeout); arrived: 0, 1, 3, 4";
  for (const uint64_t conn : {100, 101, 103, 104}) EXPECT_EQ(job.last(conn), text);
  EXPECT_EQ(job.last(102), "");
}

TEST(Rendezvous, nothing_fails_before_the_deadline) {
  Job job(2);
  job.open(100);
  EXPECT_EQ(job.store.next_deadline(), job.clock.now() + 3 * kSecond);
  job.wait(3 * kSecond - Duration(1));
  EXPECT_EQ(job.last(100), "");
  job.open(101);
  EXPECT_EQ(job.last(100), "done 1");
}

TEST(Rendezvous, a_rank_too_late_hears_at_once_what_happened_and_the_next_attempt_is_a_new_one) {
  Job job(2);
  job.open(100);
  job.wait(3 * kSecond);
  EXPECT_THAT(job.last(100), HasSubstr("rank 1 has not arrived"));
  job.open(101);
  EXPECT_THAT(job.last(101), HasSubstr("rank 1 has not arrived"));
  job.open(101);
  EXPECT_EQ(job.last(101), "");
  job.open(100);
  EXPECT_EQ(job.last(100), "done 1");
  EXPECT_EQ(job.last(101), "done 1");
}

TEST(Rendezvous, a_wrong_size_is_told_with_both_numbers_to_everybody) {
  Job job(4);
  job.open(100);
  job.open(101, "", kSecond, 3);
  job.open(102);
  for (const uint64_t conn : {100, 101, 102}) {
    EXPECT_EQ(job.last(conn),
              "INVALID_ARGUMENT: rank 1 says the job has 3 ranks, the store says 4: start all ranks with the same "
              "RONDE_SIZE");
  }
}

TEST(Rendezvous, a_rank_out_of_range_is_told_to_everybody) {
  for (const int32_t rank : {-1, 2, 1000}) {
    Job job(2);
    job.connect(200, rank);
    job.open(100);
    job.open(200);
    EXPECT_THAT(job.last(100), HasSubstr(cat("says it is rank ", rank)));
    EXPECT_THAT(job.last(200), HasSubstr("0 ... 1"));
  }
}

TEST(Rendezvous, two_processes_with_one_rank_are_told_to_everybody) {
  Job job(3);
  job.connect(200, 1);
  for (const uint64_t conn : {100, 101, 200}) job.open(conn);
  for (const uint64_t conn : {100, 101, 200}) {
    EXPECT_THAT(job.last(conn),
                HasSubstr("two processes say they are rank 1: rank 1 (host 101, 10.0.0.1:1) and rank 1 (host 200"));
  }
}

TEST(Rendezvous, a_second_process_does_not_disturb_the_running_epoch) {
  Job job(2);
  job.open_all();
  job.connect(200, 1);
  job.open(200);
  EXPECT_THAT(job.last(200), HasSubstr("rank 1 is taken"));
  job.exchange(100, 1, "x");
  job.exchange(101, 1, "x");
  EXPECT_EQ(job.last(100), "done 1");
}

TEST(Rendezvous, exchanges_of_different_tags_do_not_mix_and_a_tag_can_be_used_again) {
  Job job(2);
  job.open_all();
  job.exchange(100, 1, "x", "A");
  job.exchange(101, 1, "y", "B");
  EXPECT_EQ(job.last(100), "");
  job.exchange(101, 1, "x", "C");  // the new request withdraws y
  EXPECT_EQ(job.blobs(100), "0A 1C ");
  EXPECT_EQ(job.last(101), "done 1");
  job.heard.clear();
  job.exchange(100, 1, "x", "D");
  EXPECT_EQ(job.last(100), "");
  job.exchange(101, 1, "x", "E");
  EXPECT_EQ(job.blobs(100), "0D 1E ");
}

TEST(Rendezvous, a_late_exchange_fails_the_epoch_for_all_and_for_good) {
  Job job(3);
  job.open_all();
  job.exchange(100, 1, "x");
  job.exchange(101, 1, "y", "", 10 * kSecond);
  job.wait(3 * kSecond);
  EXPECT_THAT(job.last(100), HasSubstr("ranks 1, 2 have not arrived within 3.0 s"));
  EXPECT_THAT(job.last(101), HasSubstr("ranks 1, 2 have not arrived"));
  job.exchange(102, 1, "x");
  EXPECT_THAT(job.last(102), HasSubstr("ranks 1, 2 have not arrived"));
  job.open_all();
  job.exchange(100, 2, "x");
  EXPECT_EQ(job.last(100), "");
}

TEST(Rendezvous, frames_of_another_epoch_change_nothing) {
  Job job(2);
  job.open_all();
  job.open_all();
  job.exchange(100, 1, "x");
  EXPECT_THAT(job.last(100), HasSubstr("is in epoch 1, the job in epoch 2"));
  job.say(101, wire::Leave{1, 0});
  job.say(101, wire::Abort{1, Status(Code::Timeout, "old")});
  job.say(101, wire::Failure{1, Status(Code::Internal, "old")});
  EXPECT_EQ(job.notices(), "opened, opened");
  job.exchange(100, 2, "x");
  EXPECT_EQ(job.last(100), "");
}

TEST(Rendezvous, a_cause_reaches_waiting_running_and_later_connections_and_the_first_wins) {
  Job job(3);
  job.open_all();
  job.exchange(100, 1, "x");
  job.store.publish({2, Status(Code::PeerLost, "rank 2 was killed by signal 9")});
  job.store.publish({0, Status(Code::Aborted, "second")});
  job.collect();
  EXPECT_TRUE(std::holds_alternative<wire::Failed>(job.heard[100].front()));
  EXPECT_EQ(job.last(100), "news: rank 2 was killed by signal 9");
  EXPECT_EQ(job.last(101), "news: rank 2 was killed by signal 9");
  job.exchange(101, 1, "x");
  EXPECT_EQ(job.last(101), "PEER_LOST: rank 2 was killed by signal 9");
  job.connect(200, 2);
  EXPECT_EQ(job.last(200), "news: rank 2 was killed by signal 9");
  job.say(100, wire::Leave{1, 0});
  job.open(100);
  job.open(101);
  job.open(200);
  EXPECT_EQ(job.last(200), "done 2");
  job.connect(201, 7);
  EXPECT_EQ(job.last(201), "") << "the cause was the last epoch's";
}

TEST(Rendezvous, a_rank_that_gives_up_is_the_cause_for_all) {
  Job job(3);
  job.open_all();
  job.exchange(102, 1, "x");
  job.say(101, wire::Abort{1, Status(Code::ResourceExhausted, "no memory for an output")});
  const std::string text = "rank 1 (host 101, 10.0.0.1:1) gave up: no memory for an output";
  EXPECT_EQ(job.last(100), cat("news: ", text));
  EXPECT_EQ(job.last(102), cat("news: ", text));
  job.exchange(100, 1, "x");
  EXPECT_EQ(job.last(100), cat(code_name(Code::ResourceExhausted), ": ", text));
}

TEST(Rendezvous, a_cause_before_the_first_epoch_fails_the_opening_also_for_who_comes_later) {
  Job job(3);
  job.open(100);
  job.store.publish({2, Status(Code::PeerLost, "rank 2 exited with status 1")});
  job.collect();
  EXPECT_THAT(job.heard[100].size(), 2u);
  job.open(101);
  EXPECT_EQ(job.last(101), "PEER_LOST: rank 2 exited with status 1");
}

TEST(Rendezvous, a_lost_connection_is_the_cause_only_if_the_store_is_to_report_it) {
  for (const bool report : {false, true}) {
    Job job(3, report);
    job.open_all();
    job.exchange(100, 1, "x");
    job.store.disconnected(102);
    job.collect();
    if (report) {
      EXPECT_TRUE(std::holds_alternative<wire::Failed>(job.heard[100].front()));
      EXPECT_THAT(job.last(100), HasSubstr("rank 2 (host 102, 10.0.0.2:1) ended its connection"));
      EXPECT_THAT(job.last(101), HasSubstr("news: rank 2"));
    } else {
      EXPECT_EQ(job.last(100), "");
      EXPECT_EQ(job.last(101), "");
    }
  }
}

TEST(Rendezvous, a_rank_lost_while_it_waits_fails_the_opening_or_makes_room) {
  Job told(2, true);
  told.connect(200, 1);
  told.open(101);
  told.store.disconnected(101);
  told.open(100);
  EXPECT_THAT(told.last(100), HasSubstr("rank 1 (host 101"));

  Job silent(2, false);
  silent.connect(200, 1);
  silent.open(101);
  silent.store.disconnected(101);
  silent.open(100);
  silent.open(200);
  EXPECT_EQ(silent.last(100), "done 1");
}

TEST(Rendezvous, all_may_go_without_a_word_after_a_cause_and_come_again) {
  Job job(2, true);
  job.open_all();
  job.store.publish({1, Status(Code::Aborted, "x")});
  for (const uint64_t conn : {100, 101}) job.store.disconnected(conn);
  for (const uint64_t conn : {200, 201}) {
    job.connect(conn, static_cast<int32_t>(conn - 200));
    job.open(conn);
  }
  EXPECT_EQ(job.last(200), "done 2");
}

TEST(Rendezvous, a_leave_is_no_loss_and_ends_the_exchanges_of_the_epoch) {
  Job job(2, true);
  job.open_all();
  job.exchange(100, 1, "x");
  job.say(101, wire::Leave{1, 0});
  EXPECT_THAT(job.last(100), HasSubstr("RANK_LEFT: rank 1 (host 101, 10.0.0.1:1) has left"));
  job.store.disconnected(101);
  job.collect();
  EXPECT_EQ(job.last(100), "");
  EXPECT_EQ(job.notices(), "opened, 1 left");
}

TEST(Rendezvous, a_failure_is_handed_on_before_and_in_an_epoch) {
  Job job(2);
  job.say(101, wire::Failure{0, Status(Code::Internal, "import failed")});
  job.open_all();
  job.say(100, wire::Failure{1, Status(Code::Internal, "boom")});
  EXPECT_EQ(job.notices(), "1 failed: import failed, opened, 0 failed: boom");
  EXPECT_EQ(job.last(101), "") << "how the process ends is not known yet";
}

TEST(Rendezvous, without_a_launcher_a_failure_is_the_cause_at_once) {
  Job job(2, true);
  job.open_all();
  job.say(100, wire::Failure{1, Status(Code::Internal, "ValueError: boom")});
  EXPECT_EQ(job.last(101), "news: rank 0 (host 100, 10.0.0.0:1) failed: ValueError: boom");
}

TEST(StoreWire, what_only_a_store_sends_and_bytes_without_sense_are_refused) {
  Job job(1);
  for (const wire::Message& message : {wire::Message(wire::Done{}), wire::Message(wire::News{})}) {
    const WireFrame frame = wire::encode(message);
    EXPECT_FALSE(job.store.on_frame(100, ByteSpan(*frame).subspan(4), job.clock.now()).ok());
  }
  std::mt19937 random(1);
  int good = 0;
  for (int i = 0; i < 20000; ++i) {
    Bytes bytes(random() % 40);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random() % 9);
    good += job.store.on_frame(100, bytes, job.clock.now()).ok();
    job.collect();
  }
  EXPECT_LT(good, 2000);
}

TEST(StoreWire, a_cut_frame_is_refused_at_every_length) {
  const wire::Message messages[] = {wire::Open{1, kSecond, 2, "who", Bytes(3)},
                                    wire::Exchange{1, kSecond, 2, "tag", Bytes(3)},
                                    wire::Failure{1, Status(Code::Internal, "text")},
                                    wire::Leave{1, 0},
                                    wire::Part{1, Bytes(2)},
                                    wire::Done{1, 2},
                                    wire::Failed{1, Status(Code::Timeout, "late")},
                                    wire::News{1, {2, Status(Code::Timeout, "x")}}};
  for (const auto& message : messages) {
    const WireFrame frame = wire::encode(message);
    const ByteSpan whole = ByteSpan(*frame).subspan(4);
    EXPECT_EQ(wire::decode(whole)->index(), message.index());
    for (size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(wire::decode(whole.first(size)).ok());
  }
}

TEST(StoreWire, long_texts_are_cut_to_what_a_frame_holds) {
  const WireFrame frame = wire::encode(wire::Failure{1, Status(Code::Internal, std::string(1 << 20, 'x'))});
  EXPECT_LE(frame->size(), wire::kMaxFrameBytes + 4);
  EXPECT_TRUE(wire::decode(ByteSpan(*frame).subspan(4)).ok());
}

}  // namespace
}  // namespace ronde::member
