// What a process has once, and a fork of it anew.
#pragma once

#include <cstdint>
#include <mutex>

namespace lockflight::detail {

/// Guards lists of this process; a fork waits for it, so that it is free in the child.
[[nodiscard]] std::mutex& process_mutex();

/// `what` is called in each child of a fork, before the fork returns there. It may only call
/// async-signal-safe functions. At most four.
void call_in_children(void (*what)());

/// While it exists, a child of a fork closes the descriptor: else it would keep what the parent has
/// locked. For up to 64 at a time.
class closed_in_children {
 public:
  explicit closed_in_children(int fd);
  ~closed_in_children();
  closed_in_children(const closed_in_children&) = delete;
  closed_in_children& operator=(const closed_in_children&) = delete;

 private:
  int fd_;
};

/// A thread's own number, which no other thread has, nor its child of a fork: what was made before
/// the fork is the parent's. 0: it has none yet. Every acquire and release reads it: so it lies
/// where a shared library, too, reads it without a call.
[[gnu::tls_model("initial-exec")]] inline constinit thread_local std::uint64_t thread_number = 0;

/// This process, without a system call once it has been asked.
[[nodiscard]] int process_id();

/// How many forks lie between this process and the first one that has asked: no process has the
/// same as one that it descends from.
[[nodiscard]] std::uint64_t forks();

/// Gives this thread a number, if it has none.
void number_this_thread();

}  // namespace lockflight::detail
