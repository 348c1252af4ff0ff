// SPDX-License-Identifier: Apache-2.0
// Copies between user memory and slots.
#pragma once

#include <cstddef>

namespace ronde::collective {

// As memcpy. The C library copies 4 KiB and more with "rep movsb", which takes ten times as long when the target lies a
// little further in its page than the source, and memory from malloc does so against a slot. This does not.
void copy_bytes(std::byte* to, const std::byte* from, size_t bytes);

// As memcpy, past the cache: for what this core does not read again soon. It neither reads the target first nor asks
// the core that last had it. Ordered before seq_cst stores only, not before release stores.
void stream_bytes(std::byte* to, const std::byte* from, size_t bytes);

// How outputs of a batch are written: from some size on nothing of them is left in the cache when they are read.
using Copy = void (*)(std::byte* to, const std::byte* from, size_t bytes);
inline Copy copy_to_output(size_t batch_bytes) {
  constexpr size_t kOutlastsCache = 16 << 20;
  return batch_bytes >= kOutlastsCache ? stream_bytes : copy_bytes;
}

}  // namespace ronde::collective
