// Posted operations and messages, which go through a network interface. The stages of an operation
// are those of docs/simulator.md: posted, injected, arrived, in effect, complete.
#include <algorithm>
#include <bit>

#include "lab/sim/engine.hpp"
#include "lab/sim/network.hpp"

namespace lockflight::sim {
namespace {

/// The engine that is free first.
time_ps& first_free(std::vector<time_ps>& engines) {
  if (engines.size() == 1) return engines.front();
  return *std::min_element(engines.begin(), engines.end());
}

}  // namespace

std::uint32_t engine::take_operation() {
  if (free_operations_ == none) {
    if (operations_.size() >= event_queue::most_numbers)
      throw std::length_error("more than 16,777,216 operations in flight");
    operations_.emplace_back();
    return static_cast<std::uint32_t>(operations_.size() - 1);
  }
  const std::uint32_t number = free_operations_;
  free_operations_ = operations_[number].next;
  operations_[number] = {};
  return number;
}

void engine::release_operation(std::uint32_t number) {
  operations_[number].next = free_operations_;
  free_operations_ = number;
}

void engine::post(rank_t me, posted_kind kind, rank_t home, std::uint32_t index, word value,
                  word desired, word* result, std::uint16_t lines) {
  check_cell(home, index + (lines - 1U) * cache_line::words);
  if (is_many_core()) {
    for (std::uint16_t i = 0; i < lines; ++i)
      perform(me, kind, home, index + i * cache_line::words, value, desired, result + i);
    return;
  }
  rank_state& r = state(me);
  r.now += profile_.nic.post;
  // Loopback has no long way, so an operation that is let through too early here would be too early
  // by a large part of it.
  if (state(home).node == r.node)
    reach(r, me);
  else
    nearly_reach(r, me);
  const std::uint32_t number = take_operation();
  operation& o = at(number);
  o.kind = kind;
  o.lines = lines;
  o.origin = me;
  o.home = home;
  o.index = index;
  o.value = value;
  o.desired = desired;
  o.result = result;
  o.next = r.pending;
  o.follows = orders_posts() && r.pending != none && at(r.pending).home == home;
  if (r.pending != none) at(r.pending).before = number;
  r.pending = number;
  inject(r, number);
}

void engine::inject(rank_state& r, std::uint32_t number) {
  operation& o = at(number);
  nic& card = nics_[r.node];
  const rank_state& target = state(o.home);
  time_ps& free_from = first_free(card.injection);
  const time_ps begun = std::max(r.now, free_from);
  time_ps left = begun + connection_miss(card, o, end_of_connection::origin);
  o.way = way(r, target, o);
  if (o.follows) {
    left = std::max(left, r.left);
    o.way = std::max(o.way, at(o.next).way);
  }
  r.left = left;
  free_from = left + profile_.nic.gap;
  // Links are taken in the order of leaving, and not on a rank's stack, which so stays small.
  const bool leaves_first = !links_.empty() && !o.loops_back;
  queue_.push(leaves_first ? left : left + o.way, happening::arrive, number);
}

// The operation that left first goes first on each link of its route, and its arrival is computed
// at once. So an operation that leaves later but arrives at a link earlier waits for one that is
// still far away; the error is at most the difference of the two routes.
time_ps engine::link_waits(const rank_state& from, const rank_state& to, time_ps left,
                           std::uint16_t lines) {
  const network_profile& net = profile_.network;
  find_route(net, from.place, to.place, route_);
  time_ps now = left;
  time_ps waits = 0;
  for (const std::uint32_t link : route_) {
    const time_ps begun = std::max(now, links_[link]);
    links_[link] = begun + lines * net.link_gap;
    waits += begun - now;
    now = begun + net.hop;
  }
  return waits;
}

// Messages of a pair keep their order, so nothing is left to chance in their way.
time_ps engine::way(const rank_state& from, const rank_state& to, operation& what) {
  const bool message = what.kind == posted_kind::message;
  const network_profile& net = profile_.network;
  time_ps length = 0;
  if (from.node == to.node) {
    const nic_profile& card = profile_.nic;
    what.loops_back = true;
    const std::uint32_t in_flight = nics_[from.node].loopbacks++;
    length = card.loopback;
    if (!message && card.loopback_slots != 0 && in_flight >= card.loopback_slots)
      length += card.loopback_congested * (in_flight - card.loopback_slots + 1);
  } else {
    length = net.latency + net.hop * hops(net, from.place, to.place) + word_time_;
  }
  return message ? length : about(length);
}

// With more connections than the card holds, the fraction of operations that miss is the fraction
// of connections that do not fit. The fraction is carried over from one operation to the next, so
// no random number is needed. A connection within a node has both of its ends at one card.
time_ps engine::connection_miss(nic& card, const operation& what, end_of_connection end) {
  if (profile_.nic.connections == 0) return 0;
  const auto home = static_cast<std::uint64_t>(what.home);
  const auto side = static_cast<std::uint64_t>(end);
  card.peers.insert(static_cast<std::uint64_t>(what.origin) << 32 | home << 1 | side);
  const auto active = static_cast<double>(card.peers.size());
  if (active <= profile_.nic.connections) return 0;
  card.missed += 1 - profile_.nic.connections / active;
  if (card.missed < 1) return 0;
  card.missed -= 1;
  return profile_.nic.connection_miss;
}

void engine::arrive(std::uint32_t number, time_ps arrived) {
  if (operation& o = at(number); !links_.empty() && !o.loops_back && !o.is_under_way) {
    o.is_under_way = true;
    const time_ps waits = link_waits(state(o.origin), state(o.home), arrived, 1);
    queue_.push(arrived + o.way + waits, happening::arrive, number);
    return;
  }
  if (profile_.network.arbiter == arbitration::turns && must_wait_on_the_way(number, arrived))
    return;
  receive_at(nics_[state(at(number).home).node], number, arrived);
}

// Operations wait for each other only at a card that is busy.
bool engine::must_wait_on_the_way(std::uint32_t number, time_ps arrived) {
  const operation& o = at(number);
  const rank_state& from = state(o.origin);
  const rank_state& to = state(o.home);
  nic& card = nics_[to.node];
  const bool nobody_waits = card.waiting == nullptr || card.waiting->empty();
  if (nobody_waits && card.entry <= arrived) return false;
  if (card.waiting == nullptr) card.waiting = std::make_unique<crossroads>();
  if (nobody_waits) queue_.push(card.entry, happening::admit, to.node);
  find_route(profile_.network, from.place, to.place, route_);
  card.waiting->enter(route_, from.node, number);
  return true;
}

void engine::admit(std::uint32_t node, time_ps now) {
  nic& card = nics_[node];
  receive_at(card, card.waiting->take(), now);
  if (!card.waiting->empty()) queue_.push(card.entry, happening::admit, node);
}

void engine::receive_at(nic& card, std::uint32_t number, time_ps arrived) {
  operation& o = at(number);
  const nic_profile& cost = profile_.nic;
  const time_ps received =
      std::max(arrived, card.reception) + connection_miss(card, o, end_of_connection::target);
  card.reception = received + cost.receive_gap;
  card.entry = card.reception;
  time_ps effect = received + cost.memory + (o.kind == posted_kind::put ? cost.put : 0);
  // An operation that follows another one arrived after it, and is served after it.
  if (o.follows && !at(o.next).done) effect = std::max(effect, at(o.next).complete);
  if (o.kind != posted_kind::put && o.kind != posted_kind::get && o.kind != posted_kind::message) {
    cache_line& line = memory_.line(o.home, o.index);
    time_ps& unit = first_free(card.atomics);
    const time_ps begun = std::max({effect, unit, time_ps{line.busy_until}});
    effect = begun + cost.atomic;
    unit = effect;
    card.on_atomics += cost.atomic;
    line.keep_busy(begun + cost.atomic_cell);
    // The next one may come in so early that it waits in front of the unit when this one enters.
    card.entry = std::max(card.entry, begun - cost.memory);
  }
  if (orders_posts() && o.kind != posted_kind::message) o.complete = effect;
  // Of operations at one moment those in the queue go first.
  if (o.follows ? effect < queue_.next() : effect <= queue_.next())
    return take_effect(number, effect);
  queue_.push(effect, happening::effect, number);
}

void engine::take_effect(std::uint32_t number, time_ps now) {
  operation& o = at(number);
  if (o.loops_back) --nics_[state(o.home).node].loopbacks;
  if (o.kind == posted_kind::message) return deliver(number, now);
  if (o.kind == posted_kind::compare_swap)
    note_swap(o.origin, o.kind, o.value, memory_.cell(o.home, o.index));
  change(o, now);
  o.complete = now + o.way;
  if (!links_.empty() && !o.loops_back)
    o.complete += link_waits(state(o.home), state(o.origin), now, o.lines);
  if (o.lines > 1) {
    // The request is as short as others; the answer carries everything between its words too.
    time_ps& answers = nics_[state(o.origin).node].answers;
    answers = std::max(answers, o.complete) + (o.lines - 1) * cache_line::words * word_time_;
    o.complete = answers;
  }
  complete(number);
}

void engine::change(operation& o, time_ps now) {
  cache_line& line = memory_.line(o.home, o.index);
  word& cell = line.cells[o.index % cache_line::words];
  const word before = cell;
  if (o.result != nullptr) *o.result = before;
  for (std::uint16_t i = 1; i < o.lines; ++i)
    o.result[i] = memory_.cell(o.home, o.index + i * cache_line::words);
  switch (o.kind) {
    case posted_kind::get:
      return;
    case posted_kind::put:
    case posted_kind::swap:
      cell = o.value;
      break;
    case posted_kind::add:
    case posted_kind::fetch_add:
      cell = before + o.value;
      break;
    case posted_kind::compare_swap:
      if (before != o.value) return;
      cell = o.desired;
      break;
    case posted_kind::message:
      return;
  }
  line.holders = 0;
  line.owner = 0;
  if (state(o.home).first_waiter >= 0) wake_waiters(o.home, o.index, cell, now, line);
}

// The moment at which the origin will see it is known now; if the origin waits for it, it is woken.
void engine::complete(std::uint32_t number) {
  operation& o = at(number);
  rank_state& r = state(o.origin);
  o.done = true;
  if (r.for_what != waiting::flush || (r.flush_target >= 0 && r.flush_target != o.home)) return;
  r.flushed = std::max(r.flushed, o.complete);
  const rank_t origin = o.origin;
  unlink(r, number);
  if (--r.flushing > 0) return;
  r.for_what = waiting::nothing;
  queue_.push(r.flushed, happening::resume, static_cast<std::uint32_t>(origin));
}

void engine::unlink(rank_state& r, std::uint32_t number) {
  const operation& o = at(number);
  if (o.before != none) at(o.before).follows = false;  // the operation took effect long ago
  (o.before == none ? r.pending : at(o.before).next) = o.next;
  if (o.next != none) at(o.next).before = o.before;
  release_operation(number);
}

void engine::flush(rank_t me, rank_t target) {
  rank_state& r = state(me);
  if (r.unflushed) {
    r.unflushed = false;
    r.now += profile_.nic.complete;
  }
  if (r.pending == none) return;
  r.flushing = 0;
  r.flushed = r.now;
  bool any = false;
  for (std::uint32_t number = r.pending; number != none;) {
    const operation& o = at(number);
    const std::uint32_t next = o.next;
    if (target < 0 || o.home == target) {
      any = true;
      if (o.done) {
        r.flushed = std::max(r.flushed, o.complete);
        unlink(r, number);
      } else {
        ++r.flushing;
      }
    }
    number = next;
  }
  if (!any) return;
  r.flush_target = target;
  if (r.flushing > 0)
    suspend(r, waiting::flush);
  else
    r.now = std::max(r.now, r.flushed);
  r.now += profile_.nic.complete;
}

// ---- messages ----

void engine::send(rank_t me, rank_t to, const std::array<word, 3>& body) {
  rank_state& r = state(me);
  const time_ps begun = r.now;
  r.now += about(profile_.messages.send);
  r.on_messages += r.now - begun;
  if (r.others_have_it > 0) keep_to_slices(r);
  nearly_reach(r, me);
  const std::uint32_t number = take_operation();
  operation& o = at(number);
  o.kind = posted_kind::message;
  o.origin = me;
  o.home = to;
  o.value = body[0];
  o.desired = body[1];
  o.complete = body[2];
  if (profile_.messages.confirmed) {
    ++r.unconfirmed;
    r.must_confirm = true;
  }
  inject(r, number);
}

void engine::deliver(std::uint32_t number, time_ps now) {
  operation& o = at(number);
  const rank_t to = o.home;
  rank_state& r = state(to);
  if (profile_.messages.confirmed) confirm(o, now);
  o.next = none;
  (r.first_mail == none ? r.first_mail : at(r.last_mail).next) = number;
  r.last_mail = number;
  const bool wakes = r.for_what == waiting::message || (r.for_what == waiting::cell && r.serves);
  if (!wakes) return;
  if (r.for_what == waiting::cell) stop_waiting(to);
  r.for_what = waiting::nothing;
  queue_.push(now, happening::resume, static_cast<std::uint32_t>(to));
}

// The sender's card learns of it as of the effect of a put.
void engine::confirm(const operation& message, time_ps now) {
  rank_state& from = state(message.origin);
  from.confirmed = std::max(from.confirmed, now + message.way);
  if (--from.unconfirmed > 0 || from.for_what != waiting::confirmation) return;
  from.for_what = waiting::nothing;
  queue_.push(from.confirmed, happening::resume, static_cast<std::uint32_t>(message.origin));
}

// Waits once for the confirmations of all messages since the last wait. A rank that waited for a
// message anyway has noticed confirmations meanwhile.
void engine::await_confirmations(rank_state& r) {
  const time_ps begun = r.now;
  if (r.unconfirmed > 0) suspend(r, waiting::confirmation);
  r.must_confirm = false;
  const time_ps noticed = std::max(begun, r.confirmed + profile_.nic.complete);
  r.on_messages += noticed - begun;
  r.now = std::max(r.now, noticed);
}

void engine::take_mail(rank_state& r, rma::message& got) {
  if (r.must_confirm) await_confirmations(r);
  const std::uint32_t number = r.first_mail;
  const operation& o = at(number);
  got = {.from = o.origin, .body = {o.value, o.desired, o.complete}};
  r.first_mail = o.next;
  release_operation(number);
  const message_profile& cost = profile_.messages;
  const time_ps begun = r.now;
  r.now += about(cost.receive + cost.receive_rank * ranks_.size() + (r.serves ? cost.serve : 0));
  r.on_messages += r.now - begun;
  if (r.others_have_it > 0) keep_to_slices(r);
}

void engine::receive(rank_t me, rma::message& got) {
  rank_state& r = state(me);
  reach(r, me);
  while (r.first_mail == none) suspend(r, waiting::message);
  take_mail(r, got);
}

bool engine::try_receive(rank_t me, rma::message& got) {
  rank_state& r = state(me);
  r.now += profile_.cpu.hit;
  reach(r, me);
  if (r.first_mail == none) return false;
  take_mail(r, got);
  return true;
}

}  // namespace lockflight::sim
