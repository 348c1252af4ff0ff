// SPDX-License-Identifier: Apache-2.0
#include "os/region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace ronde::os {
namespace {

Result<std::byte*> map(int fd, size_t bytes) {
  const int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED | MAP_NORESERVE;
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (at == MAP_FAILED) return system_error(cat("map ", bytes, " bytes of memory"), errno);
  return static_cast<std::byte*>(at);
}

}  // namespace

Result<Region> Region::create_shared(const char* name, size_t bytes) {
  RONDE_CHECK(bytes > 0, "a region has at least one byte");
  Fd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) {
    const Status error = system_error("create shared memory (memfd_create)", errno);
    const bool missing = errno == ENOSYS || errno == EPERM || errno == EINVAL || errno == EACCES;
    return missing ? Status(Code::Unsupported, error.message()) : error;
  }
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return system_error(cat("give shared memory its size of ", bytes, " bytes"), errno);
  }
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return system_error("seal the size of shared memory", errno);
  }
  return map_shared(std::move(fd), bytes);
}

// A file that can shrink would turn an access into SIGBUS at the will of another process.
Result<Region> Region::map_shared(Fd fd, size_t bytes) {
  RONDE_CHECK(bytes > 0, "a region has at least one byte");
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return Status(Code::Internal, "refused to map shared memory that is not sealed against shrinking");
  }
  struct stat file {};
  if (::fstat(fd.get(), &file) != 0) return system_error("look at shared memory", errno);
  if (file.st_size < 0 || static_cast<size_t>(file.st_size) < bytes) {
    return Status(Code::Internal, cat("shared memory has ", file.st_size, " bytes, expected at least ", bytes));
  }
  Region region;
  RONDE_ASSIGN(region.data_, map(fd.get(), bytes));
  region.bytes_ = bytes;
  if (::madvise(region.data_, bytes, MADV_DONTFORK) != 0) {
    return system_error("keep shared memory out of forked children", errno);
  }
  region.fd_ = std::move(fd);
  return region;
}

Result<Region> Region::create_heap(size_t bytes) {
  RONDE_CHECK(bytes > 0, "a region has at least one byte");
  Region region;
  RONDE_ASSIGN(region.data_, map(-1, bytes));
  region.bytes_ = bytes;
  return region;
}

Region::Region(Region&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)), fd_(std::move(other.fd_)) {}

Region& Region::operator=(Region&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(fd_, other.fd_);
  return *this;
}

Region::~Region() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

}  // namespace ronde::os
