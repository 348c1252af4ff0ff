// SPDX-License-Identifier: Apache-2.0
#include "control/board.h"

#include <algorithm>

#include "control/board_memory.h"

namespace ronde::control {

size_t Board::bytes(int local_size) {
  constexpr size_t kPage = 4096;
  return (BoardMemory::bytes(local_size) + kPage - 1) / kPage * kPage;
}

Board::Board(std::byte* base, int local_size, int local_rank, const Bells* bells)
    : memory_(reinterpret_cast<BoardMemory*>(base)), local_size_(local_size), local_rank_(local_rank), bells_(bells) {
  RONDE_CHECK(reinterpret_cast<uintptr_t>(base) % alignof(BoardMemory) == 0, "a board begins on a cache line");
  RONDE_CHECK(local_rank >= 0 && local_rank <= local_size, "a board has a seat per local rank and the agent's");
  RONDE_CHECK(bells->size() == static_cast<size_t>(local_size), "a board has two bells per local rank");
}

int Board::local_size() const {
  return local_size_;
}
int Board::local_rank() const {
  return local_rank_;
}

void Board::set_sleeping(Sleeping state) {
  memory_->seat(local_rank_).sleeping.store(static_cast<uint32_t>(state), std::memory_order_seq_cst);
}

void Board::set_in_wait(bool waits) {
  memory_->seat(local_rank_).in_wait.store(waits ? 1 : 0, std::memory_order_relaxed);
}

bool Board::all_in_wait(std::span<const int> local_ranks) const {
  return std::all_of(local_ranks.begin(), local_ranks.end(),
                     [&](int rank) { return memory_->seat(rank).in_wait.load(std::memory_order_relaxed) == 1; });
}

void Board::wake(std::span<const int> local_ranks) {
  for (const int rank : local_ranks) {
    auto& word = memory_->seat(rank).sleeping;
    uint32_t state = word.load(std::memory_order_seq_cst);
    if (state != 1 && state != 2) continue;
    if (!word.compare_exchange_strong(state, 0, std::memory_order_seq_cst))
      continue;  // woke up, or was rung by another
    (*bells_)[static_cast<size_t>(rank)][state - 1].ring();
  }
}

void Board::wake_all() {
  for (int rank = 0; rank < local_size_; ++rank) wake({&rank, 1});
}

void Board::beat(Time now) {
  memory_->seat(local_rank_).beat.store(now.time_since_epoch().count(), std::memory_order_relaxed);
}

Time Board::last_beat(int local_rank) const {
  return Time(Duration(memory_->seat(local_rank).beat.load(std::memory_order_relaxed)));
}

void Board::abort(const Status& cause) {
  auto& own = memory_->seat(local_rank_).cause;
  if (own.taken.exchange(1, std::memory_order_relaxed) != 0) return;
  const std::string& text = cause.message();
  const size_t bytes = std::min(text.size(), sizeof own.text);
  own.code = static_cast<uint32_t>(cause.code());
  own.text_bytes = static_cast<uint32_t>(bytes);
  std::copy_n(text.data(), bytes, own.text);
  uint32_t none = 0;
  memory_->abort.compare_exchange_strong(none, static_cast<uint32_t>(local_rank_) + 1, std::memory_order_seq_cst);
  wake_all();
}

bool Board::aborted() const {
  return memory_->abort.load(std::memory_order_relaxed) != 0;
}

Status Board::abort_cause() const {
  const uint32_t word = memory_->abort.load(std::memory_order_acquire);
  if (word == 0) return {};
  const Status damaged(Code::Aborted, "the job was aborted on this host, but the cause in shared memory is damaged");
  if (word > static_cast<uint32_t>(local_size_) + 1) return damaged;
  const auto& cause = memory_->seat(static_cast<int>(word) - 1).cause;
  const uint32_t code = cause.code;
  const uint32_t bytes = cause.text_bytes;
  if (code == 0 || code > static_cast<uint32_t>(Code::Interrupted) || bytes > sizeof cause.text) return damaged;
  return Status(static_cast<Code>(code), std::string(cause.text, bytes));
}

namespace {

class BoardCarrier final : public Carrier {
 public:
  BoardCarrier(const Board& board, RingMemory* out, RingMemory* in, int peer)
      : board_(board), writer_(out), reader_(in), peer_(peer) {}

  Result<bool> try_send(ByteSpan frame) override {
    if (board_.aborted()) return board_.abort_cause();
    const auto sent = writer_.put(frame);
    if (!sent.ok()) return sent.status().with_context(peer_name());
    if (*sent) board_.wake({&peer_, 1});
    return sent;
  }

  Result<std::optional<Bytes>> try_recv() override {
    // Asked first: what was sent before the abort is then seen below.
    const bool aborted = board_.aborted();
    auto frame = reader_.take();
    if (!frame.ok()) return frame.status().with_context(peer_name());
    if (!frame->has_value()) {
      if (aborted) return board_.abort_cause();
      return frame;
    }
    if (reader_.take_writer_waits()) board_.wake({&peer_, 1});
    return frame;
  }

 private:
  std::string peer_name() const { return cat("local rank ", peer_); }
  Board board_;
  RingWriter writer_;
  RingReader reader_;
  int peer_;
};

}  // namespace

std::unique_ptr<Carrier> Board::rank_side(int coordinator) {
  RONDE_CHECK(local_rank_ < local_size_, "the agent has no rings");
  auto& seat = memory_->seat(local_rank_);
  return std::make_unique<BoardCarrier>(*this, &seat.up, &seat.down, coordinator);
}

std::unique_ptr<Carrier> Board::coordinator_side(int local_rank) {
  RONDE_CHECK(local_rank >= 0 && local_rank < local_size_, "no such local rank");
  auto& seat = memory_->seat(local_rank);
  return std::make_unique<BoardCarrier>(*this, &seat.down, &seat.up, local_rank);
}

}  // namespace ronde::control
