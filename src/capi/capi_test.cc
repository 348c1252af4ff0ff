// SPDX-License-Identifier: Apache-2.0
// The C interface of a process on its own: rank 0 of 1.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <complex>
#include <cstdlib>
#include <vector>

#include "ronde/ronde.h"
#include "ronde/ronde.hpp"

namespace {

using testing::HasSubstr;

class Capi : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"RONDE_RANK", "RONDE_SIZE", "RONDE_STORE", "RONDE_BATCH_BYTES"}) unsetenv(name);
  }
};

ronde_tensor tensor_of(std::vector<float>& data, const int64_t* dims) {
  ronde_tensor out{};
  out.struct_size = sizeof out;
  out.name = "x";
  out.op = RONDE_ALLREDUCE;
  out.dtype = RONDE_F32;
  out.ndim = 1;
  out.dims = dims;
  out.input = data.data();
  out.output = data.data();
  out.reduce_op = RONDE_SUM;
  out.prescale = 1;
  out.postscale = 1;
  return out;
}

// Runs the body in a child of fork and gives its exit status.
template <class Body>
int in_child(const Body& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST_F(Capi, a_process_without_a_launcher_is_rank_0_of_1) {
  ronde::Session session;
  EXPECT_EQ(session.rank(), 0);
  EXPECT_EQ(session.size(), 1);
  EXPECT_EQ(session.local_size(), 1);
  std::vector<float> data{1, 2, 3};
  session.allreduce(std::span(data), "x", RONDE_AVERAGE).wait();
  EXPECT_EQ(data, (std::vector<float>{1, 2, 3}));
  session.broadcast(std::span(data), 0).wait();
  session.barrier().wait();
  EXPECT_EQ(session.allgather(std::span<const float>(data)), data);
  EXPECT_TRUE(session.allgather(std::span<const float>()).empty());
  EXPECT_EQ(session.reducescatter(std::span<const float>(data)), data);
  const std::vector<int64_t> splits{2};
  EXPECT_EQ(session.alltoall(std::span<const float>(data), splits), (std::vector<float>{1, 2}));
  std::vector<std::complex<double>> complex{{1, 2}, {3, -4}};
  session.allreduce(std::span(complex), "z", RONDE_AVERAGE).wait();
  EXPECT_EQ(complex[1], std::complex<double>(3, -4));
}

TEST_F(Capi, process_sets_are_added_and_removed_by_number) {
  ronde::Session session;
  const int32_t ranks[] = {0};
  int64_t handle = 0;
  ASSERT_EQ(ronde_add_set(session.engine(), ranks, 1, &handle), RONDE_OK);
  ASSERT_EQ(ronde_wait(session.engine(), handle, 10), RONDE_OK);
  ronde_output output{};
  output.struct_size = sizeof output;
  ASSERT_EQ(ronde_take_output(session.engine(), handle, &output), RONDE_OK);
  const auto set = static_cast<uint32_t>(*static_cast<const int64_t*>(output.data));
  ronde_free(output.data);
  EXPECT_EQ(set, 1u);
  const int64_t dims[] = {1};
  std::vector<float> data{7};
  ronde_tensor tensor = tensor_of(data, dims);
  tensor.set = set;
  ASSERT_EQ(ronde_submit(session.engine(), &tensor, 1, 0, &handle), RONDE_OK);
  ASSERT_EQ(ronde_wait(session.engine(), handle, 10), RONDE_OK);
  ASSERT_EQ(ronde_remove_set(session.engine(), set, &handle), RONDE_OK);
  ASSERT_EQ(ronde_wait(session.engine(), handle, 10), RONDE_OK);
  EXPECT_EQ(ronde_submit(session.engine(), &tensor, 1, 0, &handle), RONDE_INVALID_ARGUMENT);
  EXPECT_EQ(ronde_remove_set(session.engine(), 0, &handle), RONDE_INVALID_ARGUMENT);
  EXPECT_EQ(ronde_add_set(session.engine(), nullptr, 0, &handle), RONDE_INVALID_ARGUMENT);
  const int32_t stranger[] = {1};
  EXPECT_EQ(ronde_add_set(session.engine(), stranger, 1, &handle), RONDE_INVALID_ARGUMENT);
  EXPECT_THAT(ronde_last_error(), HasSubstr("rank 1 is not one of the ranks 0 ... 0"));
}

TEST_F(Capi, init_and_shutdown_may_follow_one_another_a_hundred_times) {
  for (int i = 0; i < 100; ++i) {
    ronde::Session session;
    std::vector<double> data{double(i)};
    session.allreduce(std::span(data)).wait();
    ASSERT_EQ(data[0], i);
  }
}

TEST_F(Capi, after_shutdown_every_call_says_so) {
  ronde_engine* engine = nullptr;
  ASSERT_EQ(ronde_init(&engine), RONDE_OK);
  ASSERT_EQ(ronde_shutdown(engine), RONDE_OK);
  EXPECT_EQ(ronde_shutdown(engine), RONDE_OK);
  EXPECT_EQ(ronde_is_running(engine), 0);
  const int64_t dims[] = {1};
  std::vector<float> data(1);
  const ronde_tensor tensor = tensor_of(data, dims);
  int64_t handle = 0;
  EXPECT_EQ(ronde_submit(engine, &tensor, 1, 0, &handle), RONDE_NOT_INITIALIZED);
  EXPECT_THAT(ronde_last_error(), HasSubstr("shut down"));
  EXPECT_EQ(ronde_wait(engine, 1, 0), RONDE_NOT_INITIALIZED);
  EXPECT_EQ(ronde_poll(engine, 1), -1);
}

TEST_F(Capi, a_child_of_fork_gets_an_error_that_names_both_processes) {
  ronde::Session session;
  const pid_t parent = getpid();
  const int status = in_child([&] {
    const int code = ronde_flush(session.engine());
    const std::string text = ronde_last_error();
    const bool named = text.find(std::to_string(parent)) != std::string::npos &&
                       text.find(std::to_string(getpid())) != std::string::npos;
    ronde_engine* another = nullptr;
    return code == RONDE_NOT_INITIALIZED && named && ronde_init(&another) == RONDE_NOT_INITIALIZED ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
  std::vector<float> data{1};
  session.allreduce(std::span(data)).wait();
}

TEST_F(Capi, a_child_of_fork_holds_none_of_the_engines_descriptors) {
  const auto open_descriptors = [] {
    int count = 0;
    for (int fd = 3; fd < 256; ++fd) count += fcntl(fd, F_GETFD) != -1;
    return count;
  };
  const int before = open_descriptors();
  ronde::Session session;
  EXPECT_GT(open_descriptors(), before);
  EXPECT_EQ(in_child([&] { return open_descriptors() == before ? 0 : 1; }), 0);
}

TEST_F(Capi, wrong_arguments_are_named_with_their_value) {
  ronde::Session session;
  const int64_t dims[] = {2, -1};
  std::vector<float> data(2);
  int64_t handle = 0;
  const auto refuse = [&](ronde_tensor tensor, const char* text) {
    EXPECT_EQ(ronde_submit(session.engine(), &tensor, 1, 0, &handle), RONDE_INVALID_ARGUMENT) << text;
    EXPECT_THAT(ronde_last_error(), HasSubstr(text));
  };
  ronde_tensor tensor = tensor_of(data, dims);
  refuse(
      [&] {
        auto t = tensor;
        t.dtype = 99;
        return t;
      }(),
      "99");
  refuse(
      [&] {
        auto t = tensor;
        t.op = 77;
        return t;
      }(),
      "77");
  refuse(
      [&] {
        auto t = tensor;
        t.reduce_op = 2;
        return t;
      }(),
      "2");
  refuse(
      [&] {
        auto t = tensor;
        t.ndim = 17;
        return t;
      }(),
      "17");
  refuse(
      [&] {
        auto t = tensor;
        t.ndim = 2;
        return t;
      }(),
      "-1");
  refuse(
      [&] {
        auto t = tensor;
        t.struct_size = 8;
        return t;
      }(),
      "struct_size");
  refuse(
      [&] {
        auto t = tensor;
        t.output = nullptr;
        return t;
      }(),
      "memory");
  refuse(
      [&] {
        auto t = tensor;
        t.op = RONDE_BROADCAST;
        t.root = 5;
        return t;
      }(),
      "5");
  refuse(
      [&] {
        auto t = tensor;
        t.prescale = 1.0 / 0.0;
        return t;
      }(),
      "finite");
}

TEST_F(Capi, a_bad_setting_and_half_an_identity_stop_the_start) {
  ronde_engine* engine = nullptr;
  setenv("RONDE_BATCH_BYTES", "abc", 1);
  EXPECT_EQ(ronde_init(&engine), RONDE_INVALID_ARGUMENT);
  EXPECT_THAT(ronde_last_error(), HasSubstr("RONDE_BATCH_BYTES=abc"));
  unsetenv("RONDE_BATCH_BYTES");
  setenv("RONDE_RANK", "0", 1);
  EXPECT_EQ(ronde_init(&engine), RONDE_INVALID_ARGUMENT);
  EXPECT_THAT(ronde_last_error(), HasSubstr("RONDE_SIZE"));
  setenv("RONDE_SIZE", "0", 1);
  EXPECT_EQ(ronde_init(&engine), RONDE_INVALID_ARGUMENT);
  EXPECT_THAT(ronde_last_error(), HasSubstr("RONDE_SIZE=0"));
  setenv("RONDE_SIZE", "2", 1);
  EXPECT_EQ(ronde_init(&engine), RONDE_INVALID_ARGUMENT);
  EXPECT_THAT(ronde_last_error(), HasSubstr("RONDE_STORE"));
}

TEST_F(Capi, a_handle_is_gone_once_waited_for_and_an_output_once_taken) {
  ronde::Session session;
  std::vector<float> data{1, 2};
  auto pending = session.allreduce(std::span(data));
  pending.wait();
  EXPECT_THROW(pending.wait(), ronde::Error);
  EXPECT_THROW((void)pending.done(), ronde::Error);
  ronde_output output{};
  output.struct_size = sizeof output;
  EXPECT_EQ(ronde_take_output(session.engine(), pending.handle(), &output), RONDE_INVALID_ARGUMENT);
}

TEST_F(Capi, a_struct_of_an_older_caller_is_filled_as_far_as_it_goes) {
  ronde::Session session;
  ronde_topology topology{};
  topology.struct_size = offsetof(ronde_topology, local_rank);
  topology.local_size = 77;
  EXPECT_EQ(ronde_get_topology(session.engine(), &topology), RONDE_OK);
  EXPECT_EQ(topology.size, 1);
  EXPECT_EQ(topology.local_size, 77);
  topology.struct_size = 0;
  EXPECT_EQ(ronde_get_topology(session.engine(), &topology), RONDE_INVALID_ARGUMENT);
}

}  // namespace
