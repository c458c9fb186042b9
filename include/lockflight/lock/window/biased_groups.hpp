// Group mutual exclusion of two groups that favours the first one: as long as only participants of
// the first group come, each of them enters and leaves by a cache line of its own. In a window
// these are the exclusive locks on single targets, which thus share no word unless they share a
// target.
//
// Source: the bias is that of BRAVO (Dice and Kogan, "BRAVO: Biased Locking for Reader-Writer
// Locks", 2019), where it favours readers. Behind it is a group_exclusion, where BRAVO has any
// reader-writer lock. BRAVO's readers announce themselves in one table that all locks share, found
// by a hash; here each participant has a word of its own, so that two never collide.
//
// The bias is `off`, `on`, or `going`: a participant of the second group waits for those to leave
// that have entered by it.
//
// Invariants:
// B1  A participant of the first group that enters by the bias announces itself before it finds
//     the bias `on`. One of the second group makes it `going` before it reads who is announced. So,
//     as in Dekker's algorithm, one of the two sees the other.
// B2  Only a participant that is in the first group, and not by the bias, turns the bias on. So it
//     stays as it is, or goes off, while a participant of the second group is in.
// B3  The bias is `off` only if no participant is in by it: a reader of `off` need not look.
//
// An announcement may say more than that the participant is in, for a lock that is built on this
// one (window/favour.hpp).
//
// Order: that of group_exclusion, except that participants of the first group which enter by the
// bias may overtake a waiter of the second group until it has passed group_exclusion. That takes as
// long as the members of the first group stay that it found there.
// Patience: as group_exclusion has it. A participant of the second group that has waited for the
// announced ones for so long lets others enter once, and comes again.
//
// Cost, network operations as in group_exclusion:
// | enter the first group by the bias | none: 1 CPU swap, 2 loads                                 |
// | leave it                          | none: 1 store                                             |
// | enter it otherwise                | 1 load more, now and then 1 store                         |
// | enter the second group            | 1 load more; after a bias 2 stores, 1 load a participant  |
//
// There is no bias if participants are on several nodes, since its words lie on one.
#pragma once

#include <cstdint>

#include "lockflight/lock/window/group_exclusion.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

/// How many times a participant enters the first group without the bias until it turns the bias
/// on: so often that looking at each participant, which ends a bias, costs little beside it.
[[nodiscard]] constexpr int usual_entries_until_bias(int participants) {
  return 8 * participants + 16;
}

/// A handle: enter, then leave. `EntriesUntilBias` is a number or, if 0, the usual one.
template <rma::port Port, std::uint64_t Patience = usual_patience_ns, int EntriesUntilBias = 0>
class biased_groups {
  using groups = group_exclusion<Port, Patience>;

 public:
  struct cells {
    typename groups::cells behind;
    // On one node only, else they do not exist.
    rma::cpu_cell bias;
    rma::cpu_cell announced;  // of each participant, not 0 while it is in by the bias

    static cells place(rma::layout& in, const rma::topology& machine, rma::rank_t home) {
      cells made{.behind = groups::cells::place(in, machine, home), .bias = {}, .announced = {}};
      if (!has_bias(machine)) return made;
      made.bias = in.take<rma::cpu_cell>(1).at(home);
      made.announced = in.take<rma::cpu_cell>(1);
      return made;
    }
  };

  biased_groups(rma::participant<Port>& me, const cells& where)
      : port_(me.port()),
        behind_(me, where.behind),
        has_bias_(has_bias(me.machine())),
        bias_(rma::resolve(port_, where.bias)),
        announced_(where.announced),
        own_(rma::resolve(port_, where.announced.at(me.rank()))),
        entries_until_bias_(EntriesUntilBias != 0 ? EntriesUntilBias
                                                  : usual_entries_until_bias(me.machine().ranks())),
        entries_left_(entries_until_bias_) {}

