// A handle of a semaphore: N units behind a queue, all of them locks of the domain
// (semaphore_kind.hpp), of which the handle takes one or several (own_units.hpp).
//
// lockflight/lock/robust/semaphore.hpp has the steps of an acquire and a release, and the other
// invariants. Here beside these:
//
// S5. The head polls for changes of which it is not notified: it examines the holders of units at
//     least every 45 ms while it waits, and tries the units once a second in any case, since a
//     holder may be stopped between the two steps of a release.
// S6. A head that is stopped delays no waiter for longer than a second: the waiters of the queue
//     on its own host see that it is stopped, and take free units without the queue (S1), all that
//     they want or none (S7). `head_waits` may be left set by a head that died; each head clears
//     it.
// S9. In a cluster's domain, a head whose host was cut off for longer than the time to live gives
//     back what it has collected, and stands in the queue anew: another host may have its own head
//     by then, and those units.
#include <algorithm>
#include <optional>

#include "fabric/shm/pause.hpp"
#include "lockflight/lock/robust/record.hpp"
#include "lockflight/lock/robust/semaphore.hpp"
#include "names/locks/one_lock.hpp"
#include "names/locks/own_units.hpp"
#include "names/locks/probes.hpp"
#include "names/locks/semaphore_kind.hpp"

namespace lockflight::detail {
namespace {

using lock::head_step;

constexpr std::uint64_t of_a_millisecond = 1'000'000;
constexpr std::uint64_t head_retries_every = 1'000 * of_a_millisecond;
/// The time that an acquire or an attempt waits for other hosts in all, as across_hosts does for
/// one lock.
constexpr std::uint64_t other_hosts_answer_in = 200 * of_a_millisecond;
/// A waiting head asks no host more often than this.
constexpr std::uint64_t least_wait_for_a_host = 50 * of_a_millisecond;

/// While a thread waits it holds the queue, and of units as many as it wants but one.
constexpr int most_taken = static_cast<int>(records) - 1;

/// The units that a handle was made for, which takes so many of them.
unit_set checked_units(std::string_view name, const units& what) {
  const unit_set of = unit_set::of(name, what);
  const int most = std::min(of.count(), most_taken);
  if (what.take >= 1 && what.take <= most) return of;
  throw domain_error(domain_error::reason::invalid,
                     "semaphore " + shown(name) + ": take " + std::to_string(what.take) + " of " +
                         of.described() + " (accepted: 1 to " + std::to_string(most) +
                         (most < of.count() ? ", since a thread holds 32 locks at most" : "") +
                         ")");
}

limit left_until(rma::deadline until) {
  if (until.at == 0) return limit::at_once();
  if (until.at == UINT64_MAX) return limit::for_ever();
  // At least 1: 0 would be an attempt.
  return limit::of_ns(std::max<std::uint64_t>(1, until.at - std::min(until.at, now_ns())));
}

/// Calls `visit(slot, line)` for each lock that a participant holds.
template <class Visit>
void for_each_hold(const domain_file& file, Visit visit) {
  for_each_slot(file, [&](int slot) {
    for (std::uint32_t k = 0; k < records; ++k) {
      // Acquire: what the record says was there before it.
      const auto of = lock::record::from(
          file.slot(slot).words[first_record + k].load(std::memory_order_acquire));
      if (of.holds()) visit(slot, static_cast<std::uint32_t>(of.get(lock::record::lock)));
    }
  });
}

}  // namespace

class units_handle final : public handle {
 public:
  units_handle(const std::shared_ptr<domain_file>& file, std::string_view name,
               const lockflight::units& what)
      : file_(file),
        names_{std::string(name)},
        made_for_(checked_units(name, what)),
        queue_(file, name, semaphore_kind(), parameters_of_semaphore(made_for_)),
        ours_(file, names_.front(), what.take) {
    queue_.interrupt_with([this] { return is_to_leave_queue(); });
  }
  ~units_handle() override {
    if (!ours_.is_held()) return;
    ours_.drop();
    try {
      note_release();
    } catch (...) {  // the domain is damaged
    }
  }

  [[nodiscard]] bool acquire(mode as, limit patience) override;
  void release(mode as) override;
  void abandon() override;

