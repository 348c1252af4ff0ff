// SPDX-License-Identifier: Apache-2.0
#include "launch/job_output.h"

#include <utility>

#include "os/pipe.h"
#include "os/private_folder.h"

namespace ronde::launch {
namespace {

Status open_files(const RunOptions& options, JobOutput::Streams& out) {
  RONDE_TRY(os::make_folder(options.output_dir));
  for (int rank = 0; rank < options.np; ++rank) {
    for (const char* stream : {"stdout", "stderr"}) {
      const std::string path = cat(options.output_dir, "/rank.", rank, ".", stream);
      RONDE_ASSIGN(auto file, os::create_file(path));
      out.targets.push_back({file.get(), path});
      out.files.push_back(std::move(file));
    }
  }
  return {};
}

}  // namespace

Result<JobOutput::Streams> JobOutput::open(const RunOptions& options) {
  Streams out;
  out.options.ranks = options.np;
  out.options.style = options.prefix ? Pump::Style::Prefixed : Pump::Style::Plain;
  out.options.one_console = os::is_same_file(1, 2);
  out.targets = {{1, "stdout"}, {2, "stderr"}};
  if (!options.output_dir.empty()) {
    out.options.style = Pump::Style::Files;
    RONDE_TRY(open_files(options, out).with_context(cat("--output-dir ", options.output_dir)));
  }
  return out;
}

Result<std::unique_ptr<JobOutput>> JobOutput::start(Streams streams) {
  RONDE_ASSIGN(auto writer, OutputWriter::start(streams.targets));
  return std::unique_ptr<JobOutput>(new JobOutput(std::move(streams), std::move(writer)));
}

JobOutput::JobOutput(Streams streams, std::unique_ptr<OutputWriter> writer)
    : files_(std::move(streams.files)),
      writer_(std::move(writer)),
      pump_(streams.options, [this](size_t target, std::string bytes, size_t credit) {
        writer_->write(target, std::move(bytes), credit);
      }) {}

void JobOutput::repeat_last_lines(int rank) {
  const auto lines = pump_.last_lines(rank);
  if (lines.empty()) return;
  say(cat("ronde: the last lines of rank ", rank, ":"));
  for (const auto& line : lines) say(cat("  ", line));
}

JobOutput::Progress JobOutput::take_progress() {
  auto progress = writer_->take();
  Progress out{.credit = progress.credit, .idle = progress.idle};
  for (const auto& failure : progress.failures) {
    out.idle = false;
    // Whoever closes a pipe wants no more of it.
    if (failure.no_reader && failure.target <= 1) {
      out.stdout_closed = out.stdout_closed || failure.target == 0;
      continue;
    }
    out.lost = true;
    say(cat("ronde: output is lost: ", failure.text, "; the job goes on, but its status will not be 0"));
  }
  return out;
}

}  // namespace ronde::launch
