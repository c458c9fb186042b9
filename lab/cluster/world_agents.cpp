#include <algorithm>
#include <limits>

#include "lab/cluster/text.hpp"
#include "lab/cluster/world.hpp"

namespace lockflight::cluster::sim {

// ---- life and death ----

void world::start_agent(host& h) {
  ++h.agent_life;
  h.retires = false;
  say("host {}: agent starts", h.number);
  h.agent = core_.make_agent(h.id, plan_.times, *h.words);
  h.wakes_at = -1;
  with_agent(h, h.agent_life, [this, &h] {
    run_agent(h, [](agent_events& a, instant now, effects& out) { a.start(now, out); });
  });
}

void world::kill_agent(host& h) {
  if (!h.agent) return;
  say("host {}: agent dies", h.number);
  ++h.agent_life;
  h.agent.reset();
  h.agent_inbox.clear();
  if (!h.is_up) return;
  h.words->crash_in = 0;
  for (const std::string& name : names_) release_lock(h, name, host_lock::agent);
}

void world::retire_agent(host& h) {
  if (!h.is_up || !h.agent) return;
  say("host {} is to leave", h.number);
  h.retires = true;
  with_agent(h, h.agent_life, [this, &h] {
    run_agent(h, [](agent_events& a, instant now, effects& out) { a.retire(now, out); });
  });
}

void world::end_doubt(host& h) {
  with_agent(h, h.agent_life, [this, &h] {
    if (now_ > plan_.faults_end) doubt_was_ended_ = true;
    if (etcd_.now()->epoch) observer_.end_doubt(etcd_.now()->epoch->what);
    run_agent(h, [](agent_events& a, instant now, effects& out) { a.end_doubt(now, out); });
  });
}

void world::set_agent_stopped(host& h, int by) {
  h.agent_stops += by;
  if (h.agent_stops == 0) drain(h);
}

void world::drain(host& h) {
  while (h.stops == 0 && h.agent_stops == 0 && !h.agent_inbox.empty()) {
    const action next = std::move(h.agent_inbox.front());
    h.agent_inbox.pop_front();
    next();
  }
}

/// Runs it when the agent runs, after all that came before.
void world::with_agent(host& h, std::uint64_t life, action what) {
  if (!h.agent || h.agent_life != life) return;
  if (h.stops > 0 || h.agent_stops > 0) {
    h.agent_inbox.push_back([&h, life, what = std::move(what)] {
      if (h.agent && h.agent_life == life) what();
    });
    return;
  }
  what();
}

void world::run_agent(host& h, const std::function<void(agent_events&, instant, effects&)>& what) {
  effects out;
  const epoch_number before = h.agent->epoch();
  h.words->is_agent_running = true;
  try {
    what(*h.agent, h.clock.at(now_), out);
  } catch (const agent_crash&) {
    // The words that the agent has written stay. Nothing that it was about to send leaves.
    h.words->is_agent_running = false;
    return kill_agent(h);
  }
  h.words->is_agent_running = false;
  if (h.agent->epoch() != before) {
    last_move_at_ = now_;
    say("host {}: moves from epoch {} to {}", h.number, before, h.agent->epoch());
  }
  carry_out(h, out);
}

void world::carry_out(host& h, effects& out) {
  for (const message& each : out.messages) send(h, each);
  for (const submitted& each : out.transactions) submit(h, each);
  for (const std::string& name : out.host_locks_released) release_lock(h, name, host_lock::agent);
  for (const wanted_host_lock& each : out.host_locks_wanted) {
    if (each.if_free) continue;
    h.locks[each.name].enqueue(host_lock::agent, each.as);
    admit(h, each.name);
  }
  if (out.wakes_clients) wake_all(h);
  if (out.stops == stop::copied) return ends_as_copied(h);
  if (out.has_left) {
    say("host {} has left", h.number);
    return kill_agent(h);
  }
  schedule_wake(h);
  // The agent may die at one of these.
  const std::uint64_t life = h.agent_life;
  for (const wanted_host_lock& each : out.host_locks_wanted)
    if (each.if_free && h.agent && h.agent_life == life) take_if_free(h, each);
}

/// The agent does not leave its turn meanwhile.
void world::take_if_free(host& h, const wanted_host_lock& what) {
  host_lock& lock = h.locks[what.name];
  if (!lock.is_free()) {
    if (lock.is_awaited() && random_.one_in(2))
      run_agent(h, [&](agent_events& a, instant now, effects& out) {
        a.host_lock_awaited(now, what.name, out);
      });
    return;
  }
  lock.enqueue(host_lock::agent, what.as);
  (void)lock.admit();
  run_agent(h, [&](agent_events& a, instant now, effects& out) {
    a.host_lock_taken(now, what.name, out);
  });
}

void world::schedule_wake(host& h) {
  const instant wanted = h.agent->wake_at();
  if (wanted == std::numeric_limits<instant>::max()) return;
  const true_time when = std::max(h.clock.when(wanted), now_);
  if (h.wakes_at >= now_ && h.wakes_at <= when) return;
  h.wakes_at = when;
  at(when, [this, &h, life = h.agent_life, when] {
    with_agent(h, life, [this, &h, when] {
      if (h.wakes_at == when) h.wakes_at = -1;
      if (h.agent->wake_at() > h.clock.at(now_)) return schedule_wake(h);
      run_agent(h, [](agent_events& a, instant now, effects& out) { a.timer(now, out); });
    });
  });
}

void world::after_hint(host& h) {
  after(random_.between(1'000, 1'000'000), [this, &h, life = h.agent_life] {
    if (h.etcd_cuts > 0 || h.etcd_silences > 0) return;
    with_agent(h, life, [this, &h] {
      run_agent(h, [](agent_events& a, instant now, effects& out) { a.hint(now, out); });
    });
  });
}

// ---- messages ----

void world::send(host& from, const message& what) {
  if (from.original != nullptr) return;
  const auto to = std::find_if(hosts_.begin(), hosts_.end(),
                               [&](const auto& h) { return h->is_up && h->id == what.to; });
  if (to == hosts_.end() || !(*to)->agent) return;
  host& receiver = **to;
  ++load_.messages;
  if (trace_ != nullptr)
    say("host {} to {}: {} {} (epoch {})", from.number, receiver.number, text_of(what.what),
        what.name, what.epoch);
  deliver(from.number, receiver.number, [this, &receiver, life = receiver.agent_life, what] {
    with_agent(receiver, life, [this, &receiver, what] {
      run_agent(receiver,
                [&](agent_events& a, instant now, effects& out) { a.receive(now, what, out); });
    });
  });
}

/// In order. What meets a link that is cut waits until the link works again.
void world::deliver(int from, int to, action what) {
  link& l = links_[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
  const true_time latency = random_.between(30, slow_ > 0 ? 1'000'000 : 2'000);
  l.last_delivery = std::max(l.last_delivery + 1, now_ + latency);
  at(l.last_delivery, [&l, what = std::move(what)]() mutable {
    if (l.cuts > 0)
      l.held.push_back(std::move(what));
    else
      what();
  });
}

/// The other agents answer this one, also when they have no messages to send.
void world::keep_alive(int number) {
  after(plan_.times.ttl / 8 + random_.below(1000), [this, number] {
    host& asks = *hosts_[static_cast<std::size_t>(number)];
    for (const auto& from : hosts_) {
      const auto here = static_cast<std::size_t>(number);
      const auto there = static_cast<std::size_t>(from->number);
      const bool is_cut = links_[here][there].cuts > 0 || links_[there][here].cuts > 0;
      if (from->number == number || is_cut || !from->agent || from->stops > 0 ||
          from->agent_stops > 0 || !asks.agent)
        continue;
      with_agent(asks, asks.agent_life, [this, &asks, id = from->id] {
        run_agent(asks, [&](agent_events& a, instant now, effects& out) { a.heard(now, id, out); });
      });
    }
    keep_alive(number);
  });
}

// ---- etcd ----

void world::submit(host& h, const submitted& what) {
  if (h.etcd_cuts > 0) return;
  true_time latency = random_.between(300, slow_ > 0 ? 1'000'000 : 5'000);
  if (h.late_requests > 0 && random_.one_in(2)) latency = random_.below(3 * plan_.times.ttl);
  after(latency, [this, &h, life = h.agent_life, what] { arrive_at_etcd(h, life, what); });
}

void world::arrive_at_etcd(host& h, std::uint64_t life, const submitted& what) {
  if (no_leader_ > 0) {
    // A leader that is deposed keeps requests. They may be carried out when there is a leader.
    etcd_backlog_.push_back([this, &h, life, what] { arrive_at_etcd(h, life, what); });
    return;
  }
  // An agent that proposes an epoch compares no key that it takes away.
  const auto is_own = [&](const key& each) { return each == key{key_kind::member, h.id}; };
  const auto compares_own = [&](const comparison& each) { return is_own(each.of); };
  const bool is_leave = std::ranges::any_of(what.what.erased, is_own) &&
                        std::ranges::any_of(what.what.when, compares_own);
  const identity who{h.id, h.is_up ? h.words->incarnation() : 0};
  if (is_leave)
    left_.insert(who);  // before the epoch is written, which may be the same transaction
  const bool is_read = what.what.when.empty() && what.what.puts.empty();
  const bool is_stale = is_read && h.stale_reads > 0 && random_.one_in(2);
  const answer reply = is_stale ? etcd_.read_stale(static_cast<std::size_t>(random_.below(60)))
                                : etcd_.carry_out(what.what);
  ++load_.requests;
  load_.bytes_read += size_;
  if (reply.succeeded && !(what.what.puts.empty() && what.what.erased.empty())) ++load_.writes;
  if (is_leave && !reply.succeeded) left_.erase(who);
  if (reply.succeeded) check_copies(h, what.what);
  if (const auto& cluster = etcd_.now()->cluster) {
    const bool is_known = std::ranges::any_of(hosts_, [&](const auto& each) {
      return each->is_up && each->words->cluster().id == cluster_;
    });
    if (is_known && cluster_ != 0 && cluster_ != cluster->what.id)
      throw violation("cluster", "the cluster has become another one");
    cluster_ = cluster->what.id;
  }
  answer_from_etcd(h, life, what.number, reply);
}

void world::answer_from_etcd(host& h, std::uint64_t life, std::uint64_t number,
                             const answer& what) {
  if (h.etcd_cuts > 0 || h.etcd_silences > 0) return;
  after(random_.between(300, slow_ > 0 ? 1'000'000 : 5'000), [this, &h, life, number, what] {
    with_agent(h, life, [this, &h, number, what] {
      run_agent(h, [&](agent_events& a, instant now, effects& out) {
        a.answered(now, number, what, out);
      });
    });
  });
}

}  // namespace lockflight::cluster::sim
