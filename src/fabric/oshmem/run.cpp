// A run: its ranks, the body, and the end.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "fabric/oshmem/link.hpp"

namespace lockflight::oshmem {
namespace {

using detail::world;

/// Throws, on all ranks alike, unless the launch has such a machine.
void require_machine(const world& in, const config& what) {
  const int ranks = what.machine.ranks();
  if (ranks > in.size)
    throw std::invalid_argument(std::to_string(ranks) + " ranks (accepted: 1 to " +
                                std::to_string(in.size) + ", the ranks of this launch)");
  for (rma::rank_t r = 0; r < ranks; ++r)
    if (!in.same_host(r, what.machine.leader_of(r, what.machine.node_level())))
      throw std::invalid_argument(
          "a node of the machine given spans ranks of this launch whose memory shmem_ptr does not "
          "reach (accepted: levels whose nodes keep to those that it does)");
}

bool on_one_host(const world& in, int ranks) {
  for (rma::rank_t r = 0; r < ranks; ++r)
    if (!in.same_host(0, r)) return false;
  return true;
}

wait_policy policy_of(const world& in, const config& what) {
  // Ranks of one host need not reach each other's memory, and share its cores all the same.
  const auto& mine = in.hosts[static_cast<std::size_t>(in.rank)];
  const auto here = std::count(in.hosts.begin(), in.hosts.begin() + what.machine.ranks(), mine);
  const int cores = what.processors > 0 ? what.processors : in.processors;
  wait_policy policy = wait_policy::parse(what.waiting, std::max(static_cast<int>(here), 1), cores);
  // With a core for each rank a waiting rank uses its core; then no store has to check for
  // sleepers.
  if (what.waiting == "auto" && policy.spins > 0) policy.park = false;
  return policy;
}

[[noreturn]] void fail(const world& in, const char* why) {
  abandon("lockflight: rank " + std::to_string(in.rank) + " on " +
          in.hosts[static_cast<std::size_t>(in.rank)] + " failed: " + why);
}

}  // namespace

/// What a rank has of a run; no port, if the machine has fewer ranks.
struct membership::parts {
  parts(world& its, config asked)
      : in(its),
        what(std::move(checked(its, asked))),
        policy(policy_of(in, what)),  // or throws
        together(what.shared_nodes && on_one_host(in, what.machine.ranks())),
        cells(in, what.machine.nodes_of_ranks(), together, what.words_per_rank),
        net(in, cells) {
    if (in.rank < what.machine.ranks())
      access.emplace(in.rank, what.machine, cells.base(),
                     fabric::cpu_use{.only = together || what.machine.nodes() == 1}, policy, net);
  }

  [[nodiscard]] static config& checked(const world& its, config& asked) {
    require_machine(its, asked);
    return asked;
  }

  world& in;
  config what;
  wait_policy policy;
  bool together;
  detail::segment cells;
  detail::link net;
  std::optional<port> access;
};

void run_ports(environment& in, const config& what, const std::function<void(port&)>& body) {
  world& w = in.parts();
  membership::parts its(w, what);
  if (its.access) {
    try {
      body(*its.access);
      its.access->flush();  // operations that the body left
    } catch (const std::exception& e) {
      fail(w, e.what());
    } catch (...) {
      fail(w, "an exception of unknown type");
    }
  }
  // Progress goes on until all ranks have returned, since they may still use our cells (C35).
  w.end_run(what.machine.ranks());
}

membership::membership(environment& in, config what) {
  if (what.machine.ranks() < in.size())
    throw std::invalid_argument("the machine has fewer ranks than the launch");
  parts_ = std::make_unique<parts>(in.parts(), std::move(what));
}

membership::~membership() {
  parts_->access->flush();
  parts_->in.end_run(parts_->in.size);
}

port& membership::access() { return *parts_->access; }

}  // namespace lockflight::oshmem
