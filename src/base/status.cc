// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <cerrno>
#include <system_error>

namespace ronde {

std::string_view code_name(Code code) {
  switch (code) {
    case Code::Ok:
      return "OK";
    case Code::InvalidArgument:
      return "INVALID_ARGUMENT";
    case Code::NotInitialized:
      return "NOT_INITIALIZED";
    case Code::Mismatch:
      return "MISMATCH";
    case Code::PeerLost:
      return "PEER_LOST";
    case Code::Timeout:
      return "TIMEOUT";
    case Code::Aborted:
      return "ABORTED";
    case Code::Unsupported:
      return "UNSUPPORTED";
    case Code::ResourceExhausted:
      return "RESOURCE_EXHAUSTED";
    case Code::System:
      return "SYSTEM";
    case Code::Internal:
      return "INTERNAL";
    case Code::RankLeft:
      return "RANK_LEFT";
    case Code::Interrupted:
      return "INTERRUPTED";
  }
  return "UNKNOWN";
}

const std::string& Status::message() const {
  static const std::string kNone;
  return ok() ? kNone : state_->message;
}

Status Status::with_context(std::string_view context) const {
  if (ok()) return {};
  return Status(state_->code, cat(context, ": ", state_->message), state_->file, state_->line);
}

std::string Status::to_string() const {
  if (ok()) return "OK";
  return cat(code_name(state_->code), ": ", state_->message, " [", state_->file, ":", state_->line, "]");
}

Status system_error(std::string_view what, int error_number, const char* file, int line) {
  const bool exhausted = error_number == ENOMEM || error_number == ENOSPC || error_number == EMFILE ||
                         error_number == ENFILE || error_number == ENOBUFS;
  return Status(exhausted ? Code::ResourceExhausted : Code::System,
                cat(what, ": ", std::generic_category().message(error_number)), file, line);
}

}  // namespace ronde
