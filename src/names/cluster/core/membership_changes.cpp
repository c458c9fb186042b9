// The proposals of a member: the next epoch, that an epoch is settled, and an eviction.
#include <algorithm>
#include <iterator>
#include <utility>

#include "names/cluster/core/membership.hpp"
#include "names/cluster/core/past_epochs.hpp"
#include "names/cluster/core/rendezvous.hpp"

namespace lockflight::cluster {

instant membership::own_delay() const {
  const auto at = latest_->members.find(self_);
  return times_.stagger * std::distance(latest_->members.begin(), at);
}

void membership::consider_change(instant now, effects& out) {
  if (change_) return;
  // (!) During an outage of etcd all beats seem to stand still. A change that was sent then could
  // be carried out before any renewal, and would take off everybody.
  const bool has_read = last_read_ && now - *last_read_ <= times_.reads_within();
  const bool may = has_read && phase_ == phase::registered && latest_->find(self_) != nullptr;
  std::optional<transaction> wanted;
  if (may) wanted = cluster_key_again();
  if (may && !wanted) wanted = next_epoch(now);
  if (may && !wanted) wanted = settlement();
  if (may && !wanted && ends_doubt_) wanted = end_of_doubt();
  if (may && !wanted) wanted = eviction(now);
  if (!wanted) {
    change_due_.reset();
    return;
  }
  if (!change_due_) change_due_ = now + own_delay();
  if (now >= *change_due_) submit(now, *wanted, purpose::change, out);
}

struct membership::proposal {
  transaction what;
  std::vector<member> members;
};

/// The next members are the present ones, less those whose keys the transaction deletes, plus keys
/// that came.
membership::proposal membership::successor(instant now) const {
  // The rest comes with the next epoch.
  constexpr int changes_most = static_cast<int>(members_erased_at_once);
  int changes = 0;
  proposal next;
  std::vector<key> forgotten;
  const epoch_value none;
  const epoch_value& present = latest_->epoch ? latest_->epoch->what : none;
  for (const auto& [id, keys] : latest_->members) {
    const key of_member{key_kind::member, id};
    const key of_beat{key_kind::beat, id};
    if (!keys.member) {
      // Either the host has gone without joining, and its beat can be forgotten, or it is a member
      // whose key is gone, which the loop below is about.
      if (keys.beat && present.find(id) == nullptr && is_stale(now, id) && forgotten.empty())
        forgotten.push_back(of_beat);
      continue;
    }
    if (changes < changes_most && is_stale(now, id)) {
      ++changes;
      // (!) The beat must still have the revision that was read a TTL ago, on the clock of this
      // host, or still be lost. Else the member has renewed in the meantime.
      next.what.when.push_back({of_beat, keys.beat ? keys.beat->changed : 0});
      next.what.erased.insert(next.what.erased.end(),
                              {of_member, of_beat, {key_kind::evicted, id}});
      continue;
    }
    const member_value& what = keys.member->what;
    const member as_written{{id, what.incarnation}, what.agent, what.retires};
    const member* const before = present.find(id);
    // (!) A key that is new or has changed must still be there, since the list that was read may be
    // out of date. So must that of a member that retires: it may have left meanwhile, and would be
    // a home.
    if (before == nullptr || *before != as_written || what.retires) {
      if (changes == changes_most) {
        if (before != nullptr) next.members.push_back(*before);
        continue;
      }
      ++changes;
      next.what.when.push_back({of_member, keys.member->changed});
    }
    next.members.push_back(as_written);
  }
  // (!) A member whose key is gone may have renewed until somebody deleted the key, so it stays a
  // member for a TTL.
  for (const member& each : present.members) {
    if (has_key(each.who.id)) continue;
    if (changes == changes_most || !is_lost(now, each.who.id)) {
      next.members.push_back(each);
      continue;
    }
    ++changes;
    next.what.when.push_back({{key_kind::member, each.who.id}, 0});
    next.what.erased.insert(next.what.erased.end(),
                            {{key_kind::beat, each.who.id}, {key_kind::evicted, each.who.id}});
  }
  std::ranges::sort(next.members);
  // Beats of hosts that did not join are alone no reason for another epoch.
  if (!next.what.erased.empty())
    next.what.erased.insert(next.what.erased.end(), forgotten.begin(), forgotten.end());
  return next;
}

/// The epoch that follows the present one, with these members.
epoch_value membership::epoch_of(std::vector<member> members) const {
  epoch_value to;
  to.members = std::move(members);
  to.number = 1;
  if (latest_->epoch) to.number = latest_->epoch->what.number + 1;
  if (latest_->epoch) to.seals = latest_->epoch->what.seals;
  if (to.seals.size() == seals_most) to.seals.erase(to.seals.begin());
  const std::uint64_t drawn = scattered(number_ + to.number);
  to.seals.push_back({to.number, static_cast<std::uint32_t>(drawn >> 32) | 1});
  if (!latest_->epoch) return to;
  const epoch_value& from = latest_->epoch->what;
  to.past = from.past;
  // After the last member has left as it should, nobody knew anything that counts.
  if (!from.members.empty()) to.past.push_back(past_of(from));
  shorten(to.past);
  return to;
}

void membership::put_cluster_key(transaction& into) const {
  cluster_value known = words_.cluster();
  if (known.id == 0) known.id = number_;
  into.when.push_back({{key_kind::cluster}, 0});
  into.puts.push_back({{key_kind::cluster}, known});
}

/// Writes the key of the cluster's number again if somebody has deleted it. A member that does not
/// know the number leaves that to one that does.
std::optional<transaction> membership::cluster_key_again() const {
  if (!latest_->epoch || latest_->cluster || words_.cluster().id == 0) return std::nullopt;
  transaction writes;
  writes.when = {{{key_kind::epoch}, latest_->epoch->changed}};
  put_cluster_key(writes);
  return writes;
}

std::optional<transaction> membership::next_epoch(instant now) const {
  proposal next = successor(now);
  const bool is_first = !latest_->epoch;
  // Tokens have no room for a greater number. The members stay as they are (docs/cluster.md).
  if (!is_first && latest_->epoch->what.number >= last_epoch) return std::nullopt;
  if (!is_first && next.members == latest_->epoch->what.members && next.what.erased.empty())
    return std::nullopt;
  // (!) A cluster without an epoch has lost it. Tokens would begin anew after a first epoch.
  if (is_first && latest_->cluster) return std::nullopt;
  if (is_first) put_cluster_key(next.what);
  next.what.when.push_back({{key_kind::epoch}, is_first ? 0 : latest_->epoch->changed});
  next.what.puts.push_back({{key_kind::epoch}, epoch_of(std::move(next.members))});
  return std::move(next.what);
}

/// When all members have begun, the past may be forgotten, but for what is in doubt: names whose
/// home was gone and that nobody has used since have no record that says so.
std::optional<transaction> membership::settlement() const {
  if (!latest_->epoch || latest_->epoch->what.settled) return std::nullopt;
  epoch_value to = latest_->epoch->what;
  for (const member& each : to.members) {
    const member_keys* const theirs = latest_->find(each.who.id);
    if (theirs == nullptr || !theirs->beat || theirs->beat->what.begun != to.number)
      return std::nullopt;
  }
  to.settled = true;
  for (past_epoch& past : to.past) {
    if (past.passed_on) continue;
    past.passed_on = true;
    past.gone = to.missing_of(past);
  }
  // An entry that leaves nothing in doubt is forgotten.
  std::erase_if(to.past, [](const past_epoch& past) {
    return !past.leaves_doubt() && !past.members.empty();
  });
  shorten(to.past);
  transaction settles;
  settles.when = {{{key_kind::epoch}, latest_->epoch->changed}};
  settles.puts = {{{key_kind::epoch}, std::move(to)}};
  return settles;
}

void membership::end_doubt(instant now, effects& out) {
  if (!latest_ || !latest_->epoch) return;  // this host is no member yet, and knows of no doubt
  const epoch_value& present = latest_->epoch->what;
  operator_statement said{{}, 0};
  for (const past_epoch& past : present.past) {
    const auto gone = past.passed_on ? past.gone : present.missing_of(past);
    said.lost.insert(gone.begin(), gone.end());
    said.until = past.number;
  }
  ends_doubt_ = std::move(said);
  consider_change(now, out);
}

std::optional<transaction> membership::end_of_doubt() {
  if (!latest_->epoch || !latest_->epoch->what.settled) return std::nullopt;
  epoch_value to = latest_->epoch->what;
  // (!) The operator has put right what these hosts left. Hosts that were lost later may have left
  // something else half done.
  std::erase_if(to.past, [&](const past_epoch& past) {
    return past.passed_on && past.number <= ends_doubt_->until &&
           std::ranges::includes(ends_doubt_->lost, past.gone);
  });
  if (to.past == latest_->epoch->what.past) {
    ends_doubt_.reset();
    return std::nullopt;
  }
  transaction ends;
  ends.when = {{{key_kind::epoch}, latest_->epoch->changed}};
  ends.puts = {{{key_kind::epoch}, std::move(to)}};
  return ends;
}

/// The complaints in the beats, by each member and about it.
std::map<member_id, int> membership::complaints(instant now) const {
  const auto counts = [&](member_id id) {
    const auto beat = beats_.find(id);
    // A member that does not renew either runs out by itself. (!) Of one that was stopped the
    // others have not said yet that they hear it again.
    return latest_->epoch->what.find(id) != nullptr && has_key(id) && beat != beats_.end() &&
           now - beat->second.since <= times_.sees_beats_within() &&
           now - beat->second.steady_since >= times_.complains_within() &&
           !latest_->find(id)->evicted;
  };
  std::map<member_id, int> many;
  for (const auto& [by, keys] : latest_->members) {
    if (!keys.beat || !counts(by)) continue;
    for (const member_id about : keys.beat->what.missing) {
      if (!counts(about)) continue;
      ++many[by];
      ++many[about];
    }
  }
  // If two members miss each other, those that wait to join know which of them can be heard. And a
  // member is in the way if more of them miss it than members hear it.
  std::map<member_id, int> by_others;
  for (const auto& [by, keys] : latest_->members) {
    if (keys.member || !keys.beat || is_stale(now, by)) continue;
    for (const member_id about : keys.beat->what.missing)
      if (counts(about)) ++by_others[about];
  }
  for (const auto& [about, votes] : by_others)
    if (many.contains(about) || votes > members_that_hear(about)) many[about] += votes;
  return many;
}

/// How many members hear that one, itself included.
int membership::members_that_hear(member_id id) const {
  int count = 0;
  for (const auto& [by, keys] : latest_->members) {
    if (!keys.member || !keys.beat) continue;
    const auto& missing = keys.beat->what.missing;
    if (std::find(missing.begin(), missing.end(), id) == missing.end()) ++count;
  }
  return count;
}

/// (!) A host with etcd but without some peer would stop all others. The member with most
/// complaints, by it and about it, is evicted: its renewals compare that it is not.
std::optional<transaction> membership::eviction(instant now) {
  const auto all = latest_->epoch ? complaints(now) : std::map<member_id, int>();
  // The first complaint does not say which of the two members is in the way, so the agent waits
  // until each member has said whom it misses. It waits again after each change of the epoch, also
  // after an eviction.
  if (all.empty()) complained_.reset();
  if (all.empty()) return std::nullopt;
  if (!complained_ || complained_->changed != latest_->epoch->changed)
    complained_ = {latest_->epoch->changed, now, now};
  if (now - complained_->since < times_.complains_within()) return std::nullopt;
  member_id victim = 0;
  std::pair<int, revision> most;
  for (const auto& [id, many] : all) {
    const member_keys* const theirs = latest_->find(id);
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
