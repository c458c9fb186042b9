#include "cli/guarded.hpp"

#include <algorithm>
#include <csignal>
#include <ctime>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "cli/attended.hpp"
#include "cli/circle_watch.hpp"
#include "cli/commands.hpp"
#include "cli/deadline_watch.hpp"
#include "cli/environment.hpp"
#include "cli/followed_result.hpp"
#include "cli/hold_limit.hpp"
#include "cli/inherited.hpp"
#include "cli/named.hpp"
#include "cli/period_note.hpp"
#include "cli/program_of.hpp"
#include "cli/run_events.hpp"
#include "cli/run_result.hpp"
#include "cli/run_signals.hpp"
#include "cli/standard_error.hpp"
#include "cli/time_left.hpp"
#include "lockflight/election.hpp"
#include "lockflight/named_control.hpp"
#include "tool/parse.hpp"
#include "tool/usage.hpp"

namespace lockflight::cli {
namespace {

using std::chrono::milliseconds;

/// How long other hosts have for an answer when the run has given up, and is about to name the
/// holder of the lock and to exit.
constexpr milliseconds hosts_answer_end_within{120};

named_handle handle_for(const domain& in, const guarded_command& what) {
  if (what.units) return {in, what.names.front(), *what.units};
  if (what.names.size() > 1) return {in, what.names};
  return {in, what.names.front()};
}

/// The longest pause before COMMAND runs again.
constexpr std::chrono::nanoseconds longest_backoff = std::chrono::minutes(10);

/// How a wait ended.
enum class outcome { has_lock, conflict, interrupted, done, followed };

/// The outcome of a run whose note of --every gave that answer.
outcome outcome_of(period_note::answer what) {
  using enum period_note::answer;
  return what == done ? outcome::done : what == none ? outcome::conflict : outcome::has_lock;
}

bool is_interrupted() { return run_signals::noted() != 0; }
bool is_to_end() { return is_interrupted() && run_signals::noted() != SIGTSTP; }

class guarded_run {
 public:
  /// `inheritors` is null unless processes that COMMAND leaves running keep the lock.
  guarded_run(const guarded_command& what, inheritance* inheritors)
      : what_(what),
        inheritors_(inheritors),
        message_(what.says),
        left_(what.patience),
        circles_(message_, !what.is_silent, what.fails_on_deadlock),
        events_(what.events, what.names) {
    if (what.period) note_.emplace(*what.period);
    if (what.leads) precedence_.emplace(what.priority);
  }
  [[nodiscard]] int run();

 private:
  [[nodiscard]] outcome wait();
  /// True if the process that the caller has started is gone, so that the lock is not wanted.
  [[nodiscard]] bool is_abandoned() const {
    return inheritors_ != nullptr && !inheritors_->has_front();
  }
  /// True if the run holds names before the awaited one, or runs around it hold others.
  [[nodiscard]] bool may_be_in_circle() const {
    return held_->awaited() != held_->name() || is_inside_of_a_run();
  }
  [[nodiscard]] bool gives_up() const { return is_to_end() || is_abandoned(); }
  [[nodiscard]] bool is_to_stop_waiting();
  [[nodiscard]] std::optional<outcome> ask_once();
  [[nodiscard]] std::optional<outcome> acquire_once();
  [[nodiscard]] bool makes_way();
  [[nodiscard]] std::optional<enclosing_run> enclosing_run_that_excludes() const;
  [[noreturn]] static void refuse_to_wait_for(const enclosing_run& around);
  [[nodiscard]] bool stays_valid() const;
  [[nodiscard]] outcome read_note();
  [[nodiscard]] std::optional<outcome> write_note();
  [[nodiscard]] std::optional<outcome> choose_period();
  void take_note_back();
  [[nodiscard]] outcome look_at_others();
  void keep_result(const ending& its);
  [[nodiscard]] bool waits_to_retry(std::chrono::nanoseconds pause, const deadline_watch* watch);
  void say_why_it_does_not_run(outcome how);
  void say_conflict();
  [[nodiscard]] std::optional<int> repair_after_death(deadline_watch* watch);
  void mark_consistent();
  void extend_to(pid_t process);
  void publish_value();
  void withdraw_value();
  [[nodiscard]] ending attend_command(deadline_watch* watch);
  [[nodiscard]] ending attend(const attended& what, deadline_watch* watch, inheritance* inheritors);
  [[nodiscard]] int hold_on();
  [[nodiscard]] std::chrono::nanoseconds grace() const;
  [[nodiscard]] std::chrono::nanoseconds warn_of_end(hold_limit& limit);
  [[nodiscard]] std::string loss_text(bool is_well, bool has_acted);
  [[nodiscard]] int conclude(const ending& its, const deadline_watch* watch);
  [[nodiscard]] int keep();
  [[nodiscard]] int give_up(outcome how);
  [[nodiscard]] int leave(int code);
  /// "lock 'a'", "locks 'a', 'b'".
  [[nodiscard]] std::string locks_text() const;

