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
// domain_error. An exec ends the holds of a process as its death would, also for the new program.
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

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <chrono>
#include "lockflight/mode.hpp"
#include "lockflight/rma/cxx20.hpp"
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
    interrupted,  ///< an acquire was interrupted (named_control::interrupt_with), or left by a jump
    system,       ///< the system refused
  };
  domain_error(reason w, const std::string& what) : std::runtime_error(what), why(w) {}
  reason why;
};

/// Thrown once, by an acquire of a handle with on_death::raise, if a holder has died. The caller
/// does not hold the lock then; its next acquire can succeed.
struct owner_died_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Thrown by a release that asks for it (if_lost) if the hold was lost. The caller does not hold.
struct lost_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct domain_options {
  /// How many threads can use the domain at the same time, 1 to 4095. More threads wait.
  int slots = 4095;
  /// How many locks can exist at the same time, 1 to 1,048,576. When they all exist, a new lock
  /// takes the place of one that is not in use.
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

/// The owner of a domain. It distinguishes the domains of one name that a user can open.
struct domain_owner {
  unsigned mode = 0600;
  std::string group = "";  ///< the number of the group, with mode 0660
};

/// The domain that commands and handles use if they do not name one.
constexpr const char* default_domain = "default";

/// True if `name` can be the name of a lock: 1 to 255 bytes, none of them NUL or newline.
[[nodiscard]] bool is_lock_name(std::string_view name) noexcept;

/// The kind of a named lock if the options do not choose another one. It can be shared.
constexpr const char* default_kind = "flight-rw";

/// The lock that a name denotes. All handles of one name must have the same kind, and the same
/// parameters unless they give none.
struct named_lock_options {
  std::string kind = default_kind;  ///< the name of a lock, as `lockflight locks` lists them
  std::string parameters = "";      ///< such as "local_budget=16,barge=2"
  /// The result of an acquire if a holder has died. `tell`: it succeeds, and owner_died() is true.
  /// `raise`: it throws owner_died_error once, and the caller does not hold the lock.
  enum class on_death : std::uint8_t { tell, raise } death = on_death::tell;
};

struct units;
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
  /// True if `pid` and `guarded_pid` are numbers in another PID namespace, such as a container's.
  bool has_foreign_pid = false;
};
/// Why a hold ends before its holder releases.
enum class end_reason : std::uint8_t {
  none,      ///< it does not
  limit,     ///< its holder has set a time limit
  broken,    ///< an operator has broken it (hold_orders.hpp)
  released,  ///< another process has released it, as only a hold of `lockflight hold` can be
};

/// The end of a hold that was set before its holder has released.
struct hold_ending {
  std::chrono::nanoseconds in = std::chrono::nanoseconds::max();  ///< from now on; 0: it is over
  end_reason why = end_reason::none;
};

/// A thread that holds a lock or waits for it, on this host or on another one of a cluster.
struct lock_user {
  std::string host = "";   ///< empty: this host
  mode held = mode::none;  ///< none: it waits
  int unit = -1;           ///< of a semaphore, the first that it holds; -1: none
  /// Of a semaphore: the units that it holds, or if it waits, those that it has collected.
  std::vector<int> units_held = {};
  int slot = -1;        ///< of this host's domain; -1: it is on another host
  int pid = 0;          ///< on another host that of the command that it runs, if there is one
  int guarded_pid = 0;  ///< as in domain_slot; 0 on another host
  bool dead = false;
  bool stopped = false;
  bool has_foreign_pid = false;  ///< as in domain_slot
  /// For how long the user has held the lock or waited; on another host in whole milliseconds.
  std::uint64_t for_ns = 0;
  std::string command = "";  ///< as in domain_slot
  /// A number of this very hold, which a later one of the same thread does not have; 0: it waits,
  /// or is of a host that does not say.
  std::uint64_t hold = 0;
  hold_ending ending = {};  ///< of a holder, for which an end is set
  int priority = 0;         ///< of a candidate that waits (election.hpp)
  /// If a process of `lockflight hold` holds: the token by which the hold is released, and the
  /// note.
  std::uint64_t kept_token = 0;
  std::string note = "";

