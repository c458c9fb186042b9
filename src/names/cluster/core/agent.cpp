#include "names/cluster/core/agent.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "names/cluster/core/rendezvous.hpp"

namespace lockflight::cluster {

// ---- events ----

void agent::start(instant now, effects& out) { membership_.start(now, out); }

void agent::answered(instant now, std::uint64_t number, const answer& what, effects& out) {
  membership_.answered(now, number, what, out);
  follow_membership(now, out);
}

void agent::timer(instant now, effects& out) {
  membership_.timer(now, out);
  follow_membership(now, out);
  wait_for_clients_no_more(now, out);
  scan_for_unused_names(now, out);
}

instant agent::wake_at() const {
  instant at = membership_.wake_at();
  // After the end there is nothing to be woken for.
  if (at == std::numeric_limits<instant>::max()) return at;
  if (!left_to_clients_.empty()) at = std::min(at, left_to_clients_.front().first);
  return retires_ ? at : std::min(at, unused_.next_scan());
}

void agent::hint(instant now, effects& out) { membership_.hint(now, out); }

void agent::heard(instant now, member_id from, effects&) { membership_.heard(now, from); }

void agent::rung(instant now, const std::string& name, effects& out) {
  if (epoch_.number == 0) return;  // every want is considered when the agent moves
  outbox to = outbox_of(out);
  owner& mine = owner_of(name);
  mine.pass_on_what_a_client_gave(home_for(name), words_, to);
  mine.consider(home_for(name), words_, to);
  finish(now, out);
  leave_if_all_is_taken(now, out);
}

void agent::host_lock_taken(instant now, const std::string& name, effects& out) {
  outbox to = outbox_of(out);
  std::optional<member_id> home;
  if (epoch_.number != 0) home = home_for(name);
  owner_of(name).host_lock_taken(home, words_, out, to);
  finish(now, out);
  leave_if_all_is_taken(now, out);
}

void agent::host_lock_awaited(instant now, const std::string& name, effects& out) {
  if (epoch_.number == 0) return;
  outbox to = outbox_of(out);
  owner::withdraw_revocation(name, words_);
  owner_of(name).clients_are_late(home_for(name), words_, out, to);
  finish(now, out);
  leave_if_all_is_taken(now, out);
}

void agent::retire(instant now, effects& out) {
  retires_ = true;
  for (auto& [name, each] : owners_) each.ask_no_more();
  membership_.retire(now, out);
}

// ---- epochs ----

void agent::follow_membership(instant now, effects& out) {
  if (membership_.take_new_incarnation()) start_again();
  const epoch_value* const read = membership_.epoch_of_mine();
  if (read == nullptr) return;
  if (read->number > epoch_.number) {
    move(now, *read, out);
  } else if (read->number == epoch_.number && read->settled) {
    const bool was_settled = epoch_.settled;
    epoch_ = *read;
    if (!was_settled) forget_records();
  }
  give_all_back(now, out);
  leave_if_all_is_taken(now, out);
}

// ---- the end ----

/// When all know that this member retires, and all homes have begun, so that they answer. No grant
/// comes after this: an agent asks for nothing once it is to leave, and homes forget their queues
/// with the epoch in which it did.
void agent::give_all_back(instant now, effects& out) {
  const member* const me = epoch_.find(self_);
  if (gives_back_ || !epoch_.settled || me == nullptr || !me->retires) return;
  gives_back_ = true;
  for (const std::string& name : words_.names()) {
    const auto known = owner::claim_of(name, words_);
    if (!known) continue;
    const owner& mine = owner_of(name);
    // A name that this host gave back in an earlier epoch was claimed in this one. The homes have
    // that claim, since the epoch is settled.
    if (known->owned == mode::none && !mine.awaits_taken()) continue;
    untaken_.insert(name);
    take_back(now, name, mode::exclusive, out);
  }
  finish(now, out);
}

/// The member leaves when it was no home in an epoch that is settled: its records have reached the
/// homes then. What it owned it has given back. The last member takes what it knows with it; if
/// that is a death, or a doubt about one, it does not leave in order, and the next holder is told.
void agent::leave_if_all_is_taken(instant now, effects& out) {
  if (!gives_back_ || !untaken_.empty()) return;
  const bool is_home = std::any_of(homes_now_.begin(), homes_now_.end(),
                                   [&](const identity& each) { return each.id == self_; });
  if (!is_home) return membership_.leave(now, false, out);
  if (epoch_.members.size() > 1) return;
  const auto known = words_.recorded_names();
  const bool knows_of_a_death = std::any_of(
      known.begin(), known.end(), [&](const auto& name) { return words_.record_of(name)->died; });
  if (!knows_of_a_death && epoch_.past.empty()) membership_.leave(now, true, out);
}

/// The host is another member now. It owns nothing and knows nothing.
void agent::start_again() {
  epoch_ = {};
  homes_.clear();
  of_later_.clear();
  for (auto& [name, each] : owners_) each.epoch_ended();
  for (const std::string& name : words_.recorded_names()) words_.erase_record(name);
  for (const std::string& name : words_.witnessed_names()) words_.erase_witness_note(name);
  for (const std::string& name : words_.names()) {
    state left = words_.state_of(name);
    while (!words_.swap_state(name, left, {})) left = words_.state_of(name);
    ownership word = words_.ownership_of(name);
    // Clients that wait set `wanted` again, as the word has changed.
    while (!words_.swap_ownership(name, word, {mode::none, mode::none, words_.incarnation()}))
      word = words_.ownership_of(name);
  }
}

void agent::move(instant now, const epoch_value& to, effects& out) {
  epoch_ = to;
  homes_now_ = possible_homes(to.members);
  membership_.has_moved(now, to);
  homes_.clear();
  begun_ = false;
  unwitnessed_.clear();
  gives_back_ = false;
  untaken_.clear();
  done_.clear();
  for (auto& [name, each] : owners_) each.epoch_ended();
  outbox all = outbox_of(out);
  send_claims(all);
  send_records(all);
  send_witness_reports(all);
  for (const member& each : epoch_.members) all.send(each.who.id, "", claims_done{});
  for (const std::string& name : words_.names())
    owner_of(name).consider(home_for(name), words_, all);
  // (!) Messages of an older epoch are dropped, and those of a later one have waited for this.
  for (message& each : std::exchange(of_later_, {})) {
    if (each.epoch == epoch_.number) handle(now, each, out);
    if (each.epoch > epoch_.number) of_later_.push_back(std::move(each));
  }
  finish(now, out);
}

void agent::send_claims(outbox& out) {
  for (const std::string& name : words_.names()) {
    // (!) The home of this epoch has not asked for the name. If a client gave it back after the
    // claim, the home would not know.
    owner::withdraw_revocation(name, words_);
    if (const auto claimed = owner::claim_of(name, words_))
      out.send(home_for(name), name, *claimed);
  }
}

void agent::send_records(outbox& out) {
  // (!) A former home passes on all that it knows, not orphans alone: the owner may have died, or
  // have given the name back, and only the record has the token then.
  for (const std::string& name : words_.recorded_names()) {
    record known = *words_.record_of(name);
    // (!) An agent that died before it forgot it: the name may have been used and forgotten since.
    if (known.epoch < epoch_.records_since()) {
      words_.erase_record(name);
      continue;
    }
    // (!) The owner counts as a member in that incarnation only: the host may have come back.
    if (known.exclusive && !epoch_.has(*known.exclusive)) {
      // An orphan. Only its owner knew the counter and whether somebody was inside.
      known.died = true;
      known.last = {epoch_.number, 0};
    }
    out.send(home_for(name), name, former_record{known});
  }
}

/// A witness's note counts if the home is lost. Else the home itself knows.
void agent::send_witness_reports(outbox& out) {
  for (const std::string& name : words_.witnessed_names()) {
    const witness_note known = *words_.witness_note_of(name);
    if (known.epoch < epoch_.records_since())
      words_.erase_witness_note(name);
    else if (!epoch_.has(known.home))
      out.send(home_for(name), name, witness_report{known.epoch});
  }
}

/// (!) The home begins when all members have sent their claims, not at the first: another member
/// may own the name.
void agent::begin_if_all_are_done(instant now, effects& out) {
  if (begun_ || done_.size() != epoch_.members.size()) return;
  begun_ = true;
  outbox to = outbox_of(out);
  for (auto& [name, each] : homes_) {
    each.begin(epoch_, witness_of(name, homes_now_), words_, to);
    if (each.awaits_witness()) unwitnessed_.insert(name);
  }
  tell_when_homes_have_begun(now, out);
}

/// (!) When all have, records and witnesses' notes of earlier epochs are forgotten.
void agent::tell_when_homes_have_begun(instant now, effects& out) {
  if (unwitnessed_.empty()) membership_.has_begun(now, epoch_.number, out);
}

/// (!) A former home keeps its records until a later epoch is settled: the new home may die before
/// it has them.
void agent::forget_records() {
  for (const std::string& name : words_.recorded_names())
    if (words_.record_of(name)->epoch < epoch_.number) words_.erase_record(name);
  for (const std::string& name : words_.witnessed_names())
    if (words_.witness_note_of(name)->epoch < epoch_.number) words_.erase_witness_note(name);
}

// ---- messages ----

void agent::receive(instant now, const message& what, effects& out) {
  // (!) An older epoch's message is dropped. A later one's waits until this agent has read that
  // epoch: the sender will not send it again. It says that there is one, whether a watch does or
  // not.
  if (what.epoch < epoch_.number) return;
  if (what.epoch > epoch_.number) {
    of_later_.push_back(what);
    membership_.hint(now, out);
    return;
  }
  handle(now, what, out);
  finish(now, out);
  leave_if_all_is_taken(now, out);
}

/// Handles what this agent has sent to itself.
void agent::finish(instant now, effects& out) {
  std::deque<message> mine;
  std::size_t others = 0;  // messages before it are for other agents
  const auto take_mine = [&] {
    const auto to_self = std::stable_partition(
        out.messages.begin() + static_cast<std::ptrdiff_t>(others), out.messages.end(),
        [&](const message& each) { return each.to != self_; });
    std::move(to_self, out.messages.end(), std::back_inserter(mine));
    out.messages.erase(to_self, out.messages.end());
    others = out.messages.size();
  };
  for (take_mine(); !mine.empty(); take_mine()) {
    const message what = std::move(mine.front());
    mine.pop_front();
    if (what.epoch == epoch_.number) handle(now, what, out);
  }
  while (!left_to_clients_.empty() && !is_left_to_clients(left_to_clients_.front()))
    left_to_clients_.pop_front();
}

void agent::handle(instant now, const message& what, effects& out) {
  if (epoch_.find(what.from) == nullptr) return;
  if (std::holds_alternative<claims_done>(what.what)) {
    done_.insert(what.from);
    begin_if_all_are_done(now, out);
  } else if (std::holds_alternative<grant>(what.what) ||
             std::holds_alternative<revoke>(what.what) ||
             std::holds_alternative<taken>(what.what) ||
             std::holds_alternative<forget>(what.what)) {
    handle_as_owner(now, what, out);
  } else if (std::holds_alternative<witness_request>(what.what)) {
    handle_as_witness(what, out);
  } else {
    handle_as_home(what, out);
    if (std::holds_alternative<witness_ack>(what.what) && unwitnessed_.erase(what.name) != 0)
      tell_when_homes_have_begun(now, out);
  }
}

void agent::handle_as_home(const message& what, effects& out) {
  outbox to = outbox_of(out);
  if (std::holds_alternative<forgotten>(what.what) ||
      std::holds_alternative<witness_ack>(what.what)) {
    // The home may have forgotten the name meanwhile.
    const auto known = homes_.find(what.name);
    if (known == homes_.end()) return;
    if (std::holds_alternative<witness_ack>(what.what))
      known->second.witnessed(epoch_, words_, to);
    else
      known->second.forgotten_by(what.from);
    return;
  }
  home& here = home_here(what.name, out);
  if (const auto* asked = std::get_if<request>(&what.what))
    here.requested(what.from, asked->wanted, epoch_, words_, to);
  else if (const auto* given = std::get_if<give_back>(&what.what))
    here.given_back(what.from, *given, epoch_, words_, to);
  else if (const auto* claimed = std::get_if<claim>(&what.what))
    here.collect(what.from, *claimed);
  else if (const auto* passed = std::get_if<former_record>(&what.what))
    here.collect(passed->what);
  else if (const auto* lost = std::get_if<witness_report>(&what.what))
    here.collect(*lost);
}

void agent::handle_as_witness(const message& what, effects& out) {
  if (!std::get<witness_request>(what.what).is_set) return words_.erase_witness_note(what.name);
  // (!) The note stands in the domain file before the answer leaves: this agent may die, and then
  // the home.
  words_.store_witness_note(what.name, {epoch_.number, epoch_.find(what.from)->who});
  outbox to = outbox_of(out);
  to.send(what.from, what.name, witness_ack{});
}

void agent::handle_as_owner(instant now, const message& what, effects& out) {
  outbox to = outbox_of(out);
  owner& mine = owner_of(what.name);
  if (const auto* got = std::get_if<grant>(&what.what)) {
    mine.granted(what.from, *got, words_, to);
  } else if (const auto* wanted = std::get_if<revoke>(&what.what)) {
    take_back(now, what.name, wanted->wanted, out);
  } else if (std::holds_alternative<forget>(what.what)) {
    mine.forget(what.from, words_, to);
  } else {
    mine.taken_by_home(words_);
  }
  if (!owner::claim_of(what.name, words_)) untaken_.erase(what.name);
}

// ---- revocations that are left to clients ----

void agent::take_back(instant now, const std::string& name, mode wanted, effects& out) {
  outbox to = outbox_of(out);
  owner& mine = owner_of(name);
  const instant until = now + clients_give_within_;
  mine.revoked(home_for(name), wanted, until, words_, out, to);
  if (mine.clients_until() == until) left_to_clients_.emplace_back(until, name);
}

/// Most of these have been given back long before.
bool agent::is_left_to_clients(const std::pair<instant, std::string>& revoked) const {
  const auto its = owners_.find(revoked.second);
  return its != owners_.end() && its->second.clients_until() == revoked.first;
}

void agent::wait_for_clients_no_more(instant now, effects& out) {
  outbox to = outbox_of(out);
  for (; !left_to_clients_.empty() && left_to_clients_.front().first <= now;
       left_to_clients_.pop_front()) {
    const std::string& name = left_to_clients_.front().second;
    if (is_left_to_clients(left_to_clients_.front()))
      owner_of(name).clients_are_late(home_for(name), words_, out, to);
  }
  finish(now, out);
}

// ---- tables ----

member_id agent::home_for(const std::string& name) const { return home_of(name, homes_now_).id; }

owner& agent::owner_of(const std::string& name) {
  owner& found = owners_.try_emplace(name, name).first->second;
  if (retires_) found.ask_no_more();
  return found;
}

home& agent::home_here(const std::string& name, effects& out) {
  const auto [at, is_new] = homes_.try_emplace(name, name, forgotten_);
  // A name that nobody has claimed and that no former home knows.
  if (is_new && begun_) {
    outbox to = outbox_of(out);
    at->second.begin(epoch_, witness_of(name, homes_now_), words_, to);
  }
  return at->second;
}

}  // namespace lockflight::cluster
