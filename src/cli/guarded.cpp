#include "cli/guarded.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "cli/attended.hpp"
#include "cli/circle_watch.hpp"
#include "cli/deadline_watch.hpp"
#include "cli/environment.hpp"
#include "cli/inherited.hpp"
#include "cli/named.hpp"
#include "cli/run_events.hpp"
#include "cli/run_signals.hpp"
#include "cli/standard_error.hpp"
#include "lockflight/named_control.hpp"
#include "tool/usage.hpp"

namespace lockflight::cli {
namespace {

/// The rest of the time for waiting, which goes on while the process is stopped.
class time_left {
 public:
  explicit time_left(limit patience)
      : patience_(patience), began_ns_(patience.is_attempt() ? 0 : now_ns()) {}

  [[nodiscard]] limit now() const {
    if (patience_.is_attempt() || patience_.is_for_ever()) return patience_;
    const std::uint64_t gone_ns = now_ns() - began_ns_;
    return limit::of_ns(patience_.nanoseconds() - std::min(gone_ns, patience_.nanoseconds()));
  }
  /// Also if the run was to wait, and has done so.
  [[nodiscard]] bool is_over() const { return now().is_attempt(); }

 private:
  limit patience_;
  std::uint64_t began_ns_;
};

named_handle handle_for(const domain& in, const guarded_command& what) {
  if (what.units) return {in, what.names.front(), units{*what.units}};
  if (what.names.size() > 1) return {in, what.names};
  return {in, what.names.front()};
}

/// How a wait ended.
enum class outcome { has_lock, conflict, interrupted, done };

bool is_interrupted() { return run_signals::noted() != 0; }
bool is_to_end() { return is_interrupted() && run_signals::noted() != SIGTSTP; }

class guarded_run {
 public:
  /// `inheritors` is null unless what COMMAND leaves running keeps the lock.
  guarded_run(const guarded_command& what, inheritance* inheritors)
      : what_(what),
        inheritors_(inheritors),
        message_(what.says),
        circles_(message_, !what.is_silent, what.fails_on_deadlock),
        events_(what.events, what.names) {}
  [[nodiscard]] int run();

 private:
  [[nodiscard]] outcome wait();
  /// Whether the process that the caller has started is gone, so that nobody asks for the lock.
  [[nodiscard]] bool is_abandoned() const {
    return inheritors_ != nullptr && !inheritors_->has_front();
  }
  /// True if the run holds names before the awaited one, or runs around it hold others.
  [[nodiscard]] bool may_be_in_circle() const {
    return held_->awaited() != held_->name() || is_inside_of_a_run();
  }
  [[nodiscard]] bool gives_up() const { return is_to_end() || is_abandoned(); }
  [[nodiscard]] std::optional<outcome> ask_once(const time_left& left);
  [[nodiscard]] std::optional<enclosing_run> enclosing_run_that_excludes(
      const time_left& left) const;
  [[noreturn]] static void refuse_to_wait_for(const enclosing_run& around);
  [[nodiscard]] bool stays_valid(const time_left& left) const;
  [[nodiscard]] bool is_done();
  void say_why_it_does_not_run(outcome how);
  [[nodiscard]] const std::string& name_not_free() const;
  void say_who_holds() const;
  [[nodiscard]] std::optional<int> repair_after_death(deadline_watch* watch);
  void mark_consistent();
  void extend_to(pid_t process);
  [[nodiscard]] ending attend_command(deadline_watch* watch);
  [[nodiscard]] ending attend(const attended& what, deadline_watch* watch, inheritance* inheritors);
  [[nodiscard]] int hold_on();
  [[nodiscard]] std::chrono::nanoseconds grace() const;
  [[nodiscard]] int conclude(const ending& its, const deadline_watch* watch);
  [[nodiscard]] int leave(int code);
  /// "lock 'a'", "locks 'a', 'b'".
  [[nodiscard]] std::string locks_text() const;