  [[nodiscard]] bool waits() const { return held == mode::none; }
  /// "waits", "shares" or "holds", as the interfaces, JSON and the agents have it.
  [[nodiscard]] const char* use() const {
    return held == mode::exclusive ? "holds" : held == mode::shared ? "shares" : "waits";
  }
  /// True if the user is a thread of the process with that number in this PID namespace.
  [[nodiscard]] bool is_of_process(int number) const {
    return host.empty() && !has_foreign_pid && pid == number;
  }
  /// The number of the process that runs: the guarded one if there is one.
  [[nodiscard]] int running_pid() const { return guarded_pid != 0 ? guarded_pid : pid; }
};
struct domain_lock {
  std::string name = "";
  std::string kind = "";  ///< "semaphore" for a named_semaphore
  std::string parameters = "";
  int units = 0;                       ///< of a semaphore: how many it has; 0: it is a lock
  std::vector<int> unit_numbers = {};  ///< the numbers of these units
  bool has_set_units = false;          ///< domain::set_units() has chosen them
  std::uint64_t token = 0;     ///< the token of the last exclusive acquire; 0: there was none
  std::uint64_t acquires = 0;  ///< exclusive ones on this host since the lock was made; of units
  std::uint64_t repairs = 0;   ///< how often the lock was replaced after a death or a stop
  bool owner_died = false;     ///< of a semaphore: in some unit
  /// The holders, and then the waiters, each the longest first.
  std::vector<lock_user> users = {};
};
/// The units that a semaphore has.
struct semaphore_units {
  std::vector<int> numbers;
  bool are_set = false;  ///< by domain::set_units()
};
/// A participant of a circle. It holds the lock for which the member before it waits, or is inside
/// of a `lockflight run` that does, and waits for the lock that the next member holds.
struct circle_member {
  lock_user user;
  std::string holds;
  std::string waits_for;
  lock_user holder;  ///< of the lock `holds`: `user`, or the run that `user` is inside of
};
/// Participants that wait for each other; the last one waits for the first.
using lock_circle = std::vector<circle_member>;
/// The answers of other hosts about their uses of locks.
struct domain_elsewhere {
  /// The locks in use there: of each its name and its users, and nothing else.
  std::vector<domain_lock> locks;
  /// The hosts that did not answer in time. If this host's agent does not answer, no host is asked,
  /// and there is `own_agent` alone; if it knows no members yet, `every_host`. The last one is
  /// `unknown_hosts` if this host is cut off from the cluster: others may have come since.
  std::vector<std::string> silent;

