// SPDX-License-Identifier: Apache-2.0
// One rank as its agent sees it: the process, and the pipes of its output.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "launch/frames.h"
#include "os/event_set.h"
#include "os/pipe.h"
#include "os/process.h"

namespace ronde::launch {

// What the ranks of a host have in common when they are started.
struct RankLaunch {
  const StartOrder& order;
  Environment env;
  const os::Fd& errors;
  sigset_t mask{};
  uint64_t descriptor_limit = 0;
  os::Fd null{};
  os::Fd input{};  // the launcher's own streams
  os::Fd output{};
  os::Fd error{};

  // Those that the order names were inherited; from now on no rank gets them by accident.
  Status take_descriptors();
};

// Lifetime: `ended` outlives it.
class RankProcess {
 public:
  RankProcess(int rank, int local_rank, std::vector<int>* ended);

  Status start(const RankLaunch& launch, const RankPlan& plan, os::EventSet& events);
  int rank() const { return rank_; }
  int pid() const { return child_.pid; }
  bool alive() const { return child_.pidfd.valid(); }  // not reaped
  // Nothing happens once it was reaped.
  void signal(int number) const;
  std::optional<os::Exit> reap(os::EventSet& events);

  bool readable(int stream) const { return streams_[stream - 1].ready && streams_[stream - 1].fd.valid(); }
  bool readable() const { return readable(1) || readable(2); }
  os::PipeRead read(int stream, std::span<char> into);
  void close(int stream, os::EventSet& events);
  bool closed() const { return !streams_[0].fd.valid() && !streams_[1].fd.valid(); }
  // Takes both streams for readable.
  void look_again();

  int start_error = 0;  // errno, if the program could not be executed

 private:
  struct Stream final : os::EventSet::Source {
    void on_ready(bool readable, bool) override { ready = ready || readable; }
    os::Fd fd;
    bool ready = false;
  };
  struct Death final : os::EventSet::Source {
    void on_ready(bool readable, bool) override {
      if (readable) ended->push_back(local_rank);
    }
    int local_rank = 0;
    std::vector<int>* ended = nullptr;
  };

  Status open_streams(const RankLaunch& launch, os::Program& program, os::Pipe (&pipes)[2]);

  int rank_;
  bool own_group_ = true;
  os::Child child_;
  Death death_;
  Stream streams_[2];
};

}  // namespace ronde::launch
