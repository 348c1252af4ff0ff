// SPDX-License-Identifier: Apache-2.0
#include "engine/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ronde::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Arrival arrival(std::string host, int local_rank, int local_size, std::string settings = "s") {
  return {.host_id = host,
          .host_name = host,
          .pid = 17,
          .local_rank = local_rank,
          .local_size = local_size,
          .broker = "b",
          .agreed_settings = std::move(settings)};
}

TEST(Topology, arrivals_survive_the_wire) {
  const Arrival sent = arrival("host a", 3, 4);
  const auto got = decode_arrival(encode(sent));
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->host_id, sent.host_id);
  EXPECT_EQ(got->host_name, sent.host_name);
  EXPECT_EQ(got->pid, 17);
  EXPECT_EQ(got->local_rank, 3);
  EXPECT_EQ(got->local_size, 4);
  EXPECT_EQ(got->broker, "b");
  EXPECT_EQ(got->agreed_settings, "s");
  const Bytes bytes = encode(sent);
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(decode_arrival(ByteSpan(bytes).first(n)).ok()) << n;
}

TEST(Topology, ranks_of_a_host_are_local_to_one_another) {
  const std::vector all{arrival("a", 0, 2), arrival("b", 0, 1), arrival("a", 1, 2)};
  const auto topology = make_topology(2, 7, all);
  ASSERT_TRUE(topology.ok());
  EXPECT_EQ(topology->epoch, 7u);
  EXPECT_EQ(topology->size, 3);
  EXPECT_EQ(topology->local_rank, 1);
  EXPECT_EQ(topology->local_size, 2);
  EXPECT_THAT(topology->local_ranks, ElementsAre(0, 2));
  EXPECT_FALSE(topology->one_host());
  EXPECT_FALSE(topology->is_homogeneous);
  EXPECT_EQ(topology->peers[2].name, "rank 2 (host a, pid 17)");
}

TEST(Topology, cross_rank_counts_the_hosts_that_have_my_local_rank) {
  const std::vector all{arrival("a", 0, 2), arrival("a", 1, 2), arrival("b", 0, 1), arrival("c", 0, 2),
                        arrival("c", 1, 2)};
  const auto first = make_topology(3, 1, all);
  EXPECT_EQ(first->cross_rank, 2);
  EXPECT_EQ(first->cross_size, 3);
  const auto second = make_topology(4, 1, all);
  EXPECT_EQ(second->cross_rank, 1);
  EXPECT_EQ(second->cross_size, 2);
}

TEST(Topology, local_ranks_that_do_not_fit_their_host_are_named) {
  const auto missing = make_topology(0, 1, std::vector{arrival("a", 0, 2), arrival("b", 0, 1)});
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.status().message(), HasSubstr("RONDE_LOCAL_SIZE=2"));
  const auto twice = make_topology(0, 1, std::vector{arrival("a", 1, 2), arrival("a", 1, 2)});
  ASSERT_FALSE(twice.ok());
  EXPECT_THAT(twice.status().message(), HasSubstr("RONDE_LOCAL_RANK=1"));
}

TEST(Topology, settings_that_differ_are_shown_from_both_sides) {
  const auto topology = make_topology(0, 1, std::vector{arrival("a", 0, 2, "slots=4"), arrival("a", 1, 2, "slots=8")});
  ASSERT_FALSE(topology.ok());
  EXPECT_THAT(topology.status().message(), HasSubstr("slots=4"));
  EXPECT_THAT(topology.status().message(), HasSubstr("slots=8"));
}

}  // namespace
}  // namespace ronde::engine