  static constexpr const char* own_agent = "the agent of this host";
  static constexpr const char* every_host = "the other hosts";
  static constexpr const char* unknown_hosts = "hosts that this host has not heard of";
};
/// How long the hosts of a cluster have for an answer, unless the caller says otherwise.
constexpr std::chrono::milliseconds hosts_answer_within{2'000};
/// "h2 does not answer", "h2, h3 and h4 do not answer", "the agent of this host does not answer, so
/// no other host was asked": why more may be in use than is known. Empty if all have answered.
[[nodiscard]] std::string silence_text(const std::vector<std::string>& silent);

class domain_operator;

namespace detail {
class domain_file;
class handle;
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
  /// Opens the domain if it exists; otherwise throws domain_error (missing). Mode and group are
  /// those of domain_options. As open(), it refuses the domain file of a cluster that is a copy,
  /// and one whose agent reads another clock than this process.
  [[nodiscard]] static domain attach(std::string_view name, unsigned mode = 0,
                                     const std::string& group = "");
  /// Removes the domain with all its locks. Returns false if there is none. Throws domain_error
  /// (held) if a living thread has a slot, unless `force` is true.
  static bool remove(std::string_view name, bool force = false, unsigned mode = 0,
                     const std::string& group = "");
  /// The names of the domains that this user can open.
  [[nodiscard]] static std::vector<std::string> list();
  /// The owners of the domains of that name that this user can open: the user's own domain first.
  [[nodiscard]] static std::vector<domain_owner> owners_of(std::string_view name);
  /// A warning if open() would make a domain although there is another one of that name, whose
  /// locks exclude nobody of the new one: that of a cluster, or for root, that of a group that it
  /// is not in, if the mode is 0. Else an empty text. The library writes to no stream; `lockflight
  /// run` and the Python package print the warning.
  [[nodiscard]] static std::string warning_before_open(std::string_view name, unsigned mode = 0);

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] const domain_options& options() const;
  /// The path of the domain's file.
  [[nodiscard]] const std::string& path() const;
  /// True if the domain's file still exists under its path, so that participants that come later
  /// use the same domain. If this process cannot follow the path any more, because it has dropped
  /// its rights or has another root, the file only has to exist. A few system calls.
  [[nodiscard]] bool still_valid() const;
  /// True if the domain's locks exclude the hosts of a cluster: its name begins with "etcd:".
  [[nodiscard]] bool is_of_cluster() const;
  /// How long after it was last heard of a host of the cluster still counts as a member; 0 in the
  /// domain of one machine.
  [[nodiscard]] std::chrono::nanoseconds time_to_live() const;
  /// For how long this host has not been a member of the cluster; meanwhile no acquire on it
  /// succeeds. 0 if it is a member, and in the domain of one machine. The longest duration if it is
  /// not known since when. Reads a clock.
  [[nodiscard]] std::chrono::nanoseconds cut_off_for() const;
  /// True if the host's agent of a cluster's domain runs. An agent whose process is stopped by a
  /// signal counts as running. False in the domain of one machine. A system call.
  [[nodiscard]] bool has_agent() const;
  /// The threads that have slots now, and the locks that are in use now. The calls stop no other
  /// thread and take no slot.
  [[nodiscard]] std::vector<domain_slot> participants() const;
  [[nodiscard]] std::vector<domain_lock> locks() const;
  /// In a cluster's domain, who uses that lock on other hosts, or with an empty name, who uses any.
  /// The agent of this host asks the others, for a second at most. Returns after `at_most`; with 0
  /// nobody is asked. In the domain of one machine nothing is elsewhere.
  [[nodiscard]] domain_elsewhere elsewhere(
      std::string_view name = "", std::chrono::milliseconds at_most = hosts_answer_within) const;
  /// The users of the lock or semaphore of that name: the holders, and then the waiters, each the
  /// longest first; in a cluster's domain on all hosts, as elsewhere() says, and `silent`, if it is
  /// given, gets the hosts that did not answer. It is for a message about a wait that takes long,
  /// or that was given up. Stops no other thread, takes no slot, and may be called by a function of
  /// named_control::interrupt_with().
  [[nodiscard]] std::vector<lock_user> users_of(
      std::string_view name, std::vector<std::string>* silent = nullptr,
      std::chrono::milliseconds at_most = hosts_answer_within) const;
  /// locks(), with the users on other hosts of a cluster, by name. Of a lock that is used on other
  /// hosts alone only its name and its users are known. `silent`, if it is given, gets the hosts
  /// that did not answer.
  [[nodiscard]] std::vector<domain_lock> locks_on_all_hosts(
      std::vector<std::string>* silent = nullptr,
      std::chrono::milliseconds at_most = hosts_answer_within) const;
  /// The circles of participants that wait for each other, which no participant leaves by itself
  /// unless its wait has a time limit. On this host they are found, those of commands of
  /// `lockflight run` included; of several that share a member one. A command counts as a member if
  /// a process that descends from it waits, though it may not wait for that process. With other
  /// hosts of a cluster a process counts as one participant, whichever of its threads holds or
  /// waits. `seen` is what locks_on_all_hosts() has returned; if there is a circle in it, the locks
  /// are read once more, some milliseconds later, and the circle has to be there still.
  [[nodiscard]] std::vector<lock_circle> circles(
      const std::vector<domain_lock>& seen,
      std::chrono::milliseconds at_most = hosts_answer_within) const;
  [[nodiscard]] std::vector<lock_circle> circles() const { return circles(locks_on_all_hosts()); }
  /// The number of locks that exist. Reads a counter.
  [[nodiscard]] std::uint32_t names() const;
  /// How many threads have been found to have died with a slot since the domain was made, whether
  /// they held a lock or not. Reads a counter.
  [[nodiscard]] std::uint64_t deaths() const;
  /// Removes a lock and gives back its memory. Returns false if there is none. Throws domain_error
  /// (held) if a thread holds it or waits for it. A handle of the lock makes it again at its next
  /// acquire.
  bool remove_lock(std::string_view name);
  /// Changes which units a semaphore has: `what.count` or `what.numbers`. No holder is interrupted:
  /// a unit that is left out is given to nobody any more, and its holder ends by itself. Waiters
  /// see new units at once, in a cluster's domain on each host within about a second. From then on
  /// the units that handles and commands give for this name do not count; a handle that takes more
  /// than there are throws domain_error (invalid). The choice is kept until the name is removed (in
  /// a cluster's domain until its note in etcd is deleted), and the name is not dropped for want of
  /// room. A semaphore that does not exist yet is made. Any process that may open the domain may
  /// call this. Throws domain_error (invalid, full; disagrees: the name is a lock's; system: etcd
  /// has not answered).
  void set_units(std::string_view name, const units& what);
  /// Which units the semaphore of that name has; none if there is no such semaphore. In a cluster's
  /// domain this asks etcd, and throws domain_error (system) if there is no answer.
  [[nodiscard]] semaphore_units units_of(std::string_view name) const;
  /// Recovers from all deaths that no participant has recovered from yet, and frees the slots of
  /// the dead threads. Returns how many slots it freed.
  int sweep();

 private:
  friend class named_handle;
  friend class domain_operator;
  explicit domain(std::shared_ptr<detail::domain_file> file) : file_(std::move(file)) {}
  std::shared_ptr<detail::domain_file> file_;
};

