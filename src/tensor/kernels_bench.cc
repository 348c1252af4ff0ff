// SPDX-License-Identifier: Apache-2.0
// Bytes per second of the kernels, with memcpy of the same size in the same run to compare with. "bytes" are those of
// one operand: a combine of n sources moves n + 1 times as many. In cache (64 KiB) and out of it (64 MiB), for each
// kernel set.
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "base/text.h"
#include "tensor/kernels.h"

namespace ronde {
namespace {

using Buffers = std::vector<std::vector<char>>;

Buffers buffers_of(size_t number, size_t bytes) {
  // 0x3c3c... is a small number in every dtype.
  return Buffers(number, std::vector<char>(bytes, 0x3c));
}

void count_bytes(benchmark::State& state, size_t bytes) {
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * bytes));
}

void bench_memcpy(benchmark::State& state) {
  const auto bytes = static_cast<size_t>(state.range(0));
  auto buffers = buffers_of(2, bytes);
  for (auto _ : state) {
    std::memcpy(buffers[0].data(), buffers[1].data(), bytes);
    benchmark::ClobberMemory();
  }
  count_bytes(state, bytes);
}

void bench_combine(benchmark::State& state, const char* set, DType dtype, Combine op, size_t sources, Scale scale) {
  use_kernel_set(set);
  const auto bytes = static_cast<size_t>(state.range(0));
  auto buffers = buffers_of(sources + 1, bytes);
  std::vector<const void*> srcs;
  for (size_t k = 1; k <= sources; ++k) srcs.push_back(buffers[k].data());
  for (auto _ : state) {
    combine(op, dtype, buffers[0].data(), srcs, bytes / size_of(dtype), scale);
    benchmark::ClobberMemory();
  }
  count_bytes(state, bytes);
}

void bench_convert(benchmark::State& state, const char* set, DType out, DType in) {
  use_kernel_set(set);
  const auto count = static_cast<size_t>(state.range(0)) / 4;
  auto buffers = buffers_of(2, count * 4);
  for (auto _ : state) {
    convert(out, buffers[0].data(), in, buffers[1].data(), count);
    benchmark::ClobberMemory();
  }
  count_bytes(state, count * 4);
}

template <class... Args>
void add(const std::string& name, Args... args) {
  benchmark::RegisterBenchmark(name.c_str(), args...)->Arg(64 << 10)->Arg(64 << 20);
}

void add_set(const char* set) {
  for (const DTypeRow& each : kDTypes) {
    add(cat(set, "/sum of 2/", each.name), bench_combine, set, each.dtype, Combine::Sum, 2, Scale{});
    add(cat(set, "/average of 4/", each.name), bench_combine, set, each.dtype, Combine::Sum, 4, Scale{1.0, 4});
  }
  add(cat(set, "/min of 2/float32"), bench_combine, set, DType::F32, Combine::Min, 2, Scale{});
  add(cat(set, "/scaled sum of 2/int32"), bench_combine, set, DType::I32, Combine::Sum, 2, Scale{0.5, 1});
  for (const DType half : {DType::F16, DType::BF16}) {
    add(cat(set, "/to ", name_of(half)), bench_convert, set, half, DType::F32);
    add(cat(set, "/from ", name_of(half)), bench_convert, set, DType::F32, half);
  }
}

const bool kRegistered = [] {
  add("memcpy", bench_memcpy);
  for (const char* set : kernel_sets()) add_set(set);
  return true;
}();

}  // namespace
}  // namespace ronde