  const guarded_command& what_;
  inheritance* inheritors_;
  run_signals signals_;
  std::optional<domain> in_;
  std::optional<named_handle> held_;
  wait_message message_;
  time_left left_;
  circle_watch circles_;
  run_events events_;
  std::uint64_t held_since_ns_ = 0;
  std::optional<period_note> note_;                           // with --every
  std::optional<lockflight::detail::precedence> precedence_;  // with --leader
  bool has_ended_between_tries_ = false;  // as the lock is lost, or its hold has an end
  followed_result followed_;
  run_result own_;
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
std::optional<outcome> guarded_run::ask_once() {
  try {
    // A run that comes while the work of its period is being done does not wait for its end.
    if (const outcome how = look_at_others(); how != outcome::has_lock) return how;
    if (const auto had = acquire_once(); had != outcome::has_lock) return had;
    return look_at_others();
  } catch (const domain_error& e) {
    using enum domain_error::reason;
    if (e.why != interrupted && e.why != removed) throw;
    if (circles_.has_ended()) return outcome::conflict;
  }
  return gives_up() ? std::optional(outcome::interrupted) : std::nullopt;
}

/// Acquires once. Nothing if the lock was acquired and lost again.
std::optional<outcome> guarded_run::acquire_once() {
  const auto around = enclosing_run_that_excludes();
  const bool has = held_->acquire(what_.held, around ? limit::at_once() : left_.now());
  if (gives_up()) return outcome::interrupted;
  if (!has && around) refuse_to_wait_for(*around);
  if (!has) return outcome::conflict;
  if (makes_way()) return std::nullopt;
  if (stays_valid()) return outcome::has_lock;
  held_->release();
  if (left_.is_over()) return outcome::conflict;
  return gives_up() ? std::optional(outcome::interrupted) : std::nullopt;
}

/// With --leader: true if another candidate comes first. It has a moment to get the lock.
bool guarded_run::makes_way() {
  constexpr timespec moment{.tv_sec = 0, .tv_nsec = 20'000'000};
  if (!precedence_) return false;
  if (!precedence_->makes_way(*in_, *held_, what_.value.value_or(""), left_.now())) {
    named_control(*held_).set_priority(0);  // it leads
    return false;
  }
  held_->release();
  clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, nullptr);
  return true;
}

/// The run around this one that holds what this one would wait for. None if this run does not wait.
std::optional<enclosing_run> guarded_run::enclosing_run_that_excludes() const {
  if (what_.waits_anyway || left_.is_over()) return std::nullopt;
  return run_that_excludes(*in_, what_.names, what_.held == mode::shared, what_.units);
}

void guarded_run::refuse_to_wait_for(const enclosing_run& around) {
  throw tool::refuse("NAME", around.name,
                     "a lock that no run around this one holds, or --wait-anyway; the run of " +
                         user_text(around.holder) + " " + use_text(around.holder) +
                         " and waits for this run, which would wait for it");
}

/// True if there is time to start COMMAND. In a cluster it is not started just to be ended: if the
/// deadline is near, the run waits for the next renewal. False if the lock is lost, or the time for
/// waiting is over.
bool guarded_run::stays_valid() const {
  constexpr timespec pause{.tv_sec = 0, .tv_nsec = 5'000'000};
  if (!in_->is_of_cluster()) return true;
  while (held_->valid_for() <= grace()) {
    if (held_->is_lost() || is_interrupted() || signals_.pending() != 0 || left_.is_over())
      return false;
    clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, nullptr);
  }
  return true;
}

/// Waits for the lock, out of the queue while it is stopped by Ctrl-Z. Signals are noted at the
/// end.
outcome guarded_run::wait() {
  while (true) {
    in_ = what_.in.open();
    held_.emplace(handle_for(*in_, what_));
    named_control(*held_).guard_nothing_yet();  // until COMMAND, or a repair, is started
    if (precedence_) named_control(*held_).set_priority(precedence_->priority());
    message_.begin();
    named_control(*held_).interrupt_with([this] { return is_to_stop_waiting(); });
    signals_.note();
    const auto how = ask_once();
    message_.clear();
    if (how) return *how;
    held_.reset();
    signals_.let_end();
    if (is_to_end()) return outcome::interrupted;
    if (run_signals::noted() == SIGTSTP) signals_.stop_here(true);
  }
}

/// Called again and again while the run waits.
bool guarded_run::is_to_stop_waiting() {
  // On one machine no other host is asked, so the time does not matter.
  const auto for_hosts = [this] {
    return in_->is_of_cluster() ? left_.for_hosts() : hosts_answer_run_within;
  };
  message_.update(*in_, *held_, for_hosts());
  events_.waits(*in_, *held_, for_hosts());
  return is_interrupted() || signals_.pending() != 0 || is_abandoned() ||
         circles_.is_to_end(*in_, may_be_in_circle(), for_hosts());
}

// ---- the note of --every ----

/// Reads the note: `has_lock` if the present period is open, and without --every.
outcome guarded_run::read_note() {
  return note_ ? outcome_of(note_->read(*held_, left_.now())) : outcome::has_lock;
}

/// Writes the note of the present period. If that period is over when etcd has answered, the run
/// notes the next one, in which COMMAND then begins. Nothing if the lock is lost meanwhile.
std::optional<outcome> guarded_run::write_note() {
  for (;;) {
    const outcome how = outcome_of(note_->write(*held_, left_.now()));
    if (how != outcome::has_lock) return how;
    if (!stays_valid()) break;
    if (note_->is_of_present_period()) return outcome::has_lock;
    say(locks_text() +
        ": the period has ended before etcd had its note, so COMMAND is that of the next period");
  }
  if (signals_.pending() != 0) return outcome::interrupted;
  // (!) A run that waits again would take its own note for that of another run.
  if (!note_->take_back(*held_, left_.now()) || left_.is_over()) return outcome::conflict;
  return std::nullopt;
}

/// write_note() with --every, and what follows if it throws.
std::optional<outcome> guarded_run::choose_period() {
  if (!note_) return outcome::has_lock;
  try {
    message_.begin();
    const auto how = write_note();
    message_.clear();
    return how;
  } catch (const domain_error& e) {
    message_.clear();
    if (e.why == domain_error::reason::interrupted) return outcome::interrupted;
    if (note_->leave_if_lost(*held_, e)) return std::nullopt;
    take_note_back();
    throw;
  }
}

/// At the end of a run whose COMMAND has not begun.
void guarded_run::take_note_back() {
  if (note_ && !note_->take_back_at_end(*held_, left_.now()))
    say(locks_text() +
        ": COMMAND has not run, but its period may count as done, since the note in etcd could not "
        "be taken back");
}

// ---- results ----

/// The outcome if others have done the work; else `has_lock`. With --follow it is that of a run
/// that has ended since this one came, or has done the work of the period. A period that is noted,
/// and whose COMMAND has not ended, is waited for.
outcome guarded_run::look_at_others() {
  const outcome how = read_note();
  if (!what_.follows || (how != outcome::has_lock && how != outcome::done)) return how;
  const bool is_done = how == outcome::done;
  using enum followed_result::answer;
  switch (followed_.look(*held_, is_done ? std::optional(note_->done_until()) : std::nullopt,
                         left_.now())) {
    case none:
      return outcome::conflict;
    case found:
      return outcome::followed;
    case nothing:
      break;
  }
  return held_->is_held() ? how : outcome::has_lock;
}

/// True if a signal came to the run that programs end at, unless they say otherwise.
bool was_told_to_end(const ending& its) {
  return its.first_to_run != 0 && its.first_to_run != SIGUSR1 && its.first_to_run != SIGUSR2;
}

/// With --every or --follow: keeps how COMMAND has ended, and with --success notes the period. A
/// COMMAND that somebody has ended says nothing about the work.
void guarded_run::keep_result(const ending& its) {
  const bool is_kept = what_.period || what_.follows;
  if (!is_kept || !its.ran || its.signal_number != 0) return;
  if (its.code != 0 && was_told_to_end(its)) return;
  if (held_->is_lost()) return;
  own_.code = its.code;
  own_.ended = seconds_of_wall_clock();
  own_.until = note_ ? note_->period_end() : 0;
  constexpr limit etcd_answers_within = limit::of_ns(5'000'000'000);
  named_control(*held_).interrupt_with(nullptr);
  const auto say_unless_done = [&](const std::string& what, const std::function<bool()>& is_done) {
    try {
      if (!is_done())
        say(locks_text() + ": " + what + ": " + named_control(*held_).missing_answer());
    } catch (const domain_error& e) {  // a later holder has noted another one, or the file is full
      say(locks_text() + ": " + what + ": " + e.what());
    }
  };
  // The result comes first: a follower that finds the period done finds its result, too.
  say_unless_done("the result is not kept",
                  [&] { return publish_result(*held_, own_, etcd_answers_within); });
  if (what_.notes_success && its.code == 0)
    say_unless_done("COMMAND has succeeded, but its period may not count as done",
                    [&] { return note_->write_after_success(*held_, etcd_answers_within); });
}

/// With --retries: false if a signal, or the loss of the lock, ends the pause. Signals are blocked.
bool guarded_run::waits_to_retry(std::chrono::nanoseconds pause, const deadline_watch* watch) {
  constexpr std::uint64_t slice = 200'000'000;  // after which the loss of the lock is looked for
  const std::uint64_t until = now_ns() + static_cast<std::uint64_t>(pause.count());
  events_.command_runs_again(pause);
  for (std::uint64_t now = now_ns(); now < until; now = now_ns()) {
    if (signals_.pending() != 0) return false;
    if (held_->is_lost()) return false;
    const bool has_deadline = in_->is_of_cluster() && watch != nullptr;
    if (has_deadline && named_control(*held_).alone_for() <= grace()) return false;
    const timespec at_most{.tv_sec = 0, .tv_nsec = static_cast<long>(std::min(until - now, slice))};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &at_most, nullptr);
  }
  return true;
}

// ---- when it gives up ----

void guarded_run::say_why_it_does_not_run(outcome how) {
  if (how == outcome::done) {
    events_.is_done_until(note_->done_until());
    say(locks_text() + " is done until " + utc_text(note_->done_until()) +
        ", so COMMAND is not run" +
        (note_->is_after_present_period() ? "; that is after the present period of --every" : ""));
  } else if (how == outcome::followed) {
    events_.follows(followed_.result());
    say(locks_text() + ": " + text_of(followed_.result()) + ", so COMMAND is not run");
  } else if (how == outcome::conflict) {
    say_conflict();
  } else {
    events_.was_interrupted(is_interrupted() ? run_signals::noted() : signals_.pending());
  }
}

void guarded_run::say_conflict() {
  const std::string name = locks_text();
  const bool says_who_holds = in_->is_of_cluster() ? !what_.is_silent : what_.says_who_holds;
  obstacle why;
  if (says_who_holds || events_.is_wanted())
    why = obstacle_of(*in_, *held_, hosts_answer_end_within);
  events_.was_not_free(why);
  const auto cut_off = in_->cut_off_for();
  const std::string how_long =
      cut_off == std::chrono::nanoseconds::max()
          ? ""
          : " for " + std::to_string(cut_off / std::chrono::seconds(1)) + " s";
  const bool lacks_agent = in_->is_of_cluster() && !in_->has_agent();
  const std::string no_agent = lacks_agent ? ", and its agent does not run" : "";
  if (cut_off.count() != 0)
    say(name + ": this host is no member of domain " + in_->name() + how_long + no_agent +
        " ('lockflight agent status' says more)");
  else if (lacks_agent)
    say(name + ": the agent of domain " + in_->name() + " does not run on this host");
  else if (says_who_holds && !why.missing_answer.empty())
    say(name + ": " + why.missing_answer);
  else if (says_who_holds)
    say("lock '" + why.name + "' was not free in time: " + obstacle_text(*in_, why));
}

// ---- from then on ----

/// How long before the deadline COMMAND gets SIGTERM. The longer that is, the shorter are the
/// outages of etcd that COMMAND survives, so the usual grace is short. A grace near the time to
/// live would end COMMAND although its host renews in time, so a third of it is the most.
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

/// Called when COMMAND or a repair has ended well: if it held exclusively, the guarded data counts
/// as repaired.
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

/// A leader whose value nobody can read still leads, so COMMAND begins all the same.
void guarded_run::publish_value() {
  constexpr limit etcd_answers_within = limit::of_ns(5'000'000'000);
  if (!what_.leads) return;
  named_control control(*held_);
  try {
    // A leader without a value ends the preference of the one before.
    const bool is_done = what_.value
                             ? control.publish(*what_.value, lasts::with_hold, etcd_answers_within)
                             : control.withdraw(etcd_answers_within);
    if (!is_done) say(locks_text() + ": its value is not published: " + control.missing_answer());
  } catch (const domain_error& e) {  // the domain has no room, or the lock is lost
    say(locks_text() + ": its value is not published: " + e.what());
  }
}

/// Observers learn at once that nobody leads. Without an answer of etcd the agent withdraws the
/// value, once the hold has ended.
void guarded_run::withdraw_value() {
  if (!what_.value || held_->is_lost()) return;
  try {
    static_cast<void>(named_control(*held_).withdraw(limit::of_ns(1'000'000'000)));
  } catch (const domain_error&) {
  }
}

ending guarded_run::attend_command(deadline_watch* watch) {
  publish_value();
  if (what_.leads)
    say("leads '" + what_.names.front() + "' with token " + std::to_string(held_->token()));
  own_ = result_of_start(program_of({what_.words.begin(), std::prev(what_.words.end())}));
  auto pause = what_.backoff;
  for (int tries = 0;; ++tries) {
    if (what_.notes_success) note_->begin_work();
    const ending its =
        attend({what_.words.data(), "COMMAND", what_.words.front()}, watch, inheritors_);
    if (!its.ran) take_note_back();
    events_.command_has_ended(its);
    const bool has_failed = its.ran && its.code != 0 && !was_told_to_end(its);
    const bool is_lost = watch != nullptr && (watch->has_acted() || held_->is_lost());
    const bool is_last = !has_failed || is_lost || tries == what_.retries;
    if (!is_last && waits_to_retry(pause, watch)) {
      pause = std::min(2 * pause, longest_backoff);
      continue;
    }
    // A run that ends before its last try has not done its work.
    has_ended_between_tries_ = !is_last && signals_.pending() == 0;
    if (is_last) keep_result(its);
    return its;
  }
}

/// With --at-least: holds until that time is over, or the lock is lost. Signals are blocked.
/// Returns the signal that ended this early, or 0. No later holder learns of a death from here on.
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

/// Says once, when a tenth of --max-hold is left, how much that is. Returns when it is to be called
/// again: the order of an operator wakes this process up, unless it is another user's or of another
/// PID namespace.
std::chrono::nanoseconds guarded_run::warn_of_end(hold_limit& limit) {
  constexpr milliseconds looks_in_cluster{200};
  constexpr milliseconds looks_otherwise{1'000};
  if (const auto left = limit.warning()) {
    say(locks_text() + ": --max-hold is over in " + duration(seconds_of(*left)));
    events_.ends_soon(*left);
  }
  return std::min<std::chrono::nanoseconds>(
      in_->is_of_cluster() ? looks_in_cluster : looks_otherwise, limit.until_warning());
}

/// The line about a hold that had to end.
std::string guarded_run::loss_text(bool is_well, bool has_acted) {
  const bool are_several = what_.names.size() > 1;
  const std::string why = word_of_loss(*held_);
  const std::string of = locks_text() + " of domain " + in_->name();
  const std::string end = has_acted ? "; COMMAND was ended" : "; COMMAND may have ended too late";
  if (why == "limit") return of + ": the time of --max-hold is over" + end;
  if (why == "broken") return of + ": an operator has broken the hold" + end;
  return of +
         (is_well ? (are_several ? " were about to be lost" : " was about to be lost")
                  : (are_several ? " are lost" : " is lost")) +
         ", because this host could not renew its membership" + end;
}

int guarded_run::conclude(const ending& its, const deadline_watch* watch) {
  const bool has_acted = (watch != nullptr && watch->has_acted()) || has_ended_between_tries_;
  // A hold whose end has come is lost only if COMMAND was ended: nobody else holds yet.
  const bool is_lost = watch != nullptr && named_control(*held_).alone_for().count() == 0;
  const bool is_well =
      its.ran && its.code == 0 && !is_lost && (watch == nullptr || !watch->has_killed_rest());
  if (is_well) mark_consistent();
  if (inheritors_ != nullptr && its.ran && inheritors_->has_inheritors()) {
    events_.end();  // the run ends here for its readers
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
  say(loss_text(is_well, has_acted));
  events_.has_lost_lock(word_of_loss(*held_));
  if (is_well) return leave(lost_lock);
  // A handle that holds when it ends leaves what a dead holder leaves, so that the next holder, on
  // whichever host, learns of it.
  held_.reset();
  signals_.let_end();
  return lost_lock;
}

/// Releases the locks that are held. Returns `code`, or ends the process by a signal that was noted
/// meanwhile.
int guarded_run::leave(int code) {
  if (held_ && held_->is_held()) {
    withdraw_value();
    held_->release();
    events_.has_released();
  }
  held_.reset();
  signals_.let_end();
  return is_to_end() ? end_by(run_signals::noted()) : code;
}

/// From now on the next holder learns of a death if this process dies.
int guarded_run::keep() {
  extend_to(0);
  if (!what_.keeps(*held_, signals_.blocked())) held_.reset();  // as after a death
  return leave(0);
}

int guarded_run::run() {
  while (true) {
    const outcome how = wait();
    if (how == outcome::has_lock) signals_.block();
    if (how != outcome::has_lock || is_to_end()) return give_up(how);
    if (what_.keeps) return keep();
    hold_limit limit(*held_, {.max_hold = what_.max_hold,
                              .before_deadline = grace(),
                              .after_end = what_.grace.value_or(usual_grace_after_end)});
    deadline_watch watch([&] { return limit.due(); }, [this, &limit] { return warn_of_end(limit); },
                         in_->is_of_cluster() || what_.max_hold.has_value());
    deadline_watch* const watches = &watch;
    held_since_ns_ = now_ns();
    events_.has_lock(*held_);
    if (const auto code = repair_after_death(watches)) return *code;
    set_environment(*in_, *held_, held_since_ns_);
    const auto chosen = what_.notes_success ? outcome::has_lock : choose_period();
    if (chosen == outcome::has_lock) return conclude(attend_command(watches), watches);
    if (chosen) return give_up(*chosen);
    events_.has_lost_lock(word_of_loss(*held_));
    held_->release();  // COMMAND has not begun, so nobody has died
    signals_.let_end();
  }
}

int guarded_run::give_up(outcome how) {
  say_why_it_does_not_run(how);
  take_note_back();
  if (how == outcome::followed) return leave(followed_.result().code);
  return leave(what_.conflict_exit_code.value_or(how == outcome::done ? 0 : 1));
}

}  // namespace

int run_guarded(const guarded_command& what) {
  show_process_as(what.keeps ? "hold"
                             : program_of({what.words.begin(), std::prev(what.words.end())}));
  if (const auto warning = domain::warning_before_open(what.in.name, what.in.mode);
      !warning.empty())
    say(warning);
  if (!what.inherits) return guarded_run(what, nullptr).run();
  return run_inherited(
      [&](inheritance& inheritors) { return guarded_run(what, &inheritors).run(); });
}

}  // namespace lockflight::cli
