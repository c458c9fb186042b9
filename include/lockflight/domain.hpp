// Domains: locks by name for the processes of one machine, which may come, go, stop and die:
//
//   lockflight::domain work = lockflight::domain::open("work");
//   lockflight::named_mutex jobs(work, "jobs");
//   std::scoped_lock hold(jobs);
//
// A domain is a file in memory. There is no daemon and nothing to start. The file has slots; a slot
// is a rank, so the locks and their contract are the same as everywhere in lockflight.
// docs/domains.md describes domains for their users. Programs that use this header link
// lockflight::domain.
//
// Threads: a thread takes a slot when it first acquires a lock of the domain, and gives it back
// when it ends. If a thread ends or is killed while it holds a lock, the lock becomes free, and the
// next holder learns that its holder died. The kernel reports deaths, so there are no leases. A
// thread that is stopped while it waits delays other waiters once, by less than a second, unless
// two others of the same lock are stopped as well (docs/domains.md). A thread that is stopped while
// it holds a lock keeps it.
//
// Fork: a process that forks keeps its slots. Its child has none and takes its own, whichever
// function made it. In the child, handles that were made before the fork cannot be used, and throw
// domain_error. A process that becomes another program by exec has died, as that program is told.
//
// Safety: the file is protected by its permissions; a process that may open it may write over it.
// Each index that is read from the file is checked, and nothing in the file is used as an address.
// If the file is damaged, the next slow step throws domain_error (damaged). If another process
// makes the file shorter during an acquire, SIGBUS ends this process. If /dev/shm is full, a call
// throws domain_error (full).
//
// Removal: if a domain is removed, or its file is deleted, a lock in the old file no longer
// excludes participants that come later. Within a second, an acquire in the old file ends with
// domain_error (removed), or continues in the new domain of that name. A holder can call
// still_valid().
//
// Cost: no network operations. When a handle first uses a name, it finds the name in the domain,
// which takes some microseconds.
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

/// Thrown if a request or a domain is wrong. what() is one line with the argument, its value and
/// what is accepted.
struct domain_error : std::runtime_error {
  enum class reason : std::uint8_t {
    invalid,       ///< an argument is not accepted
    missing,       ///< there is no such domain
    disagrees,     ///< the domain or the lock exists, but was made with other options
    full,          ///< there is no slot or no room for a lock, or the thread holds 32 locks
    damaged,       ///< the file is not a domain, was written over, or has the wrong owner or mode
    removed,       ///< the domain was removed, or its file was deleted
    not_held,      ///< release: the caller does not hold the lock
    held,          ///< acquire: the caller holds the lock already; remove: the lock is held
    wrong_thread,  ///< the handle was used by another thread, or after a fork
    interrupted,   ///< an acquire was interrupted (named_lock::interrupt_with), or left by a jump
    system,        ///< the system refused
  };
  domain_error(reason w, const std::string& what) : std::runtime_error(what), why(w) {}
  reason why;
};

/// Thrown once, by an acquire of a handle with on_death::raise, if a holder has died. The caller
/// does not hold the lock then; its next acquire can succeed.
struct owner_died_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct domain_options {
  /// How many threads can use the domain at the same time, 1 to 4095. More threads wait.
  int slots = 4095;
  /// How many locks can exist at the same time, 1 to 1,048,576. When they all exist, a new one
  /// takes the place of a lock that nobody uses.
  std::uint32_t names = 131072;
  /// 0600: the domain belongs to its user. 0660: it belongs to a group, and all users of that group
  /// share it. 0: the mode with which the domain exists, or 0600 if it does not exist; "default" is
  /// then always the user's own. open() refuses a domain of this user that has another mode.
  unsigned mode = 0;
  /// With mode 0660, the group's name or number. If it is empty, the group is the one group of this
  /// user that has a domain of that name; if there is none and the domain is made, it is the
  /// effective group of the process.
  std::string group = "";
};

/// The domain that commands and handles use if they do not name one.
constexpr const char* default_domain = "default";

/// Whether this can be the name of a lock: 1 to 255 bytes, none of them NUL or newline.
[[nodiscard]] bool is_lock_name(std::string_view name) noexcept;

/// The kind of a named lock if the options do not choose another one. It can be shared.
constexpr const char* default_kind = "flight-rw";

/// What lock a name denotes. All handles of one name must have the same kind and parameters.
struct named_lock_options {
  std::string kind = default_kind;  ///< the name of a lock, as `lockflight locks` lists them
  std::string parameters = "";      ///< such as "local_budget=16,barge=2"
  /// What an acquire does if a holder has died. `tell`: it succeeds, and owner_died() is true.
  /// `raise`: it throws owner_died_error once, and the caller does not hold the lock.
  enum class on_death : std::uint8_t { tell, raise } death = on_death::tell;
};

