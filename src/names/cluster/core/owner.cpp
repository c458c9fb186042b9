#include "names/cluster/core/owner.hpp"

#include <algorithm>
#include <utility>

namespace lockflight::cluster {
namespace {

/// The mode that a word gives, if it is of this incarnation: else this host owns nothing.
mode owned_by(const ownership& word, const host_words& words) {
  return word.incarnation == words.incarnation() ? word.owned : mode::none;
}

}  // namespace

// ---- what clients want ----

void owner::consider(member_id home, host_words& words, outbox& out) {
  give_back_despite_waiter(home, words, out);
  const ownership word = words.ownership_of(name_);
  if (!asks_ || word.wanted <= owned_by(word, words) || word.wanted == asked_) return;
  // If more was asked for, the client that wanted it has given up, and this request replaces that.
  asked_ = word.wanted;
  out.send(home, name_, request{word.wanted});
}

void owner::granted(member_id home, const grant& what, host_words& words, outbox& out) {
  // (!) The client that wanted it has given up, and the host has forgotten the name. Words for it
  // would come with a lock of the default kind, which clients that want another kind refuse.
  if (!words.has_name(name_)) {
    asked_ = mode::none;
    out.send(home, name_, give_back{mode::none, what.last, what.died});
    return;
  }
  ownership word = words.ownership_of(name_);
  if (what.granted > owned_by(word, words)) {
    // The state comes first, since a client reads it after the ownership.
    state before = words.state_of(name_);
    while (!words.swap_state(name_, before, {what.last, false, what.died}))
      before = words.state_of(name_);
    while (!words.swap_ownership(name_, word, {what.granted, word.wanted, words.incarnation()}))
      word = words.ownership_of(name_);
    awaits_taken_ = false;
  }
  if (what.granted >= asked_) asked_ = mode::none;
  consider(home, words, out);
}

// ---- revocation ----

void owner::revoked(member_id home, mode wanted, instant clients_until, host_words& words,
                    effects& asks, outbox& out) {
  ownership word;
  do {
    pass_on_what_a_client_gave(home, words, out);
    word = words.ownership_of(name_);
    const mode owned = owned_by(word, words);
    if (owned == mode::none || (owned == mode::shared && wanted == mode::shared)) return;
  } while (!mark_revoked(word, std::max(revoking_, wanted), words));
  revoking_ = std::max(revoking_, wanted);
  give_back_despite_waiter(home, words, out);
  if (revoking_ == mode::none || takes_lock_ != mode::none) return;
  if (word.owned != mode::exclusive) return take_lock(asks, words);
  clients_until_ = clients_until;
  asks.host_locks_wanted.push_back({name_, mode::exclusive, true});
}

/// False if the word has changed. Only an exclusive holder can give the name back.
bool owner::mark_revoked(const ownership& before, mode wanted, host_words& words) const {
  if (before.owned != mode::exclusive || before.revoked == wanted) return true;
  return words.swap_ownership(name_, before, before.revoked_for(wanted));
}

void owner::pass_on_what_a_client_gave(member_id home, host_words& words, outbox& out) {
  if (revoking_ == mode::none) return;
  const mode kept = owned_by(words.ownership_of(name_), words);
  // A host that shared the name before is not revoked for a reader, so a client has kept that.
  const bool is_given = kept == mode::none || (kept == mode::shared && revoking_ == mode::shared);
  if (is_given && settle_state(words)) tell_home(home, kept, words, out);
}

void owner::clients_are_late(member_id home, host_words& words, effects& asks, outbox& out) {
  clients_until_ = 0;
  pass_on_what_a_client_gave(home, words, out);
  // (!) The client that had the host lock may have died, or have left just before the word said
  // that the name is revoked.
  if (revoking_ != mode::none) take_lock(asks, words, true);
}

void owner::withdraw_revocation(const std::string& name, host_words& words) {
  ownership word = words.ownership_of(name);
  while (word.revoked != mode::none &&
         !words.swap_ownership(name, word, word.revoked_for(mode::none)))
    word = words.ownership_of(name);
}

/// An owner that keeps `shared` needs the host lock shared alone: no exclusive holder is inside
/// then, and readers of this host may stay, however long they do.
mode owner::lock_for_revocation(const host_words& words) const {
  const mode owned = owned_by(words.ownership_of(name_), words);
  return owned == mode::exclusive && revoking_ == mode::shared ? mode::shared : mode::exclusive;
}

void owner::take_lock(effects& asks, const host_words& words, bool again) {
  if (takes_lock_ != mode::none) return;
  takes_lock_ = lock_for_revocation(words);
  asks.host_locks_wanted.push_back({name_, takes_lock_, false, again});
}

void owner::give_back_despite_waiter(member_id home, host_words& words, outbox& out) {
  // (!) A client that waits for `exclusive` holds the host lock, but is not inside. If the
  // revocation waited for it, two hosts that upgrade would wait for each other.
  if (revoking_ == mode::none) return;
  const ownership word = words.ownership_of(name_);
  if (owned_by(word, words) != mode::shared || word.wanted != mode::exclusive) return;
  give(home, word, mode::none, words, out);
}

void owner::host_lock_taken(std::optional<member_id> home, host_words& words, effects& asks,
                            outbox& out) {
  // A lock that was wanted if it was free is taken exclusively.
  const bool was_free = takes_lock_ == mode::none;
  const mode has = was_free ? mode::exclusive : std::exchange(takes_lock_, mode::none);
  while (home && revoking_ != mode::none) {
    pass_on_what_a_client_gave(*home, words, out);
    if (revoking_ == mode::none) break;
    // Another host has asked for more meanwhile.
    if (lock_for_revocation(words) > has) {
      take_lock(asks, words);
      break;
    }
    const ownership word = words.ownership_of(name_);
    const mode owned = owned_by(word, words);
    const bool keeps = owned == mode::exclusive && revoking_ == mode::shared;
    give(*home, word, keeps ? mode::shared : mode::none, words, out);
  }
  asks.host_locks_released.push_back(name_);
  if (home) consider(*home, words, out);
}

void owner::give(member_id home, ownership before, mode kept, host_words& words, outbox& out) {
  if (!settle_state(words)) return;
  // The swap fails if the client that waited has given up since. The revocation then waits for the
  // host lock.
  if (!words.swap_ownership(name_, before, {kept, before.wanted, before.incarnation})) return;
  tell_home(home, kept, words, out);
}

/// No holder is inside: the agent has the host lock, or the client that waits for `exclusive` has
/// it, or this host does not own the name exclusively any more. So a set `inside` is that of a
/// holder that died. (!) Only `inside` says that a holder died: an agent or a client that dies
/// while it waits leaves nothing half done.
bool owner::settle_state(host_words& words) const {
  const state now = words.state_of(name_);
  const state after{now.last, false, now.died || now.inside};
  return now == after || words.swap_state(name_, now, after);
}

void owner::tell_home(member_id home, mode kept, host_words& words, outbox& out) {
  const state now = words.state_of(name_);
  revoking_ = mode::none;
  clients_until_ = 0;
  // Until the home has `taken` it, the state word remembers what was given back.
  awaits_taken_ = kept == mode::none;
  out.send(home, name_, give_back{kept, now.last, now.died});
}

void owner::taken_by_home(host_words& words) {
  if (!awaits_taken_) return;
  awaits_taken_ = false;
  (void)words.swap_state(name_, words.state_of(name_), {});
}

// ---- names that nobody uses ----

void owner::give_back_unused(member_id home, host_words& words, outbox& out) {
  const ownership word = words.ownership_of(name_);
  // (!) If the home has been asked for more, its grant may be under way, and a give_back would
  // cross it.
  if (!is_quiet() || word.wanted != mode::none || owned_by(word, words) == mode::none) return;
  give(home, word, mode::none, words, out);
}

void owner::forget(member_id home, host_words& words, outbox& out) {
  if (owned_by(words.ownership_of(name_), words) != mode::none) return;
  awaits_taken_ = false;
  const state left = words.state_of(name_);
  if (left != state{}) (void)words.swap_state(name_, left, {});
  out.send(home, name_, forgotten{});
}

// ---- epochs ----

void owner::epoch_ended() {
  asked_ = mode::none;
  // (!) A revocation that is not finished is dropped. A give_back answers a revoke of its own
  // epoch; else it crosses a grant.
  revoking_ = mode::none;
  clients_until_ = 0;
  awaits_taken_ = false;
}

std::optional<claim> owner::claim_of(const std::string& name, const host_words& words) {
  const ownership word = words.ownership_of(name);
  if (word.incarnation != words.incarnation()) return std::nullopt;
  const state now = words.state_of(name);
  // (!) A name that was given back without `taken` is claimed as well: the home may have died
  // before it got it.
  if (word.owned == mode::none && now.last == token{}) return std::nullopt;
  return claim{word.owned, now.last, now.died};
}

}  // namespace lockflight::cluster
