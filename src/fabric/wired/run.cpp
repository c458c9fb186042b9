// A run: its ranks, the body, and the end.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "fabric/network/launched.hpp"
#include "fabric/wired/segment.hpp"

namespace lockflight::wired {
namespace {

using detail::world;

wait_policy policy_of(const world& in, const config& what) {
  int here = 0;
  for (rma::rank_t r = 0; r < what.machine.ranks(); ++r) here += in.same_host(r, in.rank()) ? 1 : 0;
  return fabric::detail::policy_of(what.waiting, here,
                                   what.processors > 0 ? what.processors : in.processors);
}

}  // namespace

namespace detail {

/// A run as one rank sees it. Its construction is collective over the launch.
class place_in_run {
 public:
  /// Throws, on all ranks alike.
  place_in_run(world& in, const config& what) : in_(in), what_(what) {
    fabric::detail::require_machine(what.machine, in.first_of_host);
    policy_ = policy_of(in, what);
    const rma::topology& machine = what.machine;
    const bool together =
        what.shared_nodes && fabric::detail::on_one_host(in.first_of_host, machine.ranks());
    only_cpu_ = machine.nodes() == 1 || together;
    if (!only_cpu_) in.start_progress_thread();
    ++in.runs;
    cells_.emplace(in, machine.nodes_of_ranks(), together, what.words_per_rank, only_cpu_);
  }

  ~place_in_run() {
    if (in_.over) static_cast<void>(link_.release());  // see world::close_down
  }
  place_in_run(const place_in_run&) = delete;
  place_in_run& operator=(const place_in_run&) = delete;

  /// Makes the port of a rank of the machine.
  port& open() {
    link_ = in_.net->connect(in_, *cells_, /*patient=*/policy_.spins == 0);
    const fabric::cpu_use cpu{.only = only_cpu_, .nic_cells = in_.net->atomics_by_cpu()};
    return port_.emplace(in_.rank(), what_.machine, cells_->base(), cpu, policy_, *link_);
  }
  /// Returns when all ranks have come here: until then they may still use our cells (C35).
  void close() {
    port_->flush();  // operations that the program left
    in_.meet();
  }
  [[nodiscard]] port& opened() { return *port_; }

 private:
  world& in_;
  const config& what_;
  wait_policy policy_;
  bool only_cpu_ = true;
  std::optional<detail::segment> cells_;
  std::unique_ptr<fabric::network> link_;
  std::optional<port> port_;
};

}  // namespace detail

void run_ports(environment& in, const config& what, const std::function<void(port&)>& body) {
  world& w = in.parts();
  detail::place_in_run here(w, what);
  if (w.rank() >= what.machine.ranks()) return w.wait_idle_for_end_of_run();
  std::string why;
  try {
    body(here.open());
    return here.close();
  } catch (const run_failed&) {
    throw;
  } catch (const std::exception& e) {
    why = e.what();
  } catch (...) {
    why = "an exception of unknown type";
  }
  why = w.name_of(w.rank()) + " failed: " + why;
  w.fail(why);
  throw run_failed(why);
}

struct membership::parts {
  parts(environment& in, config asked)
      : world(in.parts()), what(std::move(asked)), at(world, what) {
    if (what.machine.ranks() < in.size())
      throw std::invalid_argument("the machine has fewer ranks than the launch");
    at.open();
  }

  detail::world& world;
  const config what;
  detail::place_in_run at;
};

membership::membership(environment& in, config what)
    : parts_(std::make_unique<parts>(in, std::move(what))) {}

membership::~membership() {
  detail::world& in = parts_->world;
  if (in.over) return;
  try {
    parts_->at.close();
  } catch (const std::exception& e) {
    // A rank that has gone at the very end is not needed any more.
    if (!in.over) in.fail(in.name_of(in.rank()) + " failed: " + e.what());
  }
}

port& membership::access() { return parts_->at.opened(); }

}  // namespace lockflight::wired