/// A thread that has a slot of a domain, as `lockflight domain show` prints it.
struct domain_slot {
  int slot = 0;
  int pid = 0;
  int thread = 0;
  bool dead = false;
  bool stopped = false;  ///< by a signal or a debugger
  /// A process that must end, too, before the participant counts as dead, such as the command of
  /// `lockflight run`; 0 if there is none.
  int guarded_pid = 0;
  std::string command;  ///< the name of the guarded process if there is one, else of this one
  /// The numbers of its processes are those of another PID namespace, such as a container's.
  bool has_foreign_pid = false;
};
struct domain_lock_use {
  int slot = 0;
  int unit = -1;  ///< of a semaphore, which it holds; -1: none
  int pid = 0;
  int guarded_pid = 0;
  bool dead = false;
  bool stopped = false;
  enum class how : std::uint8_t { waits, holds, shares } what = how::waits;
  std::uint64_t since_ns = 0;    ///< when it began, on CLOCK_MONOTONIC; 0: not known
  bool has_foreign_pid = false;  ///< as in domain_slot
};
/// A thread that holds a lock or waits for it, on another host of a cluster or, from uses_of(), on
/// this one.
struct domain_use_elsewhere {
  std::string host;  ///< empty: this host
  std::string name;  ///< of the lock
  domain_lock_use::how what = domain_lock_use::how::waits;
  int pid = 0;  ///< on that host; of the command that it runs, if there is one
  bool dead = false;
  bool stopped = false;
  std::uint64_t milliseconds = 0;  ///< it has done so for about so long
  std::string command;
  int unit = -1;                 ///< as in domain_lock_use
  bool has_foreign_pid = false;  ///< as in domain_slot
};
/// What other hosts say of their uses of locks.
struct domain_elsewhere {
  std::vector<domain_use_elsewhere> uses;
  /// Members that did not answer in time.
  std::vector<std::string> silent;
};
struct domain_lock {
  std::string name;
  std::string kind;  ///< "semaphore" for a named_semaphore
  std::string parameters;
  int units = 0;               ///< of a semaphore; 0: it is a lock
  std::uint64_t token = 0;     ///< the token of the last exclusive acquire; 0: there was none
  std::uint64_t acquires = 0;  ///< exclusive ones on this host since the lock was made; of units
  std::uint64_t repairs = 0;   ///< how often the lock was replaced after a death or a stop
  bool owner_died = false;     ///< of a semaphore: in some unit
  std::vector<domain_lock_use> uses;
};

namespace detail {
class domain_file;
class named_lock_impl;
class named_semaphore_impl;
}  // namespace detail

