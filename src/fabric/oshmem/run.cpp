// A run: its ranks, the body, and the end.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "fabric/network/launched.hpp"
#include "fabric/oshmem/link.hpp"

namespace lockflight::oshmem {
namespace {

using detail::world;

wait_policy policy_of(const world& in, const config& what) {
  // Ranks of one host need not reach each other's memory, and share its cores all the same.
  const auto& mine = in.hosts[static_cast<std::size_t>(in.rank)];
  const auto here = std::count(in.hosts.begin(), in.hosts.begin() + what.machine.ranks(), mine);
  return fabric::detail::policy_of(what.waiting, static_cast<int>(here),
                                   what.processors > 0 ? what.processors : in.processors);
}

[[noreturn]] void fail(const world& in, const char* why) {
  abandon("lockflight: rank " + std::to_string(in.rank) + " on " +
          in.hosts[static_cast<std::size_t>(in.rank)] + " failed: " + why);
}

}  // namespace

/// A rank's part of a run. It has no port if the machine has fewer ranks.
struct membership::parts {
  parts(world& its, config asked)
      : in(its),
        what(std::move(checked(its, asked))),
        policy(policy_of(in, what)),  // or throws
        together(what.shared_nodes &&
                 fabric::detail::on_one_host(in.first_of_host, what.machine.ranks())),
        cells(in, what.machine.nodes_of_ranks(), together, what.words_per_rank),
        net(in, cells) {
    if (in.rank < what.machine.ranks())
      access.emplace(in.rank, what.machine, cells.base(),
                     fabric::cpu_use{.only = together || what.machine.nodes() == 1}, policy, net);
  }

  [[nodiscard]] static config& checked(const world& its, config& asked) {
    fabric::detail::require_machine(asked.machine, its.first_of_host);
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