/// A semaphore of `count` units, 1 to 1024, of which a holder has `take`: at most all of them, and
/// at most 31, since a thread holds 32 locks at most.
struct units {
  int count = 1;
  int take = 1;
  /// The numbers of the units, each 0 to 61, such as those of devices; `count` is not read then.
  /// Empty: 0 to count - 1.
  std::vector<int> numbers = {};
};

/// An argument of named_handle::release(), which throws lost_error after a loss.
enum class if_lost : std::uint8_t { throws };

/// How long a value counts that a holder has published.
enum class lasts : std::uint8_t {
  with_hold,  ///< until the hold ends, by a release, a death or a loss
  with_name,  ///< until another holder publishes, or the name is forgotten
};

/// A value that a holder has published under a name.
struct published_value {
  std::string bytes = "";
  std::uint64_t token = 0;  ///< of the hold in which it was published; 0: there is no value
  lasts until = lasts::with_hold;
  bool operator==(const published_value&) const = default;
};
constexpr std::size_t most_value_bytes = 65'000;

/// The hold of a handle at one moment.
struct hold_state {
  mode held = mode::none;
  std::uint64_t token = 0;  ///< as named_handle::token()
  int unit = -1;            ///< of a semaphore, the first of units_held; -1: none
  bool owner_died = false;
  bool is_lost = false;
  std::chrono::nanoseconds valid_for{0};
  std::vector<int> units_held = {};  ///< of a semaphore, in their order
};

