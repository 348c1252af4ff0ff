// SPDX-License-Identifier: Apache-2.0
#include "launch/plan.h"

#include <algorithm>
#include <numeric>

namespace ronde::launch {
namespace {

bool is_variable(std::string_view entry, std::string_view name) {
  return entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=';
}

// How the hosts are filled: ranks per host.
Result<std::vector<int>> place(int np, const std::vector<HostSlots>& hosts) {
  const int slots =
      std::accumulate(hosts.begin(), hosts.end(), 0, [](int sum, const auto& host) { return sum + host.slots; });
  if (np > slots) return Status(Code::InvalidArgument, cat("-np ", np, ": the hosts have only ", slots, " slots"));
  std::vector<int> counts;
  for (const auto& host : hosts) {
    counts.push_back(std::min(host.slots, np));
    np -= counts.back();
  }
  return counts;
}

Additions rank_additions(const RankPlan& rank, int size) {
  const std::string number = cat(rank.rank), all = cat(size), local = cat(rank.local_rank),
                    locals = cat(rank.local_size);
  return {{"RONDE_RANK", number}, {"RONDE_SIZE", all}, {"RONDE_LOCAL_RANK", local}, {"RONDE_LOCAL_SIZE", locals},
          {"RANK", number},       {"WORLD_SIZE", all}, {"LOCAL_RANK", local},       {"LOCAL_WORLD_SIZE", locals}};
}

Environment job_environment(const Environment& base, const JobFacts& facts) {
  const Additions additions = {{"RONDE_STORE", facts.store},       {"RONDE_KEY_FILE", cat(facts.run_dir, "/key")},
                               {"RONDE_JOB", facts.job},           {"RONDE_RUN_DIR", facts.run_dir},
                               {"MASTER_ADDR", facts.master_addr}, {"MASTER_PORT", cat(facts.master_port)}};
  return with_additions(base, additions);
}

// "NAME=value", or "" if somebody has set it.
std::string set_unless_given(Environment& env, const Additions& given, std::string_view name,
                             const std::string& value) {
  const auto is_it = [&](const auto& entry) { return entry.first == name; };
  if (find_variable(env, name) != nullptr || std::any_of(given.begin(), given.end(), is_it)) return "";
  set_variable(env, name, value);
  return cat(name, "=", value);
}

// One thread per core and not one per core and rank, which would be slower than either alone; and lines of output at
// once and not when a block is full. Gives what is to be said of it.
std::string set_defaults(Environment& env, const HostSlots& host, int ranks, const Additions& given) {
  std::string threads = set_unless_given(env, given, "OMP_NUM_THREADS", cat(std::max(1, host.cores / ranks)));
  const std::string unbuffered = set_unless_given(env, given, "PYTHONUNBUFFERED", "1");
  if (!threads.empty()) {
    threads +=
        cat(" (", host.cores, host.cores == 1 ? " core, " : " cores, ", ranks, ranks == 1 ? " rank)" : " ranks)");
  }
  if (threads.empty() && unbuffered.empty()) return "";
  const bool both = !threads.empty() && !unbuffered.empty();
  return cat(threads, both ? " and " : "", unbuffered, " for each rank; set ", both ? "them" : "it", " to override");
}

// Ranks of other hosts with the same local rank, in host order.
void set_cross(StartPlan& plan) {
  for (auto& host : plan.hosts) {
    for (auto& rank : host.ranks) {
      const auto has_it = [&](const HostPlan& other) { return static_cast<int>(other.ranks.size()) > rank.local_rank; };
      const auto here = plan.hosts.begin() + (&host - plan.hosts.data());
      rank.cross_size = static_cast<int>(std::count_if(plan.hosts.begin(), plan.hosts.end(), has_it));
      rank.cross_rank = static_cast<int>(std::count_if(plan.hosts.begin(), here, has_it));
    }
  }
}

}  // namespace

Result<StartPlan> make_plan(const RunOptions& options, const std::vector<HostSlots>& hosts, const Environment& base,
                            const JobFacts& facts) {
  RONDE_ASSIGN(const auto counts, place(options.np, hosts));
  StartPlan plan;
  int next = 0;
  for (size_t h = 0; h < hosts.size(); ++h) {
    if (counts[h] == 0) continue;
    HostPlan host{.name = hosts[h].name, .env = job_environment(base, facts), .ranks = {}};
    const std::string notice = set_defaults(host.env, hosts[h], counts[h], options.env);
    if (!notice.empty() && std::find(plan.notices.begin(), plan.notices.end(), notice) == plan.notices.end()) {
      plan.notices.push_back(notice);
    }
    for (int local = 0; local < counts[h]; ++local) {
      RankPlan rank{.rank = next++, .local_rank = local, .local_size = counts[h], .env = {}};
      rank.env = rank_additions(rank, options.np);
      rank.env.insert(rank.env.end(), options.env.begin(), options.env.end());
      host.ranks.push_back(std::move(rank));
      plan.hosts_by_rank.push_back(host.name);
    }
    plan.hosts.push_back(std::move(host));
  }
  set_cross(plan);
  return plan;
}

const char* find_variable(const Environment& env, std::string_view name) {
  const auto found = std::find_if(env.begin(), env.end(), [&](const auto& entry) { return is_variable(entry, name); });
  return found == env.end() ? nullptr : found->c_str() + name.size() + 1;
}

void set_variable(Environment& env, std::string_view name, std::string_view value) {
  unset_variable(env, name);
  env.push_back(cat(name, "=", value));
}

void unset_variable(Environment& env, std::string_view name) {
  std::erase_if(env, [&](const auto& entry) { return is_variable(entry, name); });
}

Environment with_additions(Environment env, const Additions& additions) {
  for (const auto& [name, value] : additions) set_variable(env, name, value);
  return env;
}

Additions name_values(const Environment& env) {
  Additions out;
  for (const auto& entry : env) {
    const auto equals = entry.find('=');
    if (equals != entry.npos) out.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return out;
}

std::string job_marker(std::string_view job) {
  return cat("RONDE_JOB=", job);
}

}  // namespace ronde::launch
