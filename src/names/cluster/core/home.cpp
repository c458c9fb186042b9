#include "names/cluster/core/home.hpp"

#include <algorithm>
#include <utility>

#include "names/cluster/core/rendezvous.hpp"

namespace lockflight::cluster {

// ---- before it begins ----

void home::collect(member_id from, const claim& what) {
  if (what.owned == mode::exclusive) exclusive_ = from;
  if (what.owned == mode::shared) shared_.insert(from);
  if (what.owned == mode::none) may_remember_.insert(from);
  // The greatest token counts. Claims with the same token come from hosts that share the name, or
  // from one that gave it back and one that got it then; a death counts if one of them knows it.
  if (what.last > last_) {
    last_ = what.last;
    died_ = what.died;
  } else if (what.last == last_) {
    died_ = died_ || what.died;
  }
}

void home::collect(const record& what) {
  // (!) A home that has served later knows more, whatever the tokens are.
  if (!former_record_ || what.epoch >= former_record_->epoch) former_record_ = what;
}

bool home::former_home_is_gone(const epoch_value& now, epoch_number since) const {
  return std::any_of(now.past.begin(), now.past.end(), [&](const past_epoch& past) {
    if (past.number <= since) return false;
    // An entry whose members are not named stands for several: any home may be gone.
    if (past.members.empty()) return true;
    past_epoch seen = past;
    if (!past.passed_on) seen.gone = now.missing_of(past);
    const identity then = home_of(name_, past.members);
    return seen.leaves_doubt() &&
           std::find(seen.gone.begin(), seen.gone.end(), then) != seen.gone.end();
  });
}

bool home::is_in_doubt(const epoch_value& now) const {
  if (exclusive_ || !shared_.empty()) return false;  // the living owner knows
  // (!) A former home that is gone may have granted the name to a host that is gone as well, or to
  // its own host, which its witness knows. A record of a later epoch was made when this doubt was
  // known.
  const epoch_number since = former_record_ ? former_record_->epoch : 0;
  return reported_by_witness_ > since || former_home_is_gone(now, since);
}

void home::begin(const epoch_value& now, std::optional<member_id> witness, host_words& words,
                 outbox& out) {
  witness_ = witness;
  const bool doubt = is_in_doubt(now);
  // (!) With equal tokens the claim counts: a holder may have died, or put things right, since the
  // record was made.
  if (former_record_ && former_record_->last > last_) {
    last_ = former_record_->last;
    died_ = former_record_->died;
  }
  if (doubt) died_ = true;
  // (!) Only an exclusive owner knows the counter. Else a home that is lost may have granted the
  // name since, and the counter begins again under this epoch. (!) A name that was forgotten in
  // this epoch had a token of it.
  if (!exclusive_) last_ = std::max(token{now.number, 0}, forgotten_);
  begun_ = true;
  store(now, words);
  // (!) The witness of the former home forgets its note when this epoch is settled.
  if (died_ || exclusive_ == out.self()) (void)is_witnessed(out);
  serve(now, words, out);
}

// ---- at any time ----

void home::requested(member_id from, mode wanted, const epoch_value& now, host_words& words,
                     outbox& out) {
  // A client that wanted more has given up since. Else a reader would wait for a writer that is
  // gone.
  std::erase_if(queue_,
                [&](const waiting& each) { return each.from == from && each.wanted > wanted; });
  const waiting asked{from, wanted};
  if (std::find(queue_.begin(), queue_.end(), asked) == queue_.end()) queue_.push_back(asked);
  if (begun_) serve(now, words, out);
}

void home::given_back(member_id from, const give_back& what, const epoch_value& now,
                      host_words& words, outbox& out) {
  if (exclusive_ == from) {
    exclusive_.reset();
    // (!) The word of an exclusive owner replaces what the home knew. Its claim may have said that
    // nobody died while a holder was inside that died later, or left.
    last_ = what.last;
    died_ = what.died;
  }
  shared_.erase(from);
  if (what.kept == mode::shared) shared_.insert(from);
  // This home has begun: a give_back answers a revoke of this epoch, or is sent when the epoch is
  // settled.
  store(now, words);
  if (what.kept == mode::none) {
    revoked_for_shared_.erase(from);
    revoked_for_exclusive_.erase(from);
    // (!) With `taken` the giver forgets the death, and this home alone knows of it.
    if (died_ && !is_witnessed(out))
      unconfirmed_.push_back(from);
    else
      confirm(from, out);
  }
  serve(now, words, out);
}

void home::confirm(member_id giver, outbox& out) {
  may_remember_.insert(giver);
  out.send(giver, name_, taken{});
}

// ---- the witness ----

bool home::is_witnessed(outbox& out) {
  if (!witness_ || witness_knows_ == witness_state::yes) return true;
  if (witness_knows_ == witness_state::no) out.send(*witness_, name_, witness_request{true});
  witness_knows_ = witness_state::asked;
  return false;
}

void home::witnessed(const epoch_value& now, host_words& words, outbox& out) {
  witness_knows_ = witness_state::yes;
  for (const member_id giver : std::exchange(unconfirmed_, {})) confirm(giver, out);
  serve(now, words, out);
}

void home::store(const epoch_value& now, host_words& words) const {
  record what{now.number, last_, died_, std::nullopt};
  if (exclusive_) what.exclusive = now.find(*exclusive_)->who;
  words.store_record(name_, what);
}

// ---- the end ----

/// The queue is empty if the home is unused: a request is granted at once, unless an owner is in
/// its way or the witness has not answered.
bool home::is_unused(const epoch_value& now) const {
  if (!begun_ || exclusive_ || !shared_.empty() || died_) return false;
  // (!) An answer that is under way would be taken for that to a later request.
  if (awaits_witness()) return false;
  // (!) Without the record, which says that nobody died, a name whose former home is gone would be
  // in doubt; and as long as the epoch is not settled, its former home may be needed.
  return now.settled && !former_home_is_gone(now, 0);
}

void home::ask_hosts_to_forget(outbox& out) const {
  for (const member_id each : may_remember_) out.send(each, name_, forget{});
}

void home::end(outbox& out) const {
  if (witness_knows_ != witness_state::no) out.send(*witness_, name_, witness_request{false});
}

// ---- the queue ----

bool home::has_enough(const waiting& head) const {
  return exclusive_ == head.from || (head.wanted == mode::shared && shared_.contains(head.from));
}

std::vector<member_id> home::in_the_way(const waiting& head) const {
  std::vector<member_id> owners;
  if (exclusive_) owners.push_back(*exclusive_);
  if (head.wanted == mode::exclusive)
    for (const member_id each : shared_)
      if (each != head.from) owners.push_back(each);
  return owners;
}

void home::serve(const epoch_value& now, host_words& words, outbox& out) {
  while (!queue_.empty()) {
    const waiting head = queue_.front();
    if (has_enough(head)) {
      queue_.pop_front();
      continue;
    }
    // (!) If this host is lost, nobody else knows that it owned the name.
    const bool may_grant =
        head.wanted != mode::exclusive || head.from != out.self() || is_witnessed(out);
    const std::vector<member_id> owners = in_the_way(head);
    if (!owners.empty()) return revoke_for(head.wanted, owners, out);
    if (!may_grant) return;
    // (!) The request that it was revoked for may have been replaced since. Its give_back would
    // cross the grant.
    if (revoked_for_exclusive_.contains(head.from)) return;
    grant_head(now, words, out);
  }
}

void home::grant_head(const epoch_value& now, host_words& words, outbox& out) {
  const waiting head = queue_.front();
  queue_.pop_front();
  revoked_for_shared_.erase(head.from);
  revoked_for_exclusive_.erase(head.from);
  // (!) A `taken` for what it gave back before would be taken for that to what it gives back next.
  std::erase(unconfirmed_, head.from);
  if (head.wanted == mode::exclusive) {
    shared_.clear();
    exclusive_ = head.from;
  } else {
    shared_.insert(head.from);
  }
  // (!) The record stands in the domain file before the grant leaves, so that it survives this
  // agent: the new owner may die, and nobody else would know that it was one.
  store(now, words);
  out.send(head.from, name_, grant{head.wanted, last_, died_});
}

void home::revoke_for(mode wanted, const std::vector<member_id>& owners, outbox& out) {
  for (const member_id owner : owners) {
    // (!) Revocations are noted by mode: an exclusive owner that was revoked for a reader keeps
    // `shared`, and has to be revoked for a writer as well.
    if (revoked_for_exclusive_.contains(owner)) continue;
    if (wanted == mode::shared && revoked_for_shared_.contains(owner)) continue;
    (wanted == mode::shared ? revoked_for_shared_ : revoked_for_exclusive_).insert(owner);
    out.send(owner, name_, revoke{wanted});
  }
}

}  // namespace lockflight::cluster
