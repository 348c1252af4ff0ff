// SPDX-License-Identifier: Apache-2.0
#include "os/thread.h"

#include <pthread.h>

namespace ronde::os {

void name_this_thread(const char* name) {
  pthread_setname_np(pthread_self(), name);
}

}  // namespace ronde::os
