// The port of a domain: shared memory whose participants die and stop, each by itself (C45, C46). A
// slot is a rank. The words of all locks are rank 0's; of other ranks there are only the
// participants' own words.
//
// Cost: that of the shm port. A waiter sleeps, and wakes to examine whether others live: one waiter
// of each lock after 4 ms at first and later every 40 ms; the others every 100 ms if there are few
// threads, and once a second if there are many. A waiter that relies on a hold (reliance.hpp) wakes
// once a second if it is the watcher, to see that the file is still there, and else every 30 s.
#pragma once

#include <algorithm>
#include <ctime>
#include <functional>
#include <utility>

#include "base/signals_held.hpp"
#include "lockflight/fabric/cpu_operations.hpp"
#include "names/life/machine_clock.hpp"
#include "names/life/reliance.hpp"
#include "names/life/slots.hpp"
#include "names/life/time_limit.hpp"

namespace lockflight::detail {

/// How often a watcher that relies on a hold wakes. Tests have it wake more rarely.
inline std::atomic<std::uint64_t> relying_watcher_wakes_every_ns{1'000'000'000};

class domain_port : public shm::detail::cpu_operations<domain_port> {
  friend class shm::detail::cpu_operations<domain_port>;

 public:
  static constexpr rma::capability_set capabilities{.uniform_rmw = true,
                                                    .ordered_posts = true,
                                                    .node_fence = true,
                                                    .deaths = true,
                                                    .interrupts = true,
                                                    .fabric = "shm"};
  /// Only rank 0 has words of locks.
  static constexpr bool words_at_home_only = true;

  domain_port(domain_file& file, int slot);

  [[nodiscard]] rma::rank_t rank() const { return rank_; }
  [[nodiscard]] static const rma::topology& machine();
  [[nodiscard]] int slot() const { return slot_; }

  void fence_node();

  // ---- waiting ----

  template <class Cell, class Predicate>
  rma::word await(Cell on, Predicate done) {
    return wait(on, done, {UINT64_MAX}, nullptr);
  }
  template <class Cell, class Predicate>
  rma::word await_until(Cell on, Predicate done, rma::deadline until) {
    return wait(on, done, until, nullptr);
  }
  template <class Cell, class Predicate>
  rma::word await_or_death(Cell on, Predicate done, const rma::lifeline& line) {
    return wait(on, done, {UINT64_MAX}, &line);
  }
  template <class Cell, class Predicate>
  rma::word await_until_or_death(Cell on, Predicate done, rma::deadline until,
                                 const rma::lifeline& line) {
    return wait(on, done, until, &line);
  }
  template <class Cell, class Predicate>
  rma::word poll(Cell from, Predicate done, rma::backoff back_off) {
    return rma::poll_by_get(*this, from, done, back_off);
  }
  /// A waiter that shares a core gives it up, and one that has paused for long sleeps.
  void pause(std::uint64_t nanoseconds);
  [[nodiscard]] bool shares_cores() const;
  [[nodiscard]] rma::deadline deadline_in(std::uint64_t nanoseconds);
  /// Also true of any deadline once the wait is interrupted.
  [[nodiscard]] bool is_over(rma::deadline until);

  // ---- deaths ----

  [[nodiscard]] rma::word deaths() const {
    // Acquire: the dead are marked before they are counted.
    return file_.header().deaths.load(std::memory_order_acquire);
  }
  [[nodiscard]] bool is_dead(rma::rank_t rank) const {
    // Acquire: with this state we see all stores of the dead participant.
    return file_.slot(file_.slot_of(rank)).state() == slot_state::dead;
  }
  /// True if the slot is free: all its records are idle then.
  [[nodiscard]] bool is_absent(rma::rank_t rank) const {
    return file_.slot(file_.slot_of(rank)).state() == slot_state::free;
  }
  /// True if the dead participant had said that it had nothing left to do under its locks.
  [[nodiscard]] bool had_finished(rma::rank_t rank) const {
    const domain_slot_page& s = file_.slot(file_.slot_of(rank));
    return s.finished.load(std::memory_order_relaxed) == s.life_now().incarnation;
  }
  /// True if the participant left by itself, and did not die.
  [[nodiscard]] bool had_left(rma::rank_t rank) const {
    return has_left(file_.slot(file_.slot_of(rank)));
  }
  void examine(rma::rank_t rank);
  /// Does nothing: every operation has taken effect at its call.
  void acknowledge_death(rma::rank_t) {}
  void wake(rma::rank_t rank);
  /// True if this wait has lasted long enough for rely_on().
  [[nodiscard]] bool may_rely() const;
  /// From now on a wait whose lifeline says so returns when the hold of that record, which was
  /// read as `hold`, may have ended. False if the kernel cannot tell, or the hold has ended.
  [[nodiscard]] bool rely_on(rma::rank_t holder, rma::cpu_cell record, rma::word hold);
  /// Examines the holder. False if its hold has ended, or the kernel may not tell when.
  [[nodiscard]] bool still_relies();
  /// From here on the wait goes on as at its beginning.
  void rely_no_more(const rma::lifeline& line);
  /// Called when the record does not say any more that we hold.
  void tell_of_release(int record) {
    // The change of the record comes first: who relies on it has made us pass a fence, or a store
    // has one here.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (ours_.relied_on.load(std::memory_order_relaxed) != 0) [[unlikely]]
      end_relied_hold(record);
  }
  /// The number of slots that were ever used: slots are used from the first one on.
  [[nodiscard]] int participants() const {
    return std::min(static_cast<int>(file_.header().used_slots.load(std::memory_order_acquire)),
                    file_.steward() + 1);
  }
  [[nodiscard]] rma::rank_t participant(int number) const { return rank_of_slot(number); }
  [[nodiscard]] rma::deadline grant_deadline();
  [[nodiscard]] static signals_held undisturbed() { return {}; }

  // ---- for named locks ----

  /// Sets a function that a wait asks whether to give up: after each signal, and each time that the
  /// waiter wakes. An exception of the function leaves the wait. Null: waits are not interrupted.
  void set_interrupt(const std::function<bool()>* is_interrupted) {
    interrupt_ = is_interrupted;
    interrupted_ = false;
  }
  [[nodiscard]] bool was_interrupted() const { return interrupted_; }
  /// Sets since when this participant is shown to wait, if its waits are parts of a longer one; 0:
  /// since the present one began.
  void show_wait_since(std::uint64_t ns) { shown_since_ = ns; }
  /// Notes, for display only, that this participant has replaced a generation (repair.hpp).
  void note_repair(rma::plain_cell lock, bool is_for_the_left) {
    if (is_for_the_left)
      file_.word(lock.index + class_word)
          .fetch_add(one_repair_without_death, std::memory_order_relaxed);
    else
      has_repaired_ = has_events_ = true;
  }
  /// The events of this participant since the last question. Each call that may wait
  /// for others or repair a lock is followed by the question.
  struct events {
    std::uint64_t wait_ns = 0;  ///< since its first wait; 0: it has not waited
    bool has_repaired = false;
  };
  [[nodiscard]] events taken_events() {
    if (!has_events_) [[likely]]
      return {};
    return take_events();
  }
  /// In the child of a fork, whose parent may be asleep: the bells do not count this object.
  void forget_sleep() { sleeper_.forget(); }
  /// For any thread: a wait of this participant asks at once.
  void ask_now();
  /// Called when the acquire is over, and the participant waits no more.
  void rest() {
    goes_on_ = false;
    last_pause_ = 0;
    reliance_.end();
    if (sleeper_.armed()) [[unlikely]]
      disarm();
  }
  /// Notes since when our record holds its lock. The clock is the coarse one, which costs a few
  /// nanoseconds and is some milliseconds late. Returns its time. The moment that is noted is later
  /// than that of each earlier hold of this participant, so that it names the hold (hold_end.hpp).
  std::uint64_t note_hold(int record) {
    // The end of an earlier hold: its name has 24 bits, and would be that of a later hold once in a
    // long time. Relaxed: nobody can name the hold that begins here before its moment is stored.
    if (ours_.ends[record].load(std::memory_order_relaxed) != 0) [[unlikely]]
      ours_.ends[record].store(0, std::memory_order_relaxed);
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    const auto ns = static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
                    static_cast<std::uint64_t>(now.tv_nsec);
    last_hold_ns_ = std::max(ns, last_hold_ns_ + 1);
    // Release: who reads the moment finds the record as it is in this hold, or in a later one.
    ours_.holds_since[record].store(to_machine(last_hold_ns_, clock_shift_),
                                    std::memory_order_release);
    return ns;
  }

 private:
  enum class step_end : std::uint8_t { read_again, check };

  // A wait that returns for no reason, or at its deadline, mostly goes on at once. So it stays
  // armed, because arming makes all writers see the mark, and keeps the times of its next checks.
  template <class Cell, class Predicate>
  rma::word wait(Cell on, Predicate done, rma::deadline until, const rma::lifeline* line) {
    begin_wait(number_of_bell(on), bell_at(on));
    const wait_ends ends(*this);
    while (true) {
      const rma::word now = load(on);
      if (done(now)) return now;
      if (is_over(until)) return check_later(line), now;
      if (line != nullptr && (load(line->cell) != line->value || deaths() != line->deaths))
        return now;
      if (step(until, line) == step_end::check && line != nullptr) return goes_on_ = true, load(on);
    }
  }
  class wait_ends {
   public:
    explicit wait_ends(domain_port& p) : port_(p) {}
    ~wait_ends() {
      if (!port_.goes_on_) port_.end_wait();
    }
    wait_ends(const wait_ends&) = delete;
    wait_ends& operator=(const wait_ends&) = delete;

   private:
    domain_port& port_;
  };
  void begin_wait(std::uint32_t bell_number, shm::detail::bell& at) {
    goes_on_ = std::exchange(goes_on_, false) && bell_number == bell_number_;
    if (!goes_on_ && sleeper_.armed()) disarm();
    if (!goes_on_) steps_ = 0;
    goes_on_ = false;
    bell_number_ = bell_number;
    bell_ = &at;
  }
  void end_wait() {
    if (sleeper_.armed()) disarm();
  }
  /// The caller examines others now, and need not be woken for that soon.
  void check_later(const rma::lifeline* line);
  [[nodiscard]] step_end step(rma::deadline until, const rma::lifeline* line);
  void arm();
  void disarm();
  [[nodiscard]] std::uint64_t check_after(std::uint64_t waited, const rma::lifeline* line) const;
  [[nodiscard]] std::uint64_t others_check_after() const;
  [[nodiscard]] std::uint64_t check_while_relying_after(bool watches) const;
  void end_relied_hold(int record);
  void check_others(std::uint64_t now, const rma::lifeline* line);
  void check_file(std::uint64_t now);
  void ring_for(domain_slot_page& of) const;
  [[noreturn]] void refuse_membarrier() const;

  template <rma::cell_class Class>
  [[nodiscard, gnu::always_inline]] std::atomic<rma::word>& at(rma::cell<Class> c) const {
    return file_.cell(c.home, c.index);
  }
  template <rma::cell_class Class>
  [[nodiscard]] shm::detail::bell& bell_of(rma::cell<Class> c) const {
    if (c.index < own_words) return file_.slot(file_.slot_of(c.home)).bell;
    return file_.bell_of_line(c.index / rma::line_words);
  }
  [[nodiscard]] bool fenced_stores() const { return fenced_stores_; }
  /// The bell of a cell, as sleeps_at has it. A participant waits at its own cells or at those of
  /// locks.
  template <class Cell>
  [[nodiscard]] std::uint32_t number_of_bell(const Cell& c) const {
    if (c.index < own_words) return own_bell;
    return domain_file::number_of_bell(c.index / rma::line_words) % bells + 1;
  }

  void ask_whether_interrupted();
  void note_wait(std::uint64_t now) {
    if (waited_since_ == 0) waited_since_ = now;
    has_events_ = true;
    say_that_we_wait();
  }
  [[nodiscard]] events take_events();

  domain_file& file_;
  domain_slot_page& ours_;
  int slot_;
  rma::rank_t rank_;
  std::int64_t clock_shift_;
  bool fenced_stores_;  // membarrier is refused here: each store has its fence
  bool interrupted_ = false;
  const std::function<bool()>* interrupt_ = nullptr;
  std::atomic<bool> asked_{false};  // by another thread

  std::uint64_t last_hold_ns_ = 0;

  // The present wait, or the last one.
  bool goes_on_ = false;
  std::uint32_t bell_number_ = 0;
  shm::detail::bell* bell_ = nullptr;
  std::uint32_t steps_ = 0;
  std::uint64_t since_ = 0, check_at_ = 0;
  std::uint64_t shown_since_ = 0;
  std::uint64_t waited_since_ = 0;  // 0: not since the events were taken
  bool has_repaired_ = false;
  bool has_events_ = false;  // one of the two
  shm::detail::sleeper sleeper_;

  // The hold that we rely on, and the last one whose end the kernel could not tell.
  reliance reliance_;
  int relied_slot_ = -1;
  rma::cpu_cell relied_record_{};
  rma::word relied_hold_ = 0;
  std::uint64_t relied_byte_ = 0;
  int silent_slot_ = -1;
  std::uint64_t silent_byte_ = 0;

  std::uint64_t next_check_of_file_ = 0;
  std::uint64_t pausing_since_ = 0, last_pause_ = 0;
  shm::detail::short_yields yields_;
};

static_assert(rma::mortal_port<domain_port>);

/// Lets a function end the waits of a port, as long as it exists.
class port_interrupt {
 public:
  port_interrupt(domain_port& port, const std::function<bool()>& is_interrupted) : port_(port) {
    port_.set_interrupt(&is_interrupted);
  }
  ~port_interrupt() {
    port_.set_interrupt(nullptr);
    port_.rest();
  }
  port_interrupt(const port_interrupt&) = delete;
  port_interrupt& operator=(const port_interrupt&) = delete;

 private:
  domain_port& port_;
};

}  // namespace lockflight::detail
