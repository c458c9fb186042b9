// Domains: named locks for processes that come, go, stop and die. A domain is a file in memory; it
// has slots, and a slot is a rank, so contract and locks are those of all of lockflight. There is
// no daemon and nothing to start.
//
// A thread takes a slot when it first acquires a lock of the domain, and gives it back when it
// ends. A thread that ends, or is killed, while it holds a lock frees it: the next holder is told.
// Deaths are known from the kernel. A thread that is stopped while it waits costs other waiters
// less than a second, once; a thread that is stopped while it holds keeps the lock.
//
// A process that forks keeps its slots; the child has none, and takes its own. The child's handles
// made before the fork are of no use and throw domain_error.
//
// The file is guarded by its permissions: a process that may open it may write over it. What is
// read from it is checked before it is used as an index, and nothing in it is used as an address;
// damage throws domain_error (damaged) at the next slow step. A file that is made shorter under an
// acquire in progress ends the process by SIGBUS. A full /dev/shm is an error (full).
//
// A file that has lost its name, because somebody removed the domain or its directory was cleaned,
// excludes no participant that comes later: acquires in it end with domain_error (removed), or go
// on in the new domain of that name, within a second; a holder can ask with still_valid().
//
// Cost: no network operation. The first use of a name by a handle looks it up, some microseconds.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockflight/timed_names.hpp"

namespace lockflight {

/// What is wrong with a request or a domain, in one line: the argument, its value, what is
/// accepted.
struct domain_error : std::runtime_error {
  enum class reason : std::uint8_t {
    invalid,       ///< an argument that is not accepted
    missing,       ///< there is no such domain
    disagrees,     ///< the domain or the lock exists, made otherwise
    full,          ///< no slot, no room for a name or a lock
    damaged,       ///< the file is no domain, has been written over, or is not ours to trust
    removed,       ///< the file has lost its name: somebody removed the domain
    not_held,      ///< the caller of a release does not hold
    held,          ///< the caller of an acquire holds already; a lock to be removed is held
    wrong_thread,  ///< a handle is used by another thread, or after fork
    interrupted,   ///< an acquire was interrupted (named_lock::interrupt_with)
    system,        ///< the system refuses
  };
  domain_error(reason w, const std::string& what) : std::runtime_error(what), why(w) {}
  reason why;
};

/// Thrown by an acquire, which has succeeded, if the handle asks for it (on_death::raise).
struct owner_died_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct domain_options {
  int slots = 4095;              ///< the most threads at the same time, 1 to 4095; others wait
  std::uint32_t names = 131072;  ///< the most locks at the same time, 1 to 1,048,576; then idle
                                 ///< ones give way
  /// 0600: its user's own. 0660: its group's, one for all users of that group. 0: as it exists,
  /// and 0600 if it does not; the domain "default" is its user's own then. A domain of this user
  /// that exists with another mode is refused.
  unsigned mode = 0;
  /// With mode 0660: the group's name or number. Empty: the one group of this user that has a
  /// domain of that name; if none has, and the domain is made, the effective group of the process.
  std::string group = "";
};

/// The domain of commands and handles that name none.
constexpr const char* default_domain = "default";

/// Whether a lock may be called so: 1 to 255 bytes, none of them NUL or newline.
[[nodiscard]] bool is_lock_name(std::string_view name) noexcept;

/// The kind of lock that names have unless something else is asked for. It can be shared.
constexpr const char* default_kind = "flight-rw";

/// How a lock has been asked for; all callers that ask for it agree.
struct named_lock_options {
  std::string kind = default_kind;  ///< a lock of the table
  std::string parameters = "";      ///< such as "local_budget=16,barge=2"
  enum class on_death : std::uint8_t { tell, raise } death = on_death::tell;
};

/// What a participant of a domain is doing, as `lockflight domain show` prints it.
struct domain_slot {
  int slot = 0;
  int pid = 0;
  int thread = 0;
  bool dead = false;
  bool stopped = false;  ///< by a signal or a debugger
  /// A process that has to end as well before the participant counts as dead, such as the command
  /// of `lockflight run`; 0: none.
  int guarded_pid = 0;
  std::string command;  ///< of the guarded process if there is one
};
struct domain_lock_use {
  int slot = 0;
  int pid = 0;
  int guarded_pid = 0;
  bool dead = false;
  bool stopped = false;
  enum class how : std::uint8_t { waits, holds, shares } what = how::waits;
  std::uint64_t since_ns = 0;  ///< on CLOCK_MONOTONIC; 0: not known
};
struct domain_lock {
  std::string name;
  std::string kind;
  std::string parameters;
  std::uint64_t token = 0;    ///< of the last exclusive acquire; 0: there was none
  std::uint64_t repairs = 0;  ///< how often a death or a stopped waiter was recovered from
  bool owner_died = false;
  std::vector<domain_lock_use> uses;
};

namespace detail {
class domain_file;
class named_lock_impl;
}  // namespace detail

/// A domain that this process has open. Copies share it; threads may use it at once.
class domain {
 public:
  /// Attaches to the domain, or creates it if there is none; slots and names that were given at its
  /// creation are its own. Names have 1 to 64 characters of a-z, A-Z, 0-9, '.', '_', '-', and do
  /// not begin with '.'. Throws domain_error (disagrees) if the user and a group of the user have a
  /// domain of that name each and `mode` does not say which is meant.
  [[nodiscard]] static domain open(std::string_view name, const domain_options& what = {});
  /// Only if it exists.
  [[nodiscard]] static domain attach(std::string_view name, unsigned mode = 0);
  /// Removes it with all its locks. Throws domain_error (held) if a living thread has a slot and
  /// `force` is false. False if there is none.
  static bool remove(std::string_view name, bool force = false, unsigned mode = 0);
  /// The names of the domains that this user can open.
  [[nodiscard]] static std::vector<std::string> list();

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] const domain_options& options() const;
  /// Of its file.
  [[nodiscard]] const std::string& path() const;
  /// Whether its file still has its name. A few system calls.
  [[nodiscard]] bool still_valid() const;
  /// The threads that have slots, and the locks in use, now: read without stopping anybody, and
  /// without taking a slot.
  [[nodiscard]] std::vector<domain_slot> participants() const;
  [[nodiscard]] std::vector<domain_lock> locks() const;
  /// The number of locks that have names, cheaply.
  [[nodiscard]] std::uint32_t names() const;
  /// Forgets the name and gives back the lock's memory. Throws domain_error (held) if it is held or
  /// awaited. Handles of it make it anew at their next acquire. False if there is none.
  bool remove_lock(std::string_view name);
  /// Deals with all deaths that nobody has dealt with, and frees the slots of the dead. Returns how
  /// many.
  int sweep();

