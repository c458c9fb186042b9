#include "lab/bench/plan/limits.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "base/visible_text.hpp"
#include "lab/bench/bench.hpp"
#include "lockflight/fabric/shm.hpp"
#include "lockflight/rma/topology.hpp"

namespace lockflight::bench {
namespace {

bool simulated(std::string_view fabric) { return fabric == "sim"; }

}  // namespace

limits<double> seconds_limits(std::string_view fabric) {
  constexpr double shortest = 0.001;
  return {simulated(fabric) ? 1e-12 : shortest, 1e6};
}

limits<int> procs_limits(std::string_view fabric) {
  constexpr int most_simulated = 1 << 20;
  return {1, simulated(fabric) ? most_simulated : shm::most_ranks};
}

std::string in_words(limits<std::uint64_t> of) {
  return fmt::format("a whole number from {} to {}", of.least, of.most);
}

std::string in_words(limits<double> of) {
  return fmt::format("a number from {} to {}", of.least, of.most);
}

std::string in_words(limits<int> of_each) {
  return fmt::format("whole numbers from {} to {}, joined by commas", of_each.least, of_each.most);
}

int ranks_of_levels(const std::string& levels, std::string_view fabric) {
  const int most = procs_limits(fabric).most;
  std::int64_t ranks = 1;
  try {
    for (const int fanout : rma::parse_levels(levels)) ranks *= fanout;
  } catch (const std::invalid_argument&) {
    ranks = 0;
  }
  if (ranks < 1 || ranks > most)
    throw bad_request(
        fmt::format("--levels {} (accepted: positive numbers joined by x, such as 2x4, that "
                    "multiply to at most {})",
                    in_quotes(levels), most));
  return static_cast<int>(ranks);
}

}  // namespace lockflight::bench