/// A handle of a name, or of several names that are held together. All ways to use named locks are
/// this class: named_lock, named_locks and named_semaphore add the names of the standard library
/// and nothing else.
///
/// A handle belongs to the thread that acquires first with it, and holds once at most. The lock is
/// made when it is first acquired. Names are those of is_lock_name().
///
/// A lock is not recursive. If a thread holds a name and acquires it through a second handle, that
/// throws domain_error (held) instead of waiting for itself, unless both share: then the thread
/// holds it once, and it is released when both handles have released it.
///
/// Several names are acquired all or none. The order in which they are given does not matter, and
/// threads that use overlapping sets of names do not deadlock: an acquire takes the locks in the
/// order of the bytes of their names, and waits for each while it holds those before it. A thread
/// that holds another lock meanwhile has to keep that order by itself. (std::scoped_lock over
/// several named_mutex does not deadlock either, but waits for one lock and only tries the others,
/// so that a thread may be overtaken for as long as the locks are in use.) Cost: that of each lock.
///
/// A semaphore has N units and at most N holders, each of which has a unit of its own, 0 to N - 1.
/// A unit is held exclusively. If its holder ends or is killed, the unit becomes free, and the next
/// holder of that unit learns of the death. Waiters are served in the order in which they come, and
/// an attempt does not overtake them. A handle that takes several units (units::take) gets all of
/// them or none. When it is next, it collects the units that become free, and keeps them until it
/// has as many as it takes; nobody else is served meanwhile. So small requests do not delay a large
/// one, and no two handles wait for units of each other. If its time is over before that, or the
/// acquire throws, it gives back what it has collected. If it dies, the units become free; in the
/// domain of one machine no later holder is told, unless the thread held other locks. If the waiter
/// that is next is stopped, others take free units past it, all that they want at once, after a
/// second at most; in a cluster's domain only those on its host do. In a cluster's domain the N
/// units are those of all hosts. The waiter that is next asks other hosts for their units by turns,
/// so that it finds a free one within about a quarter of a second; an attempt waits for other hosts
/// for 200 ms at most; the first acquire of a name on a host asks etcd whether all hosts agree
/// about N. The name is that of a lock, too: a lock and a semaphore of one name, or semaphores of
/// different N, throw domain_error (disagrees), which says how the name was made. Cost of an
/// acquire: that of two exclusive locks and of the release of one, and an attempt on each unit
/// before the one that is free; of a release: that of one, and a read-modify-write. A waiter
/// sleeps.
///
/// Moving: a handle from which another was moved can be assigned to and destroyed, and is_held() is
/// false; every other call throws domain_error (invalid).
class named_handle {
 public:
  /// A lock of any kind.
  named_handle(const domain& in, std::string_view name, const named_lock_options& what = {});
  /// Several locks of the default kind. Throws domain_error (invalid) if there is no name, or if
  /// one is there twice.
  named_handle(const domain& in, std::vector<std::string> names);
  /// A semaphore. Throws domain_error (invalid, disagrees, damaged).
  named_handle(const domain& in, std::string_view name, const units& n);
  named_handle(named_handle&&) noexcept;
  named_handle& operator=(named_handle&&) noexcept;
  /// A lock that the handle still holds is released as if its holder had died.
  ~named_handle();

  /// True if this handle holds in that mode now; false if it was not free within the limit.
  /// Whatever other participants do, an acquire with a time limit returns by its deadline, and an
  /// attempt returns at once. Nothing is held if it throws: domain_error (held, invalid, full,
  /// removed, …), owner_died_error.
  bool acquire(mode as = mode::exclusive, limit patience = limit::for_ever());
  /// Releases. Throws domain_error (not_held, wrong_thread); with a mode, not_held also if the
  /// handle does not hold in that mode.
  void release();
  void release(mode as);
  /// Releases in whichever mode, and throws lost_error if the hold was lost before. A lost
  /// exclusive hold is released as its holder's death would release it, so that the next exclusive
  /// holder is told. `handle.release(if_lost::throws)` at the end of a section says that all of it
  /// was done under the lock. On one machine some system calls.
  void release(if_lost);
  /// The hold with all its properties, read together. Reads a clock.
  [[nodiscard]] hold_state state() const;

  /// The mode in which this handle holds. It is none also if the thread that held has ended, which
  /// was a death, and in a child of a fork, whose parent holds.
  [[nodiscard]] mode held() const;
  [[nodiscard]] bool is_held() const { return held() != mode::none; }
  [[nodiscard]] bool can_share() const;
  /// The name, or the first one in the order in which they are acquired.
  [[nodiscard]] const std::string& name() const { return names().front(); }
  /// The names, in the order in which they are acquired.
  [[nodiscard]] const std::vector<std::string>& names() const;
  /// The name that an acquire waits for, for a function that ends a wait; later the one that it
  /// waited for last.
  [[nodiscard]] const std::string& awaited() const;
  /// How many units a semaphore has; 0 if the name is no semaphore. Before the first acquire: as
  /// the handle was made; later, domain::set_units() may have changed it.
  [[nodiscard]] int units_of() const;
  /// The unit of a semaphore that this handle holds, the first of units_held(); or -1.
  [[nodiscard]] int unit() const;
  /// The units that this handle holds, in their order. Of a handle that does not hold, or is of
  /// locks, none.
  [[nodiscard]] std::vector<int> units_held() const;

  /// The fencing token of this handle's last exclusive acquire. It is greater than that of any
  /// exclusive acquire of this name, or of this unit, before it. Of several names or units: of the
  /// first.
  [[nodiscard]] std::uint64_t token() const { return tokens().front(); }
  /// The token of each of names(); of a semaphore that of each unit, in their order.
  [[nodiscard]] std::vector<std::uint64_t> tokens() const;
  /// For a holder: whether a holder, of any of the names, has died, and no holder since has called
  /// mark_consistent().
  [[nodiscard]] bool owner_died() const;
  /// Declares that the guarded data is consistent. Does nothing if the loss was told, or if the
  /// host is cut off, so that another one may hold: the next holder then learns of a death.
  void mark_consistent();

