// A cluster of agents that a test runs one step at a time: histories in which one message is late,
// or an agent ends at a bad moment. The simulation draws its faults at random, and some of these
// are too rare for it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lab/cluster/core_under_test.hpp"
#include "lab/cluster/etcd.hpp"
#include "lab/cluster/memory.hpp"
#include "names/cluster/core/acquire.hpp"
#include "names/cluster/core/agent.hpp"
#include "names/cluster/core/rendezvous.hpp"

namespace lockflight::cluster::test {

using client = acquire<sim::words_in_host>;

constexpr instant second = 1'000'000;

/// Hosts and an etcd that answers at once. Messages arrive at once as well, but for those of links
/// that are held up.
class AgentsInStep : public testing::Test {
 protected:
  struct host {
    member_id id = 0;
    sim::memory words;
    std::unique_ptr<agent> runs;
    std::set<std::string> locked;   // host locks that a client has
    std::set<std::string> awaited;  // those that the agent waits for
    bool has_left = false;
    stop stopped = stop::none;
  };

  AgentsInStep() {
    etcd_.on_epoch = [](const epoch_value&, const epoch_value&) {};
  }

  host& prepare(host& made, member_id id) {
    made.id = id;
    made.words.on_change = [](const std::string&) {};
    made.words.on_header = [] {};
    made.words.on_record = [](const std::string&, const record&) {};
    made.words.is_lock_free = [&made](const std::string& name) {
      return !made.locked.contains(name);
    };
    return made;
  }
  host& add(member_id id) {
    host& made = prepare(hosts_[id], id);
    start(made);
    return made;
  }
  /// Of agents that start from now on.
  void keep_unused_names_for(instant time) { times_.keep = time; }
  void add_first(member_id last) {
    for (member_id id = 1; id <= last; ++id) add(id);
    pass(5 * second);
  }
  host& at(member_id id) { return hosts_.at(id); }
  void start(host& on) {
    on.runs = std::make_unique<agent>(on.id, times_, on.words);
    run(on, [&](agent& a, effects& out) { a.start(now_, out); });
  }
  void retire(host& on) {
    run(on, [&](agent& a, effects& out) { a.retire(now_, out); });
  }

  void end_doubt(host& on) {
    run(on, [&](agent& a, effects& out) { a.end_doubt(now_, out); });
  }
  void lose(member_id id) { hosts_.erase(id); }

  void hold_up(member_id from, member_id to) { held_up_.insert({from, to}); }
  void let_go(member_id from, member_id to) { held_up_.erase({from, to}); }
  /// True if etcd gets what a host sends to it now.
  std::function<bool(member_id)> reaches_etcd_ = [](member_id) { return true; };

  /// What a host writes to etcd from now on is under way until carry_out_late().
  void delay_writes_of(member_id host) { delayed_ = host; }
  /// No answer to it arrives.
  void carry_out_late() {
    for (const transaction& each : late_) (void)etcd_.carry_out(each);
    late_.clear();
    delayed_ = 0;
  }

  /// No host hears another one any more.
  void cut_all() { is_cut_ = true; }
  /// No other host hears that one, while it hears them.
  void make_unheard(member_id who) { unheard_ = who; }

  void pass(instant time) {
    constexpr instant step = second / 20;
    for (const instant end = now_ + time; now_ < end; now_ += step) {
      deliver();
      std::vector<member_id> order;
      for (const auto& [id, each] : hosts_) order.push_back(id);
      if (is_last_first_) std::ranges::reverse(order);
      for (const member_id id : order) advance(hosts_.at(id));
    }
    deliver();
  }

  /// The order of the hosts in each moment.
  void set_last_first(bool is) { is_last_first_ = is; }

  /// A name with that home, and that witness if it is not 0.
  std::string name_of(member_id home, member_id witness = 0) {
    const auto homes = possible_homes(etcd_.now()->epoch->what.members);
    for (int i = 0;; ++i) {
      const std::string name = "name" + std::to_string(i);
      if (home_of(name, homes).id == home && (witness == 0 || witness_of(name, homes) == witness))
        return name;
    }
  }
  client& make_client(host& on, const std::string& name, mode wanted = mode::exclusive) {
    names_.push_back(name);
    return clients_.emplace_back(wanted, sim::words_in_host{&names_.back(), &on.words});
  }
  /// True if the client is inside in time.
  bool enters_within(instant time, host& on, client& who, const std::string& name) {
    for (const instant end = now_ + time; now_ < end; pass(second / 10))
      if (steps_inside(on, who, name)) return true;
    return false;
  }
  bool enters(host& on, client& who, const std::string& name) {
    return enters_within(6 * second, on, who, name);
  }
  /// A client that waits gives up.
  void give_up(host& on, client& who, const std::string& name) {
    who.give_up();
    release(on, name);
  }
  /// It has left, or has died inside.
  void release(host& on, const std::string& name) {
    on.locked.erase(name);
    if (on.awaited.erase(name) != 0)
      run(on, [&](agent& a, effects& out) { a.host_lock_taken(now_, name, out); });
  }
  /// A client asks for the name and gives up. The grant of the home, which is host 1, is held up.
  void ask_and_give_up(host& on, const std::string& name) {
    hold_up(1, on.id);
    client& writer = make_client(on, name);
    ASSERT_FALSE(enters(on, writer, name));
    give_up(on, writer, name);
  }
  /// All messages that are under way arrive, and all answers of etcd.
  void deliver() {
    for (bool any = true; any;) {
      any = false;
      while (!replies_.empty()) {
        const reply next = std::move(replies_.front());
        replies_.pop_front();
        any = true;
        for (auto& [id, to] : hosts_)
          if (to.runs.get() == next.asked)
            run(to, [&](agent& a, effects& out) { a.answered(now_, next.number, next.what, out); });
      }
      for (auto& [link, queue] : links_) {
        if (is_cut_ || held_up_.contains(link)) continue;
        for (; !queue.empty(); any = true) {
          const message next = std::move(queue.front());
          queue.pop_front();
          const auto to = hosts_.find(link.second);
          if (to != hosts_.end())
            run(to->second, [&](agent& a, effects& out) { a.receive(now_, next, out); });
        }
      }
    }
  }

