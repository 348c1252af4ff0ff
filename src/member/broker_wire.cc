// SPDX-License-Identifier: Apache-2.0
#include "member/broker_wire.h"

namespace ronde::member::broker_wire {

WireFrame encode(const HostMemoryRequest& request) {
  Writer writer;
  writer.put(request.epoch).put(request.local_rank).put(request.local_size);
  writer.put(request.board_bytes).put(request.arena_bytes);
  return make_wire_frame(writer.bytes());
}

Result<HostMemoryRequest> decode_request(ByteSpan frame) {
  constexpr uint64_t kMaxBytes = uint64_t{1} << 40;
  Reader reader(frame);
  HostMemoryRequest request;
  request.epoch = reader.get<uint32_t>();
  request.local_rank = reader.get<int32_t>();
  request.local_size = reader.get<int32_t>();
  request.board_bytes = reader.get<uint64_t>();
  request.arena_bytes = reader.get<uint64_t>();
  RONDE_TRY(reader.finish("request for host memory"));
  if (request.local_size < 1 || request.local_size > kMaxLocalSize || request.local_rank < 0 ||
      request.local_rank >= request.local_size) {
    return Status(Code::InvalidArgument, cat("local rank ", request.local_rank, " of ", request.local_size,
                                             " ranks of this host is not possible"));
  }
  if (request.board_bytes - 1 >= kMaxBytes || request.arena_bytes - 1 >= kMaxBytes) {
    return Status(Code::InvalidArgument,
                  cat("host memory of ", request.board_bytes, " and ", request.arena_bytes, " bytes is not possible"));
  }
  return request;
}

WireFrame encode_answer(const Status& status) {
  Writer writer;
  writer.put(status.code());
  writer.put_string(status.ok() ? std::string_view() : std::string_view(status.message()).substr(0, kMaxTextBytes));
  return make_wire_frame(writer.bytes());
}

Status decode_answer(ByteSpan frame) {
  Reader reader(frame);
  const Code code = reader.get_enum(Code::Interrupted);
  const std::string text = reader.get_string(kMaxTextBytes);
  RONDE_TRY(reader.finish("answer of the broker"));
  return code == Code::Ok ? Status() : Status(code, text);
}

}  // namespace ronde::member::broker_wire
