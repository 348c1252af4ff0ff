// SPDX-License-Identifier: Apache-2.0
#include "member/store_wire.h"

#include <utility>

namespace ronde::member::store_wire {
namespace {

std::string_view cut(std::string_view text, size_t max_bytes = kMaxBlobBytes) {
  return text.substr(0, max_bytes);
}
std::string_view as_text(const Bytes& blob) {
  return {reinterpret_cast<const char*>(blob.data()), blob.size()};
}
Bytes get_bytes(Reader& reader) {
  const auto blob = reader.get_blob(kMaxBlobBytes);
  return {blob.begin(), blob.end()};
}
void put_error(Writer& writer, const Status& error) {
  writer.put(error.code()).put_string(cut(error.message()));
}
Status get_error(Reader& reader) {
  const Code code = reader.get_enum(Code::Interrupted);
  std::string text = reader.get_string(kMaxBlobBytes);
  return Status(code == Code::Ok ? Code::Internal : code, std::move(text));  // an error without a code is still one
}

void put(Writer& w, const Open& m) {
  w.put(m.request).put<int64_t>(m.patience.count()).put(m.size).put_string(cut(m.who, kMaxWhoBytes));
  w.put_string(as_text(m.blob));
}
void put(Writer& w, const Exchange& m) {
  w.put(m.request).put<int64_t>(m.patience.count()).put(m.epoch).put_string(m.tag).put_string(as_text(m.blob));
}
void put(Writer& w, const Failure& m) {
  w.put(m.epoch);
  put_error(w, m.what);
}
void put(Writer& w, const Leave& m) {
  w.put(m.epoch).put(m.order);
}
void put(Writer& w, const Abort& m) {
  w.put(m.epoch);
  put_error(w, m.status);
}
void put(Writer& w, const Part& m) {
  w.put(m.rank).put_string(as_text(m.blob));
}
void put(Writer& w, const Done& m) {
  w.put(m.request).put(m.epoch);
}
void put(Writer& w, const Failed& m) {
  w.put(m.request);
  put_error(w, m.status);
}
void put(Writer& w, const News& m) {
  w.put(m.epoch).put(m.cause.rank);
  put_error(w, m.cause.status);
}

Open get_open(Reader& r) {
  Open m;
  m.request = r.get<uint32_t>();
  m.patience = Duration(r.get<int64_t>());
  m.size = r.get<int32_t>();
  m.who = r.get_string(kMaxWhoBytes);
  m.blob = get_bytes(r);
  return m;
}
Exchange get_exchange(Reader& r) {
  Exchange m;
  m.request = r.get<uint32_t>();
  m.patience = Duration(r.get<int64_t>());
  m.epoch = r.get<uint32_t>();
  m.tag = r.get_string(kMaxTagBytes);
  m.blob = get_bytes(r);
  return m;
}
Failure get_failure(Reader& r) {
  Failure m;
  m.epoch = r.get<uint32_t>();
  m.what = get_error(r);
  return m;
}
Leave get_leave(Reader& r) {
  Leave m;
  m.epoch = r.get<uint32_t>();
  m.order = r.get<uint32_t>();
  return m;
}
Abort get_abort(Reader& r) {
  Abort m;
  m.epoch = r.get<uint32_t>();
  m.status = get_error(r);
  return m;
}
Part get_part(Reader& r) {
  Part m;
  m.rank = r.get<int32_t>();
  m.blob = get_bytes(r);
  return m;
}
Done get_done(Reader& r) {
  Done m;
  m.request = r.get<uint32_t>();
  m.epoch = r.get<uint32_t>();
  return m;
}
Failed get_failed(Reader& r) {
  Failed m;
  m.request = r.get<uint32_t>();
  m.status = get_error(r);
  return m;
}
News get_news(Reader& r) {
  News m;
  m.epoch = r.get<uint32_t>();
  m.cause.rank = r.get<int32_t>();
  m.cause.status = get_error(r);
  return m;
}

Message get_message(Reader& r) {
  switch (r.get_enum(uint8_t{std::variant_size_v<Message> - 1})) {
    case 0:
      return get_open(r);
    case 1:
      return get_exchange(r);
    case 2:
      return get_failure(r);
    case 3:
      return get_leave(r);
    case 4:
      return get_abort(r);
    case 5:
      return get_part(r);
    case 6:
      return get_done(r);
    case 7:
      return get_failed(r);
    default:
      return get_news(r);
  }
}

}  // namespace

WireFrame encode(const Message& message) {
  Writer writer;
  writer.put(static_cast<uint8_t>(message.index()));
  std::visit([&](const auto& m) { put(writer, m); }, message);
  return make_wire_frame(writer.bytes());
}

Result<Message> decode(ByteSpan frame) {
  Reader reader(frame);
  Message message = get_message(reader);
  RONDE_TRY(reader.finish("frame of the store"));
  return message;
}

}  // namespace ronde::member::store_wire
