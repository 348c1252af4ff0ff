// SPDX-License-Identifier: Apache-2.0
#include "backend/select.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ronde::backend {
namespace {

// Supports batches of at most so many members.
class UpTo final : public Backend {
 public:
  UpTo(std::string_view name, size_t most) : name_(name), most_(most) {}
  std::string_view name() const override { return name_; }
  bool supports(const Batch& batch) const override { return batch.members.size() <= most_; }
  std::unique_ptr<collective::Running> start(const BoundBatch& /*bound*/) override { return nullptr; }

 private:
  std::string_view name_;
  size_t most_;
};

std::vector<std::unique_ptr<Backend>> table() {
  std::vector<std::unique_ptr<Backend>> out;
  out.push_back(std::make_unique<UpTo>("one", 1));
  out.push_back(std::make_unique<UpTo>("three", 3));
  out.push_back(std::make_unique<UpTo>("also three", 3));
  return out;
}

Batch batch_of(std::vector<Rank> members) {
  Batch batch;
  batch.number = 12;
  batch.members = std::move(members);
  return batch;
}

TEST(Select, takes_the_first_that_supports_the_batch) {
  const auto backends = table();
  EXPECT_EQ((*select(backends, batch_of({4})))->name(), "one");
  EXPECT_EQ((*select(backends, batch_of({4, 5})))->name(), "three");
}

TEST(Select, names_the_batch_and_who_was_asked_when_nobody_can) {
  const auto backends = table();
  const auto none = select(backends, batch_of({0, 1, 2, 3}));
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().code(), Code::Unsupported);
  EXPECT_EQ(none.status().message(),
            "no backend can run allreduce batch 12 of 4 members; asked: one, three, also three");
}

TEST(Select, says_so_when_there_is_no_backend) {
  EXPECT_THAT(select({}, batch_of({0})).status().message(), testing::HasSubstr("asked: none"));
}

}  // namespace
}  // namespace ronde::backend
