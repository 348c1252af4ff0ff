// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "os/socket.h"

namespace ronde::os {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Address, text_and_back) {
  const Address addresses[] = {
      {"10.0.0.1", 29400}, {"fd77::1", 1}, {"fe80::1%eth0", 2}, {"node-a.cluster", 65535}, {"h", 80}};
  for (const Address& address : addresses) {
    EXPECT_EQ(parse_host_port(address.to_string()).value(), address) << address.to_string();
  }
  EXPECT_EQ((Address{"fd77::1", 29400}).to_string(), "[fd77::1]:29400");
}

TEST(Address, malformed_ones_are_refused_with_the_text_and_what_was_expected) {
  const std::pair<const char*, const char*> rows[] = {
      {"", "has no port"},
      {"host", "has no port"},
      {"[::1]", "has no port"},
      {"[::1", "has no closing bracket"},
      {"[::1]x:5", "has no port"},
      {"fd77::1:29400", "without brackets"},
      {":80", "names no host"},
      {"[]:80", "names no host"},
      {"host:", "not a port"},
      {"host:80x", "'80x' is not a port"},
      {"host:-1", "not a port"},
      {"host:0", "'0' is not a port"},
      {"host:65536", "from 1 to 65535"},
      {"[::1]:http", "'http' is not a port"},
  };
  for (const auto& [text, why] : rows) {
    const auto parsed = parse_host_port(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.status().code(), Code::InvalidArgument);
    EXPECT_THAT(parsed.status().message(), AllOf(HasSubstr(cat("'", text, "'")), HasSubstr(why)));
  }
}

TEST(Resolve, numeric_hosts_resolve_to_themselves) {
  EXPECT_THAT(resolve({"127.0.0.1", 5}).value(), testing::ElementsAre(Address{"127.0.0.1", 5}));
  EXPECT_THAT(resolve({"::1", 6}).value(), testing::ElementsAre(Address{"::1", 6}));
}

TEST(Resolve, localhost_is_a_loopback_address_with_the_port) {
  const auto found = resolve({"localhost", 77}).value();
  EXPECT_THAT(found, testing::IsSupersetOf({Address{"127.0.0.1", 77}}));
  EXPECT_EQ(std::count(found.begin(), found.end(), Address{"127.0.0.1", 77}), 1);
}

TEST(Resolve, an_unknown_name_is_named_together_with_what_to_do) {
  const auto found = resolve({"no-such-host.invalid", 1});
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.status().message(),
              AllOf(HasSubstr("'no-such-host.invalid' does not resolve"), HasSubstr("check")));
  EXPECT_EQ(resolve({"", 1}).status().code(), Code::InvalidArgument);
}

TEST(LocalAddresses, loopback_comes_last_and_every_address_is_numeric) {
  const auto found = local_addresses().value();
  ASSERT_FALSE(found.empty());
  EXPECT_THAT(found, testing::Contains(Address{"127.0.0.1", 0}));
  const auto is_loopback = [](const Address& a) { return a.host.starts_with("127.") || a.host == "::1"; };
  EXPECT_TRUE(std::is_partitioned(found.rbegin(), found.rend(), is_loopback));
  for (const Address& address : found) EXPECT_EQ(resolve(address).value().size(), 1u) << address.host;
}

}  // namespace
}  // namespace ronde::os
