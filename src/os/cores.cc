// SPDX-License-Identifier: Apache-2.0
#include "os/cores.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>

namespace ronde::os {
namespace {

int affinity_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

// Cores' worth of quota of this process's cgroup; 0 if unlimited or unknown. Version 2 first, then version 1.
double cgroup_quota() {
  std::string quota;
  double period = 0;
  if (std::ifstream in("/sys/fs/cgroup/cpu.max"); in >> quota >> period) {
    return quota == "max" || period <= 0 ? 0 : std::atof(quota.c_str()) / period;
  }
  double limit = -1;
  std::ifstream quota_in("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream period_in("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  if (quota_in >> limit && period_in >> period && limit > 0 && period > 0) return limit / period;
  return 0;
}

}  // namespace

int usable_cores() {
  const int cores = affinity_cores();
  const double quota = cgroup_quota();
  return quota > 0 ? std::clamp(static_cast<int>(std::ceil(quota)), 1, cores) : cores;
}

int omp_threads() {
  const char* text = std::getenv("OMP_NUM_THREADS");
  const int threads = text != nullptr ? std::atoi(text) : 0;
  return threads > 0 ? threads : 1;
}

void yield() {
  sched_yield();
}

void pause() {
  __builtin_ia32_pause();
}

}  // namespace ronde::os
