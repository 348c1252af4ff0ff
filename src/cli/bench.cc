// SPDX-License-Identifier: Apache-2.0
// ronde bench allreduce|latency: what the engine does on this machine, next to what memory allows. Outside of a job it
// starts itself under `ronde run`; each rank then measures, and rank 0 prints.
#include "cli/bench.h"

#include <charconv>
#include <cstdlib>

#include "cli/arguments.h"
#include "cli/say.h"
#include "launch/launcher.h"
#include "os/process.h"

namespace ronde::cli {
namespace {

const Usage kAllreduce{
    .command = "ronde bench allreduce",
    .line = "[-np N] [--sizes SIZES] [--repeats N]",
    .about =
        "Median time and bus bandwidth of an allreduce by size, with the time of as many simultaneous memcpy. Each "
        "result is "
        "checked.",
    .options = {{"--np", "N", "ranks (default 2)"},
                {"--sizes", "SIZES", "bytes, FROM:TO (times 4 each) or a list such as 8,64K,1M (default 8:256M)"},
                {"--repeats", "N", "least number of timings per size (default 11)"}}};
const Usage kLatency{.command = "ronde bench latency",
                     .line = "[-np N] [--busy] [--repeats N]",
                     .about = "Submit-to-done of an allreduce of 8 bytes under a known name. Each result is checked.",
                     .options = {{"--np", "N", "ranks (default 2)"},
                                 {"--busy", "", "with a thread beside each rank that computes"},
                                 {"--repeats", "N", "timings (default 20000)"}}};

int refuse(const Status& status) {
  launch::complain(cat("bench: ", status.message()));
  return kUsage;
}

Result<int> number_of(const Arguments& arguments, std::string_view option, int value_if_absent, int least) {
  const auto text = arguments.text(option);
  if (!text) return value_if_absent;
  int value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error == std::errc() && end == text->data() + text->size() && value >= least) return value;
  return Status(Code::InvalidArgument,
                cat(option == "--np" ? "-np" : option, " ", *text, ": expected a whole number of at least ", least));
}

// The same command again, as the ranks of a job.
int start_ranks(int ranks, Words words) {
  std::vector<std::string> line{"-np", cat(ranks), "--no-prefix", "--", os::own_program(), "bench"};
  line.insert(line.end(), words.begin(), words.end());
  return run_command(line);
}

Result<AllreduceBench> allreduce_bench(const Arguments& arguments) {
  const std::string sizes = arguments.text("--sizes").value_or("8:256M");
  AllreduceBench out;
  Result<std::vector<int64_t>> list = parse_sizes(sizes);
  if (!list.ok()) return list.status().with_context("--sizes");
  out.sizes = std::move(list).value();
  RONDE_ASSIGN(out.repeats, number_of(arguments, "--repeats", out.repeats, 3));
  return out;
}

Result<LatencyBench> latency_bench(const Arguments& arguments) {
  LatencyBench out{.busy = arguments.has("--busy")};
  RONDE_ASSIGN(out.repeats, number_of(arguments, "--repeats", out.repeats, 10));
  return out;
}

std::string usage_of_both() {
  return cat("Usage: ", kAllreduce.command, " ", kAllreduce.line, "\n       ", kLatency.command, " ", kLatency.line,
             "\n");
}

}  // namespace

int bench_command(Words words) {
  const std::string what = words.empty() ? "" : words[0];
  if (what != "allreduce" && what != "latency") {
    const bool asked = what == "--help" || what == "-h";
    (asked ? say : say_error)(usage_of_both());
    return asked ? 0 : kUsage;
  }
  const bool reduce = what == "allreduce";
  const auto arguments = parse_arguments(reduce ? kAllreduce : kLatency, words.subspan(1));
  if (!arguments.ok()) return refuse(arguments.status());
  if (!arguments->help().empty()) {
    say(arguments->help());
    return 0;
  }
  const Result<int> ranks = number_of(*arguments, "--np", 2, 1);
  if (!ranks.ok()) return refuse(ranks.status());
  const Result<AllreduceBench> allreduce = allreduce_bench(*arguments);
  if (reduce && !allreduce.ok()) return refuse(allreduce.status());
  const Result<LatencyBench> latency = latency_bench(*arguments);
  if (!reduce && !latency.ok()) return refuse(latency.status());
  if (std::getenv("RONDE_RANK") == nullptr) return start_ranks(*ranks, words);
  return reduce ? run_bench(*allreduce) : run_bench(*latency);
}

}  // namespace ronde::cli
