#include "names/cluster/core/membership.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace lockflight::cluster {

// ---- requests ----

void membership::submit(instant now, transaction what, purpose why, effects& out) {
  if (why != purpose::change) drop_own();
  (why == purpose::change ? change_ : own_) = {++numbers_, now, why};
  out.transactions.push_back({numbers_, std::move(what)});
}

/// The agent does not guess if a transaction without an answer was carried out: the next answer
/// shows all keys.
void membership::drop_own() {
  if (own_ && own_->why == purpose::renewal) is_unanswered_ = true;
  own_.reset();
}

void membership::read(instant now, effects& out) { submit(now, {}, purpose::read, out); }

void membership::start(instant now, effects& out) {
  agent_ = words_.next_agent();
  last_timer_ = now;
  read(now, out);
}

void membership::hint(instant now, effects& out) {
  if (own_)
    read_again_ = true;
  else if (phase_ != phase::ended)
    read(now, out);
}

instant membership::wake_at() const {
  instant at = std::numeric_limits<instant>::max();
  if (phase_ == phase::ended) return at;
  at = own_ ? own_->sent + times_.patience() : next_renewal_;
  if (change_) at = std::min(at, change_->sent + times_.patience());
  if (change_due_ && !change_) at = std::min(at, *change_due_);
  return std::min(at, next_stale_);
}

void membership::timer(instant now, effects& out) {
  if (phase_ == phase::ended) return;
  // An agent that was stopped has heard nobody in the meantime, and says nothing about the others.
  if (now - last_timer_ > times_.reads_within())
    for (auto& [id, at] : heard_) at = now;
  last_timer_ = now;
  if (now >= next_stale_) find_next_stale(now);
  if (own_ && now >= own_->sent + times_.patience()) {
    drop_own();
    next_renewal_ = now;
  }
  if (change_ && now >= change_->sent + times_.patience()) change_.reset();
  if (!own_ && now >= next_renewal_) {
    next_renewal_ = now + (phase_ == phase::registered ? times_.period() : times_.patience());
    if (phase_ == phase::registered)
      renew(now, out);
    else
      read(now, out);
  }
  consider_change(now, out);
}

void membership::answered(instant now, std::uint64_t number, const answer& what, effects& out) {
  if (phase_ == phase::ended) return;
  const bool is_own = own_ && own_->number == number;
  const bool is_change = change_ && change_->number == number;
  // An answer that came too late, or to an earlier incarnation, confirms nothing.
  if (!is_own && !is_change) return;
  observe(now, what.seen);
  if (is_change) {
    change_.reset();
    change_due_.reset();
  }
  if (is_own) {
    const pending asked = *own_;
    own_.reset();
    const member_keys* const mine = what.seen->find(self_);
    const bool is_there = mine != nullptr && mine->member;
    if (what.succeeded && asked.why == purpose::renewal && phase_ != phase::leaving && is_there)
      confirmed(asked, *what.seen, out);
    else
      decide(now, asked.why, out);
    if (std::exchange(read_again_, false) && !own_ && phase_ != phase::ended) read(now, out);
  }
  consider_change(now, out);
}

void membership::observe(instant now, std::shared_ptr<const snapshot> seen) {
  if (latest_ && seen->at < latest_->at) return;  // another answer was quicker
  // (!) An agent that could not read for longer than reads_within() counts from now on, so an
  // outage of etcd expels nobody.
  const bool was_blind = last_read_ && now - *last_read_ > times_.reads_within();
  if (was_blind) beats_.clear();
  if (was_blind) lost_.clear();
  // (!) A beat that etcd has lost hides the renewals before the loss, so the loss counts as a
  // renewal.
  std::erase_if(beats_, [&](const auto& each) { return seen->find(each.first) == nullptr; });
  for (const auto& [id, keys] : seen->members) {
    const revision changed = keys.beat ? keys.beat->changed : 0;
    const auto [at, is_new] = beats_.try_emplace(id, watched{changed, now, now});
    watched& beat = at->second;
    if (is_new || beat.changed == changed) continue;
    const bool is_steady = beat.changed != 0 && now - beat.since <= times_.sees_beats_within();
    beat = {changed, now, is_steady ? beat.steady_since : now};
  }
  observe_losses(now, *seen);
  find_next_stale(now);
  if (seen->cluster && seen->cluster->what != words_.cluster())
    words_.set_cluster(seen->cluster->what);
  last_read_ = now;
  latest_ = std::move(seen);
}

