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
// A waiter that relies on a hold, and is not the watcher, misses only that the file is gone.
constexpr std::uint64_t relying_others_wake_every = 30 * second;
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
      fenced_stores_(file.header().fenced != 0),
      reliance_([](void* port) { static_cast<domain_port*>(port)->ask_now(); }, this) {}

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
  if (line->relies) return check_while_relying_after(line->watches);
  if (line->watches)
    return std::clamp(waited / 16, rma::first_examination_ns, watcher_checks_every);
  return others_check_after();
}

std::uint64_t domain_port::others_check_after() const {
  const std::int32_t threads = file_.header().living.load(std::memory_order_relaxed);
  return std::clamp(static_cast<std::uint64_t>(std::max(threads, 1)) * others_check_together,
                    others_check_every_at_least, rma::others_examine_every_ns);
}

// A function of the program is called once a second.
std::uint64_t domain_port::check_while_relying_after(bool watches) const {
  if (watches) return relying_watcher_wakes_every_ns.load(std::memory_order_relaxed);
  return interrupt_ != nullptr ? second : relying_others_wake_every;
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
  const bool relies = line != nullptr && line->relies;
  if (relies && !reliance_.goes_on()) return step_end::check;
  const std::uint64_t before = now_ns();
  // This thread may have become the watcher since the last check.
  if (watches)
    check_at_ = std::min(
        check_at_, before + (relies ? check_while_relying_after(true) : watcher_checks_every));
  const std::uint64_t end = std::min(check_at_, until.at);
  const std::uint64_t at_most = end > before ? end - before : 0;
  errno = 0;
  const bool rang = sleeper_.sleep_again(
      {static_cast<time_t>(at_most / second), static_cast<long>(at_most % second)});
  if (!rang && errno == EINTR) ask_whether_interrupted();
  const std::uint64_t now = now_ns();
  // A watcher that ends its watch wakes another waiter, and who removes the domain wakes all.
  if (rang && relies) {
    next_check_of_file_ = 0;
    check_file(now);
    return step_end::check;
  }
  if (now < check_at_) return step_end::read_again;
  check_others(now, line);
  return step_end::check;
}

// ---- relying on a hold ----

// By then the others have looked twice. The more there are, the later: the end of a hold on which
// they rely wakes all of them.
bool domain_port::may_rely() const {
  return sleeper_.armed() && now_ns() - since_ >= others_check_after();
}

bool domain_port::rely_on(rma::rank_t holder, rma::cpu_cell record, rma::word hold) {
  const int slot = file_.slot_of(holder);
  domain_slot_page& s = file_.slot(slot);
  const slot_life its = s.life_now();
  const std::uint64_t byte = s.hold_byte.load(std::memory_order_acquire);
  const auto number = static_cast<std::uint32_t>(byte);
  if (its.state != slot_state::living || byte >> 32 != its.incarnation || number == 0 ||
      number > hold_bytes || (slot == silent_slot_ && byte == silent_byte_))
    return false;
  if (!reliance_.begin(file_, slot, byte)) return false;
  s.relied_on.fetch_or(1u << (record.index - first_record), std::memory_order_seq_cst);
  fence_node();
  relied_slot_ = slot;
  relied_record_ = record;
  relied_hold_ = hold;
  relied_byte_ = byte;
  if (s.hold_byte.load(std::memory_order_acquire) != byte || load(record) != hold) {
    reliance_.end();
    return false;
  }
  check_at_ = now_ns() + check_while_relying_after(false);
  return true;
}

// The holder is examined also if the byte is not free, for what the kernel does not tell, such as
// the end of a thread by a system call of its own.
bool domain_port::still_relies() {
  const domain_slot_page& s = file_.slot(relied_slot_);
  const bool is_told = !reliance_.goes_on();
  detail::examine(file_, relied_slot_, thoroughness::quick);
  const bool is_held = s.state() == slot_state::living &&
                       s.hold_byte.load(std::memory_order_acquire) == relied_byte_ &&
                       load(relied_record_) == relied_hold_;
  if (is_held && !is_told) return true;
  // The byte is free, and the holder lives: it has closed its descriptors, or what it guards lives.
  if (is_held) {
    silent_slot_ = relied_slot_;
    silent_byte_ = relied_byte_;
  }
  return false;
}

void domain_port::rely_no_more(const rma::lifeline& line) {
  reliance_.end();
  since_ = now_ns();
  check_at_ = since_ + (line.watches ? rma::first_examination_ns : others_check_after());
}

// The next byte was given back two such releases ago. If a stopped waiter still shares it, nobody
// can rely on holds of ours any more.
void domain_port::end_relied_hold(int record) {
  const std::uint32_t bit = 1u << record;
  if ((ours_.relied_on.fetch_and(~bit, std::memory_order_seq_cst) & bit) == 0) return;
  const std::uint64_t now = ours_.hold_byte.load(std::memory_order_relaxed);
  const auto last = static_cast<std::uint32_t>(now);
  if (last == 0) return;
  const std::uint32_t next = last % hold_bytes + 1;
  const bool has_next = file_.lock_hold_bytes(slot_, next, 1);
  // Before the waiters wake: those that rely on another hold of ours rely on the next byte then.
  ours_.hold_byte.store(has_next ? now - last + next : 0, std::memory_order_release);
  file_.unlock_hold_byte(slot_, last);
}

}  // namespace lockflight::detail
