// Operations of a node's processors: loads, stores, atomics, and waiting for a cell.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "lab/sim/engine.hpp"

namespace lockflight::sim {
namespace {

constexpr std::uint64_t holder_bit(std::uint32_t core) { return std::uint64_t{1} << core % 64; }

/// Between two cores of a mesh that is as square as may be.
std::uint32_t mesh_hops(std::uint32_t cores, std::uint32_t a, std::uint32_t b) {
  const auto side = static_cast<std::uint32_t>(std::ceil(std::sqrt(cores)));
  const auto apart = [](std::uint32_t x, std::uint32_t y) {
    return std::max(x, y) - std::min(x, y);
  };
  return apart(a % side, b % side) + apart(a / side, b / side);
}

}  // namespace

time_ps engine::transfer(const rank_state& to, const cache_line& line) const {
  const cpu_profile& cpu = profile_.cpu;
  if (line.owner == 0) return cpu.dma_transfer;
  const auto from = static_cast<std::uint32_t>(line.owner - 1);
  const std::uint32_t of_socket = profile_.cores / profile_.sockets;
  const time_ps near =
      from / of_socket == to.core / of_socket ? cpu.socket_transfer : cpu.node_transfer;
  return cpu.mesh_hop == 0 ? near
                           : near + 2 * cpu.mesh_hop * mesh_hops(profile_.cores, from, to.core);
}

// Brings the cache line, and moves the rank's clock to its arrival. A writer takes the line from
// all other cores and delays the next one meanwhile; readers share it.
void engine::touch(rank_state& r, rank_t me, cache_line& line, bool exclusive, time_ps hit) {
  const std::uint64_t bit = holder_bit(r.core);
  const bool has_it = exclusive ? line.holders == bit : (line.holders & bit) != 0;
  if (has_it) {
    r.now += hit;
  } else {
    const time_ps begun = std::max(r.now, time_ps{line.busy_until});
    r.now = begun + about(transfer(r, line)) + hit;
    if (exclusive) {
      line.holders = bit;
      line.keep_busy(r.now);
    } else {
      line.holders |= bit;
    }
  }
  if (exclusive) line.owned_by(r.core);
  reach(r, me);
}

word engine::load(rank_t me, rank_t home, std::uint32_t index) {
  check_own_node(me, home, index);
  rank_state& r = state(me);
  if (is_many_core()) return uncached_load(r, me, home, index);
  reach(r, me);
  cache_line& line = memory_.line(home, index);
  touch(r, me, line, false, profile_.cpu.hit);
  return line.cells[index % cache_line::words];
}

void engine::load_each(rank_t me, std::span<const rma::cpu_cell> from, std::span<word> results) {
  // Line fill buffers: 10 from Nehalem to Skylake, more since.
  constexpr std::size_t at_once = 10;
  rank_state& r = state(me);
  if (is_many_core()) {
    for (std::size_t i = 0; i < from.size(); ++i)
      results[i] = load(me, from[i].home, from[i].index);
    return;
  }
  reach(r, me);
  const std::uint64_t bit = holder_bit(r.core);
  for (std::size_t first = 0; first < from.size(); first += at_once) {
    const std::size_t past = std::min(first + at_once, from.size());
    time_ps here = r.now;
    for (std::size_t i = first; i < past; ++i) {
      check_own_node(me, from[i].home, from[i].index);
      cache_line& line = memory_.line(from[i].home, from[i].index);
      if ((line.holders & bit) == 0)
        here = std::max(here, std::max(r.now, time_ps{line.busy_until}) + about(transfer(r, line)));
      line.holders |= bit;
    }
    r.now = here + static_cast<time_ps>(past - first) * profile_.cpu.hit;
    reach(r, me);
    for (std::size_t i = first; i < past; ++i)
      results[i] = memory_.cell(from[i].home, from[i].index);
  }
}

void engine::store(rank_t me, rank_t home, std::uint32_t index, word value) {
  check_own_node(me, home, index);
  rank_state& r = state(me);
  if (is_many_core()) return uncached_store(r, me, home, index, value);
  reach(r, me);
  cache_line& line = memory_.line(home, index);
  touch(r, me, line, true, profile_.cpu.hit);
  line.cells[index % cache_line::words] = value;
  if (state(home).first_waiter >= 0) wake_waiters(home, index, value, r.now, line);
}

word engine::rmw(rank_t me, posted_kind kind, rank_t home, std::uint32_t index, word value,
                 word desired) {
  check_own_node(me, home, index);
  rank_state& r = state(me);
  if (is_many_core()) {
    r.now += profile_.cpu.rmw;
    return uncached_rmw(r, me, kind, home, index, value, desired);
  }
  reach(r, me);
  cache_line& line = memory_.line(home, index);
  touch(r, me, line, true, profile_.cpu.rmw);
  word& cell = line.cells[index % cache_line::words];
  const word before = cell;
  if (kind == posted_kind::compare_swap) {
    if (before != value) return before;
    cell = desired;
  } else {
    cell = kind == posted_kind::swap ? value : before + value;
  }
  if (state(home).first_waiter >= 0) wake_waiters(home, index, cell, r.now, line);
  return before;
}

void engine::post_by_cpu(rank_t me, posted_kind kind, rank_t home, std::uint32_t index, word value,
                         word desired, word* result, std::uint16_t lines) {
  if (kind == posted_kind::put) return store(me, home, index, value);
  if (kind == posted_kind::get) {
    for (std::uint32_t i = 0; i < lines; ++i)
      result[i] = load(me, home, index + i * cache_line::words);
    return;
  }
  const word before = rmw(me, kind, home, index, value, desired);
  note_swap(me, kind, value, before);
  if (result != nullptr) *result = before;
}

void engine::fence(rank_t me) { state(me).now += profile_.cpu.rmw; }

// ---- cores that are shared ----

// With p processes that run all the time on c cores, each has a core for c of p slices. The rank
// has the first slice, and the others have the core until its next one begins.
void engine::share_core(rank_t me, std::uint32_t others) {
  rank_state& r = state(me);
  const time_ps slice = profile_.cpu.slice;
  const std::uint64_t processes = std::uint64_t{others} + 1;
  r.others_have_it =
      processes <= profile_.cores ? 0 : slice * (processes - profile_.cores) / profile_.cores;
  r.slice_ends = r.now + slice;
}

// A rank that has waited continues in a slice of its own: it polls all the time, and so would have
// used up the earlier ones.
void engine::begin_slice(rank_state& r) const {
  if (r.now < r.slice_ends) return;
  const time_ps round = profile_.cpu.slice + r.others_have_it;
  r.slice_ends += (r.now - r.slice_ends) / round * round;  // the last one that has ended
  const time_ps begins = r.slice_ends + r.others_have_it;
  r.slice_ends += round;
  r.now = std::max(r.now, begins);
}

// Work that takes longer than the slice continues in the next one.
void engine::keep_to_slices(rank_state& r) const {
  while (r.now > r.slice_ends) {
    r.now += r.others_have_it;
    r.slice_ends += profile_.cpu.slice + r.others_have_it;
  }
}

// ---- waiting ----

bool engine::await(rank_t me, rank_t home, std::uint32_t index, predicate test, word& value) {
  value = load(me, home, index);
  // The cell may have been written while the answer was on its way: the next read has the value.
  while (!test(value) && test(memory_.cell(home, index))) value = load(me, home, index);
  if (test(value)) return true;
  rank_state& r = state(me);
  if (r.serves && r.first_mail != none) return false;
  r.home = home;
  r.index = index;
  r.test = test;
  r.woken = false;
  rank_state& of = state(home);
  r.next_waiter = of.first_waiter;
  of.first_waiter = me;
  if (is_many_core()) begin_to_poll(r, me);
  suspend(r, waiting::cell);
  if (r.polls_again) poll_again(r);
  value = r.value;
  return r.woken;
}

// A waiter reads a copy of the cache line in its own cache, and fetches it again when another core
// has written.
void engine::wake_waiters(rank_t home, std::uint32_t index, word value, time_ps now,
                          cache_line& line) {
  rank_t* link = &state(home).first_waiter;
  while (*link >= 0) {
    const rank_t waiter = *link;
    rank_state& r = state(waiter);
    if (r.index != index || !r.test(value)) {
      link = &r.next_waiter;
      continue;
    }
    *link = r.next_waiter;
    r.value = value;
    r.woken = true;
    r.for_what = waiting::nothing;
    if (is_many_core()) {
      wake_poller(waiter, now);
      continue;
    }
    queue_.push(now + about(transfer(r, line) + profile_.cpu.wake) + profile_.cpu.hit,
                happening::resume, static_cast<std::uint32_t>(waiter));
    line.holders |= holder_bit(r.core);
  }
}

void engine::stop_waiting(rank_t me) {
  rank_state& r = state(me);
  rank_t* link = &state(r.home).first_waiter;
  while (*link != me) link = &state(*link).next_waiter;
  *link = r.next_waiter;
  if (is_many_core()) stop_polling(me);
}

}  // namespace lockflight::sim