/// Notes which members have no key. A member that leaves in order makes an epoch without itself, so
/// somebody has deleted such a key. (!) The member may have renewed until its key was deleted, so
/// the TTL after which it is taken off begins when this agent reads that the key is gone.
void membership::observe_losses(instant now, const snapshot& seen) {
  const auto is_member_without_key = [&](member_id id) {
    const member_keys* const theirs = seen.find(id);
    return seen.epoch && seen.epoch->what.find(id) != nullptr &&
           (theirs == nullptr || !theirs->member);
  };
  std::erase_if(lost_, [&](const auto& each) { return !is_member_without_key(each.first); });
  if (!seen.epoch) return;
  for (const member& each : seen.epoch->what.members)
    if (is_member_without_key(each.who.id)) lost_.emplace(each.who.id, now);
}

/// Finds the next moment at which a member is to be taken off, so that the agent wakes for it: its
/// own next renewal may come later.
void membership::find_next_stale(instant now) {
  next_stale_ = std::numeric_limits<instant>::max();
  for (const auto& [id, beat] : beats_)
    if (const instant at = beat.since + times_.ttl; id != self_ && at > now)
      next_stale_ = std::min(next_stale_, at);
  for (const auto& [id, since] : lost_)
    if (const instant at = since + times_.ttl; id != self_ && at > now)
      next_stale_ = std::min(next_stale_, at);
}

// ---- the own keys ----

bool membership::is_mine(const stored<member_value>& key) const {
  return key.what.incarnation == words_.incarnation() && key.what.agent == agent_;
}

bool membership::is_the_one_registered(const member_keys* mine) const {
  return mine != nullptr && mine->member && is_mine(*mine->member) &&
         mine->member->created == words_.registered();
}

/// Acts on an answer that does not confirm a renewal.
void membership::decide(instant now, purpose asked, effects& out) {
  const member_keys* const mine = latest_->find(self_);
  const bool is_there = mine != nullptr && mine->member;
  if (is_there && mine->member->what.incarnation == words_.incarnation() &&
      mine->member->what.agent > agent_) {
    if (mine->member->what.agent > words_.last_agent()) return end_as_copied(out);
    phase_ = phase::ended;
    out.stops = stop::replaced;
    return;
  }
  switch (phase_) {
    case phase::starting:
      return take_up(now, asked, out);
    case phase::joining:
      return join(now, asked, out);
    case phase::registered:
      return decide_as_member(now, asked, out);
    case phase::leaving:
      if (is_the_one_registered(mine)) {
        // Another epoch came first, in which this host may be a home.
        my_key_ = mine->member->changed;
        phase_ = phase::registered;
        return;
      }
      begin_new_incarnation(out);
      return end_after_leaving(out);
    case phase::ended:
      return;
  }
}

void membership::decide_as_member(instant now, purpose asked, effects& out) {
  const member_keys* const mine = latest_->find(self_);
  const bool is_there = mine != nullptr && mine->member;
  if (is_there && mine->evicted) is_evicted_ = true;
  if (is_there && mine->member->changed != my_key_ && retires_ && is_the_one_registered(mine))
    my_key_ = mine->member->changed;  // the key was written with `retires`, and the answer was lost
  // The key is gone, or is not the one that this incarnation registered.
  if (!is_there || mine->member->changed != my_key_) return come_back(now, out);
  const revision beat = mine->beat ? mine->beat->changed : 0;
  if (beat == my_beat_) return;  // the transaction was a read, or this member is evicted
  // (!) The beat is lost, or is that of a renewal whose answer was lost. Else another agent renews
  // with the keys of this one: it runs on a copy of this host's words.
  const bool may_be_mine = is_unanswered_ && mine->beat && mine->beat->what.number == number_;
  if (mine->beat && !may_be_mine) return end_as_copied(out);
  if (mine->beat) number_ = words_.next_beat(number_);
  is_unanswered_ = false;
  my_beat_ = beat;
  if (asked == purpose::renewal) renew(now, out);
}

