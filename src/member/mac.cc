// SPDX-License-Identifier: Apache-2.0
#include "member/mac.h"

#include <sodium.h>

namespace ronde::member {
namespace {

const unsigned char* raw(const std::byte* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}

}  // namespace

void make_mac(const Key& key, std::span<const ByteSpan> pieces, std::span<std::byte> out) {
  crypto_generichash_state state;
  RONDE_CHECK(crypto_generichash_init(&state, raw(key.data()), key.size(), out.size()) == 0,
              "a MAC has 16 to 64 bytes");
  for (const auto piece : pieces) crypto_generichash_update(&state, raw(piece.data()), piece.size());
  crypto_generichash_final(&state, reinterpret_cast<unsigned char*>(out.data()), out.size());
}

bool same_secret(ByteSpan a, ByteSpan b) {
  return a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace ronde::member
