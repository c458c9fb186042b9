// A client's acquire of one name, from the moment at which it has the host lock, and its release
// (docs/cluster.md, "A client's acquire").
//
// Each step() is at most one access to the words that others see. Between two steps anything may
// happen: the client may be stopped, the deadline may pass, the host may become another
// incarnation.
#pragma once

#include <concepts>

#include "names/cluster/core/acquire_events.hpp"
#include "names/cluster/core/words.hpp"

namespace lockflight::cluster {

/// The words of a host that a client uses: the header, and the two words of one name. Each call is
/// one atomic access.
template <class Words>
concept words_of_a_name = requires(Words& words, ownership owned, state is) {
  { words.incarnation() } -> std::same_as<incarnation_number>;
  { words.deadline() } -> std::same_as<instant>;
  { words.time_to_live() } -> std::same_as<instant>;
  { words.get_ownership() } -> std::same_as<ownership>;
  { words.swap_ownership(owned, owned) } -> std::same_as<bool>;
  { words.get_state() } -> std::same_as<state>;
  { words.swap_state(is, is) } -> std::same_as<bool>;
};

/// The time until which a holder of that incarnation of the host is certainly alone if the agent
/// does not renew; 0 if it is not certain any more.
template <class Header>
[[nodiscard]] instant valid_until(const Header& header, incarnation_number of) {
  // The deadline comes first: an agent whose host becomes another incarnation clears it before.
  const instant until = header.deadline();
  return header.incarnation() == of ? until : 0;
}

/// How long before its deadline the loss of a hold is told. Another host cannot hold for so long
/// more.
[[nodiscard]] constexpr instant told_before(instant ttl) { return ttl / 10; }

/// When such a holder is told that its hold is lost, unless the agent renews before.
template <class Header>
[[nodiscard]] instant loss_time(const Header& header, incarnation_number of) {
  return valid_until(header, of) - told_before(header.time_to_live());
}

template <words_of_a_name Words>
class acquire {
 public:
  using next = acquire_events::next;

  acquire(mode wanted, Words words) : wanted_(wanted), words_(words) {}

  /// The client has the host lock, in the mode that it wants. `now` counts in a step that reads the
  /// clock alone.
  next step(instant now);
  [[nodiscard]] bool reads_clock() const { return at_ == at::deadline; }
  /// Before the client that gives up releases the host lock.
  void give_up();
  /// Before a holder releases the host lock.
  void leave();
  /// True if another host wants the name, so that give_back() may follow leave().
  [[nodiscard]] bool is_revoked() const {
    return wanted_ == mode::exclusive && words_.get_ownership().revoked != mode::none;
  }
  /// After leave(), before an exclusive holder releases the host lock: gives the name back to the
  /// host that wants it. Returns whether it has: the agent has to be rung then, which tells the
  /// home. A client that does not call this leaves that to the agent.
  [[nodiscard]] bool give_back();

  // ---- of a holder ----
  /// True if this holder is certainly alone, by the host's clock.
  [[nodiscard]] bool is_valid(instant now) const;
  [[nodiscard]] instant valid_until() const { return cluster::valid_until(words_, incarnation_); }
  [[nodiscard]] instant loss_time() const { return cluster::loss_time(words_, incarnation_); }
  [[nodiscard]] token fence() const { return held_.last; }  ///< of an exclusive holder
  /// A holder died inside, and no exclusive holder since has put things right.
  [[nodiscard]] bool died() const { return died_; }
  /// An exclusive holder has put things right, so that the next one is not told.
  void mark_consistent() { died_ = false; }

 private:
  enum class at : std::uint8_t { ownership, state, deadline, incarnation, entry, inside };

  next read_ownership();
  next wait(const ownership& seen);
  next enter();