  [[nodiscard]] mode held() const override {
    return ours_.is_held() ? ours_.first().held() : mode::none;
  }
  [[nodiscard]] bool is_held_by_parent() const override {
    return ours_.is_held() && ours_.first().is_held_by_parent();
  }
  void check_held(mode as) const override { ours().first().check_held(as); }
  [[nodiscard]] const std::vector<std::string>& names() const override { return names_; }
  [[nodiscard]] int units() const override {
    return (queue_.is_current() ? present_units() : made_for_).count();
  }
  [[nodiscard]] std::vector<int> units_held() const override {
    return held() == mode::none ? std::vector<int>{} : ours_.last();
  }
  [[nodiscard]] int unit() const override {
    return held() == mode::none ? -1 : ours_.last().front();
  }

  // The tokens of the units that are held, or were held last.
  [[nodiscard]] std::vector<std::uint64_t> tokens() const override { return ours_.tokens(); }
  [[nodiscard]] bool owner_died() const override {
    return ours_.is_held() && ours_.any_held([](one_lock& each) { return each.owner_died(); });
  }
  void mark_consistent() override {
    ours().for_each_held([](one_lock& each) { each.mark_consistent(); });
  }
  [[nodiscard]] bool still_valid() const override {
    return ours_.is_held() ? ours_.first().still_valid() : queue_.still_valid();
  }
  [[nodiscard]] bool is_intact() const override {
    return ours_.is_held() ? ours_.first().is_intact() : queue_.is_intact();
  }
  [[nodiscard]] std::uint64_t alone_for() const override {
    if (!ours_.is_held()) return 0;
    std::uint64_t least = UINT64_MAX;
    ours_.for_each_held([&](one_lock& each) { least = std::min(least, each.alone_for()); });
    return least;
  }
  [[nodiscard]] hold_ending ending() const override {
    hold_ending first;
    if (ours_.is_held())
      ours_.for_each_held([&](one_lock& each) {
        if (const hold_ending its = each.ending(); its.in < first.in) first = its;
      });
    return first;
  }
  void end_after(std::uint64_t nanoseconds) override {
    ours().for_each_held([&](one_lock& each) { each.end_after(nanoseconds); });
  }
  // One page says so of all that the thread holds.
  void keep(std::uint64_t token, const std::string& note) override {
    ours().first().keep(token, note);
  }
  [[nodiscard]] std::stop_token loss() override {
    static_cast<void>(ours());
    return ours_.loss();
  }

  [[nodiscard]] std::string missing_answer() const override { return queue_.missing_answer(); }

  void interrupt_with(const std::function<bool()>& what) override { interrupt_ = what; }
  void ask_now() override { queue_.ask_now(); }
  // One unit is enough: the process is to guard the thread's slot, and with it all that the thread
  // holds.
  void extend_to(int pid) override {
    if (!ours_.last().empty()) ours_.first().extend_to(pid);
    guard_nothing(false);
  }
  void extend_to_this_process() noexcept override {
    if (!ours_.last().empty()) ours_.first().extend_to_this_process();
    guard_nothing(false);
  }
  // Each acquire begins with the queue.
  void guard_nothing(bool yet) override { queue_.guard_nothing(yet); }
  void finish() noexcept override {
    if (!ours_.last().empty()) ours_.first().finish();
  }

  // ---- for probes ----

  [[nodiscard]] const std::string& name() const { return names_.front(); }
  [[nodiscard]] const char* kind_name() const { return semaphore_kind().about.name.data(); }
  [[nodiscard]] domain_port::events taken_events() { return queue_.taken_events(); }

  // ---- for release_units() and take_past_head() ----

  void free_units() { ours_.give(); }
  void note_release();
  /// Takes units that are at hand, in the order of their numbers, so that few workers use the same
  /// few units. True if it has as many as it wants.
  [[nodiscard]] bool try_units();
  void give_back() noexcept;

