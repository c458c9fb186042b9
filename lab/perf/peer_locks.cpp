// What locks of other libraries cost beside ours: one loop for all of them, on threads of one
// process.
//
// usage: peer_locks LOCK THREADS WRITERS SECONDS
//        peer_locks
//
// Without arguments it prints the names of the locks, one a line. With them it prints one run in
// the form of `lockflight bench --json`. LOCK is one of these names, WRITERS is the part of the
// acquires that write, from 0 to 1. Four words on a line of their own are read inside, and written
// too by a writer; a thread that finds them different counts a violation. Each thread is on a core
// of its own, or shares it with as few others as there are.
//
// The clock is read once in 64 operations, since a reading takes longer than an uncontended
// acquire; where so many take more than a millisecond, after each one. The longest wait is the
// longest time between two readings.
#include <ck_brlock.h>
#include <ck_cohort.h>
#include <ck_pflock.h>
#include <ck_spinlock.h>
#include <oneapi/tbb/queuing_rw_mutex.h>
#include <oneapi/tbb/spin_rw_mutex.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <absl/synchronization/mutex.h>
#include "base/clock.hpp"
#include "lab/bench/json/statistics.hpp"
#include "lab/bench/workload/random.hpp"
#include "lockflight/fabric/shm.hpp"
#include "lockflight/lock/create.hpp"
#include "lockflight/lock/d_mcs.hpp"
#include "lockflight/lock/flight.hpp"
#include "lockflight/lock/flight_rw.hpp"
#include "lockflight/lock/rma_rw.hpp"
#include "lockflight/rma/barrier.hpp"

