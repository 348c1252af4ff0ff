// SPDX-License-Identifier: Apache-2.0
#include "launch/policy.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>

namespace ronde::launch {
namespace {

using namespace std::chrono_literals;

constexpr Ending kOk{};
constexpr Ending status(int code) {
  return {Ending::Kind::Exited, code, false};
}
constexpr Ending killed(int signal) {
  return {Ending::Kind::Killed, signal, false};
}

// Steps a policy and writes down what it does: "publish 2: text", "signal 15".
class JobRun {
 public:
  explicit JobRun(int size) : policy({.hosts = std::vector<std::string>(static_cast<size_t>(size), "h"), .grace = 3s}) {
    for (int rank = 0; rank < size; ++rank) step(Started{rank, 100 + rank});
  }
  std::vector<std::string> step(const Event& event) {
    std::vector<std::string> out;
    for (const auto& action : policy.step(event, now)) {
      out.push_back(action.cause ? cat("publish ", action.cause->rank, ": ", action.cause->status.message())
                                 : cat("signal ", action.signal));
    }
    return out;
  }
  std::vector<std::string> after(Duration time) {
    now += time;
    return step(Tick{});
  }
  Policy policy;
  Time now{std::chrono::seconds(1000)};
};

using Actions = std::vector<std::string>;

TEST(Policy, a_job_that_ends_well_says_nothing_and_returns_0) {
  JobRun run(2);
  EXPECT_EQ(run.step(LeftJob{0}), Actions{});
  EXPECT_EQ(run.step(Ended{0, kOk}), Actions{});
  EXPECT_FALSE(run.policy.finished());
  EXPECT_EQ(run.step(LeftJob{1}), Actions{});
  EXPECT_EQ(run.step(Ended{1, kOk}), Actions{});
  EXPECT_TRUE(run.policy.finished());
  EXPECT_EQ(run.policy.verdict().status, 0);
  EXPECT_EQ(run.policy.verdict().line, "");
  EXPECT_EQ(run.policy.next_deadline(), kNever);
}

TEST(Policy, a_death_by_signal_is_published_at_once_and_the_others_are_ended_step_by_step) {
  JobRun run(3);
  EXPECT_EQ(run.step(Ended{2, killed(SIGKILL)}),
            Actions{"publish 2: rank 2 (host h, pid 102) was killed by signal 9 (SIGKILL)"});
  EXPECT_EQ(run.after(2999ms), Actions{});
  EXPECT_EQ(run.after(1ms), Actions{"signal 15"});
  EXPECT_EQ(run.policy.next_deadline(), run.now + 5s);
  EXPECT_EQ(run.after(4999ms), Actions{});
  EXPECT_EQ(run.after(1ms), Actions{"signal 9"});
  run.step(Ended{0, killed(SIGKILL)});
  run.step(Ended{1, killed(SIGKILL)});
  const Verdict verdict = run.policy.verdict();
  EXPECT_EQ(verdict.status, 137);
  EXPECT_EQ(verdict.blamed, 2);
  EXPECT_EQ(verdict.line, "rank 2 (pid 102) was killed by signal 9 (SIGKILL); the other 2 ranks were ended");
}

TEST(Policy, a_rank_that_left_and_then_fails_is_to_blame_for_what_others_suffer_meanwhile) {
  JobRun run(3);
  run.step(LeftJob{1});
  run.step(Told{2, "RankLeftError", Code::RankLeft});
  EXPECT_EQ(run.step(Ended{2, status(1)}), Actions{});
  EXPECT_EQ(run.after(300ms), Actions{});
  run.step(Ended{1, status(3)});
  EXPECT_EQ(run.after(kTellPatience), Actions{"publish 1: rank 1 (host h, pid 101) exited with status 3"});
  run.step(Ended{0, status(1)});
  EXPECT_EQ(run.policy.verdict().status, 3);
  EXPECT_EQ(run.policy.verdict().blamed, 1);
}

TEST(Policy, one_that_told_what_it_suffers_and_does_not_end_is_not_to_blame_either) {
  JobRun run(2);
  run.step(LeftJob{1});
  run.step(Told{0, "RankLeftError: rank 1 has shut down", Code::RankLeft});
  EXPECT_EQ(run.after(kEndPatience), Actions{});
  run.after(100ms);
  run.step(Ended{1, status(5)});
  EXPECT_EQ(run.policy.verdict().blamed, 1);
}

TEST(Policy, one_with_a_reason_of_its_own_is_to_blame_at_once) {
  JobRun run(2);
  run.step(LeftJob{1});
  run.step(Told{0, "ValueError: no"});
  EXPECT_EQ(run.step(Ended{0, status(1)}).size(), 1u);
  EXPECT_EQ(run.policy.verdict().blamed, 0);
}

TEST(Policy, of_those_that_left_and_fail_the_first_is_to_blame) {
  JobRun run(3);
  run.step(LeftJob{2, 1});
  run.step(LeftJob{0, 2});
  run.step(Ended{0, status(9)});
  run.step(Ended{2, status(9)});
  run.step(LeftJob{1, 0});
  run.step(Ended{1, status(5)});
  EXPECT_EQ(run.policy.verdict().blamed, 1);
  EXPECT_EQ(run.policy.verdict().status, 5);
}

TEST(Policy, a_rank_that_left_and_ends_well_or_takes_long_is_not_to_blame) {
  for (const bool ends : {true, false}) {
    JobRun run(2);
    run.step(LeftJob{1});
    run.step(Ended{0, status(7)});
    if (ends) {
      run.step(Ended{1, kOk});
    } else {
      EXPECT_EQ(run.policy.next_deadline(), run.now + kLeftPatience);
      run.after(kLeftPatience);
    }
    EXPECT_EQ(run.policy.verdict().blamed, 0);
    EXPECT_EQ(run.policy.verdict().status, 7);
  }
}

TEST(Policy, one_that_came_again_after_it_left_has_not_left) {
  JobRun run(2);
  run.step(LeftJob{1});
  run.step(Arrived{});
  run.step(Ended{1, kOk});
  EXPECT_EQ(run.after(kLeavePatience),
            Actions{"publish 1: rank 1 (host h, pid 101) exited with status 0 without shutting down"});
}

TEST(Policy, a_failing_rank_gets_a_moment_to_tell_why) {
  JobRun run(2);
  EXPECT_EQ(run.step(Ended{1, status(1)}), Actions{});
  EXPECT_EQ(run.after(20ms), Actions{});
  EXPECT_EQ(run.step(Told{1, "ValueError: no"}),
            Actions{"publish 1: rank 1 (host h, pid 101) exited with status 1 after ValueError: no"});
  EXPECT_EQ(run.after(100ms), Actions{}) << "published twice";
}

TEST(Policy, a_failing_rank_that_tells_nothing_is_published_after_that_moment) {
  JobRun run(2);
  run.step(Ended{1, status(7)});
  EXPECT_EQ(run.policy.next_deadline(), run.now + kTellPatience);
  EXPECT_EQ(run.after(kTellPatience), Actions{"publish 1: rank 1 (host h, pid 101) exited with status 7"});
}

TEST(Policy, what_was_told_before_the_end_is_published_with_it) {
  JobRun run(2);
  run.step(Told{1, "KeyError: 'x'"});
  EXPECT_EQ(run.step(Ended{1, status(1)}),
            Actions{"publish 1: rank 1 (host h, pid 101) exited with status 1 after KeyError: 'x'"});
}

TEST(Policy, the_first_to_die_is_blamed_even_if_another_is_published_sooner) {
  JobRun run(3);
  run.step(Ended{1, status(3)});
  EXPECT_EQ(run.step(Ended{2, killed(SIGSEGV)}), Actions{});
  EXPECT_EQ(run.after(kTellPatience), Actions{"publish 1: rank 1 (host h, pid 101) exited with status 3"});
  run.step(Ended{0, kOk});
  EXPECT_EQ(run.policy.verdict().status, 3);
  EXPECT_EQ(run.policy.verdict().blamed, 1);
}

TEST(Policy, failures_that_follow_are_consequences) {
  JobRun run(2);
  run.step(Ended{0, killed(SIGKILL)});
  run.step(Told{1, "PeerLostError"});
  EXPECT_EQ(run.step(Ended{1, status(1)}), Actions{});
  EXPECT_EQ(run.policy.verdict().status, 137);
  EXPECT_EQ(run.policy.verdict().line, "rank 0 (pid 100) was killed by signal 9 (SIGKILL); the other rank was ended");
}

TEST(Policy, a_rank_that_tells_its_failure_and_hangs_is_blamed_after_a_second) {
  JobRun run(2);
  EXPECT_EQ(run.step(Told{1, "OSError: gone"}), Actions{});
  EXPECT_EQ(run.after(kEndPatience), Actions{"publish 1: rank 1 (host h, pid 101) failed: OSError: gone"});
  EXPECT_EQ(run.after(3s), Actions{"signal 15"});
  run.step(Ended{0, status(1)});
  run.step(Ended{1, killed(SIGTERM)});
  EXPECT_EQ(run.policy.verdict().status, 1);
  EXPECT_EQ(run.policy.verdict().blamed, 1);
  EXPECT_EQ(run.policy.verdict().line, "rank 1 (pid 101) failed: OSError: gone; the other rank was ended");
}

TEST(Policy, a_rank_that_tells_its_failure_and_dies_by_a_signal_of_its_own_gives_128_plus_n) {
  for (const int number : {SIGINT, SIGSEGV, SIGTERM, SIGKILL}) {
    JobRun run(2);
    run.step(Told{1, "KeyboardInterrupt"});
    run.step(Ended{1, killed(number)});
    run.after(3s);
    run.step(Ended{0, killed(SIGTERM)});
    EXPECT_EQ(run.policy.verdict().status, 128 + number);
    EXPECT_EQ(run.policy.verdict().line, cat("rank 1 (pid 101) was killed by signal ", signal_text(number),
                                             " after KeyboardInterrupt; the other rank was ended"));
  }
}

TEST(Policy, a_rank_that_hangs_after_its_failure_and_crashes_before_it_is_ended_gives_128_plus_n) {
  JobRun run(2);
  run.step(Told{1, "OSError: gone"});
  run.after(kEndPatience);
  run.after(3s);  // SIGTERM
  run.step(Ended{1, killed(SIGSEGV)});
  run.step(Ended{0, killed(SIGTERM)});
  EXPECT_EQ(run.policy.verdict().status, 139);
  EXPECT_EQ(run.policy.verdict().line,
            "rank 1 (pid 101) was killed by signal 11 (SIGSEGV) after OSError: gone; the other rank was ended");
}

TEST(Policy, an_exit_with_0_without_leaving_is_told_to_the_others_but_is_no_failure) {
  JobRun run(2);
  EXPECT_EQ(run.step(Ended{1, kOk}), Actions{});
  EXPECT_EQ(run.after(kLeavePatience),
            Actions{"publish 1: rank 1 (host h, pid 101) exited with status 0 without shutting down"});
  EXPECT_EQ(run.after(60s), Actions{}) << "the others go on as long as they like";
  run.step(Ended{0, kOk});
  EXPECT_EQ(run.policy.verdict().status, 0);
}

TEST(Policy, a_leave_that_arrives_after_the_exit_still_counts) {
  JobRun run(2);
  run.step(Ended{1, kOk});
  run.step(LeftJob{1});
  EXPECT_EQ(run.after(10s), Actions{});
  EXPECT_EQ(run.policy.next_deadline(), kNever);
}

TEST(Policy, whoever_fails_because_another_went_quietly_gives_the_status) {
  JobRun run(2);
  run.step(Ended{1, kOk});
  run.after(kLeavePatience);
  run.step(Told{0, "PeerLostError: rank 1 exited with status 0 without shutting down"});
  run.step(Ended{0, status(1)});
  EXPECT_EQ(run.policy.verdict().status, 1);
  EXPECT_EQ(run.policy.verdict().blamed, 0);
}

// Runs a job of three where rank 1 goes quietly and rank 0 fails of it.
std::string line_after_a_quiet_exit(const std::vector<Event>& before, const std::string& told) {
  JobRun run(3);
  for (const Event& event : before) run.step(event);
  run.step(Ended{1, kOk});
  run.after(kLeavePatience);
  if (!told.empty()) run.step(Told{0, told});
  run.step(Ended{0, status(3)});
  run.after(3s);
  run.step(Ended{2, killed(SIGTERM)});
  return run.policy.verdict().line;
}

TEST(Policy, the_last_line_names_who_went_quietly_beside_the_rank_that_failed_of_it) {
  const std::string failed = "rank 0 (pid 100) exited with status 3";
  const std::string ended = "; the other rank was ended";
  const std::string origin = "rank 1 (pid 101) had exited with status 0 without shutting down";
  EXPECT_EQ(line_after_a_quiet_exit({Arrived{}}, ""), cat(failed, ended, "; ", origin));
  EXPECT_EQ(line_after_a_quiet_exit({Arrived{}}, "Odd: x"), cat(failed, " after Odd: x", ended, "; ", origin));
  const std::string told = "PeerLostError: rank 1 exited with status 0 without shutting down";
  EXPECT_EQ(line_after_a_quiet_exit({Arrived{}}, told), cat(failed, " after ", told, ended));
  EXPECT_EQ(line_after_a_quiet_exit({Arrived{}, LeftJob{1}}, ""), cat(failed, ended));
}

TEST(Policy, ranks_that_do_not_use_the_engine_may_end_when_they_like) {
  EXPECT_EQ(line_after_a_quiet_exit({}, ""), "rank 0 (pid 100) exited with status 3; the other rank was ended");
}

TEST(Policy, an_interrupt_is_forwarded_and_blames_nobody) {
  JobRun run(2);
  EXPECT_EQ(run.step(Interrupted{SIGINT}), Actions{"signal 2"});
  EXPECT_EQ(run.after(60s), Actions{}) << "the ranks may take their time to save";
  EXPECT_EQ(run.step(Ended{0, killed(SIGINT)}), Actions{"publish -1: the job was interrupted by signal 2 (SIGINT)"});
  EXPECT_EQ(run.after(3s), Actions{"signal 15"});
  EXPECT_EQ(run.after(5s), Actions{"signal 9"});
  run.step(Ended{1, killed(SIGKILL)});
  EXPECT_EQ(run.policy.verdict().status, 130);
  EXPECT_EQ(run.policy.verdict().blamed, -1);
}

TEST(Policy, ranks_that_end_well_after_an_interrupt_still_give_its_status) {
  JobRun run(1);
  run.step(Interrupted{SIGTERM});
  run.step(Ended{0, kOk});
  EXPECT_EQ(run.policy.verdict().status, 143);
}

TEST(Policy, a_second_interrupt_kills_but_an_echo_of_the_first_does_not) {
  JobRun run(1);
  run.step(Interrupted{SIGTERM});
  run.now += kEcho - 1ms;
  EXPECT_EQ(run.step(Interrupted{SIGTERM}), Actions{});
  run.now += 1ms;
  EXPECT_EQ(run.step(Interrupted{SIGINT}), Actions{"signal 9"});
  run.step(Ended{0, killed(SIGKILL)});
  EXPECT_EQ(run.policy.verdict().status, 143) << "the first one counts";
}

TEST(Policy, an_interrupt_that_the_ranks_have_had_already_kills_at_once) {
  JobRun run(1);
  EXPECT_EQ(run.step(Interrupted{SIGINT, true}), Actions{"signal 9"});
  run.step(Ended{0, killed(SIGKILL)});
  EXPECT_EQ(run.policy.verdict().status, 130);
  EXPECT_EQ(run.policy.verdict().line, "interrupted by signal 2 (SIGINT); the ranks were killed");
}

TEST(Policy, an_interrupt_during_a_failure_does_not_hide_who_failed) {
  JobRun run(2);
  run.step(Ended{0, killed(SIGSEGV)});
  EXPECT_EQ(run.step(Interrupted{SIGINT}), Actions{"signal 2"});
  run.step(Ended{1, killed(SIGINT)});
  EXPECT_EQ(run.policy.verdict().status, 139);
  EXPECT_EQ(run.policy.verdict().blamed, 0);
}

TEST(Policy, output_that_nobody_reads_ends_the_ranks_without_waiting_for_them) {
  JobRun run(1);
  EXPECT_EQ(run.step(Interrupted{SIGPIPE}), Actions{"signal 15"});
  EXPECT_EQ(run.after(3s), Actions{"signal 15"});
  EXPECT_EQ(run.after(5s), Actions{"signal 9"});
  run.step(Ended{0, killed(SIGKILL)});
  EXPECT_EQ(run.policy.verdict().status, 141);
}

TEST(Policy, a_program_that_cannot_be_executed_gives_126_or_127) {
  for (const auto& [error, expected] : {std::pair(EACCES, 126), std::pair(ENOENT, 127)}) {
    JobRun run(1);
    run.step(Ended{0, {Ending::Kind::NotStarted, error, false}});
    EXPECT_EQ(run.policy.verdict().status, expected);
  }
}

TEST(Policy, a_lost_agent_ends_the_job_and_is_named) {
  JobRun run(2);
  EXPECT_EQ(run.step(AgentLost{77, killed(SIGKILL)}),
            Actions{"publish -1: the agent of host h (pid 77) was killed by signal 9 (SIGKILL)"});
  EXPECT_TRUE(run.policy.finished());
  EXPECT_EQ(run.policy.verdict().status, 137);
  EXPECT_EQ(run.policy.verdict().line,
            "the agent (pid 77) was killed by signal 9 (SIGKILL); its ranks were ended with it");
}

TEST(Policy, out_of_memory_is_named) {
  JobRun run(1);
  run.step(Ended{0, {Ending::Kind::Killed, SIGKILL, true}});
  EXPECT_EQ(run.policy.verdict().line, "rank 0 (pid 100) was killed by the kernel, out of memory: signal 9 (SIGKILL)");
}

}  // namespace
}  // namespace ronde::launch