  /// For a holder: whether the domain's file still exists under its path, so that participants that
  /// come later are excluded. A few system calls.
  [[nodiscard]] bool still_valid() const;
  /// How long this holder is certainly alone from now on, if its host does not hear from the
  /// cluster again, or until ending(), which may be sooner; 0 if it is lost, and for a handle that
  /// does not hold. In the domain of one machine there is no limit but that of ending(), and the
  /// result is the longest duration, until a loss was told. Of several names the shortest. Reads a
  /// clock.
  /// In a child of a fork it is about the parent's hold, so that a child can watch it: it comes to
  /// 0 at the deadline there, as the child is not told of losses.
  ///
  /// Unless the host has lost the cluster the time grows again, several times in each
  /// domain::time_to_live(). It does not grow again, in one hold, once this function has returned 0
  /// or the loss was told.
  [[nodiscard]] std::chrono::nanoseconds valid_for() const;
  /// For a holder: this hold ends after that time, as by a loss: loss() is told, and valid_for()
  /// comes to 0. The lock is not free before the holder has released it or has ended, so a time
  /// limit never makes two holders. A second call can bring the end nearer, and not put it off. The
  /// clock goes on while the machine sleeps; it counts milliseconds. Throws domain_error (not_held,
  /// wrong_thread; invalid: a negative time). Cost: a read-modify-write.
  void end_after(std::chrono::nanoseconds time);
  /// For a holder: when its hold ends, by end_after() or by the order of an operator, and why. Of
  /// several names the earliest. Reads a clock.
  [[nodiscard]] hold_ending ending() const;
  /// For a holder: whether it may not be alone any more, because its host was cut off from the
  /// cluster for longer than the time to live; or whether the hold has come to ending(). It should
  /// stop what it does under the lock, and release it.
  [[nodiscard]] bool is_lost() const { return is_held() && valid_for().count() == 0; }
  /// For a holder: a token that is stopped once if this hold is lost before it is released, because
  /// the host was cut off from its cluster or became another member, because the domain was removed
  /// or its file overwritten, or because ending() has come. In a cluster's domain the token is
  /// stopped 0.1 times to live before valid_for() would reach 0, and so at least as long before
  /// another host can hold the name. From then on valid_for() is 0, even if the agent renews, and a
  /// release of an exclusive hold leaves what a death leaves.
  ///
  ///   std::stop_callback at_loss(jobs.loss(), [&] { shut(the_output); });
  ///
  /// Functions of std::stop_callback run on a thread of the library, which starts with the first
  /// call of a process and watches all its holds: they should be short, and must not use this
  /// handle or throw. The release waits for one that runs; none begins after it. A
  /// std::condition_variable_any waits with the token. Nothing is polled: the thread sleeps until a
  /// hold's moment, or until the kernel says that a domain file has changed (inotify). Without an
  /// inotify watch (fs.inotify.max_user_instances, or a path that the process may not open any
  /// more) it looks five times a second. A process that is stopped, or halted with its machine, is
  /// told when it goes on.
  ///
  /// A child of a fork has no thread for its parent's holds. It must not destroy a
  /// std::stop_callback of its parent, whose end might wait for a function that never ends there.
  ///
  /// Cost of the first call in a hold: a lock of the process and an allocation; the first call for
  /// a domain file costs some system calls, and the first of a process starts the thread. Throws
  /// domain_error (not_held, wrong_thread; system: no thread or no descriptor).
  [[nodiscard]] std::stop_token loss();

  /// The moment until which the work that this name stands for counts as done, as an exclusive
  /// holder has set it last: seconds since 1970, of the wall clock; 0 if nobody has. It is kept
  /// when the lock is released and when a holder dies, and it is forgotten with the name. A name is
  /// not dropped for want of room before that moment. Any handle may ask; one that does not hold
  /// reads what may change at once. In a cluster's domain the note is kept in etcd: both calls ask
  /// the agent of this host, and throw domain_error (system) if it has no answer of etcd within
  /// five seconds; named_control has calls that wait. Of one lock: else both throw domain_error
  /// (invalid).
  [[nodiscard]] std::uint64_t done_until() const;
  /// Sets done_until(). Only an exclusive holder may call this.
  void set_done_until(std::uint64_t seconds_since_1970);

