#include "wireup/variables.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "base/number.hpp"

namespace lockflight::wireup {
namespace {

constexpr const char* where = "LOCKFLIGHT_RENDEZVOUS";
constexpr const char* which = "LOCKFLIGHT_RANK";
constexpr const char* how_many = "LOCKFLIGHT_RANKS";
constexpr const char* how_long = "LOCKFLIGHT_RENDEZVOUS_TIMEOUT";

constexpr int most_ranks = 1 << 20;
constexpr int most_seconds = 86'400;
constexpr int most_port = 65'535;

std::string_view value_of(const char* name) {
  const char* const given = std::getenv(name);
  return given != nullptr ? given : "";
}

std::invalid_argument refuse(const char* name, std::string_view given,
                             const std::string& accepted) {
  return std::invalid_argument(std::string(name) +
                               (given.empty() ? " is not set" : " '" + std::string(given) + "'") +
                               " (accepted: " + accepted + ")");
}

/// The number of that range that all of the text is.
std::optional<int> number_within(std::string_view text, int least, int most) {
  const auto number = read_number<int>(text);
  return number && *number >= least && *number <= most ? number : std::nullopt;
}

int number_in(const char* name, int least, int most) {
  const std::string_view given = value_of(name);
  const auto number = number_within(given, least, most);
  if (!number) throw refuse(name, given, std::to_string(least) + " to " + std::to_string(most));
  return *number;
}

}  // namespace

std::string rendezvous::where() const { return hosts.front() + ":" + port; }

std::chrono::seconds timeout() {
  return value_of(how_long).empty() ? rendezvous().timeout
                                    : std::chrono::seconds(number_in(how_long, 1, most_seconds));
}

std::optional<rendezvous> variables() {
  const std::string_view place = value_of(where);
  if (place.empty()) {
    for (const char* other : {which, how_many})
      if (!value_of(other).empty())
        throw refuse(where, place, std::string("HOST:PORT, since ") + other + " is set");
    return std::nullopt;
  }
  rendezvous found;
  const std::size_t colon = place.rfind(':');
  const auto port = colon == std::string_view::npos || colon == 0
                        ? std::nullopt
                        : number_within(place.substr(colon + 1), 1, most_port);
  if (!port) throw refuse(where, place, "HOST:PORT, with a port from 1 to 65535");
  std::string_view host = place.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  found.hosts.emplace_back(host);
  found.port = std::to_string(*port);
  found.ranks = number_in(how_many, 1, most_ranks);
  const std::string_view rank = value_of(which);
  const auto own = number_within(rank, 0, found.ranks - 1);
  if (!own)
    throw refuse(which, rank,
                 "0 to " + std::to_string(found.ranks - 1) + ", since " + how_many + " is " +
                     std::to_string(found.ranks));
  found.rank = *own;
  found.timeout = timeout();
  return found;
}

// Each of its ranks would take itself for a launch of one.
void require_no_launcher() {
  for (const char* ranks : {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const std::string_view given = value_of(ranks);
    if (const auto number = number_within(given, 2, most_ranks))
      throw std::invalid_argument(
          "one of " + std::to_string(*number) + " ranks (" + ranks +
          "), which cannot find each other (accepted: a launcher with PMIx, as mpirun of Open MPI, "
          "prterun and srun --mpi=pmix; or " +
          where + "=HOST:PORT, " + which + " and " + how_many + " for each rank)");
  }
}

}  // namespace lockflight::wireup
