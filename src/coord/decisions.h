// SPDX-License-Identifier: Apache-2.0
// Decisions: what the coordinator has decided and not yet handed out, and the id tables that the decisions define.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "coord/coordinator.h"
#include "coord/frame_writer.h"
#include "coord/ledger.h"
#include "coord/tables.h"

namespace ronde::coord {

class Decisions {
 public:
  explicit Decisions(size_t max_frame_bytes) : max_frame_bytes_(max_frame_bytes), frames_(max_frame_bytes) {}

  // The id, defined now if there is none yet.
  uint32_t name_id(SetId set, const std::string& name);
  uint32_t signature_id(const Signature& signature);
  const NameTable& names() const { return names_; }
  const SignatureTable& signatures() const { return signatures_; }
  // "'x'" or "unnamed 3"
  std::string text_of(const Key& key) const;

  void add_batch(SetId set, std::vector<BatchEntry> entries);
  void add_end(SetId set, const Status& status, const Ended& ended);
  void add_left(Rank rank) { frames_.add(DecisionItem(Left{rank})); }

  size_t max_frame_bytes() const { return max_frame_bytes_; }
  const Coordinator::Counters& counters() const { return counters_; }
  std::vector<Bytes> take() { return frames_.take(); }

 private:
  size_t max_frame_bytes_;
  FrameWriter frames_;
  NameTable names_;
  SignatureTable signatures_;
  Coordinator::Counters counters_;
};

}  // namespace ronde::coord