void membership::put_mine(transaction& into, instant now) const {
  into.puts.push_back(
      {{key_kind::member, self_}, member_value{words_.incarnation(), agent_, retires_}});
  into.puts.push_back({{key_kind::beat, self_}, beat_value{begun_, missing(now), number_}});
}

void membership::take_up(instant now, purpose asked, effects& out) {
  const member_keys* const mine = latest_->find(self_);
  // (!) The agent takes up the incarnation of the agent before it only by a transaction on its key.
  // The key must be the one that was created then. A transaction that registers may be carried out
  // late, after the members have taken this host off, and would make a key that looks the same.
  if (mine == nullptr || !mine->member || mine->evicted ||
      mine->member->what.incarnation != words_.incarnation() ||
      mine->member->created != words_.registered())
    return come_back(now, out);
  transaction takes;
  const revision beat = mine->beat ? mine->beat->changed : 0;
  takes.when = {{{key_kind::member, self_}, mine->member->changed},
                {{key_kind::evicted, self_}, 0},
                {{key_kind::beat, self_}, beat}};
  if (is_copied(now, asked, takes, out)) return;
  choose_number();
  put_mine(takes, now);
  submit(now, std::move(takes), purpose::renewal, out);
}

/// (!) A number is used until etcd is known to have it: a renewal of the agent before this one may
/// still be under way.
void membership::choose_number() {
  const member_keys* const mine = latest_->find(self_);
  const bool has_beat = mine != nullptr && mine->beat;
  const beat_number there = has_beat ? mine->beat->what.number : words_.confirmed_beat();
  number_ = words_.last_beat();
  if (number_ == 0 || number_ == there) number_ = words_.next_beat(there);
}

/// (!) If no agent on these words wrote the beat that is there, an agent on a copy of them did.
/// The keys that were read may be out of date, so a transaction has to show it, too. (Earlier
/// versions write no number.) If this is true, nothing else is to be done for now.
bool membership::is_copied(instant now, purpose asked, const transaction& with, effects& out) {
  const member_keys* const mine = latest_->find(self_);
  const beat_number by = mine != nullptr && mine->beat ? mine->beat->what.number : 0;
  if (by == 0 || by == words_.last_beat() || by == words_.confirmed_beat()) return false;
  if (asked == purpose::read)
    submit(now, {with.when, {}, {}}, purpose::check, out);
  else
    end_as_copied(out);
  return true;
}

/// (!) Called when the host's key is gone, or is one that this agent may not renew. What etcd has
/// lost shortens no promise: the host does not join again before its last deadline is over. If the
/// others have taken the host off, that deadline is over already.
void membership::come_back(instant now, effects& out) {
  if (now < words_.deadline()) {
    // A host that has left, or was taken off, has no key and is not in the epoch either.
    const member_keys* const mine = latest_->find(self_);
    const bool is_in_epoch =
        latest_->epoch && latest_->epoch->what.has({self_, words_.incarnation()});
    out.has_lost_key = is_in_epoch && (mine == nullptr || !mine->member);
    next_renewal_ = std::min(now + times_.patience(), words_.deadline());
    return;
  }
  stay_away_if_evicted(now);
  begin_new_incarnation(out);
  return retires_ ? end_after_leaving(out) : join(now, purpose::read, out);
}

void membership::begin_new_incarnation(effects& out) {
  // The deadline comes first: from here on no holder of the old incarnation is valid.
  words_.set_deadline(0);
  words_.set_registered(0);
  words_.set_incarnation(words_.incarnation() + 1);
  own_.reset();
  change_.reset();
  phase_ = phase::joining;
  is_new_incarnation_ = true;
  begun_ = 0;
  out.wakes_clients = true;
}

/// (!) A host may hear the others while they do not hear it, as behind a wrong address or a
/// firewall. It is evicted whenever it has joined. Each time takes two epochs, and until it is
/// taken off, the names wait whose home it is. So it stays away for longer each time: not at all
/// after the first eviction, and then for the TTL, twice the TTL, and so on.
void membership::stay_away_if_evicted(instant now) {
  if (!std::exchange(is_evicted_, false)) return;
  if (now - joined_at_ > times_.proves_itself_within()) evictions_ = 0;
  constexpr int doublings_most = 10;
  if (++evictions_ > 1)
    may_join_at_ = now + std::min(times_.longest_absence,
                                  times_.ttl << std::min(evictions_ - 2, doublings_most));
}