 private:
  [[nodiscard]] bool take_units(limit patience);
  [[nodiscard]] bool hold_taken();
  [[noreturn]] void undo_jump();
  [[nodiscard]] const own_units& ours() const {
    if (ours_.is_held()) return ours_;
    throw domain_error(domain_error::reason::not_held,
                       "semaphore " + shown(name()) + ": this handle holds no unit");
  }
  enum class place : std::uint8_t {
    head,
    none,   // the time is over
    stuck,  // the head is stopped: free units are taken without the queue
  };
  /// Frees the queue at its end, whatever has happened. A head that collects guards nothing, and a
  /// head that takes one unit has none while it waits.
  class at_head {
   public:
    explicit at_head(units_handle& of) : of_(of) {
      of_.set_head_waits(false);
      if (of_.ours_.wanted() > 1) of_.queue_.guard_nothing_meanwhile(true);
    }
    ~at_head() {
      of_.queue_.guard_nothing_meanwhile(false);
      try {
        of_.set_head_waits(false);
        of_.queue_.give(mode::exclusive);
      } catch (...) {  // the domain is damaged or removed, and with it the queue
      }
    }
    at_head(const at_head&) = delete;
    at_head& operator=(const at_head&) = delete;

   private:
    units_handle& of_;
  };

  [[nodiscard]] place stand_in_queue(rma::deadline until);
  [[nodiscard]] place attempt_queue();
  [[nodiscard]] bool is_to_leave_queue();
  [[nodiscard]] bool is_head_stopped_beside_free_units();
  class head;
  [[nodiscard]] head_step take_as_head(rma::deadline until, std::uint64_t since_ns);
  [[nodiscard]] bool take_from_other_hosts(limit patience);
  [[nodiscard]] int units_elsewhere();
  [[nodiscard]] std::optional<head_step> ask_other_hosts(rma::deadline until);
  [[nodiscard]] head_step await_release(lock::release_mark seen, rma::deadline until);
  void examine_holders();
  [[nodiscard]] bool make_hosts_agree(rma::deadline until);

  [[nodiscard]] semaphore_words words() const {
    const found_lock& at = *queue_.found();
    return words_of_semaphore(at.line * rma::line_words, at.words);
  }
  // Relaxed, for an attempt that would else wait for the head: if it reads the word too early or
  // too late, it fails a moment later or asks once more.
  void set_head_waits(bool does) {
    queue_.file().word(words().head_waits).store(does ? 1 : 0, std::memory_order_relaxed);
  }
  [[nodiscard]] bool does_head_wait() const {
    return queue_.found() != nullptr &&
           queue_.file().word(words().head_waits).load(std::memory_order_relaxed) != 0;
  }
  [[nodiscard]] unit_set present_units() const {
    return queue_.found() == nullptr ? made_for_ : units_in(queue_.file(), words());
  }
  void refuse_to_take_more(const unit_set& than_these) const;
  [[nodiscard]] bool is_interrupted() const { return interrupt_ && interrupt_(); }

