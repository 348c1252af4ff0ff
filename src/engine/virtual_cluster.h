// SPDX-License-Identifier: Apache-2.0
// Virtual cluster: the ranks of a job as engines of one process, for tests. The real bootstrap over a real store on
// loopback; the host's memory is heap memory mapped once for all, so that sanitizers see the real protocol.
#pragma once

#include <unistd.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "engine/bootstrap.h"
#include "engine/engine.h"

namespace ronde::engine {

// Time that a test moves: advance() wakes everybody who sleeps. Must outlive every engine, so make it static.
class ManualTime {
 public:
  TimeSource source() { return {&clock_, &sleeper_}; }
  void advance(Duration by) {
    clock_.advance(by);
    const std::lock_guard lock(mutex_);
    for (const os::Doorbell* bell : bells_) bell->ring();
  }

 private:
  // Each sleep has a bell of its own: an engine may have two threads asleep, and one would take the other's ring.
  struct ManualSleeper final : os::Sleeper {
    explicit ManualSleeper(ManualTime& t) : time(t) {}
    bool sleep(std::span<const int> fds, Time deadline) override {
      const os::Doorbell bell = os::Doorbell::create().value();
      std::vector<int> all(fds.begin(), fds.end());
      all.push_back(bell.fd());
      time.add(&bell);
      // Only now the look at the clock, so that no advance() between it and the sleep is missed.
      if (time.clock_.now() < deadline)
        os::sleep_until_readable(all, std::chrono::steady_clock::now() + std::chrono::minutes(2));
      time.remove(&bell);
      return time.clock_.now() < deadline;
    }
    ManualTime& time;
  };

  void add(const os::Doorbell* bell) {
    const std::lock_guard lock(mutex_);
    bells_.insert(bell);
  }
  void remove(const os::Doorbell* bell) {
    const std::lock_guard lock(mutex_);
    bells_.erase(bell);
  }

  ManualClock clock_;
  ManualSleeper sleeper_{*this};
  std::mutex mutex_;  // guards bells_
  std::set<const os::Doorbell*> bells_;
};

class VirtualCluster {
 public:
  struct Options {
    int size = 2;
    Settings settings;
    ManualTime* time = nullptr;  // real time if null
    std::string no_memory;       // why the host has no shared memory; empty: it has
  };

  explicit VirtualCluster(Options options) : options_(std::move(options)), key_(member::random_key()) {
    key_path_ = cat("/tmp/ronde-virtual-", getpid(), "-", reinterpret_cast<uintptr_t>(this));
    RONDE_CHECK(member::write_key_file(key_path_, key_).ok(), "the key file can be written");
    store_ = member::StoreServer::start({.key = key_, .size = options_.size}).value();
    open_epoch();
  }
  ~VirtualCluster() {
    leave_all();
    unlink(key_path_.c_str());
  }

  int size() const { return options_.size; }
  Engine& engine(Rank rank) { return *engines_[static_cast<size_t>(rank)]; }
  member::StoreServer& store() { return *store_; }

  // Runs body(rank, engine) in one thread per rank, and waits for all.
  void run(const std::function<void(Rank, Engine&)>& body) {
    std::vector<std::thread> threads;
    for (Rank r = 0; r < size(); ++r) threads.emplace_back([&, r] { body(r, engine(r)); });
    for (std::thread& thread : threads) thread.join();
  }

  // Returns when every engine is gone, also a rank 0 that serves on: clocks and sleepers are ours.
  void leave_all() {
    run([](Rank, Engine& e) { e.leave(e.clock().now() + std::chrono::seconds(10)); });
    const std::weak_ptr<Engine> server = engines_[0];
    engines_.clear();
    while (!server.expired()) {
      if (options_.time != nullptr) options_.time->advance(std::chrono::seconds(1));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  // All ranks arrive again.
  void open_epoch() {
    engines_.assign(static_cast<size_t>(size()), nullptr);
    std::vector<std::thread> threads;
    for (Rank r = 0; r < size(); ++r) {
      threads.emplace_back([this, r] { engines_[static_cast<size_t>(r)] = Engine::start(bootstrap_rank(r)); });
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  Parts bootstrap_rank(Rank rank) {
    const TimeSource time = options_.time != nullptr ? options_.time->source() : real_time();
    Result<Parts> parts = bootstrap({.identity = {.rank = rank,
                                                  .size = size(),
                                                  .local_rank = rank,
                                                  .local_size = size(),
                                                  .store = store_->address().to_string(),
                                                  .key_file = key_path_,
                                                  .broker = "virtual",
                                                  .launched = true},
                                     .settings = options_.settings,
                                     .time = time,
                                     .memory = [this](const std::string&, const member::Key&, const auto& request,
                                                      Time) { return memory_of(request); },
                                     .host_id = "virtual",
                                     .host_name = "virtual",
                                     .services = nullptr});
    RONDE_CHECK(parts.ok(), parts.status().message().c_str());
    return std::move(parts).value();
  }

  Result<std::shared_ptr<member::HostMemory>> memory_of(const member::HostMemoryRequest& request) {
    if (!options_.no_memory.empty()) return Status(Code::Unsupported, options_.no_memory);
    const std::lock_guard lock(mutex_);
    std::shared_ptr<member::HostMemory>& memory = memories_[request.epoch];
    if (!memory) {
      memory = std::make_shared<member::HostMemory>();
      memory->board = os::Region::create_heap(request.board_bytes).value();
      memory->arena = os::Region::create_heap(request.arena_bytes).value();
      for (int i = 0; i < request.local_size; ++i) {
        memory->bells.push_back({os::Doorbell::create().value(), os::Doorbell::create().value()});
      }
    }
    return memory;
  }

  // Outlives every engine: a rank 0 that serves on has no owner but its own thread.
  static TimeSource real_time() {
    static const SteadyClock clock;
    static os::SystemSleeper sleeper;
    return {&clock, &sleeper};
  }

  Options options_;
  member::Key key_;
  std::string key_path_;
  std::unique_ptr<member::StoreServer> store_;
  std::mutex mutex_;  // guards memories_
  std::map<uint32_t, std::shared_ptr<member::HostMemory>> memories_;
  std::vector<std::shared_ptr<Engine>> engines_;
};

}  // namespace ronde::engine
