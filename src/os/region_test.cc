// SPDX-License-Identifier: Apache-2.0
#include "os/region.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>

namespace ronde::os {
namespace {

constexpr size_t kBytes = 3 * 4096 + 17;

bool all_zero(const Region& region) {
  const std::span bytes(region.data(), region.bytes());
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{}; });
}

bool is_page_aligned(const void* at) {
  return reinterpret_cast<uintptr_t>(at) % 4096 == 0;
}

Fd duplicate(const Region& region) {
  return Fd(::fcntl(region.fd(), F_DUPFD_CLOEXEC, 0));
}

TEST(Region, shared_and_heap_start_zeroed_and_page_aligned) {
  const Region shared = Region::create_shared("ronde-test", kBytes).value();
  const Region heap = Region::create_heap(kBytes).value();
  for (const Region* region : {&shared, &heap}) {
    EXPECT_EQ(region->bytes(), kBytes);
    EXPECT_TRUE(is_page_aligned(region->data()));
    EXPECT_TRUE(all_zero(*region));
  }
  EXPECT_GE(shared.fd(), 0);
  EXPECT_EQ(heap.fd(), -1);
}

TEST(Region, two_maps_of_one_file_show_the_same_bytes) {
  const Region first = Region::create_shared("ronde-test", kBytes).value();
  const Region second = Region::map_shared(duplicate(first), kBytes).value();
  ASSERT_NE(first.data(), second.data());
  first.data()[kBytes - 1] = std::byte{42};
  EXPECT_EQ(second.data()[kBytes - 1], std::byte{42});
}

TEST(Region, nobody_can_change_its_size) {
  const Region region = Region::create_shared("ronde-test", kBytes).value();
  EXPECT_NE(::ftruncate(region.fd(), 1), 0);
  EXPECT_NE(::ftruncate(region.fd(), kBytes * 2), 0);
  EXPECT_NE(::fcntl(region.fd(), F_ADD_SEALS, F_SEAL_WRITE), 0);
}

TEST(Region, a_file_that_can_shrink_is_refused) {
  Fd fd(::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(fd.get(), kBytes), 0);
  EXPECT_NE(Region::map_shared(std::move(fd), kBytes).status().message().find("not sealed"), std::string::npos);
}

TEST(Region, a_file_that_cannot_be_sealed_is_refused) {
  Fd fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(Region::map_shared(std::move(fd), 1).status().code(), Code::Internal);
}

TEST(Region, a_file_that_is_too_small_is_refused) {
  const Region region = Region::create_shared("ronde-test", kBytes).value();
  const auto mapped = Region::map_shared(duplicate(region), kBytes + 1);
  EXPECT_EQ(mapped.status().message(), "shared memory has 12305 bytes, expected at least 12306");
}

TEST(Region, a_size_beyond_the_address_space_is_an_error) {
  EXPECT_FALSE(Region::create_heap(size_t{1} << 60).ok());
  EXPECT_FALSE(Region::create_shared("ronde-test", size_t{1} << 60).ok());
}

TEST(Region, moves_leave_one_owner_and_unmap_once) {
  Region first = Region::create_heap(kBytes).value();
  std::byte* const data = first.data();
  Region second(std::move(first));
  EXPECT_EQ(first.data(), nullptr);
  Region third;
  third = std::move(second);
  EXPECT_EQ(third.data(), data);
  EXPECT_EQ(third.bytes(), kBytes);
  third.data()[0] = std::byte{1};
}

// The maps of a process, as the kernel lists them.
std::string maps_of_self() {
  std::ifstream file("/proc/self/maps");
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class Body>
int exit_status_of_child(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Region, a_forked_child_does_not_have_the_shared_one) {
  const Region region = Region::create_shared("ronde-fork-test", kBytes).value();
  ASSERT_NE(maps_of_self().find("ronde-fork-test"), std::string::npos);
  EXPECT_EQ(exit_status_of_child([] { return maps_of_self().find("ronde-fork-test") == std::string::npos ? 0 : 1; }),
            0);
}

// Makes memfd_create fail in this process, as a container's seccomp profile or an old kernel does.
bool forbid_memfd(int error) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<uint32_t>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{static_cast<unsigned short>(std::size(program)), program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(Region, no_memfd_is_unsupported) {
  for (const int error : {ENOSYS, EPERM, EINVAL}) {
    EXPECT_EQ(exit_status_of_child([error] {
                if (!forbid_memfd(error)) return 2;
                return Region::create_shared("x", 1).status().code() == Code::Unsupported ? 0 : 1;
              }),
              0)
        << error;
  }
}

TEST(Region, no_descriptors_left_is_resource_exhausted) {
  EXPECT_EQ(exit_status_of_child([] {
              if (!forbid_memfd(EMFILE)) return 2;
              return Region::create_shared("x", 1).status().code() == Code::ResourceExhausted ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace ronde::os
