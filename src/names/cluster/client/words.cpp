#include "names/cluster/client/words.hpp"

#include <sys/stat.h>

#include <string>

#include "base/boot_id.hpp"
#include "base/fnv.hpp"
#include "lockflight/domain.hpp"
#include "names/cluster/core/acquire.hpp"
#include "names/life/machine_clock.hpp"

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

std::uint64_t origin_of(const domain_file& file) {
  std::string text = boot_id();
  struct stat s {};
  // A copy on another file system may have the same inode number.
  if (stat(file.place().path.c_str(), &s) == 0)
    text += " " + std::to_string(s.st_dev) + " " + std::to_string(s.st_ino);
  return fnv1a(text) | 1;
}

void require_original(const domain_file& file) {
  const std::uint64_t made_as = file.cluster().origin;
  if (made_as == 0 || made_as == origin_of(file)) return;
  throw domain_error(domain_error::reason::damaged,
                     file.place().path +
                         ": is a copy of a domain file of a cluster, or was made before this "
                         "machine was started: it has what another host owns (remove it; the next "
                         "agent makes another one, and is a new member)");
}

// Any name's words have the header.
cluster::instant loss_time(const domain_file& file, cluster::incarnation_number incarnation) {
  return cluster::loss_time(words_in_file(file, first_line), incarnation);
}

}  // namespace lockflight::detail