/// A domain that this process has opened. Copies refer to the same domain, and threads may use it
/// at the same time.
class domain {
 public:
  /// Opens the domain, or creates it if there is none. A domain that exists keeps the `slots` and
  /// `names` with which it was created. A name has 1 to 64 characters of a-z, A-Z, 0-9, '.', '_',
  /// '-', and does not begin with '.'. Without a mode, the user's own domain comes before that of a
  /// group. Throws domain_error (disagrees) if several groups of the user have a domain of that
  /// name and `group` does not say which one is meant, or if the user has one with another mode.
  [[nodiscard]] static domain open(std::string_view name, const domain_options& what = {});
  /// Opens the domain if it exists; otherwise throws domain_error (missing).
  [[nodiscard]] static domain attach(std::string_view name, unsigned mode = 0);
  /// Removes the domain with all its locks. Returns false if there is none. Throws domain_error
  /// (held) if a living thread has a slot, unless `force` is true.
  static bool remove(std::string_view name, bool force = false, unsigned mode = 0);
  /// The names of the domains that this user can open.
  [[nodiscard]] static std::vector<std::string> list();

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] const domain_options& options() const;
  /// The path of its file.
  [[nodiscard]] const std::string& path() const;
  /// Whether its file still exists under its path, so that participants that come later use it. If
  /// this process cannot follow the path any more, because it has dropped its rights or has another
  /// root, that the file exists is enough. A few system calls.
  [[nodiscard]] bool still_valid() const;
  /// Whether its locks exclude the hosts of a cluster: its name begins with "etcd:".
  [[nodiscard]] bool is_of_cluster() const;
  /// How long after it was last heard of a host of the cluster still counts as a member; 0 in the
  /// domain of one machine.
  [[nodiscard]] std::chrono::nanoseconds time_to_live() const;
  /// For how long this host has not been a member of the cluster; meanwhile no acquire on it
  /// succeeds. 0 if it is one, and in the domain of one machine. The longest duration if nobody
  /// knows since when. Reads a clock.
  [[nodiscard]] std::chrono::nanoseconds cut_off_for() const;
  /// Whether the host's agent of a cluster's domain runs. It is not said of one that is stopped
  /// that it does not. False in the domain of one machine. A system call.
  [[nodiscard]] bool has_agent() const;
  /// The threads that have slots now, and the locks that are in use now. The calls stop no other
  /// thread and take no slot.
  [[nodiscard]] std::vector<domain_slot> participants() const;
  [[nodiscard]] std::vector<domain_lock> locks() const;
  /// In a cluster's domain, who uses that lock on other hosts, or with an empty name, who uses any.
  /// The agent of this host asks the others, for a second at most; nothing if it does not run. In
  /// the domain of one machine nothing is elsewhere.
  [[nodiscard]] domain_elsewhere elsewhere(std::string_view name = "") const;
  /// Who holds the lock or the units of the semaphore of that name, and then who waits, each the
  /// longest first; in a cluster's domain on all hosts, as elsewhere() says. It is for a message
  /// about a wait that takes long, or that was given up. Stops no other thread, takes no slot, and
  /// may be called by a function of interrupt_with().
  [[nodiscard]] std::vector<domain_use_elsewhere> uses_of(std::string_view name) const;
  /// The number of locks that exist. Reads a counter.
  [[nodiscard]] std::uint32_t names() const;
  /// How many threads have been found to have died with a slot since the domain was made, whether
  /// they held a lock or not. Reads a counter.
  [[nodiscard]] std::uint64_t deaths() const;
  /// Removes a lock and gives back its memory. Returns false if there is none. Throws domain_error
  /// (held) if a thread holds it or waits for it. A handle of the lock makes it again at its next
  /// acquire.
  bool remove_lock(std::string_view name);
  /// Recovers from all deaths that no participant has recovered from yet, and frees the slots of
  /// the dead threads. Returns how many slots it freed.
  int sweep();

 private:
  friend class named_lock;
  friend class named_semaphore;
  explicit domain(std::shared_ptr<detail::domain_file> file) : file_(std::move(file)) {}
  std::shared_ptr<detail::domain_file> file_;
};

/// A handle of a named lock of any kind. It belongs to the thread that first acquires with it. The
/// lock itself is made when it is first acquired. Names are those of is_lock_name().
///
/// The lock is not recursive. If a thread holds a name and acquires it through a second handle,
/// that throws domain_error (held) instead of waiting for itself, unless both acquires share.
///
/// Whatever other participants do, an acquire with a time limit returns by its deadline, and an
/// attempt returns at once.
class named_lock {
 public:
  named_lock(const domain& in, std::string_view name, const named_lock_options& what = {});
  named_lock(named_lock&&) noexcept;
  named_lock& operator=(named_lock&&) noexcept;
  /// If the lock is still held, it is released as if its holder had died.
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

  /// The fencing token of this handle's last exclusive acquire. It is greater than that of any
  /// exclusive acquire of this name before it.
  [[nodiscard]] std::uint64_t token() const;
  /// For a holder: whether a holder has died, and no holder since has called mark_consistent().
  [[nodiscard]] bool owner_died() const;
  /// Says that things are right. Does nothing in a holder that is_lost(): the next one is told
  /// then.
  void mark_consistent();
  [[nodiscard]] bool is_held() const;
  [[nodiscard]] const std::string& name() const;

