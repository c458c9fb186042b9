// named_semaphore: N units behind a queue, all of them locks of the domain (semaphore_kind.hpp).
//
// lockflight/lock/robust/semaphore.hpp has the steps of an acquire and a release, and the
// invariants S1 to S4. Here beside these:
//
// S5. What the head cannot see by itself it looks for: it examines the holders of units at least
//     every 45 ms while it waits, and tries the units once a second in any case, since a holder may
//     be stopped between the two steps of a release.
// S6. A head that is stopped delays nobody for longer than a second: the waiters of the queue see
//     that, on its own host, and take free units without the queue (S1). `head_waits` may be left
//     set by a head that died; each head clears it.
#include <algorithm>
#include <optional>

#include "domain/names/named_lock.hpp"
#include "domain/names/probes.hpp"
#include "domain/names/semaphore_kind.hpp"
#include "lockflight/lock/robust/record.hpp"
#include "lockflight/lock/robust/semaphore.hpp"

namespace lockflight {
namespace detail {
namespace {

using lock::head_step;

constexpr std::uint64_t of_a_millisecond = 1'000'000;
constexpr std::uint64_t head_retries_every = 1'000 * of_a_millisecond;
/// What an acquire or an attempt waits for other hosts in all, as across_hosts does for one lock.
constexpr std::uint64_t other_hosts_answer_in = 200 * of_a_millisecond;
/// A waiting head asks no host more often than this.
constexpr std::uint64_t least_wait_for_a_host = 50 * of_a_millisecond;

int checked_units(std::string_view name, int units) {
  if (units >= 1 && units <= most_units) return units;
  throw domain_error(domain_error::reason::invalid,
                     "semaphore " + shown(name) + ": " + std::to_string(units) +
                         " units (accepted: 1 to " + std::to_string(most_units) + ")");
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

class named_semaphore_impl {
 public:
  named_semaphore_impl(const std::shared_ptr<domain_file>& file, std::string_view name, int units)
      : file_(file),
        name_(name),
        queue_(file, name, semaphore_kind(), parameters_of_semaphore(checked_units(name, units))),
        units_(static_cast<std::size_t>(units)) {
    queue_.interrupt_with([this] { return is_to_leave_queue(); });
  }
  ~named_semaphore_impl() {
    if (unit_ < 0) return;
    units_.clear();  // as after a death
    try {
      note_release();
    } catch (...) {  // the domain is damaged
    }
  }
  named_semaphore_impl(const named_semaphore_impl&) = delete;
  named_semaphore_impl& operator=(const named_semaphore_impl&) = delete;

  /// 0 is an attempt. True if we hold a unit now, as we do if and only if this returns true.
  bool acquire(std::uint64_t nanoseconds);
  void release();

  // The steps of a release (release_unit).
  void free_unit() {
    held().unlock(named_lock_impl::mode::exclusive);
    unit_ = -1;
  }
  void note_release();

  [[nodiscard]] int unit() const { return unit_; }
  [[nodiscard]] int units() const { return static_cast<int>(units_.size()); }
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Of the unit that is held, or was held last; null if there was none.
  [[nodiscard]] named_lock_impl* last() const {
    return last_ < 0 ? nullptr : units_[static_cast<std::size_t>(last_)].get();
  }
  [[nodiscard]] named_lock_impl& held() const {
    if (unit_ >= 0) return *last();
    throw domain_error(domain_error::reason::not_held,
                       "semaphore " + shown(name_) + ": this handle holds no unit");
  }
  [[nodiscard]] const char* kind_name() const { return semaphore_kind().about.name.data(); }
  [[nodiscard]] domain_port::events taken_events() { return queue_.taken_events(); }
  [[nodiscard]] bool still_valid() const {
    return unit_ >= 0 ? last()->still_valid() : queue_.still_valid();
  }
  void interrupt_with(std::function<bool()> what) { interrupt_ = std::move(what); }
  void ask_now() { queue_.ask_now(); }

 private:
  enum class place : std::uint8_t {
    head,
    none,   // the time is over
    stuck,  // the head is stopped: free units are taken without the queue
  };
  /// Frees the queue at its end, whatever has happened.
  class at_head {
   public:
    explicit at_head(named_semaphore_impl& of) : of_(of) { of_.set_head_waits(false); }
    ~at_head() {
      try {
        of_.set_head_waits(false);
        of_.queue_.unlock(named_lock_impl::mode::exclusive);
      } catch (...) {  // the domain is damaged or removed, and with it the queue
      }
    }
    at_head(const at_head&) = delete;
    at_head& operator=(const at_head&) = delete;

   private:
    named_semaphore_impl& of_;
  };

  [[nodiscard]] place stand_in_queue(rma::deadline until);
  [[nodiscard]] place attempt_queue();
  [[nodiscard]] bool is_to_leave_queue();
  [[nodiscard]] bool is_head_stopped_beside_a_free_unit();
  class head;
  [[nodiscard]] head_step take_as_head(rma::deadline until, std::uint64_t since_ns);
  [[nodiscard]] bool take_unit_at_hand();
  [[nodiscard]] bool take(int unit, std::uint64_t nanoseconds);
  [[nodiscard]] bool take_from_other_hosts(std::uint64_t nanoseconds);
  [[nodiscard]] int units_elsewhere();
  [[nodiscard]] std::optional<head_step> ask_other_hosts(rma::deadline until);
  [[nodiscard]] head_step await_release(lock::release_mark seen, rma::deadline until);
  void examine_holders();
  void make_hosts_agree();

  [[nodiscard]] named_lock_impl& unit_lock(int unit) {
    auto& one = units_[static_cast<std::size_t>(unit)];
    if (!one)
      one = std::make_unique<named_lock_impl>(file_, name_of_unit(name_, unit), unit_kind(), "");
    return *one;
  }
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
  [[nodiscard]] bool is_interrupted() const { return interrupt_ && interrupt_(); }

  std::shared_ptr<domain_file> file_;
  std::string name_;
  named_lock_impl queue_;
  std::vector<std::unique_ptr<named_lock_impl>> units_;  // each is made when it is first tried
  int unit_ = -1;                                        // the one that is held
  int last_ = -1;                                        // the one that was held last
  int next_elsewhere_ = 0;    // which unit other hosts are asked for next
  bool goes_around_ = false;  // why the wait in the queue was ended
  std::function<bool()> interrupt_;
};

bool named_semaphore_impl::acquire(std::uint64_t nanoseconds) {
  if (unit_ >= 0)
    throw domain_error(domain_error::reason::held,
                       "semaphore " + shown(name_) + ": this handle holds a unit already");
  const rma::deadline until{nanoseconds == 0 ? 0 : shm::detail::ns_from_now(nanoseconds)};
  const std::uint64_t since = now_ns();
  while (true) {
    const place at = stand_in_queue(until);
    if (at == place::none) return false;
    if (at == place::stuck) {
      if (take_unit_at_hand()) return true;
      if (until.at == 0) return false;
      continue;
    }
    const at_head hold(*this);
    const head_step how = take_as_head(until, since);
    if (how == head_step::late) return false;
    // If the domain was removed meanwhile, the unit may be one of the present domain, and the queue
    // is not: its N was not compared.
    if (how == head_step::had && &last()->file() == &queue_.file()) return true;
    if (how == head_step::had) release();
  }
}

void named_semaphore_impl::release() { lock::release_unit(*this); }

// Sequentially consistent: after the unit is free, and before the bell's sleepers are counted.
void named_semaphore_impl::note_release() {
  if (queue_.found() == nullptr) return;
  const std::uint32_t word = words().released;
  queue_.file().word(word).fetch_add(1, std::memory_order_seq_cst);
  queue_.file().bell_of_line(word / rma::line_words).ring();
}

// ---- the queue ----

named_semaphore_impl::place named_semaphore_impl::stand_in_queue(rma::deadline until) {
  if (until.at == 0) return attempt_queue();
  const std::uint64_t now = until.at == UINT64_MAX ? 0 : now_ns();
  const std::uint64_t left =
      until.at == UINT64_MAX ? UINT64_MAX : until.at - std::min(until.at, now);
  goes_around_ = false;
  try {
    return queue_.acquire_exclusively(left) ? place::head : place::none;
  } catch (const domain_error& e) {
    if (e.why != domain_error::reason::interrupted || !goes_around_) throw;
    return place::stuck;
  }
}

// Another participant may have the queue for the microseconds in which it tries the units.
named_semaphore_impl::place named_semaphore_impl::attempt_queue() {
  const time_limit at_most{shm::detail::ns_from_now(100 * of_a_millisecond)};
  constexpr std::uint64_t between_tries = of_a_millisecond / 20;
  while (!queue_.acquire_exclusively(0)) {
    const bool is_over = does_head_wait() || queue_.file().is_of_cluster();
    if (!is_over && at_most.sleep(between_tries)) continue;
    return is_head_stopped_beside_a_free_unit() ? place::stuck : place::none;
  }
  return place::head;
}

bool named_semaphore_impl::is_to_leave_queue() {
  if (is_interrupted()) return true;
  return goes_around_ = is_head_stopped_beside_a_free_unit();
}

// Asked about once a second by each waiter of the queue.
bool named_semaphore_impl::is_head_stopped_beside_a_free_unit() {
  if (queue_.found() == nullptr) return false;
  const domain_file& file = queue_.file();
  int head = -1;
  for_each_hold(file, [&](int slot, std::uint32_t line) {
    if (line == queue_.found()->line) head = slot;
  });
  if (head < 0 || !is_stopped(file.slot(head))) return false;
  std::vector<std::uint32_t> lines;
  for (int unit = 0; unit < units(); ++unit) {
    const auto found = find_lock(file, name_of_unit(name_, unit));
    if (!found) return true;
    lines.push_back(found->line);
  }
  std::sort(lines.begin(), lines.end());
  int taken = 0;
  for_each_hold(file, [&](int slot, std::uint32_t line) {
    if (!std::binary_search(lines.begin(), lines.end(), line)) return;
    queue_.port().examine(rank_of_slot(slot));
    if (file.slot(slot).state() == slot_state::living) ++taken;
  });
  return taken < units();
}

// ---- at its head ----

/// What wait_as_head() asks for.
class named_semaphore_impl::head {
 public:
  head(named_semaphore_impl& of, rma::deadline until) : of_(of), until_(until) {}

  [[nodiscard]] lock::release_mark mark() const {
    const auto& released = of_.queue_.file().word(of_.words().released);
    return {.released = released.load(std::memory_order_acquire),
            .deaths = of_.queue_.port().deaths()};
  }
  [[nodiscard]] bool try_units() { return of_.take_unit_at_hand(); }
  [[nodiscard]] head_step before_wait() {
    if (const auto step = of_.ask_other_hosts(until_)) return *step;
    if (until_.at == 0) return head_step::late;
    of_.set_head_waits(true);
    return head_step::wait;
  }
  [[nodiscard]] head_step await_release(lock::release_mark seen) {
    return of_.await_release(seen, until_);
  }

 private:
  named_semaphore_impl& of_;
  rma::deadline until_;
};

head_step named_semaphore_impl::take_as_head(rma::deadline until, std::uint64_t since_ns) {
  domain_port& port = queue_.port();
  struct shown_wait {
    explicit shown_wait(domain_port& p, std::uint64_t since) : port(p) {
      port.show_wait_since(since);
    }
    ~shown_wait() { port.show_wait_since(0); }
    domain_port& port;
  } const shows(port, since_ns);
  make_hosts_agree();
  head us(*this, until);
  return lock::wait_as_head(us);
}

// Nothing if all units are at hand, as on one machine.
std::optional<head_step> named_semaphore_impl::ask_other_hosts(rma::deadline until) {
  const int elsewhere = units_elsewhere();
  if (elsewhere == 0) return std::nullopt;
  const std::uint64_t share = other_hosts_answer_in / static_cast<unsigned>(elsewhere);
  for (int i = 0; i < (until.at == 0 ? elsewhere : 1); ++i)
    if (take_from_other_hosts(until.at == 0 ? share : std::max(share, least_wait_for_a_host)))
      return head_step::had;
  if (until.at == 0 || queue_.port().is_over(until)) return head_step::late;
  if (is_interrupted())
    throw domain_error(domain_error::reason::interrupted,
                       "semaphore " + shown(name_) + ": the acquire was interrupted");
  return head_step::try_again;
}

bool named_semaphore_impl::take(int unit, std::uint64_t nanoseconds) {
  if (!unit_lock(unit).acquire_exclusively(nanoseconds)) return false;
  unit_ = last_ = unit;
  return true;
}

// In order, so that few workers use the same few units.
bool named_semaphore_impl::take_unit_at_hand() {
  int ours = 0;
  for (int unit = 0; unit < units(); ++unit) {
    if (!unit_lock(unit).is_at_hand()) continue;
    try {
      if (take(unit, 0)) return true;
    } catch (const domain_error& e) {
      if (e.why != domain_error::reason::held) throw;
      ++ours;  // of another handle of this thread
    }
  }
  if (ours < units()) return false;
  throw domain_error(domain_error::reason::held,
                     "semaphore " + shown(name_) + ": other handles of this thread hold all its " +
                         std::to_string(units()) + " units");
}

int named_semaphore_impl::units_elsewhere() {
  int count = 0;
  for (int unit = 0; unit < units(); ++unit) count += unit_lock(unit).is_at_hand() ? 0 : 1;
  return count;
}

// The next unit in turn that this host does not own. A request that was not granted in time stays
// with the other hosts, so that the unit may be at hand later.
bool named_semaphore_impl::take_from_other_hosts(std::uint64_t nanoseconds) {
  for (int i = 0; i < units(); ++i) {
    const int unit = std::exchange(next_elsewhere_, (next_elsewhere_ + 1) % units());
    if (!unit_lock(unit).is_at_hand()) return take(unit, nanoseconds);
  }
  return false;
}

head_step named_semaphore_impl::await_release(lock::release_mark seen, rma::deadline until) {
  domain_port& port = queue_.port();
  struct ended_wait {
    explicit ended_wait(domain_port& p, const std::function<bool()>& interrupt) : port(p) {
      if (interrupt) port.set_interrupt(&interrupt);
    }
    ~ended_wait() {
      port.set_interrupt(nullptr);
      port.rest();
    }
    domain_port& port;
  } const ends(port, interrupt_);
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
                           "semaphore " + shown(name_) + ": the acquire was interrupted");
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

void named_semaphore_impl::examine_holders() {
  for_each_hold(queue_.file(), [&](int slot, std::uint32_t line) {
    const bool is_of_a_unit = std::any_of(units_.begin(), units_.end(), [&](const auto& each) {
      return each && each->found() != nullptr && each->found()->line == line;
    });
    if (is_of_a_unit) queue_.port().examine(rank_of_slot(slot));
  });
}

// The directory of this host makes its own users agree about N. The first head of each host
// compares with the cluster, whose N is noted in etcd where a lock's work would be (done_until).
void named_semaphore_impl::make_hosts_agree() {
  if (!queue_.file().is_of_cluster()) return;
  // Relaxed: the holder of the queue reads what an earlier holder wrote.
  auto& agreed = queue_.file().word(words().agreed);
  if (agreed.load(std::memory_order_relaxed) != 0) return;
  const std::uint64_t noted = queue_.done_until();
  if (noted == 0)
    queue_.set_done_until(static_cast<std::uint64_t>(units()));
  else if (noted != static_cast<std::uint64_t>(units()))
    throw domain_error(
        domain_error::reason::disagrees,
        "lock " + shown(name_) + " is " +
            (noted > most_units
                 ? "a lock with a note of its work"
                 : described(semaphore_kind(), parameters_of_semaphore(static_cast<int>(noted)))) +
            " in the cluster, not " +
            described(semaphore_kind(), parameters_of_semaphore(units())) +
            " (accepted: that, or another name)");
  agreed.store(1, std::memory_order_relaxed);
}

}  // namespace detail

named_semaphore::named_semaphore(const domain& in, std::string_view name, int units)
    : impl_((detail::check_lock_name(name),
             std::make_unique<detail::named_semaphore_impl>(in.file_, name, units))) {}
named_semaphore::named_semaphore(named_semaphore&&) noexcept = default;
named_semaphore& named_semaphore::operator=(named_semaphore&&) noexcept = default;
named_semaphore::~named_semaphore() = default;

void named_semaphore::acquire() {
  static_cast<void>(try_acquire_within(detail::named_lock_impl::forever));
}
bool named_semaphore::try_acquire() { return try_acquire_within(0); }
bool named_semaphore::try_acquire_within(std::uint64_t nanoseconds) {
  detail::probes::around_acquire probe(*impl_, false);
  return probe.ended(impl_->acquire(nanoseconds));
}
void named_semaphore::release() {
  impl_->release();
  detail::probes::after_release(*impl_);
}

int named_semaphore::units() const { return impl_->units(); }
int named_semaphore::unit() const { return impl_->unit(); }
const std::string& named_semaphore::name() const { return impl_->name(); }
std::uint64_t named_semaphore::token() const {
  return impl_->last() != nullptr ? impl_->last()->token() : 0;
}
bool named_semaphore::owner_died() const { return is_held() && impl_->last()->owner_died(); }
void named_semaphore::mark_consistent() { impl_->held().mark_consistent(); }
bool named_semaphore::still_valid() const { return impl_->still_valid(); }
std::chrono::nanoseconds named_semaphore::valid_for() const {
  constexpr auto most = static_cast<std::uint64_t>(std::chrono::nanoseconds::max().count());
  const std::uint64_t left = is_held() ? impl_->last()->valid_for() : 0;
  return std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(left, most)));
}
void named_semaphore::interrupt_with(std::function<bool()> is_interrupted) {
  impl_->interrupt_with(std::move(is_interrupted));
}
void named_semaphore::ask_now() { impl_->ask_now(); }
void named_semaphore::extend_to_this_process() noexcept {
  if (impl_->last() != nullptr) impl_->last()->extend_to_this_process();
}
void named_semaphore::extend_to(int pid) {
  if (impl_->last() != nullptr) impl_->last()->extend_to(pid);
}
void named_semaphore::finish() noexcept {
  if (impl_->last() != nullptr) impl_->last()->finish();
}

}  // namespace lockflight
