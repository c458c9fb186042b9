#include "names/locks/present_domain.hpp"

#include <algorithm>
#include <string>

#include "fabric/shm/pause.hpp"
#include "lockflight/domain.hpp"
#include "names/life/removal.hpp"

namespace lockflight::detail {
namespace {

std::shared_ptr<domain_file> open_file_of_same_name(const domain_file& former) {
  const domain_options as = former.options();
  try {
    return domain_file::open(former.name(), as, true);
  } catch (const domain_error& e) {
    // A cluster's domain is made by its agent, and none runs any more.
    if (e.why != domain_error::reason::missing) throw;
    former.throw_removed();
  }
}

}  // namespace

std::shared_ptr<domain_file> open_present_domain(const domain_file& former,
                                                 const time_limit& given) {
  auto there = open_file_of_same_name(former);
  // This process is another user's by now, or has another root: it is not the same domain.
  if (there->place().path != former.place().path) former.throw_removed();
  if (!there->is_current())
    return there;  // the domain has been removed since, and the caller asks again
  constexpr std::uint64_t ms = 1'000'000;
  const std::uint64_t at_most = shm::detail::ns_from_now(10'000 * ms);
  // An attempt waits, too, since a remover takes microseconds.
  const time_limit how_long{std::max(given.until_ns, shm::detail::ns_from_now(100 * ms)),
                            given.is_interrupted};
  while (is_removed(*there) && there->is_current()) {
    if (now_ns() > at_most)
      throw domain_error(domain_error::reason::system, "domain " + there->name() + ": process " +
                                                           std::to_string(remover_of(*there)) +
                                                           " is removing it and does not go on");
    if (!how_long.sleep(ms)) return nullptr;
  }
  return there;
}

}  // namespace lockflight::detail
