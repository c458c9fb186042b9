#include "lab/sim/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "lab/sim/network.hpp"

namespace lockflight::sim {
namespace {

constexpr std::uint64_t scatter(std::uint64_t x) {  // the finalizer of splitmix64
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// The kernel makes guard pages one by one, and a million of them take long. A lock that runs with
/// so many ranks has run with fewer before.
constexpr int most_guarded = 1 << 16;

}  // namespace

engine::engine(const setting& what)
    : profile_(what.profile),
      machine_(what.machine),
      seed_(what.seed),
      most_events_(what.most_events),
      memory_(static_cast<std::uint32_t>(what.machine.ranks()), what.words_per_rank),
      nics_(static_cast<std::size_t>(what.machine.nodes())),
      links_(what.profile.network.link_gap > 0 ? count_of_links(what.profile.network) : 0),
      word_time_(static_cast<time_ps>(sizeof(word) * what.profile.network.byte_ps)),
      leeway_(profile_.nic.complete + profile_.nic.post + 2 * profile_.cpu.hit),
      stacks_(what.stack_bytes,
              what.machine.ranks() > most_guarded ? fiber::guard::none : fiber::guard::page),
      ranks_(static_cast<std::size_t>(what.machine.ranks())) {
  place_ranks(what.places);
  place_controllers();
  for (nic& card : nics_) {
    card.injection.resize(profile_.nic.injection_engines);
    card.atomics.resize(profile_.nic.atomic_engines);
  }
}

// Fibers that have not ended still call the engine while they are unwound.
engine::~engine() {
  for (rank_state& r : ranks_) r.fiber = {};
}

void engine::place_ranks(const std::vector<std::uint32_t>& places) {
  if (machine_.nodes() > static_cast<std::int64_t>(profile_.nodes))
    throw std::invalid_argument(
        fmt::format("{} nodes, and {} has {}", machine_.nodes(), profile_.name, profile_.nodes));
  if (!places.empty() && places.size() != nics_.size())
    throw std::invalid_argument(
        fmt::format("places for {} nodes, and there are {}", places.size(), nics_.size()));
  std::vector<std::uint32_t> taken(nics_.size());
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    rank_state& r = ranks_[i];
    r.node = static_cast<std::uint32_t>(machine_.node_of(static_cast<rank_t>(i)));
    r.place = places.empty() ? r.node : places[r.node];
    if (r.place >= profile_.nodes)
      throw std::invalid_argument(
          fmt::format("node {}, and {} has {}", r.place, profile_.name, profile_.nodes));
    r.core = taken[r.node]++;
    if (r.core >= profile_.cores)
      throw std::invalid_argument(
          fmt::format("more than {} ranks on a node, and one of {} has {} "
                      "cores",
                      r.core, profile_.name, profile_.cores));
  }
}

void engine::run(const std::function<void(rank_t)>& body, const std::function<void()>& watch) {
  left_ = static_cast<std::uint32_t>(ranks_.size());
  for (std::uint32_t i = 0; i < left_; ++i) {
    const auto rank = static_cast<rank_t>(i);
    ranks_[i].fiber = fiber::fiber(stacks_.take(), [&body, rank] { body(rank); });
    queue_.push(0, happening::resume, i);
  }
  using clock = std::chrono::steady_clock;
  constexpr std::uint64_t events_a_check = 1u << 14;
  constexpr std::chrono::milliseconds period{100};
  auto next_check = clock::now() + period;
  for (std::uint64_t events = 0; left_ > 0; ++events) {
    if (queue_.empty()) fail_stuck();
    const event now = queue_.pop();
    if (!queue_.empty()) prefetch(queue_.first());
    handle(now);
    if (events % events_a_check != 0) continue;
    if (most_events_ > 0 && events > most_events_)
      throw too_many_events(fmt::format("more than {} events", most_events_));
    if (clock::now() < next_check) continue;
    if (watch) watch();
    next_check = clock::now() + period;
  }
}

void engine::handle(const event& now) {
  switch (now.what) {
    case happening::resume:
      return resume(static_cast<rank_t>(now.about), now.at);
    case happening::arrive:
      return arrive(now.about, now.at);
    case happening::effect:
      return take_effect(now.about, now.at);
    case happening::admit:
      return admit(now.about, now.at);
  }
}

// With a thousand ranks each of these comes from a distant cache, or from memory.
void engine::prefetch(const event& soon) const {
  if (soon.what == happening::resume) {
    ranks_[soon.about].fiber.prefetch();
    return;
  }
  if (soon.what == happening::admit) return;
  const operation& o = operations_[soon.about];
  __builtin_prefetch(o.result);  // in its origin's stack
}

void engine::resume(rank_t rank, time_ps at) {
  rank_state& r = state(rank);
  r.now = std::max(r.now, at);
  if (r.others_have_it > 0) begin_slice(r);
  r.resumed = r.now;
  r.for_what = waiting::nothing;
  try {
    if (r.fiber.resume()) return;
  } catch (const std::exception& e) {
    throw rank_failed(fmt::format("rank {}: {}", rank, e.what()));
  }
  r.ended = true;
  --left_;
}

void engine::wait_turn(rank_state& r, rank_t me) {
  queue_.push(r.now, happening::resume, static_cast<std::uint32_t>(me));
  suspend(r, waiting::turn);
}

void engine::suspend(rank_state& r, waiting for_what) {
  r.for_what = for_what;
  fiber::fiber::suspend();
}

void engine::fail_stuck() const {
  constexpr int enough = 4;
  std::string who;
  int named = 0;
  time_ps latest = 0;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const rank_state& r = ranks_[i];
    latest = std::max(latest, r.now);
    if (r.ended || named == enough) continue;
    ++named;
    who += who.empty() ? "" : "; ";
    if (r.for_what == waiting::cell)
      who += fmt::format("rank {} waits for cell {} of rank {}, which is {:#x}", i, r.index, r.home,
                         memory_.cell(r.home, r.index));
    else
      who += fmt::format("rank {} waits for a message", i);
  }
  if (left_ > enough) who += fmt::format("; and {} more", left_ - enough);
  throw rank_failed(fmt::format("no rank can go on after {:.3f} us: {}",
                                static_cast<double>(latest) * 1e-6, who));
}

