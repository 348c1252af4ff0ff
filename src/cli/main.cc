// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "cli/command.h"
#include "os/pipe.h"

int main(int argc, char** argv) {
  ronde::os::fill_standard_streams();
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  return ronde::cli::dispatch(words);
}
