#include "wireup/variables.hpp"

#include <charconv>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

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

/// Whether all of the text is a number of that range.
bool reads(std::string_view text, int least, int most, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return !text.empty() && error == std::errc() && end == text.data() + text.size() &&
         number >= least && number <= most;
}

int number_in(const char* name, int least, int most) {
  const std::string_view given = value_of(name);
  int number = 0;
  if (!reads(given, least, most, number))
    throw refuse(name, given, std::to_string(least) + " to " + std::to_string(most));
  return number;
}

}  // namespace

std::optional<rendezvous_variables> variables() {
  const std::string_view place = value_of(where);
  if (place.empty()) {
    for (const char* other : {which, how_many})
      if (!value_of(other).empty())
        throw refuse(where, place, std::string("HOST:PORT, since ") + other + " is set");
    return std::nullopt;
  }
  rendezvous_variables found;
  const std::size_t colon = place.rfind(':');
  int port = 0;
  if (colon == std::string_view::npos || colon == 0 ||
      !reads(place.substr(colon + 1), 1, most_port, port))
    throw refuse(where, place, "HOST:PORT, with a port from 1 to 65535");
  found.host = place.substr(0, colon);
  if (found.host.starts_with('[') && found.host.ends_with(']'))
    found.host = found.host.substr(1, found.host.size() - 2);
  found.port = std::to_string(port);
  found.ranks = number_in(how_many, 1, most_ranks);
  const std::string_view rank = value_of(which);
  if (!reads(rank, 0, found.ranks - 1, found.rank))
    throw refuse(which, rank,
                 "0 to " + std::to_string(found.ranks - 1) + ", since " + how_many + " is " +
                     std::to_string(found.ranks));
  if (!value_of(how_long).empty())
    found.timeout = std::chrono::seconds(number_in(how_long, 1, most_seconds));
  return found;
}

}  // namespace lockflight::wireup
