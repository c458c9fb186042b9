// The source of the ranks' numbers in a launch: variables, or a launcher.
#include <memory>
#include <optional>
#include <vector>

#include "wireup/pmix.hpp"
#include "wireup/rendezvous.hpp"
#include "wireup/star.hpp"

namespace lockflight::wireup {

std::unique_ptr<group> join() {
  if (const std::optional<rendezvous> at = variables()) return meet(*at);
  if (pmix_has_started_this()) return join_by_pmix();
  require_no_launcher();
  return std::make_unique<star>(0, 1, std::vector<peer>());
}

}  // namespace lockflight::wireup