  void enter_first() {
    if (!has_bias_) return behind_.enter(group::first);
    if (enters_by_bias()) return;
    behind_.enter(group::first);
    if (--entries_left_ > 0) return;
    entries_left_ = entries_until_bias_;
    port_.store(bias_, on);  // B2
  }
  void leave_first() {
    if (!is_in_by_bias_) return behind_.leave(group::first);
    is_in_by_bias_ = false;
    port_.store(own_, 0);  // after all that was done meanwhile (C11)
  }

  // ---- for a lock that is built on this one ----

  static constexpr rma::word only_in = 1;  ///< what enter_first announces

  /// Enters by the bias if a word says `value` as well, before and after `announcement` was made.
  /// 1 CPU swap and 4 loads; nothing if the word or the bias says otherwise at first.
  template <class Cell>
  [[nodiscard, gnu::always_inline]] bool try_enter_first(Cell also, rma::word value,
                                                         rma::word announcement) {
    if (!has_bias_ || port_.load(also) != value || port_.load(bias_) != on) return false;
    return announces([&] { return port_.load(also) == value; }, announcement);
  }
  /// For a participant that entered so: stays in, and announces no more than that.
  void announce_only_in() { port_.store(own_, only_in); }
  /// Waits until that participant announces something else.
  void await_other_announcement(rma::rank_t whose, rma::word than) {
    static_cast<void>(
        port_.await(announced_.at(whose), [than](rma::word now) { return now != than; }));
  }

  void enter_second() {
    behind_.enter(group::second);
    while (has_bias_ && !end_bias()) {
      behind_.leave(group::second);
      port_.pause(0);  // a waiter may need our processor
      behind_.enter(group::second);
    }
  }
  void leave_second() { behind_.leave(group::second); }

 private:
  static constexpr rma::word off = 0;
  static constexpr rma::word on = 1;
  static constexpr rma::word going = 2;

  [[nodiscard]] static bool has_bias(const rma::topology& machine) { return machine.nodes() == 1; }

  [[nodiscard]] bool enters_by_bias() {
    if (port_.load(bias_) != on) return false;
    return announces([] { return true; }, only_in);
  }
  // Announces us and returns true if the bias, and what `holds` reads, still lets us in.
  template <class Holds>
  [[nodiscard, gnu::always_inline]] bool announces(Holds holds, rma::word announcement) {
    // Atomic, so that the loads come after it (C14, B1).
    static_cast<void>(port_.cpu_swap(own_, announcement));
    is_in_by_bias_ = port_.load(bias_) == on && holds();
    if (!is_in_by_bias_) port_.store(own_, 0);
    return is_in_by_bias_;
  }

  // For a participant in the second group: waits until no one is in by the bias. False if that
  // takes longer than our patience.
  [[nodiscard]] bool end_bias() {
    if (port_.load(bias_) == off) return true;  // B3
    port_.store(bias_, going);
    port_.fence();  // B1
    if constexpr (Patience == 0)
      static_cast<void>(all_have_left(rma::forever{}));
    else if (!all_have_left(port_.deadline_in(Patience)))
      return false;
    // Other ranks may end the bias at the same time; ours may then be the later one, and finds
    // nobody.
    port_.store(bias_, off);
    return true;
  }
  template <class Until>
  [[nodiscard]] bool all_have_left(Until until) {
    rma::word seen = 0;
    for (rma::rank_t r = 0; r < port_.machine().ranks(); ++r)
      if (!rma::await(port_, announced_.at(r), rma::equals(0), until, seen)) return false;
    return true;
  }

  Port& port_;
  groups behind_;
  bool has_bias_;
  bool is_in_by_bias_ = false;
  rma::resolved<Port, rma::cpu_cell> bias_;
  rma::cpu_cell announced_;
  rma::resolved<Port, rma::cpu_cell> own_;  // of announced_
  int entries_until_bias_;
  int entries_left_;
};

}  // namespace lockflight::lock
