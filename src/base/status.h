// SPDX-License-Identifier: Apache-2.0
// Status and Result: how an expected failure travels. Bugs do not travel: they end in RONDE_CHECK (base/check.h).
//
// A message says who, what, which value, and what to do. Context is put in front while a Status is passed up.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/text.h"

namespace ronde {

// The values are part of the C ABI (ronde_code) and of the wire.
enum class Code : uint8_t {
  Ok = 0,
  InvalidArgument = 1,    // the caller's fault, known on this rank alone
  NotInitialized = 2,     // no engine, engine shut down, or a child of fork
  Mismatch = 3,           // ranks asked for different things under one name
  PeerLost = 4,           // a process of the job is gone
  Timeout = 5,            // a deadline passed
  Aborted = 6,            // the job was given up for a reason found elsewhere
  Unsupported = 7,        // nothing here can do this
  ResourceExhausted = 8,  // memory, descriptors, space
  System = 9,             // a call of the operating system failed
  Internal = 10,          // a protocol broke: a bug, or bytes that no peer of ours sent
  RankLeft = 11,          // the operation needs a rank that has shut down
  Interrupted = 12,       // a wait was broken off; the operation goes on
};

// "MISMATCH", "PEER_LOST", ...
std::string_view code_name(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : state_(std::make_shared<State>(State{code, std::move(message), file, line})) {
    RONDE_CHECK(code != Code::Ok, "an error needs a code");
  }

  bool ok() const { return state_ == nullptr; }
  Code code() const { return ok() ? Code::Ok : state_->code; }
  const std::string& message() const;
  // The same error with `context` and ": " in front of its message.
  Status with_context(std::string_view context) const;
  // "PEER_LOST: message [file:line]"; for logs.
  std::string to_string() const;

 private:
  struct State {
    Code code;
    std::string message;
    const char* file;
    int line;
  };
  std::shared_ptr<const State> state_;
};

// "errno text" of the last failed system call, as a Status: "open /x: No such file or directory".
Status system_error(std::string_view what, int error_number, const char* file = __builtin_FILE(),
                    int line = __builtin_LINE());

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    RONDE_CHECK(!status_.ok(), "a Result without a value needs an error");
  }

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  T& value() & {
    RONDE_CHECK(ok(), status_.message().c_str());
    return *value_;
  }
  const T& value() const& {
    RONDE_CHECK(ok(), status_.message().c_str());
    return *value_;
  }
  T&& value() && {
    RONDE_CHECK(ok(), status_.message().c_str());
    return std::move(*value_);
  }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace ronde

#define RONDE_CONCAT_INNER(a, b) a##b
#define RONDE_CONCAT(a, b) RONDE_CONCAT_INNER(a, b)

// Returns from the function with the error, if there is one.
#define RONDE_TRY(expression)                                                                 \
  do {                                                                                        \
    if (::ronde::Status ronde_status = (expression); !ronde_status.ok()) return ronde_status; \
  } while (false)

// RONDE_ASSIGN(auto fd, open_it()): the value, or return with the error.
#define RONDE_ASSIGN(target, expression) RONDE_ASSIGN_AS(RONDE_CONCAT(ronde_result_, __LINE__), target, expression)
#define RONDE_ASSIGN_AS(result, target, expression) \
  auto result = (expression);                       \
  if (!result.ok()) return result.status();         \
  target = std::move(result).value()