  std::shared_ptr<domain_file> file_;
  std::vector<std::string> names_;  // one
  unit_set made_for_;
  one_lock queue_;
  own_units ours_;
  int next_elsewhere_ = 0;    // which unit other hosts are asked for next
  bool goes_around_ = false;  // why the wait in the queue was ended
  std::function<bool()> interrupt_;
};

bool units_handle::acquire(mode as, limit patience) {
  if (as == mode::shared)
    throw domain_error(
        domain_error::reason::invalid,
        "semaphore " + shown(name()) +
            ", shared (accepted: exclusively, as each holder has a unit of its own)");
  probes::around_acquire probe(*this, false);
  return probe.ended(take_units(patience));
}

bool units_handle::take_units(limit patience) {
  if (held() != mode::none)
    throw domain_error(domain_error::reason::held,
                       "semaphore " + shown(name()) + ": this handle holds a unit already");
  if (queue_.held() != mode::none) undo_jump();
  const rma::deadline until{
      patience.is_attempt() ? 0 : shm::detail::ns_from_now(patience.nanoseconds())};
  const std::uint64_t since = now_ns();
  while (true) {
    const place at = stand_in_queue(until);
    if (at == place::none) return false;
    if (at == place::stuck) {
      if (lock::take_past_head(*this) && hold_taken()) return true;
      if (until.at == 0) return false;
      continue;
    }
    const at_head hold(*this);
    const head_step how = take_as_head(until, since);
    if (how == head_step::late) return false;
    if (how == head_step::had && hold_taken()) return true;
  }
}

// The end of an acquire, which begins anew if this is false. If the domain was removed meanwhile,
// units may be those of the present domain, and the queue is not: its N was not compared. And of
// several units the first may have been lost before the last was there.
bool units_handle::hold_taken() {
  const bool are_good = ours_.are_of(queue_.file()) && (ours_.wanted() == 1 || ours_.are_valid());
  if (are_good)
    ours_.hold();
  else
    give_back();
  return are_good;
}

// The program has left an acquire at the head of the queue by siglongjmp.
void units_handle::undo_jump() {
  give_back();
  queue_.guard_nothing_meanwhile(false);
  set_head_waits(false);
  queue_.give(mode::exclusive);
  throw domain_error(domain_error::reason::interrupted,
                     "semaphore " + shown(name()) +
                         ": the program jumped out of this handle's last acquire, which is undone "
                         "now (the next acquire can succeed)");
}

void units_handle::release(mode as) {
  check_held(as);
  lock::release_units(*this);
  probes::after_release(*this);
}

void units_handle::abandon() {
  static_cast<void>(ours());
  ours_.abandon();
  note_release();
}

void units_handle::give_back() noexcept {
  if (!ours_.has_taken_any()) return;
  ours_.give_back();
  try {
    note_release();
  } catch (...) {  // the domain is damaged
  }
}

// The add comes after the units are free, and before the bell's sleepers are counted. A waiter that
// sleeps has counted itself before it reads the word for the last time.
void units_handle::note_release() {
  if (queue_.found() != nullptr) detail::note_release(queue_.file(), words());
}

// ---- the queue ----

units_handle::place units_handle::stand_in_queue(rma::deadline until) {
  if (until.at == 0) return attempt_queue();
  goes_around_ = false;
  try {
    return queue_.take(mode::exclusive, left_until(until)) ? place::head : place::none;
  } catch (const domain_error& e) {
    if (e.why != domain_error::reason::interrupted || !goes_around_) throw;
    return place::stuck;
  }
}

// Another participant may have the queue for the microseconds in which it tries the units.
units_handle::place units_handle::attempt_queue() {
  const time_limit at_most{shm::detail::ns_from_now(100 * of_a_millisecond)};
  constexpr std::uint64_t between_tries = of_a_millisecond / 20;
  while (!queue_.take(mode::exclusive, limit::at_once())) {
    const bool is_over = does_head_wait() || queue_.file().is_of_cluster();
    if (!is_over && at_most.sleep(between_tries)) continue;
    return is_head_stopped_beside_free_units() ? place::stuck : place::none;
  }
  return place::head;
}

bool units_handle::is_to_leave_queue() {
  if (is_interrupted()) return true;
  return goes_around_ = is_head_stopped_beside_free_units();
}

// Called about once a second by each waiter of the queue.
bool units_handle::is_head_stopped_beside_free_units() {
  if (queue_.found() == nullptr) return false;
  const domain_file& file = queue_.file();
  int head = -1;
  for_each_hold(file, [&](int slot, std::uint32_t line) {
    if (line == queue_.found()->line) head = slot;
  });
  if (head < 0 || !is_stopped(file.slot(head))) return false;
  std::vector<std::uint32_t> lines;
  const unit_set all = present_units();
  for (int unit = all.at_or_after(0); unit >= 0; unit = all.at_or_after(unit + 1)) {
    // A unit that nobody has used yet is free.
    if (const auto found = find_lock(file, name_of_unit(name(), unit)))
      lines.push_back(found->line);
  }
  std::sort(lines.begin(), lines.end());
  int taken = 0;
  for_each_hold(file, [&](int slot, std::uint32_t line) {
    if (!std::binary_search(lines.begin(), lines.end(), line)) return;
    queue_.port().examine(rank_of_slot(slot));
    if (file.slot(slot).state() == slot_state::living) ++taken;
  });
  return taken + ours_.wanted() <= all.count();
}

// ---- at its head ----

/// The operations that wait_as_head() asks for.
class units_handle::head {
 public:
  head(units_handle& of, rma::deadline until) : of_(of), until_(until) {}

