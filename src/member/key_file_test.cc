// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "member/hello.h"

namespace ronde::member {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class KeyFile : public ::testing::Test {
 protected:
  KeyFile() {
    std::string pattern = fs::temp_directory_path() / "ronde-key-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    path_ = (folder_ / "key").string();
  }
  ~KeyFile() override { fs::remove_all(folder_); }
  void put(const std::string& text, fs::perms mode = fs::perms::owner_read) {
    std::ofstream(path_) << text;
    fs::permissions(path_, mode);
  }
  fs::path folder_;
  std::string path_;
};

TEST_F(KeyFile, what_is_written_is_read) {
  const Key key = random_key();
  ASSERT_TRUE(write_key_file(path_, key).ok());
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  auto read = read_key_file(path_);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, key);
}

TEST_F(KeyFile, two_random_keys_differ) {
  EXPECT_NE(random_key(), random_key());
}

TEST_F(KeyFile, a_missing_file_is_named) {
  EXPECT_THAT(read_key_file(path_).status().message(), HasSubstr(path_));
}

TEST_F(KeyFile, an_existing_file_is_not_written_over) {
  ASSERT_TRUE(write_key_file(path_, random_key()).ok());
  EXPECT_THAT(write_key_file(path_, random_key()).message(), HasSubstr(path_));
}

TEST_F(KeyFile, a_file_that_others_can_read_is_refused_with_what_to_do) {
  for (const auto open : {fs::perms::group_read, fs::perms::others_read, fs::perms::others_write}) {
    put(std::string(64, 'a'), fs::perms::owner_read | fs::perms::owner_write | open);
    const auto read = read_key_file(path_);
    EXPECT_EQ(read.status().code(), Code::InvalidArgument);
    EXPECT_THAT(read.status().message(), HasSubstr(cat("chmod 600 ", path_)));
  }
}

TEST_F(KeyFile, another_users_file_is_refused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  put(std::string(64, 'a'));
  ASSERT_EQ(::chown(path_.c_str(), 65534, 65534), 0);
  EXPECT_THAT(read_key_file(path_).status().message(), HasSubstr("belongs to user 65534"));
}

TEST_F(KeyFile, anything_but_a_key_is_refused) {
  for (const std::string& text : {std::string(), std::string(63, 'a'), std::string(66, 'a'), std::string(64, 'x'),
                                  std::string(64, 'a') + "\nb", std::string(5000, 'a')}) {
    fs::remove(path_);
    put(text, fs::perms::owner_read | fs::perms::owner_write);
    EXPECT_THAT(read_key_file(path_).status().message(), HasSubstr(path_)) << text;
  }
}

TEST_F(KeyFile, a_folder_and_a_pipe_are_refused_at_once) {
  EXPECT_FALSE(read_key_file(folder_.string()).ok());
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(read_key_file(path_).status().message(), HasSubstr("not a regular file"));
}

}  // namespace
}  // namespace ronde::member
