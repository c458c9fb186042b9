// Functions for programs that run other code under a named lock: interpreters, which end waits by
// their own signals, and programs such as `lockflight run`, which start processes that the lock is
// for. Users of named locks do not need this header.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <chrono>
#include "lockflight/domain.hpp"

namespace lockflight {

/// The calls of this header for a handle, which must exist as long as this object.
class named_control {
 public:
  explicit named_control(named_handle& of) : of_(of) {}

  /// Sets a function by which the program can end a wait. While the handle waits, the function is
  /// called on the waiting thread after each signal, and at least once a second. If it returns
  /// true, the acquire gives up and throws domain_error (interrupted). If it throws, the exception
  /// leaves the acquire, and the lock is not held. The function must not use a named lock, because
  /// its thread is in the middle of an acquire. With null, as at the beginning, signals do not end
  /// a wait.
  void interrupt_with(std::function<bool()> is_interrupted);
  /// named_handle::valid_for() without ending(): for how long the host of this holder is certainly
  /// alone. Another host may hold afterwards; when ending() has come nobody holds yet.
  [[nodiscard]] std::chrono::nanoseconds alone_for() const;
  /// Has this holder count as one whose hold has a life of its own, until its thread has left the
  /// domain: domain_operator releases it by that token, which is not 0, and `lockflight who` shows
  /// the note, of which 128 bytes are kept. Throws domain_error (not_held, wrong_thread).
  void keep(std::uint64_t token, const std::string& note);
  /// In a child of a fork: whether the parent held by this handle when it made the child. In the
  /// child held() is none.
  [[nodiscard]] bool is_held_by_parent() const;
  /// Makes a waiting handle call `is_interrupted` at once. Any thread may call this while the
  /// handle exists. It also has its effect if the handle is about to wait.
  void ask_now();
  /// named_handle::done_until() and set_done_until() for a program that waits for etcd as long as
  /// for a lock: nothing, or false, if it did not answer within the limit, and then the moment may
  /// be set all the same. What ends an acquire ends these calls: they throw domain_error
  /// (interrupted). On one machine the answer is there at once.
  [[nodiscard]] std::optional<std::uint64_t> done_until(limit patience);
  [[nodiscard]] bool set_done_until(std::uint64_t seconds_since_1970, limit patience);
  /// The priority with which this thread waits, as others see it (lock_user::priority), until it is
  /// set anew. It changes nothing in the order of a lock: election.hpp uses it.
  void set_priority(int priority);
  /// named_handle::publish() and published() in the same way.
  [[nodiscard]] bool publish(std::string_view bytes, lasts until, limit patience);
  [[nodiscard]] bool withdraw(limit patience);
  [[nodiscard]] std::optional<published_value> published(limit patience);
  /// For a message: the reason for which these calls, or the first acquire of a semaphore on a host
  /// of a cluster, wait or have waited in vain, such as "etcd has not answered yet". Empty if
  /// nothing but a holder is waited for. For the thread that waits.
  [[nodiscard]] std::string missing_answer() const;
  /// For a handle whose lock is for a process that is yet to be started: whatever it acquires
  /// counts as after finish(), until one of the two calls below extends it. So nobody learns of a
  /// death if this process dies while it waits for the other names, or before it starts that
  /// process.
  void guard_nothing_yet();
  /// For a child between vfork and exec, whose parent holds the lock. The parent counts as dead
  /// only when both the parent and the calling process have ended. Async-signal-safe.
  void extend_to_this_process() noexcept;
  /// As extend_to_this_process(), for the parent to call after vfork, with its child's process
  /// number in this PID namespace. A child in a namespace of its own does not know this number. 0
  /// ends the extension.
  void extend_to(int pid);
  /// For a holder whose work is done, and that goes on holding for some time. If it dies before it
  /// releases, its death counts as a release: no later holder learns of a death. The call also ends
  /// an extension by the two calls above. It applies to all locks that the thread holds, until this
  /// handle releases. In a cluster's domain later holders learn of the death all the same.
  void finish() noexcept;

 private:
  named_handle& of_;
};

/// Sets a function that this thread calls whenever a call of a named lock begins to wait for other
/// participants; unlock is such a call, too. With null, as at the beginning, it calls nothing. This
/// is for runtimes with a lock that a thread must not hold while it waits, such as Python's. The
/// function must not throw and must not use a named lock.
void call_before_waits(void (*function)()) noexcept;

/// Sets the name that `lockflight who` and domain::users_of() show for this process, of which they
/// show the first 16 bytes; empty, as at the beginning: the names of its threads. This is for a
/// program that takes a lock for another one, which it has not started yet. To be called before the
/// process uses a named lock.
void show_process_as(std::string_view command) noexcept;

}  // namespace lockflight