  /// True if the client is inside; else it waits.
  bool steps_inside(host& on, client& who, const std::string& name) {
    using next = acquire_events::next;
    on.locked.insert(name);
    for (next step = who.step(now_);; step = who.step(now_)) {
      if (step == next::holds) return true;
      if (step == next::waits) return false;
      if (step == next::rings) run(on, [&](agent& a, effects& out) { a.rung(now_, name, out); });
    }
  }

  /// A holder leaves, and gives the name back if it is revoked. Returns whether it did.
  bool leaves(host& on, client& who, const std::string& name) {
    who.leave();
    const bool gives = who.give_back();
    if (gives) run(on, [&](agent& a, effects& out) { a.rung(now_, name, out); });
    release(on, name);
    return gives;
  }
  void use(host& on, const std::string& name) {
    client& who = make_client(on, name);
    ASSERT_TRUE(enters(on, who, name));
    who.leave();
    release(on, name);
  }

  [[nodiscard]] instant now() const { return now_; }
  [[nodiscard]] bool has_cluster_key() const { return etcd_.now()->cluster.has_value(); }
  [[nodiscard]] const epoch_value& epoch() const { return etcd_.now()->epoch->what; }
  /// As if so many changes of members had been made.
  void set_epoch(epoch_number number) {
    epoch_value to = epoch();
    to.number = number;
    (void)etcd_.carry_out({{}, {{{key_kind::epoch}, to}}, {}});
  }
  /// Somebody deletes a key.
  void delete_key(key_kind kind, member_id id) { (void)etcd_.carry_out({{}, {}, {{kind, id}}}); }
  /// Somebody deletes a member's key, and a transaction that comes late makes it anew.
  void make_key_anew(member_id id) {
    const member_value what = etcd_.now()->find(id)->member->what;
    delete_key(key_kind::member, id);
    (void)etcd_.carry_out({{}, {{{key_kind::member, id}, what}}, {}});
  }
  /// An agent that has the same words, and the same memory, renews.
  void renew_as_twin_of(const host& on) {
    beat_value beat = etcd_.now()->find(on.id)->beat->what;
    (void)etcd_.carry_out({{}, {{{key_kind::beat, on.id}, beat}}, {}});
  }
  /// Starts an agent on a copy of the words of that host.
  const host& add_copy(member_id of, const sim::memory& words) {
    constexpr member_id of_copies = 100;
    host& copy = prepare(hosts_[of + of_copies], of);
    copy.words.copy(words);
    copy.words.draw_number = [] { return beat_number{1'000}; };
    start(copy);
    return copy;
  }
  [[nodiscard]] bool has_key(member_id id) const {
    const member_keys* const found = etcd_.now()->find(id);
    return found != nullptr && found->member.has_value();
  }
  [[nodiscard]] bool has_beat(member_id id) const {
    const member_keys* const found = etcd_.now()->find(id);
    return found != nullptr && found->beat.has_value();
  }

 private:
  struct reply {
    const agent* asked;
    std::uint64_t number;
    answer what;
  };

  void advance(host& each) {
    for (auto& [from, other] : hosts_)
      if (from != each.id && other.runs && !is_cut_ && from != unheard_)
        run(each, [&](agent& a, effects& out) { a.heard(now_, from, out); });
    if (each.runs && each.runs->wake_at() <= now_)
      run(each, [&](agent& a, effects& out) { a.timer(now_, out); });
  }

  void run(host& on, const std::function<void(agent&, effects&)>& event) {
    if (!on.runs) return;
    effects out;
    event(*on.runs, out);
    for (const message& each : out.messages) links_[{on.id, each.to}].push_back(each);
    for (const submitted& each : out.transactions)
      if (delayed_ == on.id && !each.what.puts.empty())
        late_.push_back(each.what);
      else if (reaches_etcd_(on.id))
        replies_.push_back({on.runs.get(), each.number, etcd_.carry_out(each.what)});
    for (const wanted_host_lock& each : out.host_locks_wanted)
      if (on.locked.contains(each.name) && each.if_free)
        continue;
      else if (on.locked.contains(each.name))
        on.awaited.insert(each.name);
      else
        run(on, [&](agent& a, effects& more) { a.host_lock_taken(now_, each.name, more); });
    on.stopped = out.stops;
    if (!out.has_left && out.stops == stop::none) return;
    on.has_left = out.has_left;
    on.runs.reset();
  }

  instant now_ = second;
  timing times_;
  sim::etcd etcd_;
  std::map<member_id, host> hosts_;
  std::map<std::pair<member_id, member_id>, std::deque<message>> links_;
  std::set<std::pair<member_id, member_id>> held_up_;
  bool is_cut_ = false;
  member_id unheard_ = 0;
  bool is_last_first_ = false;
  std::deque<reply> replies_;
  member_id delayed_ = 0;
  std::vector<transaction> late_;
  std::list<std::string> names_;
  std::list<client> clients_;
};

}  // namespace lockflight::cluster::test
