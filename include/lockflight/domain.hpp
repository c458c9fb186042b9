// Domains: named locks for processes that come, go and die. A domain is a file in memory with a
// fixed number of slots; a slot is a rank, so contract and locks are those of all of lockflight.
// There is no daemon and nothing to start.
//
// A thread takes a slot when it first uses a lock of the domain, and gives it back when it ends. A
// thread that ends, or is killed, while it holds a lock frees it: the next holder is told. Which
// thread is dead is known from the kernel.
//
// A process that forks keeps its slots; the child has none, and takes its own. The child's handles
// made before the fork are of no use and throw domain_error.
//
// The file is guarded by its permissions alone: a process that may open it may write over it. A
// header that was written over, and a file that was made shorter, throw domain_error (damaged) at
// the next slow step: when a lock is looked up, a slot is taken, or a wait takes long. A file that
// is made shorter under an acquire in progress ends the process by SIGBUS. A full /dev/shm is an
// error (full) when a domain, a slot, a name or a lock is made; it can end the process by SIGBUS
// when a repair first reads words of ranks that nobody has used.
//
// Cost: no network operation. The first use of a name by a handle looks it up, some microseconds.
#pragma once

#include <chrono>
#include <cstdint>
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
    damaged,       ///< the file is not a domain of this version, or has been written over
    not_held,      ///< the caller of a release does not hold
    held,          ///< the caller of an acquire holds already; a lock to be removed is held
    wrong_thread,  ///< a handle is used by another thread, or after fork
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
  int slots = 256;             ///< the most threads at the same time, 1 to 4095
  std::uint32_t names = 4096;  ///< the most locks at the same time, 1 to 1,048,576
  unsigned mode = 0600;        ///< 0600 or 0660: who else may open it
};

/// How a lock has been asked for; all callers that ask for it agree.
struct named_lock_options {
  std::string kind = "flight";  ///< a lock of the table; "flight-rw" can be shared
  std::string parameters = "";  ///< such as "local_budget=16,barge=2"
  enum class on_death : std::uint8_t { tell, raise } death = on_death::tell;
};

/// What a participant of a domain is doing, as `lockflight domain show` prints it.
struct domain_slot {
  int slot = 0;
  int pid = 0;
  int thread = 0;
  bool dead = false;
  std::string command;
};
struct domain_lock_use {
  int slot = 0;
  int pid = 0;
  bool dead = false;
  enum class how : std::uint8_t { waits, holds, shares } what = how::waits;
  std::uint64_t since_ns = 0;  ///< on CLOCK_MONOTONIC; 0: not known
};
struct domain_lock {
  std::string name;
  std::string kind;
  std::string parameters;
  std::uint64_t token = 0;    ///< of the last exclusive acquire
  std::uint64_t repairs = 0;  ///< how often deaths were recovered from
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
  /// Creates the domain, or attaches to it if it exists; options that were given at its creation
  /// are its own. Names have 1 to 64 characters of a-z, A-Z, 0-9, '.', '_', '-', and do not begin
  /// with '.'.
  [[nodiscard]] static domain open(std::string_view name, const domain_options& what = {});
  /// Only if it exists.
  [[nodiscard]] static domain attach(std::string_view name);
  /// Removes it with all its locks. Throws domain_error (held) if a living thread has a slot and
  /// `force` is false. False if there is none.
  static bool remove(std::string_view name, bool force = false);
  /// The names of the domains that this user can open.
  [[nodiscard]] static std::vector<std::string> list();

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] const domain_options& options() const;
  /// The threads that have slots, and the locks in use, now: read without stopping anybody.
  [[nodiscard]] std::vector<domain_slot> participants() const;
  [[nodiscard]] std::vector<domain_lock> locks() const;
  /// The number of locks that have names, cheaply.
  [[nodiscard]] std::uint32_t names() const;
  /// Gives back the lock's memory. Throws domain_error (held) if it is held or awaited. Handles of
  /// it make it anew at their next acquire. False if there is none.
  bool remove_lock(std::string_view name);
  /// Deals with all deaths that nobody has dealt with, and frees the slots of the dead. Returns how
  /// many.
  int sweep();

 private:
  friend class named_lock;
  explicit domain(std::shared_ptr<detail::domain_file> file) : file_(std::move(file)) {}
  std::shared_ptr<detail::domain_file> file_;
};

/// A handle of a named lock of any kind, of the thread that first uses it. The lock is made when it
/// is first asked for. Not recursive. A name has 1 to 255 bytes, none of them NUL or newline.
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

 private:
  std::unique_ptr<detail::named_lock_impl> impl_;
};

/// `named_mutex jobs(domain::open("work"), "jobs"); std::scoped_lock hold(jobs);`
class named_mutex : public named_lock, public timed_names<named_mutex> {
 public:
  named_mutex(const domain& in, std::string_view name) : named_lock(in, name, {.kind = "flight"}) {}
};
class named_shared_mutex : public named_lock, public shared_timed_names<named_shared_mutex> {
 public:
  named_shared_mutex(const domain& in, std::string_view name)
      : named_lock(in, name, {.kind = "flight-rw"}) {}
};

}  // namespace lockflight