  [[nodiscard]] lock::release_mark mark() const {
    const auto& released = of_.queue_.file().word(of_.words().released);
    return {.released = released.load(std::memory_order_acquire),
            .deaths = of_.queue_.port().deaths()};
  }
  [[nodiscard]] bool try_units() { return of_.try_units(); }
  void give_back() { of_.give_back(); }
  [[nodiscard]] head_step before_wait() {
    // Another host may have its own head by now: two of them that collect could wait for each
    // other.
    if (of_.ours_.wanted() > 1 && of_.queue_.valid_for() == 0) return head_step::moved;
    if (const auto step = of_.ask_other_hosts(until_)) return *step;
    if (until_.at == 0) return head_step::late;
    of_.set_head_waits(true);
    return head_step::wait;
  }
  [[nodiscard]] head_step await_release(lock::release_mark seen) {
    return of_.await_release(seen, until_);
  }

 private:
  units_handle& of_;
  rma::deadline until_;
};

head_step units_handle::take_as_head(rma::deadline until, std::uint64_t since_ns) {
  domain_port& port = queue_.port();
  struct shown_wait {
    explicit shown_wait(domain_port& p, std::uint64_t since) : port(p) {
      port.show_wait_since(since);
    }
    ~shown_wait() { port.show_wait_since(0); }
    domain_port& port;
  } const shows(port, since_ns);
  if (!make_hosts_agree(until)) return head_step::late;
  head us(*this, until);
  return lock::wait_as_head(us);
}

// Returns nothing if all units are at hand, as on one machine.
std::optional<head_step> units_handle::ask_other_hosts(rma::deadline until) {
  const int elsewhere = units_elsewhere();
  if (elsewhere == 0) return std::nullopt;
  const std::uint64_t share = other_hosts_answer_in / static_cast<unsigned>(elsewhere);
  for (int i = 0; i < (until.at == 0 ? elsewhere : 1); ++i)
    if (take_from_other_hosts(
            limit::of_ns(until.at == 0 ? share : std::max(share, least_wait_for_a_host))) &&
        ours_.has_all())
      return head_step::had;
  if (until.at == 0 || queue_.port().is_over(until)) return head_step::late;
  if (is_interrupted())
    throw domain_error(domain_error::reason::interrupted,
                       "semaphore " + shown(name()) + ": the acquire was interrupted");
  return head_step::try_again;
}

bool units_handle::try_units() {
  const unit_set all = present_units();
  if (ours_.has_taken_any()) [[unlikely]]
    ours_.keep_only(all);
  if (ours_.wanted() > all.count()) [[unlikely]]
    refuse_to_take_more(all);
  int others = 0;
  for (int unit = all.at_or_after(0); unit >= 0; unit = all.at_or_after(unit + 1)) {
    if (ours_.has_taken(unit) || !ours_.lock_of(unit).is_at_hand()) continue;
    try {
      if (ours_.take(unit, limit::at_once()) && ours_.has_all()) return true;
    } catch (const domain_error& e) {
      if (e.why != domain_error::reason::held) throw;
      ++others;  // of another handle of this thread
    }
  }
  if (others + ours_.wanted() <= all.count()) return false;
  const std::string count = std::to_string(all.count()) + " units";
  throw domain_error(
      domain_error::reason::held,
      "semaphore " + shown(name()) + ": other handles of this thread hold " +
          (others == all.count() ? "all its " + count
                                 : std::to_string(others) + " of its " + count +
                                       ", and this one takes " + std::to_string(ours_.wanted())));
}

// A head that waits for units that do not exist would keep all others from those that do.
void units_handle::refuse_to_take_more(const unit_set& than_these) const {
  throw domain_error(domain_error::reason::invalid,
                     "semaphore " + shown(name()) + ": take " + std::to_string(ours_.wanted()) +
                         " of " + than_these.described() +
                         ", to which it was set (accepted: 1 to " +
                         std::to_string(than_these.count()) + ", until others are set)");
}

int units_handle::units_elsewhere() {
  const unit_set all = present_units();
  int count = 0;
  for (int unit = all.at_or_after(0); unit >= 0; unit = all.at_or_after(unit + 1))
    count += ours_.lock_of(unit).is_at_hand() ? 0 : 1;
  return count;
}

// The next unit in turn that this host does not own. A request that was not granted in time stays
// with the other hosts, so that the unit may be at hand later.
bool units_handle::take_from_other_hosts(limit patience) {
  const unit_set all = present_units();
  for (int i = 0; i < all.count(); ++i) {
    int unit = all.at_or_after(next_elsewhere_);
    if (unit < 0) unit = all.at_or_after(0);
    next_elsewhere_ = unit + 1;
    if (!ours_.lock_of(unit).is_at_hand()) return ours_.take(unit, patience);
  }
  return false;
}

head_step units_handle::await_release(lock::release_mark seen, rma::deadline until) {
  domain_port& port = queue_.port();
  const std::function<bool()> collects = [this] {
    return queue_.guard_all_during([this] { return is_interrupted(); });
  };
  const port_interrupt ends(port, ours_.wanted() > 1 ? collects : interrupt_);
  const rma::cpu_cell released{0, words().released};
  const rma::deadline retry = port.deadline_in(head_retries_every);
  const rma::plain_cell serial{0, place_of_serial(*queue_.found())};
  const rma::lifeline line{serial, queue_.found()->serial, seen.deaths, true};
  try {
    while (true) {
      const rma::word now = port.await_until_or_death(released, rma::differs_from(seen.released),
                                                      rma::earlier(port, until, retry), line);
      if (port.was_interrupted())
        throw domain_error(domain_error::reason::interrupted,
                           "semaphore " + shown(name()) + ": the acquire was interrupted");
      if (port.is_over(until)) return head_step::late;
      if (now != seen.released || port.deaths() != line.deaths) return head_step::try_again;
      if (port.load(serial) != line.value) return head_step::moved;
      if (port.is_over(retry)) return head_step::try_again;
      examine_holders();
    }
  } catch (const domain_error& e) {
    if (e.why != domain_error::reason::removed) throw;
    return head_step::moved;
  }
}

void units_handle::examine_holders() {
  for_each_hold(queue_.file(), [&](int slot, std::uint32_t line) {
    bool is_of_a_unit = false;
    ours_.for_each_used([&](const one_lock& each) {
      is_of_a_unit |= each.found() != nullptr && each.found()->line == line;
    });
    if (is_of_a_unit) queue_.port().examine(rank_of_slot(slot));
  });
}

// The directory of this host makes its own users agree about the units. The first head of each host
// compares with the cluster, whose units are noted in etcd where a lock's work would be
// (done_until), and which an operator may have set. False if etcd has not answered in time.
bool units_handle::make_hosts_agree(rma::deadline until) {
  if (!queue_.file().is_of_cluster()) return true;
  // Relaxed: the holder of the queue reads what an earlier holder wrote.
  auto& agreed = queue_.file().word(words().agreed);
  if (agreed.load(std::memory_order_relaxed) != 0) return true;
  const auto noted = queue_.done_until(left_until(until));
  if (!noted) return false;
  const rma::word ours = made_for_.bits();
  if (*noted == 0 && !queue_.set_done_until(ours, left_until(until))) return false;
  if (set_by_operator::from(*noted)) {
    // The agent may have learned of later units meanwhile.
    auto& present = queue_.file().word(words().present);
    rma::word before = present.load();
    if ((before & set_by_operator::mark) == 0) present.compare_exchange_strong(before, *noted);
  } else if (*noted != 0 && *noted != ours) {
    const auto theirs = unit_set::from(*noted);
    throw domain_error(domain_error::reason::disagrees,
                       "lock " + shown(name()) + " is " +
                           (theirs ? described(semaphore_kind(), parameters_of_semaphore(*theirs))
                                   : "a lock with a note of its work") +
                           " in the cluster, not " +
                           described(semaphore_kind(), parameters_of_semaphore(made_for_)) +
                           " (accepted: that, or another name)");
  }
  agreed.store(1, std::memory_order_relaxed);
  return true;
}

std::unique_ptr<handle> handle_of_semaphore(const std::shared_ptr<domain_file>& file,
                                            std::string_view name, const units& what) {
  check_lock_name(name);
  return std::make_unique<units_handle>(file, name, what);
}

}  // namespace lockflight::detail
