// SPDX-License-Identifier: Apache-2.0
// TcpCarrier: control frames over a TCP connection whose hello is done. A frame on the wire:
//
//   u32 length, 16 bytes of MAC(session key, direction, sequence number, length word, payload), payload
//
// The sequence number is counted on both sides and not sent: a frame that was replayed, dropped or changed fails its
// MAC and ends the link. A length whose top bit is set marks a credit: its payload is u64, the bytes of frames that its
// sender's owner has taken so far. The next bit alone is a beat: a sign of life without payload.
//
// Stopped is not cut: keepalive and TCP_USER_TIMEOUT notice a dead host within `silence`; a stopped process's kernel
// goes on answering as long as its receive buffer has room, so unread control bytes are kept below kCreditBytes, less
// than half of it, by credits of the receiver; a frame without credit stays with the caller (try_send false). What
// try_send has taken and the socket has not is written by later calls of either method.
#pragma once

#include <memory>

#include "base/clock.h"
#include "control/carrier.h"
#include "member/greeter.h"
#include "os/event_set.h"

namespace ronde::control {

constexpr size_t kCreditBytes = 128 * 1024;
constexpr Duration kControlSilence = std::chrono::seconds(10);

// `initiator`: this side began the hello. `peer_name` ("rank 0 (host a)") is for messages. `events` outlives it.
Result<std::unique_ptr<Carrier>> make_tcp_carrier(member::Greeted connection, bool initiator, std::string peer_name,
                                                  os::EventSet* events);

// Both ends of a carrier within one rank: rank 0's own reports and decisions.
std::pair<std::unique_ptr<Carrier>, std::unique_ptr<Carrier>> make_local_carrier();

}  // namespace ronde::control