 private:
  friend class named_lock;
  explicit domain(std::shared_ptr<detail::domain_file> file) : file_(std::move(file)) {}
  std::shared_ptr<detail::domain_file> file_;
};

/// A handle of a named lock of any kind, of the thread that first acquires with it. The lock is
/// made when it is first acquired. Not recursive: a second handle of the same thread for a name
/// that the thread holds throws domain_error (held) instead of waiting for itself, unless both
/// share. Names are those of is_lock_name().
///
/// An acquire returns within its deadline, and an attempt at once, whatever other participants do.
class named_lock {
 public:
  named_lock(const domain& in, std::string_view name, const named_lock_options& what = {});
  named_lock(named_lock&&) noexcept;
  named_lock& operator=(named_lock&&) noexcept;
  /// A lock that is still held counts as held by a thread that died.
  ~named_lock();

  void lock();
  [[nodiscard]] bool try_lock();
  [[nodiscard]] bool try_lock_within(std::uint64_t nanoseconds);
  void unlock();
  [[nodiscard]] bool can_share() const;
  void lock_shared();
  [[nodiscard]] bool try_lock_shared();
  [[nodiscard]] bool try_lock_shared_within(std::uint64_t nanoseconds);
  void unlock_shared();

  /// The fencing token of our last exclusive acquire: greater than that of any acquire of this name
  /// before it.
  [[nodiscard]] std::uint64_t token() const;
  /// For a holder: whether a holder died, and none since has called mark_consistent.
  [[nodiscard]] bool owner_died() const;
  void mark_consistent();
  [[nodiscard]] bool is_held() const;
  [[nodiscard]] const std::string& name() const;

  /// For a holder: whether the domain's file still has its name, so that later participants are
  /// excluded. A few system calls.
  [[nodiscard]] bool still_valid() const;
  /// While this handle waits, `is_interrupted` is called on the waiting thread whenever the wait is
  /// disturbed by a signal, and at least once a second. If it returns true the acquire gives up and
  /// throws domain_error (interrupted). What it throws leaves the acquire, which has not happened.
  /// Null, as at the beginning: waits go on through signals. It uses no named lock:
  /// this thread is in the middle of an acquire.
  void interrupt_with(std::function<bool()> is_interrupted);
  /// For any thread, while the handle exists: if the handle waits, or is about to, `is_interrupted`
  /// is called at once.
  void ask_now();
  /// For a child between vfork and exec, whose parent holds: the parent's slot counts as living
  /// until the calling process, too, has ended. Async-signal-safe.
  void extend_to_this_process() noexcept;
  /// The same for the parent, with the number that its child has here: after vfork, since a child
  /// in a namespace of its own does not know it.
  void extend_to(int pid);

 private:
  std::unique_ptr<detail::named_lock_impl> impl_;
};

/// Called on this thread whenever a call of a named lock, unlock among them, begins to wait for
/// other participants; null, as at the beginning: nothing. For runtimes that have a lock which a
/// thread must not hold while it waits, as Python has. It throws nothing and uses no named lock.
void call_before_waits(void (*function)()) noexcept;

/// `named_mutex jobs(domain::open("work"), "jobs"); std::scoped_lock hold(jobs);`
class named_mutex : public named_lock, public timed_names<named_mutex> {
 public:
  named_mutex(const domain& in, std::string_view name) : named_lock(in, name) {}
};
class named_shared_mutex : public named_lock, public shared_timed_names<named_shared_mutex> {
 public:
  named_shared_mutex(const domain& in, std::string_view name) : named_lock(in, name) {}
};

}  // namespace lockflight
