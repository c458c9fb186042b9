#include <utility>

#include "lab/cluster/world.hpp"

namespace lockflight::cluster::sim {

void world::later(host& h, int index, true_time delay, void (world::*what)(host&, int)) {
  const client& c = h.clients[static_cast<std::size_t>(index)];
  after(delay, [this, &h, index, what, life = c.life, of_host = h.life] {
    if (!h.is_up || h.life != of_host) return;
    const client& who = h.clients[static_cast<std::size_t>(index)];
    if (who.life != life) return;
    if (h.stops > 0) return later(h, index, 10'000, what);
    if (who.stopped_until > now_) return later(h, index, who.stopped_until - now_, what);
    (this->*what)(h, index);
  });
}

void world::new_client(host& h, int index) {
  client& c = h.clients[static_cast<std::size_t>(index)];
  const std::uint64_t life = c.life + 1;
  c = client{};
  c.life = life;
  c.number = ++numbers_of_clients_;
  later(h, index, random_.below(2 * plan_.mean_idle), &world::think);
}

/// Begins an acquire.
void world::think(host& h, int index) {
  // A holder of a host that is copied loses to the copy what it does until the host notices.
  if (h.was_copied && h.renewing != &h) return later(h, index, 2 * plan_.mean_idle, &world::think);
  client& c = h.clients[static_cast<std::size_t>(index)];
  c.name = names_[static_cast<std::size_t>(random_.below(plan_.names))];
  begin(h, index, random_.one_in(3) ? mode::shared : mode::exclusive);
}

void world::begin(host& h, int index, mode wanted) {
  client& c = h.clients[static_cast<std::size_t>(index)];
  ++c.life;
  c.now = doing::queued;
  c.wanted = wanted;
  c.since = now_;
  c.acquiring = core_.make_acquire(c.name, wanted, *h.words, plan_.times.ttl);
  h.locks[c.name].enqueue(index, wanted);
  admit(h, c.name);
  if (random_.one_in(4)) {
    const auto until = random_.between(1'000, 2 * plan_.times.ttl);
    after(until, [this, &h, index, number = c.number, since = c.since, of_host = h.life] {
      if (!h.is_up || h.life != of_host) return;
      const client& who = h.clients[static_cast<std::size_t>(index)];
      if (who.number == number && who.since == since) time_out(h, index);
    });
  }
}

/// The acquire gives up, if it still waits.
void world::time_out(host& h, int index) {
  client& c = h.clients[static_cast<std::size_t>(index)];
  if ((c.now != doing::queued && c.now != doing::waiting) || h.stops > 0) return;
  ++c.life;
  if (std::exchange(c.now, doing::idle) == doing::waiting) c.acquiring->give_up();
  say("host {}: client {} gives up '{}'", h.number, c.number, c.name);
  release_lock(h, c.name, index);
  // A writer may come back at once as a reader.
  if (c.wanted == mode::exclusive && random_.one_in(4)) return begin(h, index, mode::shared);
  later(h, index, random_.below(2 * plan_.mean_idle), &world::think);
}

// ---- the host lock ----

void world::admit(host& h, const std::string& name) {
  for (const host_lock::user who : h.locks[name].admit()) {
    if (who == host_lock::agent) {
      after(random_.between(1, 50), [this, &h, name, life = h.agent_life] {
        with_agent(h, life, [this, &h, name] {
          run_agent(h, [&](agent_events& a, instant now, effects& out) {
            a.host_lock_taken(now, name, out);
          });
        });
      });
      continue;
    }
    client& c = h.clients[static_cast<std::size_t>(who)];
    c.now = doing::stepping;
    later(h, who, random_.between(1, 20), &world::step);
  }
}

void world::release_lock(host& h, const std::string& name, host_lock::user who) {
  h.locks[name].leave(who);
  admit(h, name);
}

// ---- the acquire ----

void world::step(host& h, int index) {
  client& c = h.clients[static_cast<std::size_t>(index)];
  if (is_struck(h, index, &world::step)) return;
  c.now = doing::stepping;
  const auto next = c.acquiring->step(h.clock.at(now_));
  switch (next) {
    case acquire_events::next::holds:
      return hold(h, index);
    case acquire_events::next::waits:
      c.now = doing::waiting;
      return;
    case acquire_events::next::rings:
      ring(h, c.name);
      break;
    case acquire_events::next::step:
      break;
  }
  // Now and then a client is kept from running between two steps.
  const bool pauses = random_.one_in(100);
  later(h, index, pauses ? random_.below(300'000) : random_.between(1, 20), &world::step);
}

/// True if the client dies before this step, or is stopped and goes on with it later.
bool world::is_struck(host& h, int index, void (world::*what)(host&, int)) {
  client& c = h.clients[static_cast<std::size_t>(index)];
  if (c.dies_after > 0 && --c.dies_after == 0) return kill_client(h, index), true;
  if (c.stops_after <= 0 || --c.stops_after > 0) return false;
  c.stopped_until = now_ + c.stops_for;
  later(h, index, c.stops_for, what);
  return true;
}

void world::ring(host& h, const std::string& name) {
  after(random_.between(1, 50), [this, &h, name, life = h.agent_life] {
    with_agent(h, life, [this, &h, name] {
      run_agent(h, [&](agent_events& a, instant now, effects& out) { a.rung(now, name, out); });
    });
  });
}

void world::wake(host& h, const std::string& name) {
  for (int i = 0; i < plan_.clients; ++i) {
    client& c = h.clients[static_cast<std::size_t>(i)];
    if (c.now != doing::waiting || c.name != name) continue;
    c.now = doing::stepping;
    later(h, i, random_.between(1, 50), &world::step);
  }
}

void world::wake_all(host& h) {
  for (const std::string& name : names_) wake(h, name);
}

// ---- the section ----

true_time world::length_of_section() {
  if (now_ < plan_.faults_end && random_.one_in(40)) return random_.below(2 * plan_.times.ttl);
  return random_.one_in(10) ? random_.below(500'000) : random_.between(5, 20'000);
}

void world::hold(host& h, int index) {
  client& c = h.clients[static_cast<std::size_t>(index)];
  c.now = doing::inside;
  const instant clock = h.clock.at(now_);
  if (trace_ != nullptr)
    say("host {}: client {} enters '{}' {} with ({}, {}), died {}, valid {}", h.number, c.number,
        c.name, c.wanted == mode::shared ? "shared" : "exclusive", c.acquiring->fence().epoch,
        c.acquiring->fence().counter, c.acquiring->died(), c.acquiring->is_valid(clock));
  observer_.entered(
      c.name, {c.number, c.wanted, c.acquiring.get(), &h.clock, {h.id, h.words->incarnation()}},
      now_);
  later(h, index, length_of_section(), &world::leave);
}

void world::leave(host& h, int index) {
  client& c = h.clients[static_cast<std::size_t>(index)];
  if (c.dies_after > 0 && --c.dies_after == 0) return kill_client(h, index);
  say("host {}: client {} leaves '{}'", h.number, c.number, c.name);
  observer_.leaves(c.name, c.number, now_, is_calm());
  c.acquiring->leave(h.clock.at(now_));
  c.now = doing::leaving;
  later(h, index, random_.between(1, 20), &world::give_back);
}

void world::give_back(host& h, int index) {
  if (is_struck(h, index, &world::give_back)) return;
  client& c = h.clients[static_cast<std::size_t>(index)];
  if (!c.acquiring->give_back()) return release(h, index);
  say("host {}: client {} gives '{}' back", h.number, c.number, c.name);
  later(h, index, random_.between(1, 20), &world::ring_and_release);
}

void world::ring_and_release(host& h, int index) {
  if (is_struck(h, index, &world::ring_and_release)) return;
  ring(h, h.clients[static_cast<std::size_t>(index)].name);
  later(h, index, random_.between(1, 20), &world::release);
}

void world::release(host& h, int index) {
  client& c = h.clients[static_cast<std::size_t>(index)];
  ++c.life;
  c.now = doing::idle;
  release_lock(h, c.name, index);
  // A reader that upgrades comes back at once as a writer.
  if (c.wanted == mode::shared && random_.one_in(4)) return begin(h, index, mode::exclusive);
  later(h, index, random_.below(2 * plan_.mean_idle), &world::think);
}

void world::kill_client(host& h, int index) {
  client& c = h.clients[static_cast<std::size_t>(index)];
  say("host {}: client {} dies ({} '{}')", h.number, c.number,
      c.now == doing::inside ? "inside"
      : c.now == doing::idle ? "outside"
                             : "on its way into",
      c.name);
  if (c.now == doing::inside) observer_.dies_inside(c.name, c.number);
  const std::string name = c.name;
  const bool has_lock = c.now != doing::idle;
  ++c.life;
  c.now = doing::idle;
  if (has_lock) release_lock(h, name, index);
  new_client(h, index);
}

}  // namespace lockflight::cluster::sim
