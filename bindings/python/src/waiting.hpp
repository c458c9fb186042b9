// The surroundings of a call that may wait: the interpreter is given to other threads, signals are
// handled, and a task of asyncio may end it.
//
// A call keeps the interpreter until it begins to wait: to give it up and take it again takes as
// long as to acquire a free lock, and a thousand times as long where another thread computes.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "lockflight/domain.hpp"

// A module for all versions of Python uses the one of the two that its interpreter has; the address
// of the other is null. Python 3.12 has only the second, and 3.13 only the first.
#if defined(Py_LIMITED_API) && Py_LIMITED_API < 0x030D0000
extern "C" [[gnu::weak]] int Py_IsFinalizing();
extern "C" [[gnu::weak]] int _Py_IsFinalizing();
#endif

namespace lockflight::python {

inline bool interpreter_ends() {
#if defined(Py_LIMITED_API) && Py_LIMITED_API < 0x030D0000
  if (Py_IsFinalizing != nullptr) return Py_IsFinalizing() != 0;
  return _Py_IsFinalizing != nullptr && _Py_IsFinalizing() != 0;
#elif PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

[[noreturn]] void pause_for_ever();

/// Gives up the interpreter, if it is told to, until its end. When the process ends Python does not
/// give the interpreter back: before 3.14 it ends the thread that asks for it, by unwinding. The
/// one thread that has the interpreter then runs finalizers, and keeps it: no other one wants it.
class interpreter_for_others {
 public:
  interpreter_for_others() = default;
  interpreter_for_others(const interpreter_for_others&) = delete;
  interpreter_for_others& operator=(const interpreter_for_others&) = delete;
  ~interpreter_for_others() noexcept(false) {
    if (ours_ == nullptr) [[likely]]
      return;
    if (interpreter_ends()) pause_for_ever();
    PyEval_RestoreThread(ours_);
  }
  void give_up() {
    if (ours_ == nullptr && !interpreter_ends()) ours_ = PyEval_SaveThread();
  }
  [[nodiscard]] bool is_kept() const { return ours_ == nullptr; }

 private:
  PyThreadState* ours_ = nullptr;
};

/// The same from the beginning.
class others_run : interpreter_for_others {
 public:
  others_run() { give_up(); }
};

struct recipe;

/// An acquire or a release of this thread. In the middle of it handlers of signals may run.
class call_in_progress {
 public:
  explicit call_in_progress(const recipe& of);
  call_in_progress(const call_in_progress&) = delete;
  call_in_progress& operator=(const call_in_progress&) = delete;
  ~call_in_progress() noexcept(false);

  void give_up_interpreter() { interpreter_.give_up(); }
  [[nodiscard]] bool keeps_interpreter() const { return interpreter_.is_kept(); }
  /// The interpreter has ended meanwhile, so that this thread runs no Python any more.
  [[nodiscard]] bool never_returns() const { return !interpreter_.is_kept() && interpreter_ends(); }
  /// In a finalizer at the end of the interpreter: throws domain_error (interrupted) if a thread of
  /// this process holds the lock.
  void refuse_wait_for_ended_thread() const;

 private:
  [[noreturn, gnu::noinline]] static void refuse_nested(const recipe& of);

  const recipe& of_;
  interpreter_for_others interpreter_;
};
// Read at every acquire and release: so without a call, in a shared library too.
[[gnu::tls_model("initial-exec")]] inline constinit thread_local call_in_progress* present_call =
    nullptr;

inline call_in_progress::call_in_progress(const recipe& of) : of_(of) {
  if (present_call != nullptr) [[unlikely]]
    refuse_nested(of);
  present_call = this;
}
inline call_in_progress::~call_in_progress() noexcept(false) { present_call = nullptr; }

/// When several acquires have to be over, which have one limit together.
class deadline {
 public:
  explicit deadline(limit patience) : patience_(patience) {}
  [[nodiscard]] limit left() const {
    if (patience_.is_attempt() || patience_.is_for_ever()) return patience_;
    const std::uint64_t past = nanoseconds_of(std::chrono::steady_clock::now() - begun_);
    return limit::of_ns(patience_.nanoseconds() - std::min(past, patience_.nanoseconds()));
  }

 private:
  limit patience_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

[[nodiscard]] bool is_held_by_this_process(const lock_user& by);

/// Ends an acquire that a task of asyncio does not want any more. Any thread may cancel.
class cancellation {
 public:
  void cancel() {
    const std::lock_guard hold(mutex_);
    cancelled_ = true;
    if (ask_now_) ask_now_();
  }
  [[nodiscard]] bool is_cancelled() const {
    // Relaxed: a waiter that reads it too early reads it again.
    return cancelled_.load(std::memory_order_relaxed);
  }
  /// A function that makes the acquire ask whether it is cancelled, while there is one.
  void set_waiting(std::function<void()> ask_now) {
    const std::lock_guard hold(mutex_);
    ask_now_ = std::move(ask_now);
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> cancelled_{false};
  std::function<void()> ask_now_;
};

/// The cancellation that ends the acquire of this thread, or null.
inline thread_local const cancellation* ends_acquire = nullptr;

/// True if a wait of this thread is over. A handler of Python may throw, which ends the wait too.
[[nodiscard]] bool is_interrupted();
/// Called by the library when a wait of this thread begins.
void this_thread_waits();

}  // namespace lockflight::python
