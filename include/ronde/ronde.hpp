// SPDX-License-Identifier: Apache-2.0
// Ronde for C++ programs: a header over the C interface (ronde.h), with exceptions and values.
//
//   ronde::Session session;                       // from the environment that `ronde run` sets; alone: rank 0 of 1
//   std::vector<float> x(1000, session.rank());
//   session.allreduce(std::span(x), "x").wait();  // x holds the sum over all ranks
#pragma once

#include <chrono>
#include <complex>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ronde/ronde.h"

namespace ronde {

// What any call throws. code() is a ronde_code; MISMATCH, PEER_LOST, TIMEOUT and the like come out of wait().
class Error : public std::runtime_error {
 public:
  Error(int code, const std::string& text) : std::runtime_error(text), code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};

namespace session_detail {

inline void check(int code) {
  if (code != RONDE_OK) throw Error(code, ronde_last_error());
}

template <class T>
constexpr int32_t kDtype = -1;
template <>
inline constexpr int32_t kDtype<float> = RONDE_F32;
template <>
inline constexpr int32_t kDtype<double> = RONDE_F64;
template <>
inline constexpr int32_t kDtype<int32_t> = RONDE_I32;
template <>
inline constexpr int32_t kDtype<int64_t> = RONDE_I64;
template <>
inline constexpr int32_t kDtype<uint8_t> = RONDE_U8;
template <>
inline constexpr int32_t kDtype<bool> = RONDE_BOOL;
template <>
inline constexpr int32_t kDtype<int8_t> = RONDE_I8;
template <>
inline constexpr int32_t kDtype<int16_t> = RONDE_I16;
template <>
inline constexpr int32_t kDtype<uint16_t> = RONDE_U16;
template <>
inline constexpr int32_t kDtype<std::complex<float>> = RONDE_C64;
template <>
inline constexpr int32_t kDtype<std::complex<double>> = RONDE_C128;

}  // namespace session_detail

// An operation under way. The memory it was given must live until wait() has returned.
class Pending {
 public:
  Pending(ronde_engine* engine, int64_t handle) : engine_(engine), handle_(handle) {}

  // Throws the operation's error, or Error with RONDE_INTERRUPTED if `limit` passed first; then it may be waited for
  // again.
  void wait(std::chrono::duration<double> limit = std::chrono::duration<double>(-1)) {
    session_detail::check(ronde_wait(engine_, handle_, limit.count()));
  }
  bool done() const {
    const int state = ronde_poll(engine_, handle_);
    if (state < 0) session_detail::check(RONDE_INVALID_ARGUMENT);
    return state == 1;
  }
  int64_t handle() const { return handle_; }

 private:
  ronde_engine* engine_;
  int64_t handle_;
};

// This process as a rank of its job, from construction to destruction. T is float, double, a signed integer,
// uint8_t, uint16_t, bool, std::complex<float> or std::complex<double>.
class Session {
 public:
  Session() {
    session_detail::check(ronde_init(&engine_));
    topology_.struct_size = sizeof topology_;
    session_detail::check(ronde_get_topology(engine_, &topology_));
  }
  ~Session() { ronde_shutdown(engine_); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int rank() const { return topology_.rank; }
  int size() const { return topology_.size; }
  int local_rank() const { return topology_.local_rank; }
  int local_size() const { return topology_.local_size; }

  // In place. All ranks give the same number of elements. Unnamed operations are matched by their order.
  template <class T>
  Pending allreduce(std::span<T> data, const std::string& name = {}, ronde_reduce_op op = RONDE_SUM) {
    return submit<T>(RONDE_ALLREDUCE, data.data(), data.data(), data.size(), name, op, 0);
  }
  template <class T>
  Pending broadcast(std::span<T> data, int root, const std::string& name = {}) {
    return submit<T>(RONDE_BROADCAST, data.data(), data.data(), data.size(), name, RONDE_SUM, root);
  }
  Pending barrier() { return submit<uint8_t>(RONDE_BARRIER, nullptr, nullptr, 0, {}, RONDE_SUM, 0); }
  // The elements of all ranks, one rank after another; each may give another number. Waits.
  template <class T>
  std::vector<T> allgather(std::span<const T> data, const std::string& name = {}) {
    return output_of<T>(submit<T>(RONDE_ALLGATHER, data.data(), nullptr, data.size(), name, RONDE_SUM, 0));
  }
  // This rank's part of the reduction; all ranks give the same number of elements. Waits.
  template <class T>
  std::vector<T> reducescatter(std::span<const T> data, const std::string& name = {}, ronde_reduce_op op = RONDE_SUM) {
    return output_of<T>(submit<T>(RONDE_REDUCESCATTER, data.data(), nullptr, data.size(), name, op, 0));
  }
  // The elements that all ranks have for this one, one rank after another. splits: how many are for each rank. Waits.
  template <class T>
  std::vector<T> alltoall(std::span<const T> data, std::span<const int64_t> splits, const std::string& name = {}) {
    return output_of<T>(submit<T>(RONDE_ALLTOALL, data.data(), nullptr, data.size(), name, RONDE_SUM, 0, splits));
  }

  ronde_counters counters() const {
    ronde_counters out{};
    out.struct_size = sizeof out;
    session_detail::check(ronde_get_counters(engine_, &out));
    return out;
  }
  ronde_engine* engine() { return engine_; }

 private:
  template <class T>
  Pending submit(ronde_op kind, const void* in, void* out, size_t count, const std::string& name, ronde_reduce_op op,
                 int root, std::span<const int64_t> splits = {}) {
    static_assert(session_detail::kDtype<T> >= 0, "this element type is not supported");
    const int64_t dims[] = {static_cast<int64_t>(count)};
    ronde_tensor tensor{};
    tensor.struct_size = sizeof tensor;
    tensor.name = name.c_str();
    tensor.op = kind;
    tensor.dtype = session_detail::kDtype<T>;
    tensor.ndim = kind == RONDE_BARRIER ? 0 : 1;
    tensor.dims = dims;
    tensor.input = in;
    tensor.output = out;
    tensor.reduce_op = op;
    tensor.root = root;
    tensor.prescale = 1.0;
    tensor.postscale = 1.0;
    tensor.splits = splits.data();
    tensor.split_count = static_cast<int32_t>(splits.size());
    int64_t handle = 0;
    session_detail::check(ronde_submit(engine_, &tensor, 1, 0, &handle));
    return Pending(engine_, handle);
  }

  // What the engine has allocated for it.
  template <class T>
  std::vector<T> output_of(Pending pending) {
    pending.wait();
    ronde_output output{};
    output.struct_size = sizeof output;
    session_detail::check(ronde_take_output(engine_, pending.handle(), &output));
    const std::unique_ptr<void, void (*)(void*)> owner(output.data, ronde_free);
    const auto* first = static_cast<const T*>(output.data);
    return std::vector<T>(first, first + output.bytes / static_cast<int64_t>(sizeof(T)));
  }

  ronde_engine* engine_ = nullptr;
  ronde_topology topology_{};
};

}  // namespace ronde