  /// For a holder: whether the domain's file still exists under its path, so that participants that
  /// come later are excluded. A few system calls.
  [[nodiscard]] bool still_valid() const;
  /// How long this holder is certainly alone from now on, if its host does not hear from the
  /// cluster again; 0 if it is lost, and for a handle that does not hold. In the domain of one
  /// machine there is no limit, and the result is the longest duration. Reads a clock.
  ///
  /// The library has no threads, so there is no function that it would call when the time is over:
  /// a holder asks before each step that must not be done twice. Unless the host has lost the
  /// cluster the time grows again, every third of domain::time_to_live().
  [[nodiscard]] std::chrono::nanoseconds valid_for() const;
  /// For a holder: whether it may not be alone any more, because its host was cut off from the
  /// cluster for longer than the time to live. It should stop what it does under the lock, and
  /// release it.
  [[nodiscard]] bool is_lost() const { return is_held() && valid_for().count() == 0; }
  /// The moment until which the work that this name stands for counts as done, as an exclusive
  /// holder has set it last: seconds since 1970, of the wall clock; 0 if nobody has. It is kept
  /// when the lock is released and when a holder dies, and it is forgotten with the name. A name is
  /// not dropped for want of room before that moment. Any handle may ask; one that does not hold
  /// reads what may change at once. In a cluster's domain the note is kept in etcd: both calls ask
  /// the agent of this host, and throw domain_error (system) if it does not answer.
  [[nodiscard]] std::uint64_t done_until() const;
  /// For an exclusive holder.
  void set_done_until(std::uint64_t seconds_since_1970);
  /// Sets a function by which the program can end a wait. While this handle waits, the function is
  /// called on the waiting thread after each signal, and at least once a second. If it returns
  /// true, the acquire gives up and throws domain_error (interrupted). If it throws, the exception
  /// leaves the acquire, and the lock is not held. The function must not use a named lock, because
  /// its thread is in the middle of an acquire. With null, as at the beginning, signals do not end
  /// a wait.
  void interrupt_with(std::function<bool()> is_interrupted);
  /// Makes a waiting handle call `is_interrupted` at once. Any thread may call this while the
  /// handle exists. It also has its effect if the handle is about to wait.
  void ask_now();
  /// For a child between vfork and exec, whose parent holds the lock. The parent counts as dead
  /// only when both the parent and the calling process have ended. Async-signal-safe.
  void extend_to_this_process() noexcept;
  /// The same for the parent to call after vfork, with the process number of its child in this PID
  /// namespace. A child in a namespace of its own does not know this number. 0 ends this again.
  void extend_to(int pid);
  /// For a holder whose work is done, and that goes on holding for some time. If it dies before it
  /// releases, that counts as a release: no later holder learns of a death. It also ends what the
  /// two calls above began. It is about all locks that the thread holds, until this handle
  /// releases. In a cluster's domain later holders learn of the death all the same.
  void finish() noexcept;

 private:
  std::unique_ptr<detail::named_lock_impl> impl_;
};

/// Several named locks of one domain, of the default kind, that are acquired together: all of them
/// or none. The order in which the names are given does not matter, and threads that use
/// overlapping sets of names do not deadlock: an acquire takes the locks in the order of the bytes
/// of their names, and waits for each while it holds those before it. A thread that holds another
/// lock meanwhile has to keep that order by itself.
///
///   lockflight::named_locks both(lockflight::domain::open("work"), {"index", "data"});
///   std::scoped_lock hold(both);
///
/// std::scoped_lock over several named_mutex does not deadlock either. It waits for one lock and
/// only tries the others, again and again, so a thread may be overtaken for as long as the locks
/// are in use; here it waits in one queue after the other.
///
/// Cost: that of each lock.
class named_locks : public timed_names<named_locks> {
 public:
  /// Throws domain_error (invalid) if there is no name, or if one is there twice, and as
  /// named_lock.
  named_locks(const domain& in, std::vector<std::string> names);
  named_locks(named_locks&&) noexcept;
  named_locks& operator=(named_locks&&) noexcept;
  /// Locks that are still held are released as if their holder had died.
  ~named_locks();

  // As those of named_lock. The time limit is that of all locks together. If one of them throws,
  // those that were acquired before are released, and the exception leaves the call.
  void lock();
  [[nodiscard]] bool try_lock();
  [[nodiscard]] bool try_lock_within(std::uint64_t nanoseconds);
  void unlock();
  void lock_shared();
  [[nodiscard]] bool try_lock_shared();
  [[nodiscard]] bool try_lock_shared_within(std::uint64_t nanoseconds);
  void unlock_shared();
  [[nodiscard]] bool is_held() const { return held_ == locks_.size(); }

  /// In the order in which they are acquired, for what each of them says by itself.
  [[nodiscard]] const std::vector<named_lock>& each() const { return locks_; }
  /// For a function that ends a wait: the name of the lock that the acquire waits for.
  [[nodiscard]] const std::string& awaited() const;

  /// For a holder: whether a holder of any of them has died.
  [[nodiscard]] bool owner_died() const;
  /// Of all of them.
  void mark_consistent();
  [[nodiscard]] bool still_valid() const;
  /// The shortest.
  [[nodiscard]] std::chrono::nanoseconds valid_for() const;
  [[nodiscard]] bool is_lost() const { return is_held() && valid_for().count() == 0; }
  void interrupt_with(const std::function<bool()>& is_interrupted);
  void ask_now();
  void extend_to_this_process() noexcept;
  void extend_to(int pid);
  void finish() noexcept;

 private:
  template <class Take>
  bool acquire(std::uint64_t nanoseconds, bool shared, Take take);
  void release(bool shared);

