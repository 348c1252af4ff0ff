// SPDX-License-Identifier: Apache-2.0
#include "launch/output_writer.h"

#include <utility>

#include "os/pipe.h"
#include "os/thread.h"

namespace ronde::launch {

Result<std::unique_ptr<OutputWriter>> OutputWriter::start(std::vector<Target> targets) {
  RONDE_ASSIGN(auto bell, os::Doorbell::create());
  auto shared = std::make_shared<Shared>(std::move(bell));
  shared->targets = std::move(targets);
  std::unique_ptr<OutputWriter> writer(new OutputWriter(shared));
  writer->thread_ = std::thread([shared] { work(shared); });
  return writer;
}

OutputWriter::~OutputWriter() {
  bool blocked = false;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stop = true;
    shared_->blocks.clear();
    blocked = shared_->writing;
  }
  shared_->wake.notify_one();
  if (blocked) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

void OutputWriter::write(size_t target, std::string bytes, size_t credit) {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->blocks.push_back({target, std::move(bytes), credit});
  }
  shared_->wake.notify_one();
}

OutputWriter::Progress OutputWriter::take() {
  shared_->bell.drain();
  const std::lock_guard lock(shared_->mutex);
  shared_->progress.idle = shared_->blocks.empty() && !shared_->writing;
  return std::exchange(shared_->progress, {});
}

void OutputWriter::work(const std::shared_ptr<Shared>& shared) {
  os::name_this_thread("ronde-output");
  std::vector<bool> broken(shared->targets.size());
  std::unique_lock lock(shared->mutex);
  for (;;) {
    shared->wake.wait(lock, [&] { return shared->stop || !shared->blocks.empty(); });
    if (shared->stop) return;
    const Block block = std::move(shared->blocks.front());
    shared->blocks.pop_front();
    shared->writing = true;
    lock.unlock();
    const Target& target = shared->targets[block.target];
    const Status status = broken[block.target] ? Status() : os::write_blocking(target.fd, block.bytes);
    lock.lock();
    shared->writing = false;
    shared->progress.credit += block.credit;
    if (!status.ok()) {
      broken[block.target] = true;
      shared->progress.failures.push_back(
          {block.target, cat(target.name, ": ", status.message()), status.code() == Code::PeerLost});
    }
    shared->bell.ring();
  }
}

}  // namespace ronde::launch
