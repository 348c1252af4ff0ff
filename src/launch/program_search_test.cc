// SPDX-License-Identifier: Apache-2.0
#include "launch/program_search.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace ronde::launch {
namespace {

namespace fs = std::filesystem;

class ProgramSearch : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "search-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    fs::create_directories(root_ / "a" / "folder");
    fs::create_directories(root_ / "b");
    make("a/plain", false);
    make("b/plain", true);
    make("b/good", true);
    make("a/only", false);
  }
  void TearDown() override { fs::remove_all(root_); }
  void make(const std::string& name, bool executable) {
    std::ofstream(root_ / name) << "#!/bin/sh\n";
    if (executable) fs::permissions(root_ / name, fs::perms::owner_all);
  }
  std::string path() const { return (root_ / "a").string() + ":" + (root_ / "b").string(); }
  fs::path root_;
};

TEST_F(ProgramSearch, the_first_that_can_be_executed_is_taken) {
  const auto good = find_program("good", path());
  ASSERT_TRUE(std::holds_alternative<FoundProgram>(good));
  EXPECT_EQ(std::get<FoundProgram>(good).path, (root_ / "b/good").string());
  const auto plain = find_program("plain", path());
  ASSERT_TRUE(std::holds_alternative<FoundProgram>(plain));
  EXPECT_EQ(std::get<FoundProgram>(plain).path, (root_ / "b/plain").string());
}

TEST_F(ProgramSearch, what_is_nowhere_gives_127_and_is_named) {
  const auto none = std::get<NoProgram>(find_program("nowhere", "/x:/y"));
  EXPECT_EQ(none.status, 127);
  EXPECT_EQ(none.message, "there is no command 'nowhere' on PATH (/x:/y)");
  EXPECT_EQ(std::get<NoProgram>(find_program("./nowhere", path())).status, 127);
}

TEST_F(ProgramSearch, what_cannot_be_executed_gives_126) {
  EXPECT_EQ(std::get<NoProgram>(find_program("only", path())).status, 126);
  EXPECT_EQ(std::get<NoProgram>(find_program((root_ / "a/only").string(), path())).status, 126);
  const auto folder = std::get<NoProgram>(find_program((root_ / "a/folder").string(), path()));
  EXPECT_EQ(folder.status, 126);
  EXPECT_NE(folder.message.find("is a folder"), std::string::npos);
}

}  // namespace
}  // namespace ronde::launch
