#include "cluster/core/acquire.hpp"

namespace lockflight::cluster {

acquire_events::next acquire::step(instant now) {
  switch (at_) {
    case at::ownership:
      return read_ownership();
    case at::state:
      // This read comes before that of the incarnation: a later incarnation's state then has
      // another token, and the swap at the entry fails.
      before_ = words_.state_of(name_);
      at_ = at::deadline;
      return next::step;
    case at::deadline:
      at_ = at::ownership;
      if (now >= words_.deadline()) return wait(words_.ownership_of(name_));
      at_ = at::incarnation;
      return next::step;
    case at::incarnation:
      at_ = at::ownership;
      // (!) The word may be that of an incarnation that is over, and the deadline that of the next
      // one.
      if (words_.incarnation() != incarnation_) return wait(words_.ownership_of(name_));
      at_ = at::entry;
      return next::step;
    case at::entry:
      return enter();
    case at::inside:
      break;
  }
  return next::holds;
}

acquire_events::next acquire::read_ownership() {
  const ownership word = words_.ownership_of(name_);
  if (word.owned < wanted_) return wait(word);
  // (!) A `wanted` that is left is taken off first: a client that died while it waited has left it,
  // and the agent would take it for a sign that the holder of the host lock is not inside.
  if (word.wanted != mode::none &&
      !words_.swap_ownership(name_, word, {word.owned, mode::none, word.incarnation}))
    return next::step;
  incarnation_ = word.incarnation;
  at_ = at::state;
  return next::step;
}

/// (!) Sets `wanted` whenever the word does not suffice, not at the first time alone: a neighbour
/// may have taken it off.
acquire_events::next acquire::wait(const ownership& seen) {
  if (seen.wanted >= wanted_ || seen.owned >= wanted_) return next::waits;
  if (!words_.swap_ownership(name_, seen, {seen.owned, wanted_, seen.incarnation}))
    return next::step;
  return next::rings;
}

acquire_events::next acquire::enter() {
  const bool is_after_death = before_.died || before_.inside;
  if (wanted_ == mode::exclusive) {
    // The token and `inside` change in one swap.
    held_ = {{before_.last.epoch, before_.last.counter + 1}, true, is_after_death};
    if (!words_.swap_state(name_, before_, held_)) {
      at_ = at::ownership;
      return next::step;
    }
  }
  died_ = is_after_death;
  at_ = at::inside;
  return next::holds;
}

void acquire::give_up() {
  ownership word = words_.ownership_of(name_);
  while (word.wanted != mode::none &&
         !words_.swap_ownership(name_, word, {word.owned, mode::none, word.incarnation}))
    word = words_.ownership_of(name_);
}

void acquire::leave() {
  // The state of another incarnation is not this holder's.
  if (wanted_ == mode::exclusive && words_.incarnation() == incarnation_)
    (void)words_.swap_state(name_, held_, {held_.last, false, false});
  at_ = at::ownership;
}

bool acquire::is_valid(instant now) const {
  // (!) The next incarnation's deadline revives nobody.
  return now < words_.deadline() && words_.incarnation() == incarnation_;
}

}  // namespace lockflight::cluster
