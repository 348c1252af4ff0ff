// SPDX-License-Identifier: Apache-2.0
// The key file: 64 hexadecimal digits and a newline.
#include <sodium.h>

#include "member/hello.h"
#include "os/private_file.h"

namespace ronde::member {

Key random_key() {
  RONDE_CHECK(sodium_init() >= 0, "libsodium finds no source of random bytes");
  Key key;
  randombytes_buf(key.data(), key.size());
  return key;
}

Result<Key> read_key_file(const std::string& path) {
  constexpr size_t kMaxFileBytes = 4096;
  auto read = os::read_private_file(path, kMaxFileBytes);
  if (!read.ok()) return read.status().with_context("the job's key file (RONDE_KEY_FILE)");
  std::string text = std::move(read).value();
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  Key key;
  size_t decoded = 0;
  const char* end = nullptr;
  const int rc = sodium_hex2bin(reinterpret_cast<unsigned char*>(key.data()), key.size(), text.data(), text.size(),
                                nullptr, &decoded, &end);
  const bool good = rc == 0 && decoded == key.size() && end == text.data() + text.size();
  sodium_memzero(text.data(), text.size());
  if (good) return key;
  return Status(Code::InvalidArgument,
                cat("the job's key file (RONDE_KEY_FILE) ", path, " holds no key: it must be ", kKeyBytes * 2,
                    " hexadecimal digits, it has ", text.size(), " characters: write it anew, the same for all ranks"));
}

Status write_key_file(const std::string& path, const Key& key) {
  std::array<char, kKeyBytes * 2 + 1> hex{};
  sodium_bin2hex(hex.data(), hex.size(), reinterpret_cast<const unsigned char*>(key.data()), key.size());
  auto status = os::write_private_file(path, std::string(hex.data()) + "\n");
  return status.ok() ? status : status.with_context("the job's key file");
}

}  // namespace ronde::member
