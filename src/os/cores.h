// SPDX-License-Identifier: Apache-2.0
// How much of the machine this process may use.
#pragma once

namespace ronde::os {

// Cores by affinity and by the cgroup's CPU quota, at least 1.
int usable_cores();
// OMP_NUM_THREADS of this process; 1 if unset or no number (the launcher sets it).
int omp_threads();
// Gives the rest of the time slice away, or tells the core that this is a spin loop.
void yield();
void pause();

}  // namespace ronde::os
