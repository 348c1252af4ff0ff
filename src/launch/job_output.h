// SPDX-License-Identifier: Apache-2.0
// The output of a job: pump, writer and files put together.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "launch/options.h"
#include "launch/output_writer.h"
#include "launch/pump.h"
#include "os/fd.h"

namespace ronde::launch {

class JobOutput {
 public:
  struct Streams {
    Pump::Options options;
    std::vector<os::Fd> files;
    std::vector<OutputWriter::Target> targets;
  };
  // Makes the folder and the files, if there are to be some. Starts nothing.
  static Result<Streams> open(const RunOptions& options);
  static Result<std::unique_ptr<JobOutput>> start(Streams streams);

  void write(int rank, int stream, std::string_view bytes, Time now) { pump_.output(rank, stream, bytes, now); }
  void close(int rank, int stream) { pump_.close(rank, stream); }
  void tick(Time now) { pump_.tick(now); }
  Time next_deadline() const { return pump_.next_deadline(); }
  // A line on stderr.
  void say(std::string_view line) { pump_.say(line); }
  void repeat_last_lines(int rank);

  int fd() const { return writer_->fd(); }
  struct Progress {
    size_t credit = 0;
    bool stdout_closed = false;  // by its reader
    bool lost = false;           // something could not be written
    bool idle = false;
  };
  // Says what could not be written, once for each target.
  Progress take_progress();

 private:
  JobOutput(Streams streams, std::unique_ptr<OutputWriter> writer);

  std::vector<os::Fd> files_;
  std::unique_ptr<OutputWriter> writer_;
  Pump pump_;
};

}  // namespace ronde::launch
