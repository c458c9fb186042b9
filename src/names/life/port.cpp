#include "names/life/port.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "fabric/shm/pause.hpp"
#include "fabric/shm/waiting.hpp"

namespace lockflight::detail {
namespace {

constexpr std::uint64_t ms = 1'000'000;
constexpr std::uint64_t second = 1'000 * ms;
// A waiter that wakes earlier would find that no examination is due yet.
constexpr std::uint64_t watcher_checks_every = rma::watcher_examines_every_ns + 5 * ms;
// If the watcher dies, another waiter finds that out at its own next examination. All waiters of a
// domain together wake for that fifty times a second at most.
constexpr std::uint64_t others_check_together = 20 * ms;
constexpr std::uint64_t others_check_every_at_least = 100 * ms;
constexpr std::uint64_t examination_every = 3 * ms;  // of one participant
constexpr std::uint64_t full_examination_every = 2 * second;
// A waiter that was granted the lock is given so long to take it up (docs/domains.md promises that
// a newcomer waits for a second at most).
constexpr std::uint64_t to_take_up_a_grant = 700 * ms;

int cores() {
  static const int count = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return count;
}

}  // namespace

domain_port::domain_port(domain_file& file, int slot)
    : file_(file),
      ours_(file.slot(slot)),
      slot_(slot),
      rank_(rank_of_slot(slot)),
      clock_shift_(clock_shift_ns()),
      fenced_stores_(file.header().fenced != 0) {}

const rma::topology& domain_port::machine() {
  static const auto* const one = new rma::topology(rma::topology::flat(ranks));
  return *one;
}

bool domain_port::shares_cores() const {
  const std::int32_t living = file_.header().living.load(std::memory_order_relaxed);
  return living > 1 && living > cores();  // the number of cores is in a file
}

void domain_port::fence_node() {
  fence();
  if (!fenced_stores() && !shm::detail::membarrier()) refuse_membarrier();
}

void domain_port::refuse_membarrier() const {
  throw domain_error(domain_error::reason::system,
                     "domain " + file_.name() + ": " + shm::detail::refused("membarrier", errno));
}

rma::deadline domain_port::deadline_in(std::uint64_t nanoseconds) {
  return {shm::detail::ns_from_now(nanoseconds)};
}

bool domain_port::is_over(rma::deadline until) {
  if (interrupted_) return true;
  return until.at != UINT64_MAX && (until.at == 0 || now_ns() >= until.at);
}

rma::deadline domain_port::grant_deadline() { return deadline_in(to_take_up_a_grant); }

void domain_port::ask_whether_interrupted() {
  if (interrupt_ != nullptr && *interrupt_ && (*interrupt_)()) interrupted_ = true;
}

// The participant has written where it sleeps before it reads `asked_` for the last time.
void domain_port::ask_now() {
  asked_.store(true);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  ring_for(ours_);
}

void domain_port::ring_for(domain_slot_page& of) const {
  const std::uint32_t where = of.sleeps_at.load(std::memory_order_relaxed);
  if (where == own_bell)
    of.bell.ring();
  else if (where != 0)
    file_.bell(where - 1).ring();
}

domain_port::events domain_port::take_events() {
  has_events_ = false;
  const std::uint64_t since = std::exchange(waited_since_, 0);
  return {.wait_ns = since == 0 ? 0 : now_ns() - since,
          .has_repaired = std::exchange(has_repaired_, false)};
}

void domain_port::pause(std::uint64_t nanoseconds) {
  constexpr std::uint64_t worth_sleeping = 100'000;
  constexpr std::uint64_t long_pause = ms;  // since the last one: another wait
  const std::uint64_t now = now_ns();
  if (now - last_pause_ > long_pause + nanoseconds) {
    pausing_since_ = now;
    note_wait(now);
  }
  last_pause_ = now;
  // A waiter that has polled for milliseconds polls more slowly: holders may hold for minutes.
  if (const std::uint64_t for_long = now - pausing_since_; for_long > 2 * ms) {
    nanoseconds = std::max(nanoseconds, std::min(for_long / 8, 2 * ms));
    ask_whether_interrupted();
    check_file(now);
  }
  if (nanoseconds >= worth_sleeping) {
    shm::detail::sleep_for_ns(nanoseconds);
    last_pause_ = now_ns();
    return;
  }
  const std::uint64_t until = now + nanoseconds;
  do shares_cores() ? static_cast<void>(sched_yield()) : shm::detail::relax();
  while (now_ns() < until);
}

// Callers examine all users of a lock, however often they wait. A result that another participant
// found a moment ago is good enough: otherwise the cost of waiters would grow with the square of
// their number.
void domain_port::examine(rma::rank_t rank) {
  const int slot = file_.slot_of(rank);
  domain_slot_page& s = file_.slot(slot);
  const std::uint64_t now = now_ns();
  const auto is_fresh = [&](const std::atomic<std::uint64_t>& at, std::uint64_t for_ns) {
    const std::uint64_t then = at.load(std::memory_order_relaxed);
    return then <= now && now - then < for_ns;
  };
  if (!is_fresh(s.fully_examined_at, full_examination_every)) {
    s.fully_examined_at.store(now, std::memory_order_relaxed);
    s.examined_at.store(now, std::memory_order_relaxed);
    detail::examine(file_, slot, thoroughness::full);
  } else if (!is_fresh(s.examined_at, examination_every)) {
    s.examined_at.store(now, std::memory_order_relaxed);
    detail::examine(file_, slot, thoroughness::quick);
  }
}

// The participant has written where it sleeps before it reads its lifeline for the last time. The
// caller's change comes before our read of that word, by the order of the accesses or by a fence.
void domain_port::wake(rma::rank_t rank) {
  fence();
  ring_for(file_.slot(file_.slot_of(rank)));
}

// The bell counts us for as long as `sleeps_at` says that we are there, and a little longer. So if
// we die, the thread that cleans up subtracts us once, or not at all: a count that is one too high
// costs wake-ups, and one that is too low would let a waiter sleep on.
void domain_port::disarm() {
  // Release: this store is visible before the count falls.
  ours_.sleeps_at.store(0, std::memory_order_release);
  sleeper_.disarm();
}

void domain_port::arm() {
  sleeper_.arm(*bell_);
  ours_.sleeps_at.store(bell_number_, std::memory_order_release);
  fence();  // before we read what `wake` and `ask_now` are called for
  // Writers without a fence are made to see our mark, once: we stay armed until the awaited value
  // is there.
  if (fenced_stores() || shm::detail::membarrier()) return;
  disarm();
  refuse_membarrier();
}

// The watcher examines soon at first, since most waits are short, and later less often. Other
// waiters examine once at the beginning, to find out whether there is a watcher, and then the less
// often the more threads there are. A wait for something else than a lock examines once a second.
std::uint64_t domain_port::check_after(std::uint64_t waited, const rma::lifeline* line) const {
  if (line == nullptr) return second;
  if (line->watches)
    return std::clamp(waited / 16, rma::first_examination_ns, watcher_checks_every);
  const std::int32_t threads = file_.header().living.load(std::memory_order_relaxed);
  return std::clamp(static_cast<std::uint64_t>(std::max(threads, 1)) * others_check_together,
                    others_check_every_at_least, rma::others_examine_every_ns);
}

void domain_port::check_others(std::uint64_t now, const rma::lifeline* line) {
  check_at_ = now + check_after(now - since_, line);
  ask_whether_interrupted();
  check_file(now);
}

void domain_port::check_file(std::uint64_t now) {
  if (now < next_check_of_file_) return;
  next_check_of_file_ = now + second;
  file_.check();
  if (!file_.is_current()) file_.throw_removed();
}

void domain_port::check_later(const rma::lifeline* line) {
  goes_on_ = true;
  if (steps_ == 0 || line == nullptr || line->watches || interrupted_) return;
  // This replaces the check that is put off: otherwise a waiter whose deadlines are near each other
  // would never be asked.
  const std::uint64_t now = now_ns();
  check_at_ = std::max(check_at_, now + check_after(now - since_, line));
  ask_whether_interrupted();
  check_file(now);
}

domain_port::step_end domain_port::step(rma::deadline until, const rma::lifeline* line) {
  constexpr std::uint32_t spins = 2'000;
  constexpr std::uint32_t yields = 50;
  if (steps_ == 0) {
    since_ = now_ns();
    check_at_ = since_ + rma::first_examination_ns;
    note_wait(since_);
    // An acquire that others end waits several times. Relaxed: the word is for display only.
    const std::uint64_t shown = shown_since_ != 0 ? shown_since_ : waited_since_;
    ours_.waits_since.store(to_machine(shown, clock_shift_), std::memory_order_relaxed);
    if (shares_cores()) steps_ = spins;
  }
  if (steps_ < spins + yields) ++steps_;
  if (steps_ < spins) return shm::detail::relax(), step_end::read_again;
  if (steps_ < spins + yields && yields_.yield()) return step_end::read_again;
  if (!sleeper_.armed()) return arm(), step_end::read_again;
  if (asked_.load(std::memory_order_relaxed) && asked_.exchange(false)) {
    ask_whether_interrupted();
    return step_end::read_again;
  }
  const bool watches = line != nullptr && line->watches;
  const std::uint64_t before = now_ns();
  // This thread may have become the watcher since the last check.
  if (watches) check_at_ = std::min(check_at_, before + watcher_checks_every);
  const std::uint64_t end = std::min(check_at_, until.at);
  const std::uint64_t at_most = end > before ? end - before : 0;
  errno = 0;
  const bool rang = sleeper_.sleep_again(
      {static_cast<time_t>(at_most / second), static_cast<long>(at_most % second)});
  if (!rang && errno == EINTR) ask_whether_interrupted();
  const std::uint64_t now = now_ns();
  if (now < check_at_) return step_end::read_again;
  check_others(now, line);
  return step_end::check;
}

}  // namespace lockflight::detail
