// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <mutex>

#include "member/greeter.h"
#include "member/store.h"
#include "member/store_wire.h"
#include "os/event_set.h"

namespace ronde::member {
namespace {

// The store answers every request by its deadline; a store that is silent for longer than this is stuck or cut off.
constexpr Duration kAnswerGrace = std::chrono::seconds(2);
constexpr Duration kConnectAgain = std::chrono::milliseconds(50);
constexpr Duration kTellPatience = std::chrono::seconds(1);
constexpr Duration kLongest = std::chrono::hours(24 * 365);

Time plus_grace(Time deadline) {
  return deadline < kNever - kAnswerGrace ? deadline + kAnswerGrace : kNever;
}

}  // namespace

struct StoreClient::State {
  State(os::Fd fd, std::string address, std::string name)
      : stream(std::move(fd), store_wire::kMaxFrameBytes), store(std::move(address)), who(std::move(name)) {}

  FrameStream stream;
  std::mutex writes;  // frames do not mix
  std::string store;  // its address, for messages
  std::string who;
  uint32_t request = 0;
  uint32_t epoch = 0;
  int32_t size = 0;
  std::optional<Cause> news;
  SteadyClock clock;

  Status context(const Status& status) const { return status.with_context(cat("the store at ", store)); }
  Duration patience(Time deadline) const { return std::min<Duration>(deadline - clock.now(), kLongest); }
  Status send(const store_wire::Message& message, Time deadline) {
    const std::lock_guard lock(writes);
    const Status status = os::write_all_by(stream.fd(), *store_wire::encode(message), deadline);
    return status.ok() ? status : context(status);
  }
  struct Answer {
    uint32_t epoch;
    std::vector<Bytes> blobs;
  };
  Result<Answer> await(size_t ranks, Time deadline);
  void keep(const store_wire::News& message) {
    if (!news && (epoch == 0 || message.epoch == epoch)) news = message.cause;
  }
};

StoreClient::StoreClient(std::unique_ptr<State> state) : state_(std::move(state)) {}
StoreClient::~StoreClient() = default;

namespace {

// A store that does not listen yet is waited for: ranks and store are started at the same time. There is no event for
// this, so it is tried again after a while.
Result<os::Fd> connect_until(std::span<const os::Address> addresses, Time deadline) {
  const SteadyClock clock;
  for (;;) {
    auto fd = os::connect_tcp_by(addresses, deadline);
    const Time next = clock.now() + kConnectAgain;
    if (fd.ok() || addresses.empty()) return fd;
    if (next >= deadline) {
      return Status(fd.status().code(),
                    cat("no store of the job answers: ", fd.status().message(),
                        ": check RONDE_STORE, and that the process that holds the store (the launcher, "
                        "or rank 0) runs"));
    }
    os::sleep_until_readable({}, next);
  }
}

}  // namespace

Result<std::unique_ptr<StoreClient>> StoreClient::connect(std::span<const os::Address> addresses, const Key& key,
                                                          int32_t rank, Time deadline, std::string who) {
  std::string store;
  const auto connect = [&] {
    auto fd = connect_until(addresses, deadline);
    store = fd.ok() ? os::peer_address(*fd).to_string() : "";
    return fd;
  };
  auto greeted = call_by(connect, key, {.purpose = Purpose::Store, .rank = rank}, deadline);
  if (!greeted.ok() && store.empty()) return greeted.status();
  if (!greeted.ok()) return greeted.status().with_context(cat("the store at ", store));
  auto state = std::make_unique<State>(std::move(greeted->fd), store, std::move(who));
  return std::unique_ptr<StoreClient>(new StoreClient(std::move(state)));
}

// Parts, then the end of the request. What belongs to an earlier request that was given up is dropped.
Result<StoreClient::State::Answer> StoreClient::State::await(size_t ranks, Time deadline) {
  Answer answer{.epoch = 0, .blobs = std::vector<Bytes>(ranks)};
  size_t parts = 0;
  for (;;) {
    auto frame = stream.next_by(plus_grace(deadline));
    if (!frame.ok()) return context(frame.status());
    auto message = store_wire::decode(*frame);
    if (!message.ok()) return context(message.status());
    if (auto* part = std::get_if<store_wire::Part>(&*message)) {
      if (part->rank < 0 || static_cast<size_t>(part->rank) >= ranks) continue;
      answer.blobs[static_cast<size_t>(part->rank)] = std::move(part->blob);
      ++parts;
    } else if (const auto* done = std::get_if<store_wire::Done>(&*message)) {
      if (done->request == request && parts == ranks) {
        answer.epoch = done->epoch;
        return answer;
      }
      if (done->request == request) return context(Status(Code::Internal, "answered without the blobs of all ranks"));
      parts = 0;
    } else if (const auto* failed = std::get_if<store_wire::Failed>(&*message)) {
      if (failed->request == request) return failed->status;
    } else if (const auto* arrived = std::get_if<store_wire::News>(&*message)) {
      keep(*arrived);
    }
  }
}

Result<StoreClient::Opened> StoreClient::open_epoch(int32_t size, ByteSpan blob, Time deadline) {
  State& s = *state_;
  if (size < 1) return Status(Code::InvalidArgument, cat("a job has at least 1 rank, not ", size));
  if (blob.size() > kMaxBlobBytes)
    return Status(Code::InvalidArgument, cat("a blob of ", blob.size(), " bytes is too long"));
  s.news.reset();
  const store_wire::Open open{++s.request, s.patience(deadline), size, s.who, {blob.begin(), blob.end()}};
  RONDE_TRY(s.send(open, plus_grace(deadline)));
  auto answer = s.await(static_cast<size_t>(size), deadline);
  s.news.reset();  // of an earlier epoch, or the reason of a failure that is told anyway
  if (!answer.ok()) return answer.status();
  s.epoch = answer->epoch;
  s.size = size;
  return Opened{answer->epoch, std::move(answer->blobs)};
}

Result<std::vector<Bytes>> StoreClient::exchange(std::string_view tag, ByteSpan blob, Time deadline) {
  State& s = *state_;
  if (blob.size() > kMaxBlobBytes || tag.size() > store_wire::kMaxTagBytes) {
    return Status(Code::InvalidArgument,
                  cat("a blob of ", blob.size(), " bytes under a tag of ", tag.size(), " is too long"));
  }
  if (s.epoch == 0) return Status(Code::NotInitialized, "an exchange needs an open epoch");
  const store_wire::Exchange exchange{
      ++s.request, s.patience(deadline), s.epoch, std::string(tag), {blob.begin(), blob.end()}};
  RONDE_TRY(s.send(exchange, plus_grace(deadline)));
  auto answer = s.await(static_cast<size_t>(s.size), deadline);
  if (!answer.ok()) return answer.status().with_context(cat("exchange of '", tag, "'"));
  return std::move(answer->blobs);
}

int StoreClient::fd() const {
  return state_->stream.fd().get();
}

Result<std::optional<Cause>> StoreClient::take_news() {
  State& s = *state_;
  for (;;) {
    auto frame = s.stream.next();
    if (!frame.ok() && s.news) break;  // what it said before it went
    if (!frame.ok()) return s.context(frame.status());
    if (!frame->has_value()) break;
    auto message = store_wire::decode(**frame);
    if (!message.ok()) return s.context(message.status());
    if (const auto* arrived = std::get_if<store_wire::News>(&*message)) s.keep(*arrived);
  }
  return std::exchange(s.news, std::nullopt);
}

Status StoreClient::tell_failure(const Status& what) {
  return state_->send(store_wire::Failure{state_->epoch, what}, state_->clock.now() + kTellPatience);
}

Status StoreClient::tell_abort(const Status& cause) {
  return state_->send(store_wire::Abort{state_->epoch, cause}, state_->clock.now() + kTellPatience);
}

Status StoreClient::tell_leave(uint32_t order) {
  return state_->send(store_wire::Leave{state_->epoch, order}, state_->clock.now() + kTellPatience);
}

os::Address StoreClient::own_address() const {
  return os::own_address(state_->stream.fd());
}

}  // namespace ronde::member
