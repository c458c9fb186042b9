#include "cluster/core/membership.hpp"

#include <algorithm>
#include <limits>

#include "cluster/core/rendezvous.hpp"

namespace lockflight::cluster {

// ---- requests ----

void membership::submit(instant now, transaction what, bool is_renewal, std::optional<pending>& as,
                        effects& out) {
  as = {++numbers_, now, is_renewal};
  out.transactions.push_back({numbers_, std::move(what)});
}

void membership::read(instant now, effects& out) { submit(now, {}, false, own_, out); }

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
  if (now - last_timer_ > 2 * times_.period())
    for (auto& [id, at] : heard_) at = now;
  last_timer_ = now;
  if (now >= next_stale_) find_next_stale(now);
  // Whether a transaction without an answer was carried out is not guessed: the next answer shows
  // all keys.
  if (own_ && now >= own_->sent + times_.patience()) {
    own_.reset();
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
    const seat* const mine = what.seen->find(self_);
    const bool is_there = mine != nullptr && mine->member;
    if (what.succeeded && asked.is_renewal && phase_ != phase::leaving && is_there)
      confirmed(asked, *what.seen, out);
    else
      decide(now, out);
    if (std::exchange(read_again_, false) && !own_ && phase_ != phase::ended) read(now, out);
  }
  consider_change(now, out);
}

void membership::observe(instant now, std::shared_ptr<const snapshot> seen) {
  if (latest_ && seen->at < latest_->at) return;  // another answer was quicker
  // An agent that could not read for longer than a period or two counts from now on, so an outage
  // of etcd expels nobody.
  const bool was_blind = last_read_ && now - *last_read_ > 2 * times_.period();
  if (was_blind) beats_.clear();
  for (const auto& [id, seat] : seen->seats) {
    if (!seat.beat) continue;
    watched& beat = beats_[id];
    if (beat.changed != seat.beat->changed) beat = {seat.beat->changed, now};
  }
  find_next_stale(now);
  last_read_ = now;
  latest_ = std::move(seen);
}

/// When a beat has stood still for the TTL its member is taken off, not at the next renewal after.
void membership::find_next_stale(instant now) {
  next_stale_ = std::numeric_limits<instant>::max();
  for (const auto& [id, beat] : beats_)
    if (const instant at = beat.since + times_.ttl; id != self_ && at > now)
      next_stale_ = std::min(next_stale_, at);
}

// ---- the own keys ----

bool membership::is_mine(const stored<member_value>& key) const {
  return key.what.incarnation == words_.incarnation() && key.what.agent == agent_;
}

bool membership::is_the_one_registered(const seat* mine) const {
  return mine != nullptr && mine->member && is_mine(*mine->member) &&
         mine->member->created == words_.registered();
}

/// What follows from an answer that is not that of a renewal.
void membership::decide(instant now, effects& out) {
  const seat* const mine = latest_->find(self_);
  const bool is_there = mine != nullptr && mine->member;
  if (is_there && mine->member->what.incarnation == words_.incarnation() &&
      mine->member->what.agent > agent_) {
    phase_ = phase::ended;
    out.stops = true;
    return;
  }
  switch (phase_) {
    case phase::starting:
      return take_up(now, out);
    case phase::joining:
      return join(now, out);
    case phase::registered:
      // The key is gone, or is not the one that this incarnation registered. If it is there, the
      // transaction was a read, or this member is evicted and runs out.
      if (is_there && mine->member->changed == my_key_) return;
      // That this member retires was written, and the answer was lost.
      if (retires_ && is_the_one_registered(mine)) {
        my_key_ = mine->member->changed;
        return;
      }
      become_another(out);
      return retires_ ? end_as_one_that_left(out) : join(now, out);
    case phase::leaving:
      if (is_the_one_registered(mine)) {
        // Another epoch came first, in which this host may be a home.
        my_key_ = mine->member->changed;
        phase_ = phase::registered;
        return;
      }
      become_another(out);
      return end_as_one_that_left(out);
    case phase::ended:
      return;
  }
}

void membership::put_mine(transaction& into, instant now) const {
  into.puts.push_back(
      {{key_kind::member, self_}, member_value{words_.incarnation(), agent_, retires_}});
  into.puts.push_back({{key_kind::beat, self_}, beat_value{begun_, missing(now)}});
}

