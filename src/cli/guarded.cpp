#include "cli/guarded.hpp"

#include <cstdlib>
#include <string>

#include "base/clock.hpp"
#include "cli/attended.hpp"
#include "cli/run_signals.hpp"

namespace lockflight::cli {
namespace {

/// What is left of the time for waiting. It goes on while the process is stopped.
class time_left {
 public:
  explicit time_left(std::optional<std::uint64_t> within_ns)
      : within_ns_(within_ns), began_ns_(within_ns.value_or(0) > 0 ? now_ns() : 0) {}

  [[nodiscard]] std::optional<std::uint64_t> ns() const {
    if (!within_ns_ || *within_ns_ == 0) return within_ns_;
    const std::uint64_t gone_ns = now_ns() - began_ns_;
    return gone_ns < *within_ns_ ? *within_ns_ - gone_ns : 0;
  }

 private:
  std::optional<std::uint64_t> within_ns_;
  std::uint64_t began_ns_;
};

bool acquire(named_lock& lock, bool shared, std::optional<std::uint64_t> within_ns) {
  if (!within_ns) {
    shared ? lock.lock_shared() : lock.lock();
    return true;
  }
  if (*within_ns == 0) return shared ? lock.try_lock_shared() : lock.try_lock();
  return shared ? lock.try_lock_shared_within(*within_ns) : lock.try_lock_within(*within_ns);
}

void release(named_lock& lock, bool shared) { shared ? lock.unlock_shared() : lock.unlock(); }

domain domain_of(const guarded_command& what) {
  try {
    return domain::open(what.domain, {.mode = what.mode, .group = what.group});
  } catch (const domain_error& e) {
    if (e.why != domain_error::reason::disagrees || what.mode != 0) throw;
    throw which_of_them(e);
  }
}

/// What the command finds in its environment. A run inside of a run inherits nothing of the outer.
void tell_command(const named_lock& lock, bool shared) {
  setenv("LOCKFLIGHT_LOCK", lock.name().c_str(), 1);
  if (shared)
    unsetenv("LOCKFLIGHT_TOKEN");
  else
    setenv("LOCKFLIGHT_TOKEN", std::to_string(lock.token()).c_str(), 1);
  if (lock.owner_died())
    setenv("LOCKFLIGHT_OWNER_DIED", "1", 1);
  else
    unsetenv("LOCKFLIGHT_OWNER_DIED");
}

/// How a wait ended.
enum class outcome { has_lock, conflict, interrupted };

bool is_interrupted() { return run_signals::noted() != 0; }
bool is_to_end() { return is_interrupted() && run_signals::noted() != SIGTSTP; }

/// Asks for the lock once. Nothing if it is to be asked for again: a Ctrl-Z has come, or the domain
/// has been removed.
std::optional<outcome> ask_once(std::optional<named_lock>& lock, const guarded_command& what,
                                const time_left& left) {
  try {
    const bool has = acquire(*lock, what.shared, left.ns());
    return is_to_end() ? outcome::interrupted : has ? outcome::has_lock : outcome::conflict;
  } catch (const domain_error& e) {
    using enum domain_error::reason;
    if (e.why != interrupted && e.why != removed) throw;
  }
  return is_to_end() ? std::optional(outcome::interrupted) : std::nullopt;
}

/// Waits for the lock, out of the queue while it is stopped by Ctrl-Z. Signals are noted at the
/// end.
outcome wait_for(std::optional<named_lock>& lock, const guarded_command& what,
                 run_signals& signals) {
  const time_left left(what.within_ns);
  while (true) {
    lock.emplace(domain_of(what), what.name);
    lock->interrupt_with(is_interrupted);
    signals.note();
    if (const auto how = ask_once(lock, what, left)) return *how;
    lock.reset();
    signals.let_end();
    if (is_to_end()) return outcome::interrupted;
    if (run_signals::noted() == SIGTSTP) signals.stop_here(true);
  }
}

/// Gives back what there is. Returns `code`, or ends the process as a signal asks that was noted
/// meanwhile.
int leave(std::optional<named_lock>& lock, const guarded_command& what, run_signals& signals,
          int code) {
  if (lock && lock->is_held()) release(*lock, what.shared);
  lock.reset();
  signals.let_end();
  return is_to_end() ? end_by(run_signals::noted()) : code;
}

}  // namespace

domain_error which_of_them(const domain_error& e) {
  const std::string text = e.what();
  return {e.why,
          text.substr(0, text.find(" (accepted: ")) + " (accepted: --mode 0600 or --mode 0660)"};
}

int run_guarded(const guarded_command& what) {
  run_signals signals;
  std::optional<named_lock> lock;
  const bool has = wait_for(lock, what, signals) == outcome::has_lock;
  if (has) signals.block();
  if (!has || is_to_end()) return leave(lock, what, signals, what.conflict_exit_code);
  tell_command(*lock, what.shared);
  const ending its = run_attended(
      what.words.data(), signals, [&] { lock->extend_to_this_process(); },
      [&](pid_t child) {
        try {
          lock->extend_to(child);
        } catch (const domain_error&) {  // the domain is damaged, and guards nothing any more
        }
      });
  if (its.ran && its.code == 0 && !what.shared && lock->owner_died()) lock->mark_consistent();
  const int code = leave(lock, what, signals, its.code);
  return its.signal_number == 0 ? code : end_by(its.signal_number);
}

}  // namespace lockflight::cli