namespace {

using namespace lockflight;
using participant = rma::participant<shm::port>;

struct request {
  std::string lock;
  int threads = 1;
  double writers = 0;
  std::uint64_t nanoseconds = 0;
};

/// Of one thread.
struct alignas(128) findings {
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  std::uint64_t violations = 0;
  std::uint64_t longest_ns = 0;
  std::uint64_t took_ns = 0;
};

/// What a lock guards. The accesses are atomic so that a broken lock is counted and not undefined;
/// relaxed, since the lock has to order them.
class alignas(128) guarded_words {
 public:
  [[nodiscard]] bool agree() const {
    const std::uint64_t first = words_[0].load(std::memory_order_relaxed);
    return std::all_of(words_.begin() + 1, words_.end(), [first](const auto& word) {
      return word.load(std::memory_order_relaxed) == first;
    });
  }
  void write() {
    const std::uint64_t next = words_[0].load(std::memory_order_relaxed) + 1;
    for (auto& word : words_) word.store(next, std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<std::uint64_t>, 4> words_{};
};

template <class Handle>
concept has_shared = requires(Handle& lock) { lock.lock_shared(); };

/// One thread's part of a run. What the loop counts and draws are local variables, and it is a
/// function of its own for each lock, so that it costs the same around each of them.
template <class Handle>
[[gnu::noinline]] findings go_on_for(std::uint64_t nanoseconds, Handle& lock, const request& what,
                                     rma::rank_t rank, guarded_words& words) {
  constexpr std::uint64_t long_ns = 1'000'000;
  constexpr std::uint64_t most = 64;
  const auto write_below = static_cast<std::uint64_t>(what.writers * (1ull << 53));
  bench::random rolls(1, static_cast<std::uint64_t>(rank));
  findings found;
  const std::uint64_t begun = now_ns();
  std::uint64_t last = begun;
  for (std::uint64_t operations = 1; last - begun < nanoseconds;) {
    std::uint64_t writes = 0;
    std::uint64_t disagreed = 0;
    for (std::uint64_t i = 0; i < operations; ++i) {
      const bool is_write = (rolls.next() >> 11) < write_below;
      if constexpr (has_shared<Handle>) {
        if (!is_write) {
          lock.lock_shared();
          if (!words.agree()) [[unlikely]]
            ++disagreed;
          lock.unlock_shared();
          continue;
        }
      }
      lock.lock();
      if (!words.agree()) [[unlikely]]
        ++disagreed;
      if (is_write) words.write();
      lock.unlock();
      writes += is_write ? 1 : 0;
    }
    found.reads += operations - writes;
    found.writes += writes;
    found.violations += disagreed;
    const std::uint64_t took = now_ns() - last;
    last += took;
    found.longest_ns = std::max(found.longest_ns, took);
    operations = took < long_ns ? std::min(2 * operations, most) : 1;
  }
  found.took_ns = last - begun;
  return found;
}

// ---- the locks ----
// Each is an object that the threads share, and makes a handle for each thread.

/// A lock of lockflight, which lies in the memory of the run.
template <template <class> class Lock>
struct ours {
  auto handle(participant& me) { return lock::create<Lock>(me); }
};

/// A lock whose functions take the object alone.
template <class Object, auto Lock, auto Unlock>
struct mutex_object {
  struct handle_type {
    Object& of;
    void lock() { Lock(&of); }
    void unlock() { Unlock(&of); }
  };
  handle_type handle(participant&) { return {object}; }
  alignas(128) Object object{};
};
template <class Object, auto Lock, auto Unlock, auto LockShared, auto UnlockShared>
struct rw_object {
  struct handle_type {
    Object& of;
    void lock() { Lock(&of); }
    void unlock() { Unlock(&of); }
    void lock_shared() { LockShared(&of); }
    void unlock_shared() { UnlockShared(&of); }
  };
  handle_type handle(participant&) { return {object}; }
  alignas(128) Object object{};
};

using ck_fas = mutex_object<ck_spinlock_fas_t, ck_spinlock_fas_lock, ck_spinlock_fas_unlock>;
using ck_ticket =
    mutex_object<ck_spinlock_ticket_t, ck_spinlock_ticket_lock, ck_spinlock_ticket_unlock>;
using ck_pf = rw_object<ck_pflock_t, ck_pflock_write_lock, ck_pflock_write_unlock,
                        ck_pflock_read_lock, ck_pflock_read_unlock>;
using posix_mutex = mutex_object<pthread_mutex_t, pthread_mutex_lock, pthread_mutex_unlock>;
using posix_rwlock = rw_object<pthread_rwlock_t, pthread_rwlock_wrlock, pthread_rwlock_unlock,
                               pthread_rwlock_rdlock, pthread_rwlock_unlock>;
using absl_mutex =
    rw_object<absl::Mutex, [](absl::Mutex* m) { m->Lock(); }, [](absl::Mutex* m) { m->Unlock(); },
              [](absl::Mutex* m) { m->ReaderLock(); }, [](absl::Mutex* m) { m->ReaderUnlock(); }>;
using tbb_spin_rw = rw_object<tbb::spin_rw_mutex, [](tbb::spin_rw_mutex* m) { m->lock(); },
                              [](tbb::spin_rw_mutex* m) { m->unlock(); },
                              [](tbb::spin_rw_mutex* m) { m->lock_shared(); },
                              [](tbb::spin_rw_mutex* m) { m->unlock_shared(); }>;

struct tbb_queuing_rw {
  struct handle_type {
    tbb::queuing_rw_mutex& of;
    tbb::queuing_rw_mutex::scoped_lock node{};
    void lock() { node.acquire(of, true); }
    void unlock() { node.release(); }
    void lock_shared() { node.acquire(of, false); }
    void unlock_shared() { node.release(); }
  };
  handle_type handle(participant&) { return {object}; }
  alignas(128) tbb::queuing_rw_mutex object{};
};

struct ck_mcs {
  struct handle_type {
    ck_spinlock_mcs_t& tail;
    alignas(128) ck_spinlock_mcs_context_t node{};
    void lock() { ck_spinlock_mcs_lock(&tail, &node); }
    void unlock() { ck_spinlock_mcs_unlock(&tail, &node); }
  };
  handle_type handle(participant&) { return {tail}; }
  alignas(128) ck_spinlock_mcs_t tail = nullptr;
};

struct ck_br {
  struct handle_type {
    ck_brlock_t& of;
    alignas(128) ck_brlock_reader_t reader{};
    explicit handle_type(ck_brlock_t& object) : of(object) {
      ck_brlock_read_register(&of, &reader);
    }
    handle_type(const handle_type&) = delete;
    handle_type& operator=(const handle_type&) = delete;
    ~handle_type() { ck_brlock_read_unregister(&of, &reader); }
    void lock() { ck_brlock_write_lock(&of); }
    void unlock() { ck_brlock_write_unlock(&of); }
    void lock_shared() { ck_brlock_read_lock(&of, &reader); }
    void unlock_shared() { ck_brlock_read_unlock(&reader); }
  };
  handle_type handle(participant&) { return handle_type(object); }
  alignas(128) ck_brlock_t object = CK_BRLOCK_INITIALIZER;
};

void ticket_lock(void* of, void*) {
  ck_spinlock_ticket_lock(static_cast<ck_spinlock_ticket_t*>(of));
}
void ticket_unlock(void* of, void*) {
  ck_spinlock_ticket_unlock(static_cast<ck_spinlock_ticket_t*>(of));
}
bool ticket_locked(void* of, void*) {
  return ck_spinlock_ticket_locked(static_cast<ck_spinlock_ticket_t*>(of));
}
CK_COHORT_PROTOTYPE(tickets, ticket_lock, ticket_unlock, ticket_locked, ticket_lock, ticket_unlock,
                    ticket_locked)

/// Tickets above tickets. A cohort is what shares the innermost level that hwloc finds above cores.
struct ck_cohort {
  using cohort = CK_COHORT_INSTANCE(tickets);
  struct alignas(128) place {
    cohort of{};
    ck_spinlock_ticket_t local{};
  };
  struct handle_type {
    cohort& of;
    void lock() { CK_COHORT_LOCK(tickets, &of, nullptr, nullptr); }
    void unlock() { CK_COHORT_UNLOCK(tickets, &of, nullptr, nullptr); }
  };
  ck_cohort() {
    for (place& each : places)
      CK_COHORT_INIT(tickets, &each.of, &global, &each.local, CK_COHORT_DEFAULT_LOCAL_PASS_LIMIT);
  }
  handle_type handle(participant& me) {
    const int element = me.machine().element_of(me.rank(), me.machine().levels());
    return {places[static_cast<std::size_t>(element) % places.size()].of};
  }
  alignas(128) ck_spinlock_ticket_t global{};
  std::array<place, 64> places{};
};

// ---- a run ----

template <class Lock>
nlohmann::json run(const request& what) {
  Lock lock;
  guarded_words words;
  std::vector<findings> found(static_cast<std::size_t>(what.threads));
  bool is_rw = false;
  shm::run({.machine = shm::discover(what.threads).machine, .threads = true}, [&](participant& me) {
    auto handle = lock.handle(me);
    rma::barrier<shm::port> all(me);
    all.arrive_and_wait();
    const findings warm_up = go_on_for(what.nanoseconds / 10, handle, what, me.rank(), words);
    findings& mine = found[static_cast<std::size_t>(me.rank())];
    mine = go_on_for(what.nanoseconds, handle, what, me.rank(), words);
    mine.violations += warm_up.violations;
    if (me.rank() == 0) is_rw = has_shared<decltype(handle)>;
    all.arrive_and_wait();
  });

  findings sum;
  std::vector<double> rates;
  for (const findings& each : found) {
    sum.reads += each.reads;
    sum.writes += each.writes;
    sum.violations += each.violations;
    sum.longest_ns = std::max(sum.longest_ns, each.longest_ns);
    sum.took_ns = std::max(sum.took_ns, each.took_ns);
    rates.push_back(static_cast<double>(each.reads + each.writes) /
                    static_cast<double>(each.took_ns));
  }
  const double seconds = static_cast<double>(sum.took_ns) * 1e-9;
  const auto no_counts = [](std::initializer_list<const char*> names) {
    nlohmann::json none;
    for (const char* const name : names) none[name] = 0;
    return none;
  };
  return {
      {"lock", what.lock},
      {"kind", is_rw ? "rw" : "mutex"},
      {"fabric", "threads"},
      {"machine", nullptr},
      {"workload", "words"},
      {"procs", what.threads},
      {"levels", nullptr},
      {"writers", what.writers},
      {"locality", nullptr},
      {"params", nlohmann::json::object()},
      {"threads", true},
      {"ops", sum.reads + sum.writes},
      {"elapsed_s", seconds},
      {"throughput_ops_s", static_cast<double>(sum.reads + sum.writes) / seconds},
      {"latency_us", nullptr},
      {"read", {{"ops", sum.reads}, {"latency_us", nullptr}}},
      {"write", {{"ops", sum.writes}, {"latency_us", nullptr}}},
      {"fabric_ops",
       {{"nic", no_counts({"put", "get", "add", "fetch_add", "swap", "cas", "flush", "loopback"})},
        {"cpu", no_counts({"load", "store", "rmw"})},
        {"messages", 0}}},
      {"handoffs", nlohmann::json::array()},
      {"fairness_jain", bench::jain(rates).value_or(1)},
      {"max_wait_us", static_cast<double>(sum.longest_ns) * 1e-3},
      {"violations", sum.violations},
  };
}

struct entry {
  const char* name;
  nlohmann::json (*run)(const request&);
};
constexpr entry locks[] = {
    {"flight", run<ours<lock::flight>>},
    {"flight-rw", run<ours<lock::flight_rw>>},
    {"rma-rw", run<ours<lock::rma_rw>>},
    {"d-mcs", run<ours<lock::d_mcs>>},
    {"ck-brlock", run<ck_br>},
    {"ck-pflock", run<ck_pf>},
    {"ck-mcs", run<ck_mcs>},
    {"ck-fas", run<ck_fas>},
    {"ck-ticket", run<ck_ticket>},
    {"ck-cohort", run<ck_cohort>},
    {"tbb-spin-rw", run<tbb_spin_rw>},
    {"tbb-queuing-rw", run<tbb_queuing_rw>},
    {"absl-mutex", run<absl_mutex>},
    {"pthread-mutex", run<posix_mutex>},
    {"pthread-rwlock", run<posix_rwlock>},
};

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 1) {
      for (const entry& each : locks) std::puts(each.name);
      return 0;
    }
    const auto* const found = std::find_if(std::begin(locks), std::end(locks), [&](const entry& e) {
      return argc == 5 && std::string(argv[1]) == e.name;
    });
    const request what{argv[1], argc == 5 ? std::atoi(argv[2]) : 0,
                       argc == 5 ? std::atof(argv[3]) : 0,
                       argc == 5 ? static_cast<std::uint64_t>(std::atof(argv[4]) * 1e9) : 0};
    if (found == std::end(locks) || what.threads < 1 || what.writers < 0 || what.writers > 1 ||
        what.nanoseconds == 0) {
      std::fputs("usage: peer_locks LOCK THREADS WRITERS SECONDS (without arguments: the locks)\n",
                 stderr);
      return 2;
    }
    std::puts(found->run(what).dump().c_str());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "peer_locks: %s\n", e.what());
    return 3;
  }
}