  mode wanted_;
  Words words_;
  at at_ = at::ownership;
  incarnation_number incarnation_ = 0;  // of the word that suffices
  state before_;                        // as it was read
  state held_;                          // as an exclusive holder has written it
  bool died_ = false;
};

template <words_of_a_name Words>
acquire_events::next acquire<Words>::step(instant now) {
  switch (at_) {
    case at::ownership:
      return read_ownership();
    case at::state:
      // This read comes before that of the incarnation: a later incarnation's state then has
      // another token, and the swap at the entry fails.
      before_ = words_.get_state();
      at_ = at::deadline;
      return next::step;
    case at::deadline:
      at_ = at::ownership;
      // A hold that began later could not be told of its loss in time.
      if (now >= words_.deadline() - told_before(words_.time_to_live()))
        return wait(words_.get_ownership());
      at_ = at::incarnation;
      return next::step;
    case at::incarnation:
      at_ = at::ownership;
      // (!) The word may be that of an incarnation that is over, and the deadline that of the next
      // one.
      if (words_.incarnation() != incarnation_) return wait(words_.get_ownership());
      at_ = at::entry;
      return next::step;
    case at::entry:
      return enter();
    case at::inside:
      break;
  }
  return next::holds;
}

template <words_of_a_name Words>
acquire_events::next acquire<Words>::read_ownership() {
  const ownership word = words_.get_ownership();
  if (word.owned < wanted_) return wait(word);
  // (!) A `wanted` that is left is taken off first: a client that died while it waited has left it,
  // and the agent would take it for a sign that the holder of the host lock is not inside.
  if (word.wanted != mode::none && !words_.swap_ownership(word, word.wanting(mode::none)))
    return next::step;
  incarnation_ = word.incarnation;
  at_ = at::state;
  return next::step;
}

/// (!) Sets `wanted` whenever the word does not suffice, not at the first time alone: a neighbour
/// may have taken it off. A greater one is that of a client that died while it waited: none that
/// wants more can wait while this client has the host lock.
template <words_of_a_name Words>
acquire_events::next acquire<Words>::wait(const ownership& seen) {
  if (seen.wanted == wanted_ || seen.owned >= wanted_) return next::waits;
  if (!words_.swap_ownership(seen, seen.wanting(wanted_))) return next::step;
  return next::rings;
}

template <words_of_a_name Words>
acquire_events::next acquire<Words>::enter() {
  const bool is_after_death = before_.died || before_.inside;
  if (wanted_ == mode::exclusive) {
    // The token and `inside` change in one swap.
    held_ = {{before_.last.epoch, before_.last.counter + 1}, true, is_after_death};
    if (!words_.swap_state(before_, held_)) {
      at_ = at::ownership;
      return next::step;
    }
  }
  died_ = is_after_death;
  at_ = at::inside;
  return next::holds;
}

template <words_of_a_name Words>
void acquire<Words>::give_up() {
  ownership word = words_.get_ownership();
  while (word.wanted != mode::none && !words_.swap_ownership(word, word.wanting(mode::none)))
    word = words_.get_ownership();
}

template <words_of_a_name Words>
void acquire<Words>::leave() {
  // The state of another incarnation is not this holder's.
  if (wanted_ == mode::exclusive && words_.incarnation() == incarnation_)
    (void)words_.swap_state(held_, {held_.last, false, died_});
  at_ = at::ownership;
}

/// (!) A reader gives nothing back: other readers of this host may be inside. An exclusive holder
/// that has left knows that nobody is inside, since it has the host lock.
template <words_of_a_name Words>
bool acquire<Words>::give_back() {
  if (wanted_ != mode::exclusive) return false;
  const ownership word = words_.get_ownership();
  if (word.revoked == mode::none) return false;
  const mode kept = word.revoked == mode::shared ? mode::shared : mode::none;
  // (!) The swap fails if the agent has withdrawn the revocation, with the epoch that it was of: a
  // give_back would cross a grant.
  return words_.swap_ownership(word, {kept, word.wanted, word.incarnation});
}

template <words_of_a_name Words>
bool acquire<Words>::is_valid(instant now) const {
  // (!) The next incarnation's deadline revives nobody.
  return now < words_.deadline() && words_.incarnation() == incarnation_;
}

}  // namespace lockflight::cluster
