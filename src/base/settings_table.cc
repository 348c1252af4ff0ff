// SPDX-License-Identifier: Apache-2.0
#include "base/settings_table.h"

#include <array>

namespace ronde {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kKiB = 1 << 10;
constexpr size_t kMiB = 1 << 20;
constexpr size_t kGiB = 1 << 30;
constexpr Duration kDay = std::chrono::hours(24);

constexpr std::array<std::string_view, 3> kTransports{"auto", "shm", "tcp"};
constexpr std::array<std::string_view, 6> kLogLevels{"trace", "debug", "info", "warning", "error", "off"};
constexpr std::array<std::string_view, 4> kSpins{"auto", "yield", "pause", "off"};

constexpr SettingRow kRows[] = {
    {"transport", ChoiceField<TransportChoice>{&Settings::transport, kTransports},
     "How the ranks of one host exchange data: `shm` is shared memory, `tcp` the loopback, `auto` shared memory where "
     "it "
     "works. Ranks of different hosts always use TCP."},
    {"log_level", ChoiceField<LogLevel>{&Settings::log_level, kLogLevels},
     "The least important lines that are still written to stderr."},
    {"init_timeout", DurationField{&Settings::init_timeout, seconds(1), milliseconds(100), kDay},
     "How long `init` waits for the other ranks."},
    {"collective_timeout", DurationField{&Settings::collective_timeout, seconds(1), milliseconds(100), 30 * kDay},
     "How long one operation may take, from its submission on this rank, before the job is given up."},
    {"batch_bytes", SizeField{&Settings::batch_bytes, 4 * kKiB, kGiB},
     "How many bytes of small tensors are put together into one batch."},
    {"hold", DurationField{&Settings::hold, milliseconds(1), Duration::zero(), seconds(10)},
     "How long tensors that are ready wait for others to share their batch."},
    {"slot_bytes", SizeField{&Settings::slot_bytes, 4 * kKiB, 64 * kMiB, 4096}, "Size of one buffer in shared memory."},
    {"slots", IntField{&Settings::slots, 2, 64}, "Number of these buffers for each rank."},
    {"segment_bytes", SizeField{&Settings::segment_bytes, 64, 64 * kMiB},
     "How many bytes a ring over TCP sends at once before it can add what has arrived."},
    {"spin", ChoiceField<Spin>{&Settings::spin, kSpins},
     "What a waiting thread does before it sleeps: `yield` gives the core to others, `pause` keeps it, `off` sleeps at "
     "once, `auto` decides by the number of cores and ranks."},
    {"heartbeat", DurationField{&Settings::heartbeat, seconds(1), milliseconds(10), seconds(60)},
     "How often a rank shows that it is alive."},
    {"listen", TextField{&Settings::listen, "an address or a host name of this machine"},
     "Where the other ranks reach this one. Empty: the loopback if all ranks are on this host, otherwise the address "
     "under which this host reaches the store."},
};

constexpr IdentityRow kIdentity[] = {
    {"RONDE_RANK", "Number of this process in the job, from 0."},
    {"RONDE_SIZE", "Number of processes in the job."},
    {"RONDE_LOCAL_RANK", "Number of this process among those on its host, from 0."},
    {"RONDE_LOCAL_SIZE", "Number of processes of the job on this host."},
    {"RONDE_STORE", "HOST:PORT of the job's store."},
    {"RONDE_KEY_FILE", "File with the job's key; only its owner may read it."},
    {"RONDE_BROKER", "Abstract socket from which the ranks of a host get their shared memory."},
    {"RONDE_JOB", "Mark by which the processes of a job are found."},
    {"RONDE_RUN_DIR", "Private folder of the job, removed at its end."},
};

}  // namespace

std::span<const SettingRow> setting_rows() {
  return kRows;
}
std::span<const IdentityRow> identity_rows() {
  return kIdentity;
}

}  // namespace ronde
