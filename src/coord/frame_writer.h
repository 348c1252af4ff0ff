// SPDX-License-Identifier: Apache-2.0
// FrameWriter: packs items into frames of at most max_frame_bytes; an item is never torn.
#pragma once

#include <utility>
#include <vector>

#include "base/bytes.h"
#include "coord/codec.h"

namespace ronde::coord {

class FrameWriter {
 public:
  explicit FrameWriter(size_t max_frame_bytes) : max_bytes_(max_frame_bytes) {
    RONDE_CHECK(max_frame_bytes >= kMinFrameBytes, "frames must have room for any single item");
  }
  // A ReportItem or a DecisionItem.
  template <class Item>
  void add(const Item& item) {
    encode(item_, item);
    RONDE_CHECK(item_.size() <= max_bytes_, "an item does not fit into a frame");
    if (frame_.size() + item_.size() > max_bytes_) close();
    frame_.put_bytes(item_.bytes());
    item_.take();
  }
  bool empty() const { return frame_.size() == 0 && closed_.empty(); }
  std::vector<Bytes> take() {
    close();
    return std::exchange(closed_, {});
  }

 private:
  void close() {
    if (frame_.size() > 0) closed_.push_back(frame_.take());
  }

  size_t max_bytes_;
  Writer item_;
  Writer frame_;
  std::vector<Bytes> closed_;
};

}  // namespace ronde::coord
