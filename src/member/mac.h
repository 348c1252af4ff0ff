// SPDX-License-Identifier: Apache-2.0
// MAC: keyed BLAKE2b (libsodium) over pieces that follow one another. Whoever calls it keeps uses apart by a label in
// the first piece.
#pragma once

#include <span>

#include "base/bytes.h"
#include "member/hello.h"

namespace ronde::member {

// Fills `out`, 16 to 64 bytes.
void make_mac(const Key& key, std::span<const ByteSpan> pieces, std::span<std::byte> out);
// In a time that does not depend on where they differ.
bool same_secret(ByteSpan a, ByteSpan b);

}  // namespace ronde::member
