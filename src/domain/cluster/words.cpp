#include "domain/cluster/words.hpp"

#include <string>

#include "domain/membership/machine_clock.hpp"
#include "lockflight/domain.hpp"

namespace lockflight::detail {

bool reads_other_clock(const domain_file& file) {
  const std::uint64_t of_agent = file.cluster().time_space;
  const std::uint64_t ours = of_agent == 0 ? 0 : time_space();
  return ours != 0 && ours != of_agent;
}

void require_agents_clock(const domain_file& file) {
  if (!reads_other_clock(file)) return;
  const auto text = [](std::uint64_t space) { return "time:[" + std::to_string(space) + "]"; };
  throw domain_error(
      domain_error::reason::system,
      "domain " + file.name() + ": the agent of this host reads its clock in time namespace " +
          text(file.cluster().time_space) + ", and this process reads its own in " +
          text(time_space()) +
          ", so a deadline of the agent means nothing here (accepted: both in one time namespace; "
          "'nsenter --time --target PID-OF-THE-AGENT' starts a program in that of the agent)");
}

}  // namespace lockflight::detail