// No time on a real machine is exact, and two ranks that yield to each other in step would do so
// for ever. So routes and transfers take a little more or less time by chance.
time_ps engine::about(time_ps length) {
  if (profile_.jitter == 0) return length;
  constexpr double scale = 1.0 / (1ull << 52);
  const double chance = static_cast<double>(scatter(seed_ + ++chances_) >> 11) * scale - 1;
  return static_cast<time_ps>(static_cast<double>(length) * (1 + profile_.jitter * chance));
}

void engine::check_cell(rank_t home, std::uint32_t index) const {
  if (home < 0 || home >= machine_.ranks() || index == 0 || index >= memory_.words_each())
    throw std::out_of_range(fmt::format("no such cell: {} of rank {}", index, home));
}

void engine::check_own_node(rank_t me, rank_t home, std::uint32_t index) const {
  check_cell(home, index);
  if (state(home).node != state(me).node)
    throw std::logic_error(fmt::format(
        "contract C10: rank {} reaches immediately into rank {}, on another node", me, home));
}

void engine::compute_until(rank_t me, time_ps then) {
  rank_state& r = state(me);
  r.now = std::max(r.now, then);
}

void engine::call(rank_t me, library_call what) {
  const library_profile& cost = profile_.library;
  const time_ps takes = what == library_call::acquire   ? cost.acquire
                        : what == library_call::release ? cost.release
                                                        : cost.access;
  if (takes > 0) state(me).now += about(takes);
}

void engine::pause(rank_t me, std::uint64_t ns) {
  rank_state& r = state(me);
  // A pause of 0 is a step of the clock all the same, or two ranks that pause would go on for ever.
  r.now += about(std::max<time_ps>(ns * 1000, profile_.cpu.hit));
  // A pause lets others run (C19), though not every pause of 0 does.
  nearly_reach(r, me);
}

}  // namespace lockflight::sim
