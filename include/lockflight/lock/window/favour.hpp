// The participant that a window's target favours: as long as it alone locks the target, it locks it
// exclusively by its announcement in biased_groups, which it has to make anyway, and leaves the
// target's lock alone. A lock and its unlock then take one atomic operation in place of two.
//
// Source: biased locks, of which Kawachiya, Koseki and Onodera, "Lock Reservation: Java Locks Can
// Mostly Do Without Atomic Operations" (OOPSLA 2002), are the first. There the favoured thread has
// the lock's word for itself, and is stopped while another one takes that away. Here it keeps one
// atomic operation, so that others see it by reading, as BRAVO's writers see readers
// (biased_groups.hpp).
//
// A target's word is `none`, or says of one participant that it is the `candidate`, that it is
// `favoured`, or that its favour is `going`: a participant that has the target's lock waits for it
// to leave.
//
// Invariants:
// F1  A participant that locks by favour announces the target before it finds the word still naming
//     it `favoured`. A participant that has taken the target's lock and finds another one favoured
//     makes the word `going` before it reads what that one announces. So, as in Dekker's algorithm,
//     one of the two sees the other.
// F2  Only the holder of the target's lock, exclusively, makes a participant favoured, and only
//     itself. So no participant becomes favoured while another one has the target's lock, and a
//     word that names a participant `favoured` was written by it.
// F3  The word names a participant `favoured` or `going` as long as it may be in by favour, and
//     a participant that takes the target's lock otherwise enters only when it does neither, or
//     names itself: a participant does not lock a target that it has locked.
//
// Order: a participant that has the target's lock and waits for the favoured one is overtaken by it
// once at the most, if that has passed the last of its reads.
//
// Cost beside the target's lock: 1 load; now and then 1 store. To take favour away 2 stores, a
// fence and the wait. There is no favour if participants are on several nodes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lockflight/rma/packed.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

/// The word of a target.
struct favour_word : rma::packed<favour_word> {
  enum class state : std::uint8_t { none = 0, candidate = 1, favoured = 2, going = 3 };
  static constexpr rma::field what{0, 2};
  static constexpr rma::field who{2, 32};
  static_assert(rma::are_disjoint({what, who}));

  [[nodiscard]] static favour_word of(state is, rma::rank_t rank) {
    return favour_word{}
        .with(what, static_cast<rma::word>(is))
        .with(who, static_cast<rma::word>(rank));
  }
  [[nodiscard]] bool is(state asked) const { return get(what) == static_cast<rma::word>(asked); }
  [[nodiscard]] rma::rank_t rank() const { return static_cast<rma::rank_t>(get(who)); }
};

/// How many exclusive locks of a target a participant takes until it becomes the candidate, and as
/// many again until it is favoured if no other one has become the candidate meanwhile.
inline constexpr int usual_locks_until_favour = 16;

/// A participant's handle of a target's favour. `Groups` is the window's biased_groups.
template <rma::port Port, class Groups, int LocksUntilFavour = usual_locks_until_favour>
class favour {
  using state = favour_word::state;

 public:
  favour(rma::participant<Port>& me, Groups& groups, rma::cpu_cell word, rma::rank_t target)
      : port_(me.port()),
        groups_(groups),
        word_(rma::resolve(port_, word)),
        mine_(favour_word::of(state::favoured, me.rank()).bits()),
        // Different for each target, and from what other participants of the group announce.
        announcement_(Groups::only_in + 1 + static_cast<rma::word>(target)) {}

  /// Locks the target exclusively if it favours this participant, which is not in the first group.
  [[nodiscard, gnu::always_inline]] bool try_lock() {
    return groups_.try_enter_first(word_, mine_, announcement_);
  }

  /// For the participant that has taken the target's lock: waits until no other one is in by
  /// favour.
  void shut_out_others() {
    const favour_word found = read();
    if (found.is(state::none) || found.is(state::candidate) || found.rank() == port_.rank()) return;
    port_.store(word_, favour_word::of(state::going, found.rank()).bits());
    port_.fence();  // F1
    groups_.await_other_announcement(found.rank(), announcement_);
    // Others that share the lock may do the same at the same time; ours may then be the later one.
    port_.store(word_, 0);
  }

  /// For the holder of the target's lock, exclusively, before it releases that.
  void count() {
    if (--locks_left_ > 0) return;
    locks_left_ = locks_until_;
    const favour_word found = read();
    if (found.bits() == mine_) return;
    if (was_favoured_) {
      // Another one came: next time favour comes later.
      was_favoured_ = false;
      locks_left_ = locks_until_ = std::min(2 * locks_until_, most_until_favour);
    }
    was_favoured_ = found.is(state::candidate) && found.rank() == port_.rank();
    port_.store(word_, was_favoured_
                           ? mine_
                           : favour_word::of(state::candidate, port_.rank()).bits());  // F2
  }

 private:
  static constexpr int most_until_favour = 1 << 16;

  [[nodiscard]] favour_word read() { return favour_word::from(port_.load(word_)); }

  Port& port_;
  Groups& groups_;
  rma::resolved<Port, rma::cpu_cell> word_;
  rma::word mine_;
  rma::word announcement_;
  int locks_until_ = LocksUntilFavour;
  int locks_left_ = LocksUntilFavour;
  bool was_favoured_ = false;
};

}  // namespace lockflight::lock
