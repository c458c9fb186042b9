// The readers' part of flight-rw. Readers count themselves, read the gate of their node, and wait
// there, by their CPU's atomics and loads alone. flight_rw.hpp has the protocol.
//
// Listing. Writers leave gates alone whose nodes are not in the directory, a set at the lock's
// home. The first reader that finds its gate unlisted claims it, adds its node's bit to the set,
// and then reads the home's gate; a writer closes the home's gate and then reads the set. So, as in
// Dekker's algorithm, the reader sees that the gates are closed, or the writer sees the node (R4).
// The bit is added, not set, so it must not be there: only a writer takes it away that has closed
// the node's gate and has seen no active reader behind it, and the claimer is active until it has
// added the bit.
#pragma once

#include <concepts>
#include <cstdint>
#include <utility>

#include "lockflight/lock/flight_rw/gate.hpp"
#include "lockflight/lock/flight_rw/layout.hpp"
#include "lockflight/lock/flight_rw/parameters.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

template <rma::port Port>
class reader_side {
  using state = gate::state;

 public:
  enum class arrival : std::uint8_t {
    in,
    must_open,  // the gates are idle, ours says `opening`, and we are not counted
    gave_up,
  };

  reader_side(rma::participant<Port>& me, const reader_layout& where,
              const flight_rw_parameters& set)
      : port_(me.port()),
        gate_{rma::resolve(port_, where.gate_of(me.machine(), me.rank()).cell),
              where.gate_of(me.machine(), me.rank()).zeroes},
        counter_(rma::resolve(port_, where.counter_of(me.machine(), me.rank()))),
        is_alone_(where.is_alone(me.machine())),
        asks_home_(where.has_directory && !me.machine().same_node(where.gates.home, me.rank())),
        overtaking_(set.overtaking_on(me.port())),
        home_gate_(where.gate_of(me.machine(), where.gates.home)),
        listed_(where.listed),
        own_(set_of(me.machine().node_of(me.rank()))) {}

  /// Enters, as flight_rw.hpp has it. 1 CPU fetch-add and a load at an open gate.
  template <class Until>
  [[nodiscard]] arrival enter(Until until) {
    // A reader that gives up and comes again must not seem to be in each time that a writer scans.
    if constexpr (!is_patient<Until>)
      if (const gate found = read_gate(); found.is(state::closed) && !await_change(found, until))
        return arrival::gave_up;
    const gate found = come();
    if (found.is(state::open)) [[likely]]
      return arrival::in;
    return wait(found, until);
  }

  /// Leaves. 1 CPU fetch-add, or a store if the counter is the reader's own.
  [[gnu::always_inline]] void leave() {
    if (is_alone_)
      port_.store(counter_, 0);  // after all that was done meanwhile (C11)
    else
      static_cast<void>(port_.cpu_fetch_add(counter_, 0 - std::exchange(counted_as_, active)));
  }

  /// True if this participant has come as a reader since the last call.
  [[nodiscard]] bool has_come() { return std::exchange(has_come_, false); }

  /// Enters if the gate is open, or can be opened without waiting.
  [[nodiscard]] arrival try_enter() {
    const gate found = read_gate();
    const bool may_enter = found.is(state::open) || found.needs_reader();
    // A reader that keeps trying must not seem to be in each time that a writer scans.
    if (!may_enter) return arrival::gave_up;
    gate now = come();
    if (now.needs_reader()) {
      if (becomes_opener(now, port_.deadline_in(0))) return leave(), arrival::must_open;
      now = read_gate();
    }
    if (now.is(state::open)) return arrival::in;
    return leave(), arrival::gave_up;
  }

  /// For the holder of flight while the home's gate is open (R5).
  void enter_with_flight() {
    for (gate now = come(); !now.is(state::open); now = read_gate())
      if (now.is(state::claimed))
        static_cast<void>(await_change(now, rma::forever{}));
      else
        static_cast<void>(becomes_opener(now, rma::forever{}));  // nobody: the home's is open
  }

  /// opening -> idle: we were to open the gates and do not, but another reader may. If `opening` is
  /// another reader's by now, both will.
  void stop_opening() {
    const gate now = read_gate();
    if (now.is(state::opening)) replace(now, now.as(state::idle));
  }

 private:
  static constexpr rma::word active = reader_count::one(reader_count::active);
  template <class Until>
  static constexpr bool is_patient = std::same_as<Until, rma::forever>;

  // ---- the edges of docs/gates.svg that a reader takes, at the gate of its node ----

  // True if the gate still said `from`. Other readers and the holder of flight change it, too.
  bool replace(gate from, gate to) { return gate_.replace(port_, from, to); }
  // unlisted, idle -> claimed: it is ours if this is true.
  [[nodiscard]] bool claim(gate found) { return replace(found, found.as(state::claimed)); }
  // claimed -> open, with the home's epoch: a writer waits for readers that parked before that.
  void follow_home(gate claimed, gate home) { replace(claimed, home); }
  // claimed -> idle: the node stays listed, for another reader.
  void give_up_claim(gate claimed) { replace(claimed, claimed.as(state::idle)); }
  // idle, claimed -> opening: if this is true, it is for us to take flight.
  [[nodiscard]] bool start_opening(gate found) { return replace(found, found.as(state::opening)); }

