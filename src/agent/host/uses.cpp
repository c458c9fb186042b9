#include "agent/host/uses.hpp"

#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/clock.hpp"

namespace lockflight::cluster {

std::vector<domain_use_elsewhere> uses_here(const domain& in, const std::string& host,
                                            const std::string& name, std::size_t most) {
  std::map<int, std::string> commands;
  for (const domain_slot& each : in.participants()) commands[each.slot] = each.command;
  const std::uint64_t now = now_ns();
  std::vector<domain_use_elsewhere> all;
  for (const domain_lock& lock : in.locks()) {
    if (!name.empty() && lock.name != name) continue;
    for (const domain_lock_use& use : lock.uses) {
      if (use.dead && use.what == domain_lock_use::how::waits) continue;
      if (!use.has_foreign_pid && use.pid == getpid())
        continue;  // the agent, which waits for another host
      const std::uint64_t since = use.since_ns == 0 || use.since_ns > now ? now : use.since_ns;
      all.push_back({host, lock.name, use.what, use.guarded_pid != 0 ? use.guarded_pid : use.pid,
                     use.dead, use.stopped, (now - since) / 1'000'000, commands[use.slot],
                     use.unit});
    }
  }
  std::ranges::stable_sort(all, {}, [](const domain_use_elsewhere& each) {
    return each.what == domain_lock_use::how::waits;
  });
  if (all.size() > most) all.resize(most);
  return all;
}

}  // namespace lockflight::cluster