void membership::join(instant now, purpose asked, effects& out) {
  const member_keys* const mine = latest_->find(self_);
  const bool is_there = mine != nullptr && mine->member;
  if (is_there && is_mine(*mine->member)) {
    if (mine->beat && mine->beat->what.number != number_) return end_as_copied(out);
    // The transaction was carried out, and its answer was lost.
    if (mine->beat) number_ = words_.next_beat(number_);
    my_key_ = mine->member->changed;
    my_beat_ = mine->beat ? mine->beat->changed : 0;
    words_.set_registered(mine->member->created);
    phase_ = phase::registered;
    joined_at_ = now;
    return renew(now, out);
  }
  if (retires_) return end_after_leaving(out);
  // A member that was evicted comes back when the others have taken it off.
  if (is_there && mine->evicted) return;
  transaction joins;
  joins.when = {{{key_kind::member, self_}, is_there ? mine->member->changed : 0}};
  if (is_there) joins.when.push_back({{key_kind::evicted, self_}, 0});
  if (is_copied(now, asked, joins, out)) return;
  if (number_ == 0) choose_number();
  if (!is_there) {
    // A host that cannot hear the members would stop all of them again as soon as it was one.
    if (const auto unheard = unheard_members(now); !unheard.empty())
      return say_who_is_unheard(now, unheard, out);
    if (now < may_join_at_) return;
  }
  put_mine(joins, now);
  submit(now, std::move(joins), purpose::renewal, out);
}

/// Writes a beat with the members that this host does not hear. A host that waits to join has a
/// beat and no other key.
void membership::say_who_is_unheard(instant now, const std::vector<member_id>& unheard,
                                    effects& out) {
  if (now < next_application_) return;
  next_application_ = now + times_.period();
  transaction says;
  says.when = {{{key_kind::member, self_}, 0}};
  says.puts = {{{key_kind::beat, self_}, beat_value{0, unheard, number_}}};
  submit(now, std::move(says), purpose::read, out);
}

void membership::renew(instant now, effects& out) {
  transaction renews;
  renews.when = {{{key_kind::member, self_}, my_key_},
                 {{key_kind::evicted, self_}, 0},
                 {{key_kind::beat, self_}, my_beat_}};
  const member_keys* const mine = latest_->find(self_);
  const bool is_told = mine != nullptr && mine->member && mine->member->what.retires;
  if (retires_ && !is_told)
    put_mine(renews, now);
  else
    renews.puts = {{{key_kind::beat, self_}, beat_value{begun_, missing(now), number_}}};
  submit(now, std::move(renews), purpose::renewal, out);
}

// ---- the end ----

void membership::retire(instant now, effects& out) {
  retires_ = true;
  if (phase_ == phase::registered) {
    // The transaction under way does not say that this member retires.
    return renew(now, out);
  }
  // (!) An agent that has not read the keys yet may find that it is a member, by those of the agent
  // before it; and what it has sent may make it one. It leaves in order then.
  if (phase_ == phase::starting || own_) return;
  if (phase_ != phase::ended) end_after_leaving(out);
}

void membership::end_after_leaving(effects& out) {
  phase_ = phase::ended;
  out.has_left = true;
}

/// Ends this agent because another one, on a copy of this host's words, renews in its place. From
/// here on no holder of this host is valid.
void membership::end_as_copied(effects& out) {
  words_.set_deadline(0);
  phase_ = phase::ended;
  out.wakes_clients = true;
  out.stops = stop::copied;
}

bool membership::is_alone() const {
  return std::all_of(latest_->members.begin(), latest_->members.end(),
                     [&](const auto& each) { return each.first == self_ || !each.second.member; });
}

void membership::leave(instant now, bool last, effects& out) {
  // The keys that were read may be of a later epoch than the agent's.
  if (phase_ != phase::registered || latest_->epoch->what.number != epoch_) return;
  // The leave writes another epoch.
  if (epoch_ >= last_epoch || (last && !is_alone())) return;
  leaves_last_ = last;
  phase_ = phase::leaving;
  change_.reset();
  take_keys_away(now, out);
}