  const guarded_command& what_;
  inheritance* inheritors_;
  run_signals signals_;
  std::optional<domain> in_;
  std::optional<named_handle> held_;
  wait_message message_;
  circle_watch circles_;
  run_events events_;
  std::uint64_t held_since_ns_ = 0;
  wall_seconds slot_end_ = 0;  // with --once-per: of the slot that was asked about last
};

std::string guarded_run::locks_text() const {
  std::string text = what_.names.size() > 1 ? "locks " : "lock ";
  for (const std::string& each : what_.names)
    text += (&each == &what_.names.front() ? "'" : ", '") + each + "'";
  return text;
}

// ---- until it has the lock ----

/// Asks for the lock once. Nothing if it is to be asked for again: a Ctrl-Z has come, or the domain
/// has been removed.
std::optional<outcome> guarded_run::ask_once(const time_left& left) {
  try {
    const auto around = enclosing_run_that_excludes(left);
    const bool has = held_->acquire(what_.held, around ? limit::at_once() : left.now());
    if (gives_up()) return outcome::interrupted;
    if (!has && around) refuse_to_wait_for(*around);
    if (!has) return outcome::conflict;
    if (stays_valid(left)) return outcome::has_lock;
    held_->release();
    if (left.is_over()) return outcome::conflict;
  } catch (const domain_error& e) {
    using enum domain_error::reason;
    if (e.why != interrupted && e.why != removed) throw;
    if (circles_.has_ended()) return outcome::conflict;
  }
  return gives_up() ? std::optional(outcome::interrupted) : std::nullopt;
}

/// A run that would wait for this one, which would wait for it. None if this one does not wait.
std::optional<enclosing_run> guarded_run::enclosing_run_that_excludes(const time_left& left) const {
  if (what_.waits_anyway || left.is_over()) return std::nullopt;
  return run_that_excludes(*in_, what_.names, what_.held == mode::shared, what_.units);
}

void guarded_run::refuse_to_wait_for(const enclosing_run& around) {
  throw tool::refuse(
      "NAME", around.name,
      "a lock that no run around this one holds, or --wait-anyway; the run with pid " +
          std::to_string(around.holder.pid) + " " + use_text(around.holder) +
          " and waits for this run, which would wait for it");
}

/// In a cluster: COMMAND is not started just to be ended, so the run waits for the next renewal if
/// the deadline is near. False if the lock is lost, or the wait is over.
bool guarded_run::stays_valid(const time_left& left) const {
  constexpr timespec pause{.tv_sec = 0, .tv_nsec = 5'000'000};
  if (!in_->is_of_cluster()) return true;
  while (held_->valid_for() <= grace()) {
    if (held_->is_lost() || is_interrupted() || left.is_over()) return false;
    clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, nullptr);
  }
  return true;
}

/// Waits for the lock, out of the queue while it is stopped by Ctrl-Z. Signals are noted at the
/// end.
outcome guarded_run::wait() {
  const time_left left(what_.patience);
  while (true) {
    in_ = what_.in.open();
    held_.emplace(handle_for(*in_, what_));
    named_control(*held_).guard_nothing_yet();  // until COMMAND, or a repair, is started
    // A run that comes while the work of its slot is being done does not wait for its end.
    if (is_done()) return outcome::done;
    message_.begin();
    named_control(*held_).interrupt_with([this] {
      message_.update(*in_, held_->awaited());
      events_.waits(*in_, held_->awaited());
      return is_interrupted() || is_abandoned() || circles_.is_to_end(*in_, may_be_in_circle());
    });
    signals_.note();
    const auto how = ask_once(left);
    message_.clear();
    if (how) return *how == outcome::has_lock && is_done() ? outcome::done : *how;
    held_.reset();
    signals_.let_end();
    if (is_to_end()) return outcome::interrupted;
    if (run_signals::noted() == SIGTSTP) signals_.stop_here(true);
  }
}

/// With --once-per: whether the work of the present slot is done, or of a later one, since clocks
/// may go back.
bool guarded_run::is_done() {
  if (!what_.slot_length) return false;
  slot_end_ = end_of_present_slot(*what_.slot_length);
  return held_->done_until() >= slot_end_;
}

void guarded_run::say_why_it_does_not_run(outcome how) {
  const std::string name = locks_text();
  if (how == outcome::done) events_.is_done_until(held_->done_until());
  if (how == outcome::conflict) events_.was_not_free(*in_, name_not_free());
  if (how == outcome::interrupted || how == outcome::has_lock)
    events_.was_interrupted(run_signals::noted());
  if (how == outcome::done) {
    const wall_seconds until = held_->done_until();
    say(name + " is done until " + utc_text(until) + ", so COMMAND is not run" +
        (until > slot_end_ ? "; that is after the present slot of --once-per" : ""));
  }
  if (how != outcome::conflict) return;
  if (!in_->is_of_cluster()) {
    if (what_.says_who_holds) say_who_holds();
    return;
  }
  const auto cut_off = in_->cut_off_for();
  const std::string since =
      cut_off == std::chrono::nanoseconds::max()
          ? ""
          : " since " + std::to_string(cut_off / std::chrono::seconds(1)) + " s";
  const std::string no_agent = in_->has_agent() ? "" : ", and its agent does not run";
  if (cut_off.count() != 0)
    say(name + ": this host is no member of domain " + in_->name() + since + no_agent +
        " ('lockflight agent status' says more)");
  else if (!no_agent.empty())
    say(name + ": the agent of domain " + in_->name() + " does not run on this host");
  else if (!what_.is_silent)
    say_who_holds();
}

/// The first of the names that somebody holds. The holder may be on another host, where nobody
/// looks for it.
const std::string& guarded_run::name_not_free() const {
  const auto at = std::ranges::find_if(what_.names, [this](const std::string& each) {
    return !holders_of(in_->users_of(each)).empty();
  });
  return at == what_.names.end() ? what_.names.front() : *at;
}

void guarded_run::say_who_holds() const {
  const std::string& name = name_not_free();
  say("lock '" + name + "' was not free in time: " + obstacle_text(*in_, name));
}

// ---- from then on ----

/// While the host renews, the deadline is most of the time to live ahead. A grace of that length
/// would end commands on hosts that renew in time, and a shorter one still ends them in an outage
/// of etcd which is over before the deadline. So the usual one is short.
std::chrono::nanoseconds guarded_run::grace() const {
  const auto time_to_live = in_->time_to_live();
  const auto wanted = what_.grace.value_or(time_to_live / 25);
  return time_to_live.count() == 0 ? wanted : std::min(wanted, time_to_live / 3);
}

/// With --on-owner-died: the exit code of the run if COMMAND does not run.
std::optional<int> guarded_run::repair_after_death(deadline_watch* watch) {
  using enum guarded_command::after_death;
  if (what_.on_owner_died == run || !held_->owner_died()) return std::nullopt;
  if (what_.on_owner_died == fail) {
    say(locks_text() + ": a holder died, so COMMAND is not run");
    return leave(not_repaired);
  }
  std::string shell = "/bin/sh";
  std::string option = "-c";
  std::string line = what_.repair;
  char* const words[] = {shell.data(), option.data(), line.data(), nullptr};
  set_environment(*in_, *held_, held_since_ns_);
  const ending its = attend({words, "the repair", what_.repair}, watch, nullptr);
  if (its.signal_number != 0) {
    static_cast<void>(leave(its.code));
    return end_by(its.signal_number);
  }
  if (!its.ran || its.code != 0 || (watch != nullptr && (watch->has_acted() || held_->is_lost()))) {
    say(locks_text() + ": a holder died, and the repair has ended with " +
        std::to_string(its.code) + ", so COMMAND is not run");
    return leave(not_repaired);
  }
  mark_consistent();
  if (its.first_to_run == 0) return std::nullopt;
  // The signal was for this run as well, which has not begun COMMAND.
  static_cast<void>(leave(its.code));
  return end_by(its.first_to_run);
}

/// COMMAND or a repair has ended well: if it held alone, what is guarded counts as repaired.
void guarded_run::mark_consistent() {
  if (what_.held == mode::exclusive && held_->owner_died()) held_->mark_consistent();
}

ending guarded_run::attend(const attended& what, deadline_watch* watch, inheritance* inheritors) {
  return run_attended(
      what, signals_,
      [this, inheritors] {
        named_control(*held_).extend_to_this_process();
        if (inheritors != nullptr) inheritors->pass_on();
      },
      [this, inheritors](pid_t child) {
        if (inheritors != nullptr) inheritors->close_own_end();
        extend_to(child);
      },
      watch);
}

void guarded_run::extend_to(pid_t process) {
  try {
    named_control(*held_).extend_to(process);
  } catch (const domain_error&) {  // the domain is damaged, and guards nothing any more
  }
}

ending guarded_run::attend_command(deadline_watch* watch) {
  set_environment(*in_, *held_, held_since_ns_);
  const wall_seconds before = what_.slot_length ? held_->done_until() : 0;
  if (what_.slot_length) held_->set_done_until(slot_end_);
  if (what_.leads)
    say("leads '" + what_.names.front() + "' with token " + std::to_string(held_->token()));
  const ending its =
      attend({what_.words.data(), "COMMAND", what_.words.front()}, watch, inheritors_);
  if (what_.slot_length && !its.ran) held_->set_done_until(before);
  events_.command_has_ended(its);
  return its;
}

/// With --at-least: holds until that time is over, or the lock is lost. Signals are blocked.
/// Returns the one that ended this early, or 0. A death from here on concerns nobody.
int guarded_run::hold_on() {
  named_control(*held_).finish();
  constexpr std::uint64_t second = 1'000'000'000;
  const std::uint64_t until = held_since_ns_ + static_cast<std::uint64_t>(what_.at_least.count());
  for (std::uint64_t now = now_ns(); now < until && !held_->is_lost(); now = now_ns()) {
    const std::uint64_t left = std::min(until - now, second);  // is_lost() is asked once a second
    const timespec at_most{.tv_sec = static_cast<time_t>(left / second),
                           .tv_nsec = static_cast<long>(left % second)};
    const int number = sigtimedwait(&signals_.blocked(), nullptr, &at_most);
    if (number == SIGTSTP) signals_.stop_here();
    if (std::ranges::find(ending_signals, number) != ending_signals.end()) return number;
  }
  return 0;
}

int guarded_run::conclude(const ending& its, const deadline_watch* watch) {
  const bool has_acted = watch != nullptr && watch->has_acted();
  const bool is_lost = watch != nullptr && held_->is_lost();
  const bool is_well = its.ran && its.code == 0 && !is_lost;
  if (is_well) mark_consistent();
  if (inheritors_ != nullptr && its.ran && inheritors_->has_inheritors()) {
    events_.end();  // the run ends here for those who started it
    inheritors_->go_to_background(its);
    inheritors_->await_inheritors([this](pid_t inheritor) { extend_to(inheritor); });
    static_cast<void>(hold_on());
    return leave(its.code);
  }
  if (!its.ran || (!has_acted && !is_lost)) {
    const int ended_by = its.ran && its.signal_number == 0 ? hold_on() : its.signal_number;
    const int code = leave(its.code);
    return ended_by == 0 ? code : end_by(ended_by);
  }
  const bool are_several = what_.names.size() > 1;
  say(locks_text() + " of domain " + in_->name() +
      (is_well ? (are_several ? " were about to be lost" : " was about to be lost")
               : (are_several ? " are lost" : " is lost")) +
      ", because this host could not renew its membership" +
      (has_acted ? "; COMMAND was ended" : "; COMMAND may have ended too late"));
  events_.has_lost_lock();
  if (is_well) return leave(lost_lock);
  // A handle that holds when it ends leaves what a dead holder leaves, so that the next holder, on
  // whichever host, learns of it.
  held_.reset();
  signals_.let_end();
  return lost_lock;
}

/// Gives back what there is. Returns `code`, or ends the process as a signal asks that was noted
/// meanwhile.
int guarded_run::leave(int code) {
  if (held_ && held_->is_held()) {
    held_->release();
    events_.has_released();
  }
  held_.reset();
  signals_.let_end();
  return is_to_end() ? end_by(run_signals::noted()) : code;
}

int guarded_run::run() {
  const outcome how = wait();
  if (how == outcome::has_lock) signals_.block();
  if (how != outcome::has_lock || is_to_end()) {
    say_why_it_does_not_run(how);
    return leave(what_.conflict_exit_code.value_or(how == outcome::done ? 0 : 1));
  }
  std::optional<deadline_watch> watch;
  if (in_->is_of_cluster()) watch.emplace([this] { return held_->valid_for(); }, grace());
  deadline_watch* const watches = watch ? &*watch : nullptr;
  held_since_ns_ = now_ns();
  events_.has_lock(*held_);
  if (const auto code = repair_after_death(watches)) return *code;
  const ending its = attend_command(watches);
  return conclude(its, watches);
}

}  // namespace

int run_guarded(const guarded_command& what) {
  if (!what.inherits) return guarded_run(what, nullptr).run();
  return run_inherited(
      [&](inheritance& inheritors) { return guarded_run(what, &inheritors).run(); });
}

}  // namespace lockflight::cli