void membership::take_up(instant now, effects& out) {
  const seat* const mine = latest_->find(self_);
  // (!) The agent takes up the incarnation of the agent before it only by a transaction on its key.
  // The key must be the one that was created then. A transaction that registers may be carried out
  // late, after the members have taken this host off, and would make a key that looks the same.
  if (mine == nullptr || !mine->member || mine->evicted ||
      mine->member->what.incarnation != words_.incarnation() ||
      mine->member->created != words_.registered()) {
    become_another(out);
    return join(now, out);
  }
  transaction takes;
  takes.when = {{{key_kind::member, self_}, mine->member->changed},
                {{key_kind::evicted, self_}, 0}};
  put_mine(takes, now);
  submit(now, std::move(takes), true, own_, out);
}

void membership::become_another(effects& out) {
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

void membership::join(instant now, effects& out) {
  const seat* const mine = latest_->find(self_);
  transaction joins;
  if (mine != nullptr && mine->member) {
    if (is_mine(*mine->member)) {
      // The transaction was carried out, and its answer was lost.
      my_key_ = mine->member->changed;
      words_.set_registered(mine->member->created);
      phase_ = phase::registered;
      return renew(now, out);
    }
    // A member that was evicted comes back when the others have taken it off.
    if (mine->evicted) return;
    joins.when = {{{key_kind::member, self_}, mine->member->changed},
                  {{key_kind::evicted, self_}, 0}};
  } else {
    // A host that cannot hear the members would stop all of them again as soon as it was one.
    if (const auto unheard = unheard_members(now); !unheard.empty())
      return say_who_is_unheard(now, unheard, out);
    joins.when = {{{key_kind::member, self_}, 0}};
  }
  put_mine(joins, now);
  submit(now, std::move(joins), true, own_, out);
}

/// A host that waits to join has a beat and no other key.
void membership::say_who_is_unheard(instant now, const std::vector<member_id>& unheard,
                                    effects& out) {
  if (now < next_application_) return;
  next_application_ = now + times_.period();
  transaction says;
  says.when = {{{key_kind::member, self_}, 0}};
  says.puts = {{{key_kind::beat, self_}, beat_value{0, unheard}}};
  submit(now, std::move(says), false, own_, out);
}

void membership::renew(instant now, effects& out) {
  transaction renews;
  renews.when = {{{key_kind::member, self_}, my_key_}, {{key_kind::evicted, self_}, 0}};
  const seat* const mine = latest_->find(self_);
  const bool is_told = mine != nullptr && mine->member && mine->member->what.retires;
  if (retires_ && !is_told)
    put_mine(renews, now);
  else
    renews.puts = {{{key_kind::beat, self_}, beat_value{begun_, missing(now)}}};
  submit(now, std::move(renews), true, own_, out);
}

// ---- the end ----

void membership::retire(instant now, effects& out) {
  retires_ = true;
  if (phase_ == phase::registered) {
    // What is under way says nothing of it.
    own_.reset();
    return renew(now, out);
  }
  if (phase_ != phase::ended) end_as_one_that_left(out);
}

void membership::end_as_one_that_left(effects& out) {
  phase_ = phase::ended;
  out.has_left = true;
}

bool membership::is_alone() const {
  return std::all_of(latest_->seats.begin(), latest_->seats.end(),
                     [&](const auto& each) { return each.first == self_ || !each.second.member; });
}

void membership::leave(instant now, bool last, effects& out) {
  // What was read may be of a later epoch than the agent's.
  if (phase_ != phase::registered || latest_->epoch->what.number != epoch_) return;
  if (last && !is_alone()) return;
  leaves_last_ = last;
  phase_ = phase::leaving;
  own_.reset();
  change_.reset();
  take_keys_away(now, out);
}

void membership::take_keys_away(instant now, effects& out) {
  transaction leaves;
  leaves.when = {{{key_kind::member, self_}, my_key_},
                 {{key_kind::epoch}, latest_->epoch->changed}};
  leaves.erased = {{key_kind::member, self_}, {key_kind::beat, self_}, {key_kind::evicted, self_}};
  if (leaves_last_) {
    // No member is left that would make the next epoch. A host that joins later finds that nothing
    // is in doubt.
    leaves.puts.push_back(
        {{key_kind::epoch}, epoch_value{latest_->epoch->what.number + 1, {}, {}, true}});
  }
  next_renewal_ = now + times_.patience();
  submit(now, std::move(leaves), true, own_, out);
}

void membership::confirmed(const pending& asked, const snapshot& seen, effects& out) {
  const stored<member_value>& key = *seen.find(self_)->member;
  my_key_ = key.changed;
  if (phase_ != phase::registered) {
    words_.set_registered(key.created);
    phase_ = phase::registered;
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

/// A member that has left, too, is named by the epoch until there is another one.
bool membership::has_key(member_id id) const {
  const seat* const at = latest_->find(id);
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

bool membership::is_stale(instant now, member_id id) const {
  const auto beat = beats_.find(id);
  return beat != beats_.end() && now - beat->second.since >= times_.ttl;
}

// ---- changes of the epoch ----

instant membership::own_delay() const {
  const auto at = latest_->seats.find(self_);
  return times_.stagger * std::distance(latest_->seats.begin(), at);
}

void membership::consider_change(instant now, effects& out) {
  if (change_) return;
  // (!) During an outage of etcd all beats seem to stand still. A change that was sent then could
  // be carried out before any renewal, and would take off everybody.
  const bool has_read = last_read_ && now - *last_read_ <= times_.period() + times_.patience();
  const bool may = has_read && phase_ == phase::registered && latest_->find(self_) != nullptr;
  std::optional<transaction> wanted;
  if (may) wanted = next_epoch(now);
  if (may && !wanted) wanted = settlement();
  if (may && !wanted) wanted = eviction(now);
  if (!wanted) {
    change_due_.reset();
    return;
  }
  if (!change_due_) change_due_ = now + own_delay();
  if (now >= *change_due_) submit(now, *wanted, false, change_, out);
}

struct membership::proposal {
  transaction what;
  std::vector<member> members;
};

/// The next members are the present ones, less those whose keys the transaction deletes, plus keys
/// that came.
membership::proposal membership::successor(instant now) const {
  // etcd carries out 128 operations in a transaction, unless it is told otherwise. The rest comes
  // with the next epoch.
  constexpr int changes_most = 40;
  int changes = 0;
  proposal next;
  std::vector<key> forgotten;
  const epoch_value none;
  const epoch_value& present = latest_->epoch ? latest_->epoch->what : none;
  for (const auto& [id, seat] : latest_->seats) {
    const key of_member{key_kind::member, id};
    const key of_beat{key_kind::beat, id};
    if (!seat.member && seat.beat) {
      // It has gone without joining.
      if (is_stale(now, id) && forgotten.empty()) forgotten.push_back(of_beat);
      continue;
    }
    if (changes < changes_most && is_stale(now, id)) {
      ++changes;
      // (!) The beat must still have the revision that was read a TTL ago, on the clock of this
      // host. Else the member has renewed in the meantime.
      next.what.when.push_back({of_beat, seat.beat->changed});
      next.what.erased.insert(next.what.erased.end(),
                              {of_member, of_beat, {key_kind::evicted, id}});
      continue;
    }
    if (!seat.member) continue;
    const member_value& what = seat.member->what;
    const member as_written{{id, what.incarnation}, what.agent, what.retires};
    const member* const before = present.find(id);
    // (!) A key that came must still be there: a list that was read before proves nothing.
    // Nor does it prove that one is there that may have left meanwhile, and would be a home.
    if (before == nullptr || *before != as_written || what.retires) {
      if (changes == changes_most) {
        if (before != nullptr) next.members.push_back(*before);
        continue;
      }
      ++changes;
      next.what.when.push_back({of_member, seat.member->changed});
    }
    next.members.push_back(as_written);
  }
  // These alone are no reason for another epoch.
  if (!next.what.erased.empty())
    next.what.erased.insert(next.what.erased.end(), forgotten.begin(), forgotten.end());
  return next;
}

std::optional<transaction> membership::next_epoch(instant now) const {
  proposal next = successor(now);
  const bool is_first = !latest_->epoch;
  if (!is_first && next.members == latest_->epoch->what.members && next.what.erased.empty())
    return std::nullopt;
  epoch_value to;
  to.members = std::move(next.members);
  if (is_first) {
    to.number = 1;
  } else {
    const epoch_value& from = latest_->epoch->what;
    to.number = from.number + 1;
    to.past = from.past;
    // After the last member has left as it should, nobody knew anything that counts.
    if (!from.members.empty())
      to.past.push_back({from.number, possible_homes(from.members), false, {}});
  }
  next.what.when.push_back({{key_kind::epoch}, is_first ? 0 : latest_->epoch->changed});
  next.what.puts.push_back({{key_kind::epoch}, std::move(to)});
  return std::move(next.what);
}

/// When all members have begun, the past may be forgotten, but for what is in doubt: names whose
/// home was gone and that nobody has used since have no record that says so.
std::optional<transaction> membership::settlement() const {
  if (!latest_->epoch || latest_->epoch->what.settled) return std::nullopt;
  epoch_value to = latest_->epoch->what;
  for (const member& each : to.members) {
    const seat* const theirs = latest_->find(each.who.id);
    if (theirs == nullptr || !theirs->beat || theirs->beat->what.begun != to.number)
      return std::nullopt;
  }
  to.settled = true;
  for (past_epoch& past : to.past) {
    if (past.passed_on) continue;
    past.passed_on = true;
    for (const identity& then : past.members)
      if (!to.has(then)) past.gone.push_back(then);
  }
  // An entry in which nobody is gone is forgotten.
  std::erase_if(to.past,
                [](const past_epoch& past) { return past.gone.empty() && !past.members.empty(); });
  // Many entries are merged into one, under which all names are in doubt.
  constexpr std::size_t most_entries = 64;
  if (to.past.size() > most_entries) {
    const auto half = to.past.begin() + most_entries / 2;
    const past_epoch merged{std::prev(half)->number, {}, true, {}};
    to.past.erase(to.past.begin(), half);
    to.past.insert(to.past.begin(), merged);
  }
  transaction settles;
  settles.when = {{{key_kind::epoch}, latest_->epoch->changed}};
  settles.puts = {{{key_kind::epoch}, std::move(to)}};
  return settles;
}

/// The complaints in the beats, by each member and about it.
std::map<member_id, int> membership::complaints(instant now) const {
  const auto counts = [&](member_id id) {
    const auto beat = beats_.find(id);
    // A member that does not renew either runs out by itself.
    return latest_->epoch->what.find(id) != nullptr && has_key(id) && beat != beats_.end() &&
           now - beat->second.since <= 2 * times_.period() && !latest_->find(id)->evicted;
  };
  std::map<member_id, int> many;
  for (const auto& [by, seat] : latest_->seats) {
    if (!seat.beat || !counts(by)) continue;
    for (const member_id about : seat.beat->what.missing) {
      if (!counts(about)) continue;
      ++many[by];
      ++many[about];
    }
  }
  // If two members miss each other, those that wait to join know which of them can be heard. And a
  // member is in the way if more of them miss it than members hear it.
  std::map<member_id, int> by_others;
  for (const auto& [by, seat] : latest_->seats) {
    if (seat.member || !seat.beat || is_stale(now, by)) continue;
    for (const member_id about : seat.beat->what.missing)
      if (counts(about)) ++by_others[about];
  }
  for (const auto& [about, votes] : by_others)
    if (many.contains(about) || votes > members_that_hear(about)) many[about] += votes;
  return many;
}

/// Itself included.
int membership::members_that_hear(member_id id) const {
  int count = 0;
  for (const auto& [by, seat] : latest_->seats) {
    if (!seat.member || !seat.beat) continue;
    const auto& missing = seat.beat->what.missing;
    if (std::find(missing.begin(), missing.end(), id) == missing.end()) ++count;
  }
  return count;
}

/// (!) A host with etcd but without some peer would stop all others. The member with most
/// complaints, by it and about it, is evicted: its renewals compare that it is not.
std::optional<transaction> membership::eviction(instant now) {
  const auto all = latest_->epoch ? complaints(now) : std::map<member_id, int>();
  // The first complaint says little. When two periods are over, each member has said whom it
  // misses. It is the same after each change of the epoch, an eviction among them.
  if (all.empty()) complained_.reset();
  if (all.empty()) return std::nullopt;
  if (!complained_ || complained_->changed != latest_->epoch->changed)
    complained_ = {latest_->epoch->changed, now};
  if (now - complained_->since < 2 * times_.period()) return std::nullopt;
  member_id victim = 0;
  std::pair<int, revision> most;
  for (const auto& [id, many] : all) {
    const seat* const theirs = latest_->find(id);
    if (!theirs->member) continue;
    const std::pair<int, revision> weight{many, theirs->member->created};  // of equals the younger
    if (weight <= most) continue;
    victim = id;
    most = weight;
  }
  if (victim == 0) return std::nullopt;
  transaction evicts;
  // The epoch is written as it is, so that of two evictions at a time one fails.
  evicts.when = {{{key_kind::epoch}, latest_->epoch->changed},
                 {{key_kind::member, victim}, latest_->find(victim)->member->changed}};
  evicts.puts = {{{key_kind::evicted, victim}, evicted_value{}},
                 {{key_kind::epoch}, latest_->epoch->what}};
  return evicts;
}

}  // namespace lockflight::cluster