void membership::take_keys_away(instant now, effects& out) {
  transaction leaves;
  leaves.when = {{{key_kind::member, self_}, my_key_},
                 {{key_kind::epoch}, latest_->epoch->changed}};
  leaves.erased = {{key_kind::member, self_}, {key_kind::beat, self_}, {key_kind::evicted, self_}};
  // The last member makes an epoch without members, since no other would: a host that joins later
  // finds that nothing is in doubt. (!) Any other member makes the next epoch, too: the others may
  // not make it because this host's key is gone, since somebody may have deleted the key.
  auto others = latest_->epoch->what.members;
  std::erase_if(others, [&](const member& each) { return each.who.id == self_; });
  epoch_value without_me = epoch_of(leaves_last_ ? std::vector<member>() : std::move(others));
  if (leaves_last_) without_me.past.clear();
  without_me.settled = leaves_last_;
  leaves.puts.push_back({{key_kind::epoch}, std::move(without_me)});
  next_renewal_ = now + times_.patience();
  submit(now, std::move(leaves), purpose::renewal, out);
}

void membership::confirmed(const pending& asked, const snapshot& seen, effects& out) {
  const stored<member_value>& key = *seen.find(self_)->member;
  my_key_ = key.changed;
  my_beat_ = seen.find(self_)->beat ? seen.find(self_)->beat->changed : 0;
  is_unanswered_ = false;
  number_ = words_.next_beat(number_);
  if (phase_ != phase::registered) {
    words_.set_registered(key.created);
    phase_ = phase::registered;
    joined_at_ = asked.sent;
  }
  // The time before the transaction was sent, not that of its answer: etcd may have carried it out
  // at once.
  const instant until = asked.sent + times_.ttl - times_.margin;
  next_renewal_ = asked.sent + times_.period();
  if (until <= words_.deadline()) return;
  words_.set_deadline(until);
  out.wakes_clients = true;
}

// ---- the epoch ----

const epoch_value* membership::epoch_of_mine() const {
  if (phase_ != phase::registered || !latest_ || !latest_->epoch) return nullptr;
  const epoch_value& now = latest_->epoch->what;
  const member* const me = now.find(self_);
  // (!) Another number of the agent is another epoch as well: what the agent before it had in its
  // memory is lost, and so are messages.
  const bool is_this_agent =
      me != nullptr && me->agent == agent_ && me->who == identity{self_, words_.incarnation()};
  return is_this_agent ? &now : nullptr;
}

void membership::has_moved(instant now, const epoch_value& to) {
  epoch_ = to.number;
  moved_at_ = now;
}

void membership::has_begun(instant now, epoch_number in, effects& out) {
  begun_ = in;
  if (phase_ == phase::registered && !own_) renew(now, out);
}

std::vector<member_id> membership::missing(instant now) const {
  std::vector<member_id> found;
  if (epoch_ == 0 || !latest_ || !latest_->epoch) return found;
  for (const member& each : latest_->epoch->what.members) {
    if (each.who.id == self_ || !has_key(each.who.id)) continue;
    const auto at = heard_.find(each.who.id);
    const instant since = std::max(moved_at_, at == heard_.end() ? 0 : at->second);
    if (now - since > times_.ttl / 2) found.push_back(each.who.id);
  }
  return found;
}

/// True if etcd has the member's key. The epoch also names a member whose key was deleted.
bool membership::has_key(member_id id) const {
  const member_keys* const at = latest_->find(id);
  return at != nullptr && at->member;
}

std::vector<member_id> membership::unheard_members(instant now) const {
  std::vector<member_id> found;
  if (!latest_->epoch) return found;
  for (const member& each : latest_->epoch->what.members) {
    if (each.who.id == self_ || !has_key(each.who.id) || is_stale(now, each.who.id)) continue;
    const auto at = heard_.find(each.who.id);
    if (at == heard_.end() || now - at->second > times_.ttl / 2) found.push_back(each.who.id);
  }
  return found;
}

/// True if the key of this member of the epoch has been gone for longer than any deadline lasts.
bool membership::is_lost(instant now, member_id id) const {
  const auto since = lost_.find(id);
  return since != lost_.end() && now - since->second >= times_.ttl;
}

bool membership::is_stale(instant now, member_id id) const {
  const auto beat = beats_.find(id);
  return beat != beats_.end() && now - beat->second.since >= times_.ttl;
}

}  // namespace lockflight::cluster
