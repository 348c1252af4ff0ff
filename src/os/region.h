// SPDX-License-Identifier: Apache-2.0
// Region: a piece of memory that several ranks map. A memfd, passed over a socket, has no name and leaves nothing
// behind; a heap Region is for ranks that are threads of one process (tests): mapped once for all, so that TSan sees
// the real protocol. Shared Regions are MADV_DONTFORK. Starts zeroed; pages are taken when first touched.
#pragma once

#include <cstddef>

#include "base/status.h"
#include "os/fd.h"

namespace ronde::os {

class Region {
 public:
  // `name` shows in /proc/PID/maps only. Fails with Unsupported where the kernel has no memfd.
  static Result<Region> create_shared(const char* name, size_t bytes);
  // Maps what another process created. The file must be sealed against shrinking and have at least `bytes`.
  static Result<Region> map_shared(Fd fd, size_t bytes);
  static Result<Region> create_heap(size_t bytes);

  Region() = default;
  Region(Region&& other) noexcept;
  Region& operator=(Region&& other) noexcept;
  ~Region();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  int fd() const { return fd_.get(); }  // -1 for heap

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  Fd fd_;
};

}  // namespace ronde::os
