#include "fabric/network/launched.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "lockflight/fabric/launch.hpp"

namespace lockflight::fabric {
namespace {

std::string bytes_of(double value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}
double value_in(const std::string& bytes) {
  double value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

}  // namespace

bool launch::all(bool holds) { return std::ranges::count(gather(holds ? "1" : "0"), "0") == 0; }

double launch::first(double mine) { return value_in(gather(bytes_of(mine)).front()); }

double launch::least(double mine) {
  for (const std::string& each : gather(bytes_of(mine))) mine = std::min(mine, value_in(each));
  return mine;
}

void abandon(const std::string& why) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", why.c_str());
  std::fflush(stderr);
  constexpr int environment_failed = 3;
  _exit(environment_failed);
}

namespace detail {

void require_ranks(int ranks, int size) {
  if (ranks < 1 || ranks > size)
    throw std::invalid_argument(std::to_string(ranks) + " ranks (accepted: 1 to " +
                                std::to_string(size) + ", the ranks of this launch)");
}

void require_machine(const rma::topology& machine, const std::vector<int>& first_of_host) {
  const int ranks = machine.ranks();
  require_ranks(ranks, static_cast<int>(first_of_host.size()));
  const auto host = [&](rma::rank_t r) { return first_of_host[static_cast<std::size_t>(r)]; };
  for (rma::rank_t r = 0; r < ranks; ++r)
    if (host(r) != host(machine.leader_of(r, machine.node_level())))
      throw std::invalid_argument(
          "a node of the machine given spans several hosts of this launch, whose memory cannot be "
          "shared (accepted: levels whose nodes keep to one)");
}

bool on_one_host(const std::vector<int>& first_of_host, int ranks) {
  return std::count(first_of_host.begin(), first_of_host.begin() + ranks, 0) == ranks;
}

shm::wait_policy policy_of(const std::string& waiting, int ranks_here, int cores) {
  shm::wait_policy policy = shm::wait_policy::parse(waiting, std::max(ranks_here, 1), cores);
  // With a core for each rank a waiting rank uses its core; then no store has to check for
  // sleepers.
  if (waiting == "auto" && policy.spins > 0) policy.park = false;
  return policy;
}

}  // namespace detail
}  // namespace lockflight::fabric