  std::vector<named_lock> locks_;  // in the order of their names
  std::size_t held_ = 0;           // so many of them, the first ones
};

/// A semaphore of N units by name: at most N holders at a time, each of which has a unit of its
/// own, 0 to N - 1. A handle belongs to the thread that first acquires with it, and holds one unit
/// at most.
///
///   lockflight::named_semaphore gpus(lockflight::domain::open("work"), "gpu", 3);
///   gpus.acquire();
///   compute_on(gpus.unit());
///   gpus.release();
///
/// Robust as the locks are: if a holder ends or is killed, its unit becomes free, and the next
/// holder of that unit learns of it (owner_died). The name is that of a lock, too: a lock and a
/// semaphore of one name, or semaphores of different N, do not go together, and the constructor or
/// the first acquire throws domain_error (disagrees), which says how the name was made.
///
/// Order: first come, first served. An attempt does not overtake those that wait. If the waiter
/// that is next is stopped, others take free units past it, after a second at most; in a cluster's
/// domain only those on its host do.
///
/// In a cluster's domain the N units are those of all hosts. The waiter that is next asks other
/// hosts for their units by turns, so that it finds a free one within about a quarter of a second.
/// An attempt waits for other hosts for 200 ms at most. The first acquire of a name on a host asks
/// etcd whether all hosts agree about N.
///
/// Cost: of an acquire, that of two exclusive named locks and of the release of one, and an attempt
/// on each unit before the one that is free; of a release, that of one and a read-modify-write. So
/// one thread alone takes about four times as long as with a named_mutex. A waiter sleeps.
class named_semaphore {
 public:
  /// `units` is N, 1 to 1024. Throws domain_error (invalid, disagrees, damaged).
  named_semaphore(const domain& in, std::string_view name, int units);
  named_semaphore(named_semaphore&&) noexcept;
  named_semaphore& operator=(named_semaphore&&) noexcept;
  /// A unit that is still held is released as if its holder had died.
  ~named_semaphore();

  /// Waits for a unit. Throws domain_error (held) if this handle holds one, or if this thread holds
  /// all units by other handles, and as named_lock::lock() does.
  void acquire();
  [[nodiscard]] bool try_acquire();
  [[nodiscard]] bool try_acquire_within(std::uint64_t nanoseconds);
  template <class Rep, class Period>
  [[nodiscard]] bool try_acquire_for(const std::chrono::duration<Rep, Period>& patience) {
    return try_acquire_within(nanoseconds_of(patience));
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool try_acquire_until(const std::chrono::time_point<Clock, Duration>& then) {
    return try_acquire_for(then - Clock::now());
  }
  /// Throws domain_error (not_held) if this handle holds no unit.
  void release();

  [[nodiscard]] int units() const;
  /// The unit that this handle holds, or -1.
  [[nodiscard]] int unit() const;
  [[nodiscard]] bool is_held() const { return unit() >= 0; }
  [[nodiscard]] const std::string& name() const;

  // As those of named_lock, for the unit that this handle holds, or has held last.

  /// Greater than that of any holder of this unit before.
  [[nodiscard]] std::uint64_t token() const;
  [[nodiscard]] bool owner_died() const;
  void mark_consistent();
  [[nodiscard]] bool still_valid() const;
  [[nodiscard]] std::chrono::nanoseconds valid_for() const;
  [[nodiscard]] bool is_lost() const { return is_held() && valid_for().count() == 0; }
  void interrupt_with(std::function<bool()> is_interrupted);
  void ask_now();
  void extend_to_this_process() noexcept;
  void extend_to(int pid);
  void finish() noexcept;

 private:
  std::unique_ptr<detail::named_semaphore_impl> impl_;
};

/// Sets a function that this thread calls whenever a call of a named lock begins to wait for other
/// participants; unlock is such a call, too. With null, as at the beginning, it calls nothing. This
/// is for runtimes with a lock that a thread must not hold while it waits, such as Python's. The
/// function must not throw and must not use a named lock.
void call_before_waits(void (*function)()) noexcept;

/// A named lock of the default kind with the names of the standard library:
/// `named_mutex jobs(domain::open("work"), "jobs"); std::scoped_lock hold(jobs);`
class named_mutex : public named_lock, public timed_names<named_mutex> {
 public:
  named_mutex(const domain& in, std::string_view name) : named_lock(in, name) {}
};
/// The same with the names for sharing, for std::shared_lock.
class named_shared_mutex : public named_lock, public shared_timed_names<named_shared_mutex> {
 public:
  named_shared_mutex(const domain& in, std::string_view name) : named_lock(in, name) {}
};

}  // namespace lockflight
