// SPDX-License-Identifier: Apache-2.0
// Pipes and what else a process hands to its children, and writing to descriptors that belong to somebody else.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "os/fd.h"

namespace ronde::os {

struct Pipe {
  Fd read;
  Fd write;
};
// Both ends block and are close-on-exec.
Result<Pipe> make_pipe();
// Two connected stream sockets, non-blocking and close-on-exec.
Result<std::pair<Fd, Fd>> make_socket_pair();
// Changes the open file itself, so only for what this process made.
Status set_nonblocking(const Fd& fd);
void set_close_on_exec(int fd, bool close);
// Another descriptor of the same open file, above 2 and close-on-exec.
Result<Fd> duplicate(int fd);
Result<Fd> open_null();
// Writes from the beginning of a new or emptied file.
Result<Fd> create_file(const std::string& path);

// At most into.size() bytes of a non-blocking pipe.
struct PipeRead {
  size_t bytes = 0;
  bool ended = false;  // no writer is left, or the pipe is broken
};
PipeRead read_pipe(const Fd& fd, std::span<char> into);
// Waits as long as it takes. For descriptors that were given to this process: their file may be shared, so it cannot be
// made non-blocking. The caller has SIGPIPE blocked or ignored. PeerLost: nobody reads any more.
Status write_blocking(int fd, std::string_view bytes);
// A few words for whoever reads; nothing if there is no room for them now, or nobody reads.
void write_if_room(int fd, std::string_view bytes);

// Descriptors 0 to 2 that are closed become /dev/null, so that nothing else takes their numbers.
void fill_standard_streams();

bool is_terminal(int fd);
// Whether a program takes the keys of this terminal one by one, as the prompt of an interactive session does.
bool edits_line(int fd);
bool is_stream_socket(int fd);
// Whether both write to the same terminal, file or pipe.
bool is_same_file(int a, int b);

}  // namespace ronde::os
