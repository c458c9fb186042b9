#include "names/agent/host/uses.hpp"

#include <utility>

namespace lockflight::cluster {

std::vector<domain_lock> uses_here(const domain& in, const std::string& host,
                                   const std::string& name, std::size_t most) {
  const std::vector<domain_lock> locks = in.locks();
  std::vector<domain_lock> all;
  for (const bool waits : {false, true})
    for (const domain_lock& lock : locks) {
      if (!name.empty() && lock.name != name) continue;
      domain_lock told{.name = lock.name};
      for (lock_user user : lock.users) {
        if (user.waits() != waits || most == 0) continue;
        --most;
        user.host = host;
        told.users.push_back(std::move(user));
      }
      if (!told.users.empty()) all.push_back(std::move(told));
    }
  return all;
}

}  // namespace lockflight::cluster
