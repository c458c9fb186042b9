// How a reader of flight-rw lists its node in the directory (flight_rw/directory.hpp): writers do
// not look after gates of nodes that are not listed.
//
// The first one that finds its gate unlisted claims it, adds its node's bit to the set at the
// lock's home, and looks there what the listed gates say. A writer says there that it closes them
// before it looks which ones they are. So either the reader sees that, and waits at its gate until
// it reads there that they are open again, or the writer sees the node and closes its gate too: the
// claim is lost then, as nobody but a writer puts a gate that is claimed. Where gates are idle
// nobody would open them: the reader leaves its own idle, and whoever looks after those who wait
// there takes flight; so it is if the reader will not wait.
//
// The bit is added, not set, so it must not be there: who claims is counted as active from before
// until after that, and a writer takes a bit away only when it has closed the gate and seen nobody
// active there.
#pragma once

#include "lockflight/lock/flight_rw/gate.hpp"
#include "lockflight/lock/flight_rw/layout.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

/// A set of nodes, one bit each; of 64 at most, or of all.
using node_set = rma::word;
constexpr node_set all_nodes = ~node_set{0};
[[nodiscard]] constexpr node_set set_of(int node) {
  return node_set{1} << static_cast<unsigned>(node % 64);
}
[[nodiscard]] constexpr bool has(node_set nodes, int node) { return (nodes & set_of(node)) != 0; }

template <rma::port Port>
class gate_listing {
 public:
  gate_listing(rma::participant<Port>& me, const reader_cells& where)
      : port_(me.port()),
        gate_(where.gate_of(me.machine(), me.rank())),
        says_(where.says),
        listed_(where.listed),
        own_(set_of(me.machine().node_of(me.rank()))),
        zero_(where.zero_of_gate(gate_.home)),
        zero_at_home_(where.zero_of_gate(says_.home)) {}

  /// For who is counted as active or has flight, and has found the gate unlisted. It is open or
  /// idle then, or somebody else sees to it. 2 CPU compare-swaps, 1 add and 1 get, in one round
  /// trip where posts are ordered, else in two; and 1 get for each further look while writers have
  /// their turn, with back-off.
  template <class Until>
  void list(gate found, Until until) {
    const gate coming = found.as(gate::state::coming);
    if (!replace(found, coming)) return;
    port_.add(listed_, own_);
    if (!rma::orders_posts(port_)) port_.flush(listed_.home);  // the look comes after it
    // Ours is put as the others are, with their epoch: a writer waits for who parked before that.
    gate they = look();
    if (they.what() == gate::state::open) return static_cast<void>(replace(coming, they));
    const gate listed = found.as(gate::state::listed);
    if (!replace(coming, listed)) return;
    for (rma::backoff b(1'000, 8'000);
         they.what() == gate::state::closed && is_still(listed) && !rma::is_over(port_, until);
         they = look())
      port_.pause(b.next());
    if (they.what() == gate::state::closed) they = they.as(gate::state::idle);
    static_cast<void>(replace(listed, they));
  }

 private:
  [[nodiscard]] gate look() {
    rma::word says = 0;
    port_.get(says_, says);
    port_.flush(says_.home);
    return gate::from(says ^ zero_at_home_);
  }
  [[nodiscard]] bool is_still(gate claimed) {
    return port_.load(gate_) == (claimed.bits() ^ zero_);
  }
  [[nodiscard]] bool replace(gate from, gate to) {
    const rma::word was = from.bits() ^ zero_;
    return port_.cpu_compare_swap(gate_, was, to.bits() ^ zero_) == was;
  }

  Port& port_;
  rma::cpu_cell gate_;  // of our node
  rma::plain_cell says_;
  rma::nic_cell listed_;
  node_set own_;
  rma::word zero_;
  rma::word zero_at_home_;
};

}  // namespace lockflight::lock
