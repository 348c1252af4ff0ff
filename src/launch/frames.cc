// SPDX-License-Identifier: Apache-2.0
#include "launch/frames.h"

#include <algorithm>

namespace ronde::launch {
namespace {

enum class Kind : uint8_t { Start, Signal, Credit, Started, Ended, Output, Closed, Says, Done };
constexpr size_t kMaxText = kMaxFrameBytes;

void put(Writer& out, const std::vector<std::string>& texts) {
  out.put<uint32_t>(static_cast<uint32_t>(texts.size()));
  for (const auto& text : texts) out.put_string(text);
}

// A list cannot have more entries than bytes are left: each takes four at least.
uint32_t get_count(Reader& in) {
  return std::min<uint32_t>(in.get<uint32_t>(), static_cast<uint32_t>(in.left() / 4));
}

std::vector<std::string> get_texts(Reader& in) {
  std::vector<std::string> out(get_count(in));
  for (auto& text : out) text = in.get_string(kMaxText);
  return out;
}

void put(Writer& out, const RankPlan& rank) {
  for (const int number : {rank.rank, rank.local_rank, rank.local_size, rank.cross_rank, rank.cross_size}) {
    out.put<int32_t>(number);
  }
  out.put<uint32_t>(static_cast<uint32_t>(rank.env.size()));
  for (const auto& [name, value] : rank.env) out.put_string(name).put_string(value);
}

RankPlan get_rank(Reader& in) {
  RankPlan rank;
  for (int* number : {&rank.rank, &rank.local_rank, &rank.local_size, &rank.cross_rank, &rank.cross_size}) {
    *number = in.get<int32_t>();
  }
  rank.env.resize(get_count(in));
  for (auto& [name, value] : rank.env) {
    name = in.get_string(kMaxText);
    value = in.get_string(kMaxText);
  }
  return rank;
}

void write(Writer& out, const StartOrder& order) {
  out.put(Kind::Start).put_string(order.host.name);
  put(out, order.host.env);
  out.put<uint32_t>(static_cast<uint32_t>(order.host.ranks.size()));
  for (const auto& rank : order.host.ranks) put(out, rank);
  put(out, order.command);
  out.put_string(order.program).put_string(order.job).put_string(order.run_dir).put_bytes(order.key);
  out.put<int32_t>(order.stdin_fd).put<uint8_t>(order.inherit_output ? 1 : 0);
  out.put<int32_t>(order.stdout_fd).put<int32_t>(order.stderr_fd).put<int32_t>(order.group);
}

StartOrder read_start(Reader& in) {
  StartOrder order;
  order.host.name = in.get_string(kMaxText);
  order.host.env = get_texts(in);
  order.host.ranks.resize(get_count(in));
  for (auto& rank : order.host.ranks) rank = get_rank(in);
  order.command = get_texts(in);
  order.program = in.get_string(kMaxText);
  order.job = in.get_string(kMaxText);
  order.run_dir = in.get_string(kMaxText);
  for (auto& byte : order.key) byte = static_cast<std::byte>(in.get<uint8_t>());
  order.stdin_fd = in.get<int32_t>();
  order.inherit_output = in.get_bool();
  order.stdout_fd = in.get<int32_t>();
  order.stderr_fd = in.get<int32_t>();
  order.group = in.get<int32_t>();
  return order;
}

void write(Writer& out, const SignalOrder& order) {
  out.put(Kind::Signal).put<int32_t>(order.signal);
}
void write(Writer& out, const Credit& order) {
  out.put(Kind::Credit).put<uint64_t>(order.bytes);
}

void write(Writer& out, const RankStarted& report) {
  out.put(Kind::Started).put<int32_t>(report.rank).put<int32_t>(report.pid);
}
void write(Writer& out, const RankEnded& report) {
  out.put(Kind::Ended).put<int32_t>(report.rank).put(report.ending.kind).put<int32_t>(report.ending.code);
  out.put<uint8_t>(report.ending.out_of_memory ? 1 : 0);
}
void write(Writer& out, const RankOutput& report) {
  out.put(Kind::Output).put<int32_t>(report.rank).put<int32_t>(report.stream).put_string(report.bytes);
}
void write(Writer& out, const RankClosed& report) {
  out.put(Kind::Closed).put<int32_t>(report.rank).put<int32_t>(report.stream);
}
void write(Writer& out, const AgentSays& report) {
  out.put(Kind::Says).put<uint8_t>(report.fatal ? 1 : 0).put_string(report.text);
}
void write(Writer& out, const AgentDone&) {
  out.put(Kind::Done);
}

template <class Message>
Bytes to_bytes(const Message& message) {
  Writer out;
  std::visit([&](const auto& one) { write(out, one); }, message);
  return out.take();
}

Ending read_ending(Reader& in) {
  Ending ending;
  ending.kind = in.get_enum(kLastEndingKind);
  ending.code = in.get<int32_t>();
  ending.out_of_memory = in.get_bool();
  return ending;
}

}  // namespace

Bytes encode(const Order& order) {
  return to_bytes(order);
}
Bytes encode(const Report& report) {
  return to_bytes(report);
}

Result<Order> decode_order(ByteSpan bytes) {
  Reader in(bytes);
  Order order;
  switch (in.get_enum(Kind::Done)) {
    case Kind::Start:
      order = read_start(in);
      break;
    case Kind::Signal:
      order = SignalOrder{in.get<int32_t>()};
      break;
    case Kind::Credit:
      order = Credit{in.get<uint64_t>()};
      break;
    default:
      return Status(Code::Internal, "the launcher sent something that is no order");
  }
  RONDE_TRY(in.finish("order of the launcher"));
  return order;
}

Result<Report> decode_report(ByteSpan bytes) {
  Reader in(bytes);
  Report report;
  const auto kind = in.get_enum(Kind::Done);
  const int rank = kind == Kind::Says || kind == Kind::Done ? 0 : in.get<int32_t>();
  switch (kind) {
    case Kind::Started:
      report = RankStarted{rank, in.get<int32_t>()};
      break;
    case Kind::Ended:
      report = RankEnded{rank, read_ending(in)};
      break;
    case Kind::Output: {
      const int stream = in.get<int32_t>();
      report = RankOutput{rank, stream, in.get_string(kMaxOutputBytes)};
      break;
    }
    case Kind::Closed:
      report = RankClosed{rank, in.get<int32_t>()};
      break;
    case Kind::Says: {
      const bool fatal = in.get_bool();
      report = AgentSays{fatal, in.get_string(kMaxText)};
      break;
    }
    case Kind::Done:
      report = AgentDone{};
      break;
    default:
      return Status(Code::Internal, "the agent sent something that is no report");
  }
  RONDE_TRY(in.finish("report of the agent"));
  return report;
}

}  // namespace ronde::launch