  // For a reader that is counted as active there: claims the gate, lists the node, and opens the
  // gate if the home's is open. True if the home's is idle: our gate says `opening` then, and we
  // must take flight. 1 CPU compare-swap and 1 more to open; off the home's node 1 add and 1 get,
  // in one round trip where posts are ordered, and 1 get for each poll while the home's is closed.
  template <class Until>
  [[nodiscard]] bool becomes_opener(gate found, Until until) {
    if (!asks_home_) return start_opening(found);
    if (!claim(found)) return false;
    const gate claimed = found.as(state::claimed);
    if (found.is(state::unlisted)) {
      port_.add(listed_, own_);
      if (!rma::orders_posts(port_)) port_.flush(listed_.home);  // the read comes after it (R4)
    }
    for (rma::backoff b(1'000, 8'000);; port_.pause(b.next())) {
      const gate home = home_gate_.get_now(port_);
      if (home.needs_flight()) return start_opening(claimed);
      if (home.is(state::open)) return follow_home(claimed, home), false;
      // Closed: the writer sees our node and opens our gate too, or we see the home's open.
      if (read_gate() != claimed) return false;
      if (rma::is_over(port_, until)) return give_up_claim(claimed), false;
    }
  }

  // ---- counting and waiting ----

  [[nodiscard, gnu::always_inline]] gate read_gate() { return gate_.load(port_); }
  // Counts us as active, and then reads the gate (R1): later loads come after the atomic (C14).
  [[nodiscard]] gate come() {
    has_come_ = true;
    static_cast<void>(port_.cpu_fetch_add(counter_, active));
    return read_gate();
  }
  void count_as(rma::word now) {
    static_cast<void>(port_.cpu_fetch_add(counter_, now - counted_as_));
    counted_as_ = now;
  }

  template <class Until>
  [[nodiscard]] bool await_change(gate found, Until until) {
    const auto differs = [found](gate now) { return now != found; };
    return differs(gate_.await(port_, differs, until));
  }

  // A reader that is counted as active, and has found its gate not open. Not inlined: a reader that
  // finds it open goes by in a few instructions.
  template <class Until>
  [[nodiscard, gnu::noinline]] arrival wait(gate found, Until until) {
    counted_as_ = active;  // `leave` does not set it back if we are alone
    for (std::int64_t stays = overtaking_; !found.is(state::open);) {
      if (found.needs_reader()) {
        if (becomes_opener(found, until)) return leave(), arrival::must_open;
      } else if (is_patient<Until> && stays > 0) {
        leave();
        stay_away(stays);
        found = come();
        continue;
      } else if (park(found.epoch(), until)) {
        return arrival::in;
      }
      if (rma::is_over(port_, until)) return leave(), arrival::gave_up;
      if (counted_as_ != active) count_as(active);
      found = read_gate();
    }
    return arrival::in;
  }

  // For a reader that is not counted, so that no writer waits for it. A parked reader may not be
  // running when its phase comes, if ranks share cores; and where each has a core, the participants
  // that go on do more meanwhile with the lock's lines in their caches. Each stay is a pause and
  // the rest of the writers' phase that the reader finds then; after the `stays` that are left it
  // parks.
  void stay_away(std::int64_t& stays) {
    for (rma::backoff b(500, 4'000); stays > 0;) {
      --stays;
      port_.pause(b.next());
      const gate now = read_gate();
      if (now.is(state::open) || now.needs_reader()) return;
      static_cast<void>(await_change(now, rma::forever{}));
    }
  }

  // True if the gate has let us in (R3). If not it needs a reader, or is open for the same epoch
  // again since a writer gave up, or time is over: then we come anew.
  template <class Until>
  [[nodiscard]] bool park(rma::word epoch, Until until) {
    count_as(reader_count::one(reader_count::parked(epoch)));
    const auto ends = [epoch](gate g) {
      return g.lets_in(epoch) || g.is(state::open) || g.needs_reader();
    };
    return gate_.await(port_, ends, until).lets_in(epoch);
  }

  Port& port_;
  gate_cell<rma::resolved<Port, rma::cpu_cell>> gate_;  // of our node
  rma::resolved<Port, rma::cpu_cell> counter_;          // that we are counted in
  bool is_alone_;                                       // in that counter
  bool asks_home_;                                      // there is a directory, and not on our node
  bool has_come_ = false;                               // since has_come()
  std::int64_t overtaking_;
  gate_cell<> home_gate_;
  rma::nic_cell listed_;
  node_set own_;
  rma::word counted_as_ = active;  // or parked; if we are alone only while we wait
};

}  // namespace lockflight::lock
