// SPDX-License-Identifier: Apache-2.0
#include "collective/run/ring_needs.h"

namespace ronde::collective {

std::vector<RoundNeeds> needs_of(const Schedule& schedule) {
  const auto chunks = static_cast<size_t>(schedule.chunks);
  std::vector<int> received(chunks, kNoRound);  // by chunk: the last round so far that received it
  std::vector<int> sent(chunks, kNoRound);
  std::vector<RoundNeeds> out;
  for (size_t r = 0; r < schedule.rounds.size(); ++r) {
    const Round& round = schedule.rounds[r];
    RoundNeeds needs;
    if (round.send_to != kNobody) needs.send_after_receive = received[static_cast<size_t>(round.send_chunk)];
    if (round.recv_from != kNobody) {
      needs.receive_after_receive = received[static_cast<size_t>(round.recv_chunk)];
      needs.receive_after_send = sent[static_cast<size_t>(round.recv_chunk)];
      received[static_cast<size_t>(round.recv_chunk)] = static_cast<int>(r);
    }
    if (round.send_to != kNobody) sent[static_cast<size_t>(round.send_chunk)] = static_cast<int>(r);
    out.push_back(needs);
  }
  return out;
}

std::vector<int> kept_chunks(const Schedule& schedule) {
  std::vector<bool> received(static_cast<size_t>(schedule.chunks), false);
  for (const Round& round : schedule.rounds)
    if (round.recv_from != kNobody) received[static_cast<size_t>(round.recv_chunk)] = true;
  std::vector<int> out;
  for (int chunk = 0; chunk < schedule.chunks; ++chunk)
    if (!received[static_cast<size_t>(chunk)]) out.push_back(chunk);
  return out;
}

}  // namespace ronde::collective
