#include "lab/cluster/world.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "names/cluster/core/rendezvous.hpp"

namespace lockflight::cluster::sim {

world::world(const plan& what, const core_under_test& core, std::vector<std::string>* trace)
    : plan_(what),
      core_(core),
      trace_(trace),
      random_(what.seed * 2 + 1),
      observer_(what.times.ttl) {
  for (int i = 0; i < plan_.names; ++i) names_.push_back(fmt::format("name {}", i));
  links_.resize(static_cast<std::size_t>(plan_.hosts));
  for (auto& from : links_) from.resize(static_cast<std::size_t>(plan_.hosts));
  etcd_.on_epoch = [this](const epoch_value& before, const epoch_value& after) {
    size_ = size_of(*etcd_.now());
    epoch_written(before, after);
  };
  for (int i = 0; i < plan_.hosts; ++i) {
    hosts_.push_back(std::make_unique<host>());
    host& h = *hosts_.back();
    h.number = i;
    h.clock = {1.0 + static_cast<double>(random_.between(-10'000, 10'000)) / 1e6,
               random_.between(1, 1'000'000'000)};
    const bool is_late = i >= plan_.hosts - plan_.late_hosts;
    at(is_late ? random_.between(plan_.times.ttl, plan_.faults_end) : random_.below(100'000),
       [this, &h] {
         if (!h.is_up) start_host(h);
       });
    keep_alive(i);
  }
  for (const fault& each : plan_.faults) {
    at(each.at, [this, &each] {
      say("FAULT  {}", text_of(each));
      apply(each, 1);
    });
    at(each.at + each.lasts, [this, &each] { apply(each, -1); });
  }
}

// ---- events ----

void world::at(true_time when, action what) {
  queue_.push_back({std::max(when, now_), ++order_, std::move(what)});
  std::push_heap(queue_.begin(), queue_.end(), [](const event& a, const event& b) {
    return a.at != b.at ? a.at > b.at : a.order > b.order;
  });
}

void world::run() {
  run_until(plan_.ends);
  check_progress();
}

void world::run_until(true_time end) {
  while (!queue_.empty() && queue_.front().at < end) {
    std::pop_heap(queue_.begin(), queue_.end(), [](const event& a, const event& b) {
      return a.at != b.at ? a.at > b.at : a.order > b.order;
    });
    const event next = std::move(queue_.back());
    queue_.pop_back();
    now_ = next.at;
    ++events_;
    next.what();
  }
}

void world::write_line(const std::string& text) {
  trace_->push_back(fmt::format("{:11.6f}  {}", static_cast<double>(now_) / 1e6, text));
}

// ---- hosts ----

void world::start_host(host& h) {
  h.is_up = true;
  ++h.life;
  // A domain file that is made anew has another number.
  h.id = scattered(static_cast<std::uint64_t>(++generations_)) / 2 + 1;
  say("host {} starts as member {:x}", h.number, h.id);
  h.was_copied = false;
  h.words = std::make_unique<memory>();
  h.words->draw_number = [this] { return ++numbers_of_beats_; };
  h.words->on_change = [this, &h](const std::string& name) { wake(h, name); };
  h.words->is_lock_free = [&h](const std::string& name) { return h.locks[name].is_free(); };
  h.words->on_header = [this] { observer_.check_all(now_); };
  h.words->on_record = [this](const std::string& name, const record& what) {
    // A home that has not read of it yet may grant to a host that is gone already.
    if (what.exclusive && etcd_.now()->epoch && !etcd_.now()->epoch->what.has(*what.exclusive))
      observer_.allow_alarm(name);
  };
  h.locks.clear();
  h.clients.clear();
  h.clients.resize(static_cast<std::size_t>(plan_.clients));
  for (int i = 0; i < plan_.clients; ++i) new_client(h, i);
  start_agent(h);
}

void world::kill_host(host& h) {
  if (!h.is_up) return;
  say("host {} dies", h.number);
  for (client& each : h.clients) {
    if (each.now == doing::inside) observer_.dies_inside(each.name, each.number);
    ++each.life;
    each.now = doing::idle;
    each.acquiring.reset();
  }
  h.is_up = false;
  ++h.life;
  kill_agent(h);
  h.id = 0;
  // The messages that the host has sent and that the network still holds are lost, or not.
  if (random_.one_in(2))
    for (link& each : links_[static_cast<std::size_t>(h.number)]) each.held.clear();
}

void world::set_stopped(host& h, int by) {
  h.stops += by;
  if (h.stops == 0) drain(h);
}

/// True if nothing is wrong and all agents know it: from here on no false alarm is due to the past.
bool world::is_calm() const {
  if (faults_now_ != 0 || !etcd_.now()->epoch) return false;
  const epoch_value& epoch = etcd_.now()->epoch->what;
  if (!epoch.settled || epoch.members.size() != hosts_.size()) return false;
  return std::all_of(hosts_.begin(), hosts_.end(), [&](const auto& h) {
    return h->is_up && h->agent && h->agent->epoch() == epoch.number &&
           epoch.has({h->id, h->words->incarnation()});
  });
}

/// At the end all faults are over, but perhaps one cut. Then one host may be no member.
void world::check_progress() const {
  const auto patience = 4 * plan_.times.ttl;
  if (!etcd_.now()->epoch || !etcd_.now()->epoch->what.settled)
    throw violation("progress", "the last epoch is not settled");
  const epoch_value& last = etcd_.now()->epoch->what;
  int outside = 0;
  for (const auto& h : hosts_) {
    if (h->retires) continue;
    if (!last.has({h->id, h->words->incarnation()})) {
      ++outside;
      continue;
    }
    if (!h->agent || h->agent->epoch() != last.number)
      throw violation("progress", fmt::format("host {} is not in the last epoch", h->number));
    for (const client& each : h->clients)
      if (each.now != doing::idle && each.now != doing::inside && each.now != doing::leaving &&
          now_ - each.since > patience)
        throw violation("progress", fmt::format("client {} of host {} still waits for '{}'",
                                                each.number, h->number, each.name));
  }
  if (outside > (plan_.stays_cut ? 1 : 0))
    throw violation("progress", fmt::format("{} hosts are no members", outside));
  check_doubt();
}

void world::check_leaving(const host& h) const {
  if (has_left(h)) return;
  const epoch_value& epoch = etcd_.now()->epoch->what;
  const auto names = h.words->recorded_names();
  const bool knows_of_a_death =
      std::ranges::any_of(names, [&](const auto& name) { return h.words->record_of(name)->died; });
  if (epoch.members.size() == 1 && (knows_of_a_death || !epoch.past.empty())) return;
  throw violation("leaving", fmt::format("host {} was to leave, and is still there", h.number));
}

void world::check_doubt() const {
  const auto& past = etcd_.now()->epoch->what.past;
  if (doubt_was_ended_ && !plan_.stays_cut && !past.empty())
    throw violation("consistent", "an operator has ended the doubt, and names still are in doubt");
}

/// A member is gone: what it owned exclusively, and the names whose home it was, may be reported as
/// left half done.
void world::epoch_written(const epoch_value& before, const epoch_value& after) {
  if (before.number == after.number) {
    if (after.settled && !before.settled) say("epoch {} is settled", after.number);
    return;
  }
  epoch_made_at_ = now_;
  std::string members;
  for (const member& each : after.members)
    members += fmt::format(" {:x}/{}/{}", each.who.id, each.who.incarnation, each.agent);
  say("epoch {} has the members{}", after.number, members);
  std::vector<std::vector<identity>> formers;
  for (const past_epoch& past : after.past)
    if (!past.members.empty()) formers.push_back(past.members);
  for (const member& each : before.members) {
    if (after.has(each.who) || left_.contains(each.who)) continue;
    check_reason_to_take_off(each.who);
    for (const std::string& name : names_) {
      const bool was_home = std::any_of(
          formers.begin(), formers.end(),
          [&](const auto& members_then) { return home_of(name, members_then) == each.who; });
      const bool was_owner = std::any_of(hosts_.begin(), hosts_.end(), [&](const auto& h) {
        if (!h->is_up) return false;
        const auto known = h->words->record_of(name);
        return known && known->exclusive == each.who;
      });
      if (was_home || was_owner) observer_.allow_alarm(name);
    }
  }
  for (const auto& h : hosts_) {
    if (no_hints_ > 0 || !h->agent || random_.one_in(4)) continue;  // a watch may lose its event
    after_hint(*h);
  }
}

/// An outage of etcd expels nobody, and neither do slow messages.
void world::check_reason_to_take_off(const identity& who) const {
  if (all_were_well_)
    throw violation("expelled",
                    fmt::format("member {:x} is taken off, and all hosts were well", who.id));
}

// ---- faults ----

void world::apply(const fault& what, int by) {
  faults_now_ += by;
  if (is_of_hosts(what.kind)) all_were_well_ = false;
  host& h = *hosts_[static_cast<std::size_t>(what.host)];
  switch (what.kind) {
    case fault_kind::host_dies:
      if (by > 0) return kill_host(h);
      if (!h.is_up) start_host(h);
      return;
    case fault_kind::host_stops:
      return set_stopped(h, by);
    case fault_kind::agent_dies:
      if (by > 0 && h.is_up && h.agent) {
        h.words->crash_in = what.count;
        if (what.count == 0) kill_agent(h);
      } else if (by < 0 && h.is_up) {
        h.words->crash_in = 0;
        if (!h.agent) start_agent(h);
      }
      return;
    case fault_kind::agent_stops:
      return set_agent_stopped(h, by);
    case fault_kind::host_leaves:
      if (by > 0) retire_agent(h);
      if (by > 0 && now_ > plan_.faults_end)
        at(now_ + leaves_within(), [this, &h] { check_leaving(h); });
      if (by > 0) return;
      // An agent that could not leave in time is told to end.
      if (h.is_up && h.retires) kill_agent(h);
      if (h.is_up && !h.agent) start_agent(h);
      return;
    case fault_kind::client_dies:
    case fault_kind::client_stops:
      if (by > 0 && h.is_up) strike_client(what);
      return;
    case fault_kind::key_lost:
      if (by > 0 && h.is_up) lose_key(h, what.count);
      return;
    case fault_kind::host_copied:
      if (by < 0) return end_copies(h);
      if (h.is_up && h.agent && !h.was_copied) copy_host(h);
      return;
    case fault_kind::doubt_ends:
      if (by > 0 && h.is_up) end_doubt(h);
      return;
    default:
      return apply_cut(what, by);
  }
}

void world::lose_key(const host& h, int which) {
  constexpr std::array kinds{key_kind::member, key_kind::beat, key_kind::evicted,
                             key_kind::cluster};
  const key_kind kind = kinds.at(static_cast<std::size_t>(which) % kinds.size());
  (void)etcd_.carry_out({{}, {}, {{kind, kind == key_kind::cluster ? 0 : h.id}}});
}

void world::apply_cut(const fault& what, int by) {
  host& h = *hosts_[static_cast<std::size_t>(what.host)];
  const bool is_of_peers = what.kind == fault_kind::peers_cut || what.kind == fault_kind::host_cut;
  for (int other = 0; is_of_peers && other < plan_.hosts; ++other) {
    if (other == what.host) continue;
    cut(what.host, other, by);
    cut(other, what.host, by);
  }
  if (what.kind == fault_kind::link_cut || what.kind == fault_kind::both_cut)
    cut(what.host, what.other, by);
  if (what.kind == fault_kind::both_cut) cut(what.other, what.host, by);
  if (what.kind == fault_kind::etcd_cut || what.kind == fault_kind::host_cut) h.etcd_cuts += by;
  if (what.kind == fault_kind::etcd_silent) h.etcd_silences += by;
  if (what.kind == fault_kind::late_requests) h.late_requests += by;
  if (what.kind == fault_kind::stale_reads) h.stale_reads += by;
  if (what.kind == fault_kind::no_hints) no_hints_ += by;
  if (what.kind == fault_kind::slow_network) slow_ += by;
  if (what.kind != fault_kind::no_leader) return;
  no_leader_ += by;
  if (no_leader_ == 0) leader_returns();
}

void world::strike_client(const fault& what) {
  host& h = *hosts_[static_cast<std::size_t>(what.host)];
  client& c = h.clients[static_cast<std::size_t>(what.client)];
  if (what.kind == fault_kind::client_dies) {
    c.dies_after = what.count;
    if (what.count == 0) kill_client(h, what.client);
  } else {
    c.stops_after = what.count;
    c.stops_for = what.lasts;
  }
}

void world::cut(int from, int to, int by) {
  link& l = links_[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
  l.cuts += by;
  if (l.cuts > 0) return;
  // Before what is under way now: a link that works again goes on in order.
  for (action& each : std::exchange(l.held, {})) at(now_, std::move(each));
}

/// Each request that waited for a leader is carried out now, or was lost.
void world::leader_returns() {
  for (action& each : std::exchange(etcd_backlog_, {}))
    if (!random_.one_in(3)) after(random_.below(1'000'000), std::move(each));
}

}  // namespace lockflight::cluster::sim
