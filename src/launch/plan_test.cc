// SPDX-License-Identifier: Apache-2.0
#include "launch/plan.h"

#include <gtest/gtest.h>

namespace ronde::launch {
namespace {

const JobFacts kFacts{
    .job = "j", .store = "127.0.0.1:5", .run_dir = "/r", .master_addr = "127.0.0.1", .master_port = 7};

StartPlan plan_of(int np, const std::vector<HostSlots>& hosts, const Environment& env = {},
                  const Additions& given = {}) {
  RunOptions options;
  options.np = np;
  options.command = {"x"};
  options.env = given;
  auto plan = make_plan(options, hosts, env, kFacts);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return std::move(plan).value();
}

std::string value(const HostPlan& host, const RankPlan& rank, std::string_view name) {
  const auto env = with_additions(host.env, rank.env);
  const char* found = find_variable(env, name);
  return found == nullptr ? "(unset)" : found;
}

TEST(StartPlan, ranks_of_one_host_know_their_place) {
  const auto plan = plan_of(3, {{"h", 3, 8}});
  ASSERT_EQ(plan.hosts.size(), 1u);
  for (int r = 0; r < 3; ++r) {
    const auto& rank = plan.hosts[0].ranks[r];
    EXPECT_EQ(rank.rank, r);
    EXPECT_EQ(rank.local_rank, r);
    EXPECT_EQ(rank.local_size, 3);
    EXPECT_EQ(rank.cross_rank, 0);
    EXPECT_EQ(rank.cross_size, 1);
    for (const char* name : {"RANK", "RONDE_RANK", "LOCAL_RANK", "RONDE_LOCAL_RANK"}) {
      EXPECT_EQ(value(plan.hosts[0], rank, name), cat(r)) << name;
    }
    for (const char* name : {"WORLD_SIZE", "RONDE_SIZE", "LOCAL_WORLD_SIZE", "RONDE_LOCAL_SIZE"}) {
      EXPECT_EQ(value(plan.hosts[0], rank, name), "3") << name;
    }
    EXPECT_EQ(value(plan.hosts[0], rank, "RONDE_STORE"), "127.0.0.1:5");
    EXPECT_EQ(value(plan.hosts[0], rank, "RONDE_KEY_FILE"), "/r/key");
    EXPECT_EQ(value(plan.hosts[0], rank, "RONDE_RUN_DIR"), "/r");
    EXPECT_EQ(value(plan.hosts[0], rank, "RONDE_JOB"), "j");
    EXPECT_EQ(value(plan.hosts[0], rank, "MASTER_ADDR"), "127.0.0.1");
    EXPECT_EQ(value(plan.hosts[0], rank, "MASTER_PORT"), "7");
    EXPECT_EQ(value(plan.hosts[0], rank, "PYTHONUNBUFFERED"), "1");
  }
}

TEST(StartPlan, uneven_hosts_count_cross_ranks_among_those_that_have_the_local_rank) {
  const auto plan = plan_of(6, {{"a", 1, 1}, {"b", 3, 1}, {"c", 4, 1}});
  ASSERT_EQ(plan.hosts.size(), 3u);
  EXPECT_EQ(plan.hosts_by_rank, (std::vector<std::string>{"a", "b", "b", "b", "c", "c"}));
  const auto& second_of_c = plan.hosts[2].ranks[1];
  EXPECT_EQ(second_of_c.rank, 5);
  EXPECT_EQ(second_of_c.cross_rank, 1);
  EXPECT_EQ(second_of_c.cross_size, 2);
  EXPECT_EQ(plan.hosts[1].ranks[2].cross_size, 1);
  EXPECT_EQ(plan.hosts[2].ranks[0].cross_rank, 2);
  EXPECT_EQ(plan.hosts[2].ranks[0].cross_size, 3);
}

TEST(StartPlan, hosts_beyond_the_ranks_get_none_and_too_few_slots_are_an_error) {
  EXPECT_EQ(plan_of(1, {{"a", 1, 1}, {"b", 1, 1}}).hosts.size(), 1u);
  RunOptions options;
  options.np = 3;
  const auto plan = make_plan(options, {{"a", 2, 1}}, {}, kFacts);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().message(), "-np 3: the hosts have only 2 slots");
}

TEST(StartPlan, what_is_set_for_the_ranks_is_said_in_one_line) {
  const auto line = [](const Environment& env, const Additions& given = {}) {
    const auto notices = plan_of(4, {{"h", 4, 2}}, env, given).notices;
    EXPECT_LE(notices.size(), 1u);
    return notices.empty() ? "" : notices[0];
  };
  EXPECT_EQ(line({}),
            "OMP_NUM_THREADS=1 (2 cores, 4 ranks) and PYTHONUNBUFFERED=1 for each rank; set them to override");
  EXPECT_EQ(line({"OMP_NUM_THREADS=6"}), "PYTHONUNBUFFERED=1 for each rank; set it to override");
  EXPECT_EQ(line({"PYTHONUNBUFFERED="}), "OMP_NUM_THREADS=1 (2 cores, 4 ranks) for each rank; set it to override");
  EXPECT_EQ(line({"OMP_NUM_THREADS=6"}, {{"PYTHONUNBUFFERED", "0"}}), "");
}

TEST(StartPlan, threads_share_the_cores) {
  const auto plan = plan_of(4, {{"h", 4, 2}});
  EXPECT_EQ(value(plan.hosts[0], plan.hosts[0].ranks[0], "OMP_NUM_THREADS"), "1");
  const auto wide = plan_of(2, {{"h", 2, 9}});
  EXPECT_EQ(value(wide.hosts[0], wide.hosts[0].ranks[0], "OMP_NUM_THREADS"), "4");
}

TEST(StartPlan, a_number_of_threads_that_is_set_stays) {
  for (const auto& plan :
       {plan_of(4, {{"h", 4, 2}}, {"OMP_NUM_THREADS=6"}), plan_of(4, {{"h", 4, 2}}, {}, {{"OMP_NUM_THREADS", "6"}})}) {
    EXPECT_EQ(value(plan.hosts[0], plan.hosts[0].ranks[0], "OMP_NUM_THREADS"), "6");
    EXPECT_EQ(plan.notices, std::vector<std::string>{"PYTHONUNBUFFERED=1 for each rank; set it to override"});
  }
}

TEST(StartPlan, given_variables_win_and_old_ones_of_an_outer_job_do_not) {
  const auto plan = plan_of(1, {{"h", 1, 1}}, {"RANK=9", "RONDE_JOB=outer", "A=1", "PYTHONUNBUFFERED="},
                            {{"A", "2"}, {"MASTER_PORT", "99"}});
  const auto& rank = plan.hosts[0].ranks[0];
  EXPECT_EQ(value(plan.hosts[0], rank, "RANK"), "0");
  EXPECT_EQ(value(plan.hosts[0], rank, "RONDE_JOB"), "j");
  EXPECT_EQ(value(plan.hosts[0], rank, "A"), "2");
  EXPECT_EQ(value(plan.hosts[0], rank, "MASTER_PORT"), "99");
  EXPECT_EQ(value(plan.hosts[0], rank, "PYTHONUNBUFFERED"), "");
}

TEST(Environment, a_name_that_is_the_beginning_of_another_is_not_it) {
  Environment env{"AB=1", "A=2", "=odd", "noequals"};
  EXPECT_STREQ(find_variable(env, "A"), "2");
  EXPECT_EQ(find_variable(env, "noequals"), nullptr);
  set_variable(env, "A", "3");
  EXPECT_EQ(env, (Environment{"AB=1", "=odd", "noequals", "A=3"}));
}

}  // namespace
}  // namespace ronde::launch
