// SPDX-License-Identifier: Apache-2.0
// Hello: how two processes of a job prove to each other that they hold the job key, before anything else is said or
// allocated.
//
// Idea: mutual challenge and response. HMAC-SHA-256-128 would do; we use keyed BLAKE2b (libsodium crypto_generichash).
//   1. initiator -> acceptor   magic 8, build id 8, nonce_i 32, identity_i 17             (65 bytes)
//   2. acceptor  -> initiator  the same of its own, MAC(key, "acceptor", everything in 1 and 2)    (97 bytes)
//   3. initiator -> acceptor   MAC(key, "initiator", everything in 1 and 2)               (32 bytes)
//   4. acceptor  -> initiator  MAC(key, "welcome", everything in 1 and 2)                 (32 bytes)
// Both derive the session key MAC(key, "session", everything in 1 and 2). The acceptor reads one fixed-size header from
// a stranger and says nothing secret to it; a wrong MAC closes the connection. Identities carry purpose, own rank, the
// rank that is called, epoch and stream, and are part of the transcript, so a captured hello fits nothing else. The
// acceptor answers with its own rank and with the initiator's rank, purpose, epoch and stream: what it has understood.
// A call that reaches another rank than the one it is for ends after message 2 on both sides.
//
// Message 4 is there because an acceptor may give up at any moment before it has seen message 3 (it was stopped for
// longer than it grants a stranger): only who has been welcomed may take the connection for made.
//
// Pure: bytes in, bytes out.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/status.h"

namespace ronde::member {

constexpr size_t kKeyBytes = 32;
using Key = std::array<std::byte, kKeyBytes>;

Key random_key();
// Reads and writes the key file: 0600, hex. Errors name the path and what is wrong with it (missing, readable by
// others, wrong length).
Result<Key> read_key_file(const std::string& path);
Status write_key_file(const std::string& path, const Key& key);

// What a connection is for. Values are wire.
enum class Purpose : uint8_t { Store = 0, Control = 1, Data = 2, Broker = 3 };
constexpr Purpose kLastPurpose = Purpose::Broker;

struct Identity {
  Purpose purpose = Purpose::Store;
  int32_t rank = -1;    // -1: not a rank (store, agent)
  int32_t called = -1;  // the rank at the other end; -1: whoever answers
  uint32_t epoch = 0;   // 0: before an epoch is open
  uint32_t stream = 0;  // of a data link
  bool operator==(const Identity&) const = default;
};

// Version and hash of the wire headers; two builds that differ do not talk.
uint64_t build_id();

// One side of the handshake over some connection. feed() takes what arrived and appends to `out` what is to be sent.
// Thread: one.
class Hello {
 public:
  enum class Role : uint8_t { Initiator, Acceptor };
  // Of an acceptor's identity only the rank counts; the rest is taken from the initiator's.
  Hello(Role role, const Key& key, const Identity& self);

  // What the initiator says first; nothing for the acceptor.
  Bytes start();
  // How many bytes to read next; never more than a hello has. 0: done.
  size_t wants() const;
  // Exactly the wanted bytes. Error: wrong magic, another build ("peer runs ronde build X, this is Y"), a wrong proof,
  // ...; `out` may then still hold a message that lets the peer find the same error. No more can be fed after an error.
  Status feed(ByteSpan bytes, Bytes& out);
  bool done() const;
  // The peer has proven that it holds the key; an initiator has then given its own proof.
  bool proven() const;
  const Identity& peer() const;    // valid after the message that carries it, proven when done()
  const Key& session_key() const;  // when done()

 private:
  Status take_first(ByteSpan bytes, Bytes& out);
  Status take_second(ByteSpan bytes, Bytes& out);
  Status take_third(ByteSpan bytes, Bytes& out);

  Role role_;
  Key key_;
  Identity self_;
  Identity peer_;
  int stage_ = 0;
  Bytes transcript_;
  Key session_{};
};

}  // namespace ronde::member
