// A many-core without coherent caches: shared memory lies behind controllers at the edge of the
// mesh, and a core does every access itself and waits for it. An atomic is a read and a write while
// the core holds the test-and-set register of the cell's owner. docs/simulator.md has
// the formulas.
#include <algorithm>

#include "lab/sim/engine.hpp"
#include "lab/sim/network.hpp"

namespace lockflight::sim {
namespace {

/// How far back polls are served one by one when another operation comes.
constexpr time_ps remembered = 20'000'000;

}  // namespace

void engine::place_controllers() {
  const auto& at = profile_.memory.controllers;
  if (at.empty()) return;
  controllers_.resize(at.size());
  taken_.resize(nics_.size());
  ports_.resize(profile_.nodes / profile_.memory.tile_nodes + 1);
  controller_at_.resize(nics_.size());
  const auto far = [&](std::uint32_t place, std::uint32_t which) {
    return hops(profile_.network, place, at[which]);
  };
  for (const rank_state& r : ranks_) {
    std::uint32_t nearest = 0;
    for (std::uint32_t i = 1; i < at.size(); ++i)
      if (far(r.place, i) < far(r.place, nearest)) nearest = i;
    controller_at_[r.node] = nearest;
  }
}

time_ps engine::way_between(std::uint32_t place, std::uint32_t other) {
  const network_profile& net = profile_.network;
  return about(net.latency + net.hop * hops(net, place, other));
}

engine::controller& engine::controller_of(rank_t home) {
  return controllers_[controller_at_[state(home).node]];
}

time_ps engine::way_to_controller(const rank_state& r, rank_t home) {
  return way_between(r.place, profile_.memory.controllers[controller_at_[state(home).node]]);
}

// Pollers load the controller all the time, but when each read is served does not matter to others.
// So the reads are served when another access comes, up to that moment. A long time without other
// accesses is skipped but for its end; only the position of each poller in its round is lost.
void engine::serve_pollers(controller& by, time_ps until) {
  if (by.pollers.empty()) return;
  const auto next = [&] {
    return std::min_element(by.pollers.begin(), by.pollers.end(),
                            [](const poller& a, const poller& b) { return a.arrives < b.arrives; });
  };
  auto first = next();
  if (first->arrives + remembered < until) {
    const time_ps skipped = until - remembered - first->arrives;
    by.free += skipped;
    for (poller& each : by.pollers) {
      each.arrives += skipped;
      each.served += skipped;
    }
  }
  for (; first->arrives < until; first = next()) {
    first->served = std::max(first->arrives, by.free);
    first->arrives = first->served + first->around;
    by.free = first->served + profile_.memory.controller;
  }
}

/// When the controller serves an access that reaches it now.
time_ps engine::pass(controller& by, time_ps arrived) {
  serve_pollers(by, arrived);
  const time_ps served = std::max(arrived, by.free);
  by.free = served + profile_.memory.controller;
  return served;
}

// A core that waits for a register asks for it all the time, and each time the request and its
// answer pass the port of the register's tile. They do so when another access comes, up to that
// moment, as the reads of pollers do. Each round takes a little more or less by chance; otherwise a
// core could be behind the same other one for ever, and never have the register.
void engine::serve_askers(tile_port& by, time_ps until) {
  if (by.asking.empty()) return;
  const auto next = [&] {
    return std::min_element(by.asking.begin(), by.asking.end(),
                            [](const asker& a, const asker& b) { return a.arrives < b.arrives; });
  };
  auto first = next();
  if (first->arrives + remembered < until) {
    const time_ps skipped = until - remembered - first->arrives;
    by.free += skipped;
    for (asker& each : by.asking) each.arrives += skipped;
  }
  for (; first->arrives < until; first = next()) {
    const time_ps passed = std::max(first->arrives, by.free);
    by.free = passed + profile_.memory.port;
    first->arrives = first->answer ? passed + about(first->around) : by.free;
    first->answer = !first->answer;
  }
}

/// A request or an answer waits until the port is free, and occupies it. The passage itself is part
/// of the way.
void engine::pass(rank_state& r, rank_t me, tile_port& by) {
  if (profile_.memory.port == 0) return;
  reach(r, me);
  serve_askers(by, r.now);
  r.now = std::max(r.now, by.free);
  by.free = r.now + profile_.memory.port;
}

/// An answer comes in at the core's own port. The passage is the last part of its way.
void engine::come_in(rank_state& r, rank_t me) {
  r.now -= profile_.memory.port;
  pass(r, me, port_at(r.place));
  r.now += profile_.memory.port;
}

/// Makes an access: it travels, is served, takes effect, and its answer travels back, which takes
/// the given time.
template <class Effect>
void engine::access(rank_state& r, rank_t me, rank_t home, time_ps answer, Effect effect) {
  const time_ps way = way_to_controller(r, home);
  pass(r, me, port_at(r.place));
  r.now += way;
  reach(r, me);  // in the order of arrival
  r.now = pass(controller_of(home), r.now);
  reach(r, me);
  effect();
  r.now += answer + way;
  come_in(r, me);
}

// A core that finds the register taken asks again as soon as it has the answer. The first core that
// asks after a reset has it, which is more often a near one.
void engine::take_register(rank_state& r, rank_t me, rank_t home) {
  const rank_state& owner = state(home);
  const time_ps way = way_between(r.place, owner.place);
  const time_ps passage = profile_.memory.port;
  tile_port& port = port_at(owner.place);
  r.now += way - passage;
  for (;;) {
    pass(r, me, port);
    r.now += passage;
    reach(r, me);
    if (taken_[owner.node] == 0) break;
    port.asking.push_back({.rank = me,
                           .node = owner.node,
                           .arrives = r.now,
                           .around = std::max<time_ps>(2 * way - passage, 1),
                           .answer = true});
    suspend(r, waiting::turn);  // until its request is at the port in time
  }
  taken_[owner.node] = 1;
  pass(r, me, port);
  r.now += way;
}

void engine::reset_register(rank_state& r, rank_t me, rank_t home) {
  const rank_state& owner = state(home);
  const time_ps way = way_between(r.place, owner.place);
  const time_ps passage = profile_.memory.port;
  tile_port& port = port_at(owner.place);
  r.now += way - passage;
  pass(r, me, port);
  r.now += passage;
  reach(r, me);
  taken_[owner.node] = 0;
  wake_first_asker(port, owner.node, r.now);
  pass(r, me, port);
  r.now += way;
}

// Requests that are at the port already came after the reset, and so find the register free.
void engine::wake_first_asker(tile_port& by, std::uint32_t node, time_ps now) {
  if (profile_.memory.port == 0) serve_askers(by, now);
  const auto asks_next = [&](const asker& a) {
    return a.answer ? std::max(a.arrives, by.free) + a.around : a.arrives;
  };
  auto first = by.asking.end();
  for (auto at = by.asking.begin(); at != by.asking.end(); ++at)
    if (at->node == node && (first == by.asking.end() || asks_next(*at) < asks_next(*first)))
      first = at;
  if (first == by.asking.end()) return;
  queue_.push(std::max(now, asks_next(*first)), happening::resume,
              static_cast<std::uint32_t>(first->rank));
  if (first->answer) by.free = std::max(first->arrives, by.free) + profile_.memory.port;
  *first = by.asking.back();
  by.asking.pop_back();
}

word engine::uncached_load(rank_state& r, rank_t me, rank_t home, std::uint32_t index) {
  word value = 0;
  r.now += profile_.cpu.hit;
  access(r, me, home, profile_.memory.read, [&] { value = memory_.cell(home, index); });
  return value;
}

void engine::uncached_store(rank_state& r, rank_t me, rank_t home, std::uint32_t index,
                            word value) {
  r.now += profile_.cpu.hit;
  access(r, me, home, profile_.memory.controller,
         [&] { std::ignore = written(posted_kind::put, home, index, value, 0, r.now); });
}

word engine::uncached_rmw(rank_state& r, rank_t me, posted_kind kind, rank_t home,
                          std::uint32_t index, word value, word desired) {
  word before = 0;
  take_register(r, me, home);
  access(r, me, home, profile_.memory.read, [] {});
  // The two accesses are one step, so that a put in between is not lost.
  access(r, me, home, profile_.memory.controller,
         [&] { before = written(kind, home, index, value, desired, r.now); });
  reset_register(r, me, home);
  return before;
}

/// A posted operation, which is complete when it is posted.
void engine::perform(rank_t me, posted_kind kind, rank_t home, std::uint32_t index, word value,
                     word desired, word* result) {
  rank_state& r = state(me);
  const memory_profile& cost = profile_.memory;
  r.now += profile_.nic.post;
  r.unflushed = true;
  if (kind != posted_kind::put && kind != posted_kind::get) {
    const word before = uncached_rmw(r, me, kind, home, index, value, desired);
    note_swap(me, kind, value, before);
    if (result != nullptr) *result = before;
    return;
  }
  const bool reads = kind == posted_kind::get;
  for (std::uint32_t left = cost.word_accesses; left > 0; --left)
    access(r, me, home, reads ? cost.read : cost.controller, [&] {
      if (left > 1) return;
      const word before = written(kind, home, index, value, desired, r.now);
      if (result != nullptr) *result = before;
    });
}

/// Carries out the operation on the cell, and returns the value before.
word engine::written(posted_kind kind, rank_t home, std::uint32_t index, word value, word desired,
                     time_ps now) {
  word before = 0;
  operation o;
  o.kind = kind;
  o.home = home;
  o.index = index;
  o.value = value;
  o.desired = desired;
  o.result = &before;
  change(o, now);
  return before;
}

// ---- waiting ----

// The answer of the read that did not find the awaited value is on its way back.
void engine::begin_to_poll(rank_state& r, rank_t me) {
  const time_ps way = way_to_controller(r, r.home);
  const time_ps hit = profile_.cpu.hit;
  controller_of(r.home).pollers.push_back({.rank = me,
                                           .served = 0,
                                           .arrives = r.now + hit + way,
                                           .around = profile_.memory.read + way + hit + way});
}

engine::poller engine::stop_polling(rank_t waiter) {
  auto& pollers = controller_of(state(waiter).home).pollers;
  const auto at = std::find_if(pollers.begin(), pollers.end(),
                               [&](const poller& l) { return l.rank == waiter; });
  const poller found = *at;
  *at = pollers.back();
  pollers.pop_back();
  return found;
}

// The poller sees the written value with the first of its reads that is served later: one that is
// in the controller's queue, or the next.
void engine::wake_poller(rank_t waiter, time_ps now) {
  rank_state& r = state(waiter);
  const poller it = stop_polling(waiter);
  r.polls_again = it.served < now;
  const time_ps way = (it.around - profile_.memory.read - profile_.cpu.hit) / 2;
  queue_.push(r.polls_again ? it.arrives : it.served + profile_.memory.read + way,
              happening::resume, static_cast<std::uint32_t>(waiter));
}

void engine::poll_again(rank_state& r) {
  r.polls_again = false;
  r.now = pass(controller_of(r.home), r.now) + profile_.memory.read + way_to_controller(r, r.home);
}

}  // namespace lockflight::sim