  /// Publishes a value under the name, for all users who may open the domain: the address of a
  /// leader, the result of a job. A value takes the place of the one before, and has at most
  /// most_value_bytes. Only an exclusive holder may call this, and a value of a later hold is never
  /// replaced by one of an earlier hold. election.hpp makes leaders of this.
  ///
  /// On one machine the value is kept in the domain's file. In a cluster's domain etcd keeps it, so
  /// that it survives all hosts: a call is one write of etcd, and throws domain_error (system) if
  /// etcd has not answered within five seconds. Of one lock: else these calls throw domain_error
  /// (invalid), as for more bytes.
  void publish(std::string_view bytes, lasts until = lasts::with_hold);
  /// Takes the value back, so that there is none. As publish().
  void withdraw();
  /// The value that was published last. Takes no part in the lock, and any handle may ask. On one
  /// machine it reads memory; in a cluster's domain it is one read of etcd, which sees all that was
  /// published before.
  [[nodiscard]] published_value published() const;
  /// Waits until the value is another one than `seen`, and returns it; returns `seen` if that does
  /// not come within the limit. Values that follow each other quickly may be seen as one change.
  /// The thread has a slot of the domain, and sleeps. A value whose holder has died ends within
  /// about a second, or when another host is taken off the cluster; one that is replaced, at once.
  /// In a cluster's domain etcd tells the agent of this host, once for all that wait here. Throws
  /// domain_error (interrupted, system, …).
  [[nodiscard]] published_value await_published(const published_value& seen,
                                                limit patience = limit::for_ever());

 private:
  friend class named_control;
  [[nodiscard]] detail::handle& live() const;
  /// By this thread, or by the parent of a child of a fork.
  [[nodiscard]] bool is_held_in_some_way() const;
  std::unique_ptr<detail::handle> impl_;
};

/// A lock, with the names of the standard library:
/// `named_lock jobs(domain::open("work"), "jobs"); std::scoped_lock hold(jobs);`
/// named_lock_options choose its kind; the default kind can be shared (std::shared_lock).
class named_lock : public named_handle, public shared_lock_names<named_lock> {
 public:
  named_lock(const domain& in, std::string_view name, const named_lock_options& what = {})
      : named_handle(in, name, what) {}
};
using named_mutex = named_lock;
using named_shared_mutex = named_lock;

/// Several locks:
/// `named_locks both(domain::open("work"), {"index", "data"}); std::scoped_lock hold(both);`
class named_locks : public named_handle, public shared_lock_names<named_locks> {
 public:
  named_locks(const domain& in, std::vector<std::string> names)
      : named_handle(in, std::move(names)) {}
};

/// A semaphore of N units, with the names of std::counting_semaphore:
///
///   lockflight::named_semaphore gpus(lockflight::domain::open("work"), "gpu", 3);
///   gpus.acquire();
///   compute_on(gpus.unit());
///   gpus.release();
///
/// With {.count = 8, .take = 2} in place of 3 each holder has two of eight units, and units_held()
/// says which.
class named_semaphore : public named_handle {
 public:
  named_semaphore(const domain& in, std::string_view name, int n)
      : named_handle(in, name, lockflight::units{.count = n}) {}
  named_semaphore(const domain& in, std::string_view name, const lockflight::units& n)
      : named_handle(in, name, n) {}
  [[nodiscard]] bool try_acquire() { return acquire(mode::exclusive, limit::at_once()); }
  [[nodiscard]] bool try_acquire_within(std::uint64_t nanoseconds) {
    return acquire(mode::exclusive, limit::of_ns(nanoseconds));
  }
  template <class Rep, class Period>
  [[nodiscard]] bool try_acquire_for(const std::chrono::duration<Rep, Period>& patience) {
    return acquire(mode::exclusive, patience);
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool try_acquire_until(const std::chrono::time_point<Clock, Duration>& then) {
    return try_acquire_for(then - Clock::now());
  }
  [[nodiscard]] int units() const { return units_of(); }
};

}  // namespace lockflight
