// What named locks cost, beside the locks that programs of one machine have without them.
//
// usage: named_locks LOCK PROCESSES SECONDS     acquires of an empty critical section
//        named_locks recovery WAITERS ROUNDS    from the death of a holder to the next acquire
//        named_locks late-recovery WAITERS ROUNDS    the same after a second of waiting
//        named_locks waiting WAITERS SECONDS    what processes use that wait for one lock
//        named_locks turns PROCESSES SECONDS    the longest wait of processes that hold for 50 ms
//
// Prints JSON. LOCK is one of those in `locks` below. Every process acquires and releases until the
// time is over; one operation in 64 is timed, since reading the clock costs as much as a free lock.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "lockflight/domain.hpp"
#include "lockflight/fabric/shm.hpp"
#include "lockflight/lock/create.hpp"
#include "lockflight/lock/flight_rw.hpp"

namespace {

using namespace lockflight;

constexpr int most_processes = 256;
constexpr std::uint64_t timed_one_in = 64;
constexpr std::size_t most_samples = 4096;

double now_s() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

/// What one process found.
struct findings {
  double rate = 0;
  std::size_t samples = 0;
  double sample_s[most_samples] = {};
};

/// In memory that all processes share.
struct shared_state {
  pthread_mutex_t mutex;
  pthread_rwlock_t rwlock;
  std::atomic<int> arrived;
  std::atomic<double> died_at;
  std::atomic<double> next_at;
  std::atomic<bool> over;
  findings of[most_processes];
};

shared_state& shared() {
  static auto* const state = static_cast<shared_state*>(mmap(
      nullptr, sizeof(shared_state), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  return *state;
}

void make_posix_locks() {
  pthread_mutexattr_t mutex;
  pthread_mutexattr_init(&mutex);
  pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&mutex, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&shared().mutex, &mutex);
  pthread_rwlockattr_t rwlock;
  pthread_rwlockattr_init(&rwlock);
  pthread_rwlockattr_setpshared(&rwlock, PTHREAD_PROCESS_SHARED);
  pthread_rwlock_init(&shared().rwlock, &rwlock);
}

void await_all(int processes) {
  shared().arrived.fetch_add(1);
  while (shared().arrived.load() < processes) usleep(100);
}

template <class Once>
void acquire_for(double seconds, int processes, findings& found, Once once) {
  once();  // the first use looks the lock up
  await_all(processes);
  std::uint64_t done = 0;
  const double begun = now_s();
  double at = begun;
  for (; at < begun + seconds; ++done) {
    if (done % timed_one_in != 0) {
      once();
      continue;
    }
    const double before = now_s();
    once();
    at = now_s();
    if (found.samples < most_samples) found.sample_s[found.samples++] = at - before;
  }
  found.rate = static_cast<double>(done) / (at - begun);
}

using body = void (*)(double, int, findings&, const std::string&);

void flock_of_a_file(double seconds, int processes, findings& found, const std::string& name) {
  const std::string path = "/dev/shm/" + name + ".flock";
  const int file = open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  acquire_for(seconds, processes, found, [&] {
    flock(file, LOCK_EX);
    flock(file, LOCK_UN);
  });
  unlink(path.c_str());
}

void robust_mutex(double seconds, int processes, findings& found, const std::string&) {
  acquire_for(seconds, processes, found, [] {
    pthread_mutex_lock(&shared().mutex);
    pthread_mutex_unlock(&shared().mutex);
  });
}

void pthread_reader(double seconds, int processes, findings& found, const std::string&) {
  acquire_for(seconds, processes, found, [] {
    pthread_rwlock_rdlock(&shared().rwlock);
    pthread_rwlock_unlock(&shared().rwlock);
  });
}

void named(double seconds, int processes, findings& found, const std::string& name) {
  named_mutex lock(domain::open(name), "lock");
  acquire_for(seconds, processes, found, [&] {
    lock.lock();
    lock.unlock();
  });
}

void named_reader(double seconds, int processes, findings& found, const std::string& name) {
  named_shared_mutex lock(domain::open(name), "lock");
  acquire_for(seconds, processes, found, [&] {
    lock.lock_shared();
    lock.unlock_shared();
  });
}

/// Without names and deaths; one process, since its ranks are of one launch.
void plain_reader(double seconds, int, findings& found, const std::string&) {
  shm::run({.machine = rma::topology::flat(1), .threads = true},
           [&](rma::participant<shm::port>& me) {
             auto lock = lock::create<lock::flight_rw>(me);
             acquire_for(seconds, 1, found, [&] {
               lock.lock_shared();
               lock.unlock_shared();
             });
           });
}

const struct {
  const char* name;
  body run;
} locks[] = {{"flock", flock_of_a_file},         {"named-mutex", named},
             {"named-shared", named_reader},     {"robust-mutex", robust_mutex},
             {"pthread-rwlock", pthread_reader}, {"flight-rw", plain_reader}};

template <class Body>
pid_t start(Body run) {
  const pid_t child = fork();
  if (child != 0) return child;
  try {
    run();
    std::exit(0);  // gives slots back
  } catch (const std::exception& e) {
    std::fprintf(stderr, "named_locks: %s\n", e.what());
    _exit(3);
  }
}

bool all_end_well(const std::vector<pid_t>& children) {
  bool well = true;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    well = well && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  return well;
}

double quantile(std::vector<double>& values, double q) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

/// Else the system may leave two processes on one core, where they never meet.
void take_core(int process) {
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  cpu_set_t core;
  CPU_ZERO(&core);
  CPU_SET(static_cast<std::size_t>(process % cores), &core);
  sched_setaffinity(0, sizeof(core), &core);
}

int measure(body run, int processes, double seconds, const std::string& name) {
  make_posix_locks();
  std::vector<pid_t> children;
  for (int i = 0; i < processes; ++i)
    children.push_back(start([&, i] {
      take_core(i);
      run(seconds, processes, shared().of[i], name);
    }));
  if (!all_end_well(children)) return 3;
  double rate = 0;
  std::vector<double> samples;
  for (int i = 0; i < processes; ++i) {
    const findings& found = shared().of[i];
    rate += found.rate;
    samples.insert(samples.end(), found.sample_s, found.sample_s + found.samples);
  }
  std::printf("{\"throughput_ops_s\": %.1f, \"latency_us\": {\"p50\": %.4f, \"p99\": %.4f}}\n",
              rate, quantile(samples, 0.5) * 1e6, quantile(samples, 0.99) * 1e6);
  return 0;
}

/// Seconds from SIGKILL to the moment that a waiter has the lock, after all have waited for a
/// while.
double recovery(int waiters, useconds_t until_all_wait_us, const std::string& name) {
  shared().arrived.store(0);
  shared().next_at.store(0);
  const pid_t holder = start([&] {
    named_mutex lock(domain::open(name), "lock");
    lock.lock();
    shared().arrived.fetch_add(1);
    pause();
  });
  while (shared().arrived.load() == 0) usleep(100);
  std::vector<pid_t> children;
  for (int i = 0; i < waiters; ++i)
    children.push_back(start([&] {
      named_mutex lock(domain::open(name), "lock");
      shared().arrived.fetch_add(1);
      lock.lock();
      double none = 0;
      shared().next_at.compare_exchange_strong(none, now_s());
      if (lock.owner_died()) lock.mark_consistent();
      lock.unlock();
    }));
  while (shared().arrived.load() <= waiters) usleep(100);
  usleep(until_all_wait_us);
  const double killed_at = now_s();
  kill(holder, SIGKILL);
  waitpid(holder, nullptr, 0);
  return all_end_well(children) ? shared().next_at.load() - killed_at : -1;
}

int recoveries(int waiters, int rounds, useconds_t waited_us, const std::string& name) {
  std::vector<double> seconds;
  for (int i = 0; i < rounds; ++i) {
    seconds.push_back(recovery(waiters, waited_us, name));
    if (seconds.back() < 0) return 3;
  }
  std::printf("{\"recovery_ms\": {\"p50\": %.4f, \"max\": %.4f}}\n", quantile(seconds, 0.5) * 1e3,
              quantile(seconds, 1) * 1e3);
  return 0;
}

/// The processor time of a process and its threads, in seconds, as the scheduler counts it.
double used_s(pid_t process) {
  double sum = 0;
  for (const auto& thread :
       std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
    std::ifstream of(thread.path() / "schedstat");
    double ns = 0;
    of >> ns;
    sum += ns;
  }
  return sum * 1e-9;
}

/// Of a core, after the first seconds.
int waiting(int waiters, double seconds, const std::string& name) {
  shared().over = false;  // made before any child
  const domain in = domain::open(name);
  std::vector<pid_t> children;
  for (int i = 0; i <= waiters; ++i) {
    children.push_back(start([&, i] {
      named_mutex lock(in, "lock");
      if (i > 0) shared().arrived.fetch_add(1);
      lock.lock();
      if (i == 0) shared().arrived.fetch_add(1);
      while (i == 0 && !shared().over) usleep(10'000);
      lock.unlock();
    }));
    while (i == 0 && shared().arrived.load() == 0) usleep(100);
  }
  while (shared().arrived.load() <= waiters) usleep(100);
  constexpr useconds_t until_all_sleep_us = 3'000'000;
  usleep(until_all_sleep_us);
  const auto all_used_s = [&] {
    double sum = 0;
    for (std::size_t i = 1; i < children.size(); ++i) sum += used_s(children[i]);
    return sum;
  };
  const double before = all_used_s();
  const double begun = now_s();
  usleep(static_cast<useconds_t>(seconds * 1e6));
  const double used = (all_used_s() - before) / (now_s() - begun);
  shared().over = true;
  if (!all_end_well(children)) return 3;
  std::printf("{\"of_a_core_percent\": %.4f}\n", used * 100);
  return 0;
}

int turns(int processes, double seconds, const std::string& name) {
  shared().arrived.store(0);  // made before any child
  constexpr double hold_s = 0.05;
  std::vector<pid_t> children;
  for (int i = 0; i < processes; ++i)
    children.push_back(start([&, i] {
      named_mutex lock(domain::open(name), "lock");
      await_all(processes);
      const double end = now_s() + seconds;
      while (now_s() < end) {
        const double asked = now_s();
        lock.lock();
        shared().of[i].rate = std::max(shared().of[i].rate, now_s() - asked);
        usleep(static_cast<useconds_t>(hold_s * 1e6));
        lock.unlock();
      }
    }));
  if (!all_end_well(children)) return 3;
  double longest = 0;
  for (int i = 0; i < processes; ++i) longest = std::max(longest, shared().of[i].rate);
  std::printf("{\"longest_wait_turns\": %.3f}\n", longest / (hold_s * processes));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int processes = argc == 4 ? std::atoi(argv[2]) : 0;
  const double last = argc == 4 ? std::atof(argv[3]) : 0;
  if (processes < 1 || processes >= most_processes || !(last > 0)) {
    std::fputs(
        "usage: named_locks LOCK|recovery|late-recovery|waiting|turns PROCESSES SECONDS|ROUNDS\n",
        stderr);
    return 2;
  }
  const std::string name = "perf-" + std::to_string(getpid());
  int code = 2;
  if (std::strcmp(argv[1], "recovery") == 0)
    code = recoveries(processes, static_cast<int>(last), 50'000, name);
  if (std::strcmp(argv[1], "late-recovery") == 0)
    code = recoveries(processes, static_cast<int>(last), 1'000'000, name);
  if (std::strcmp(argv[1], "waiting") == 0) code = waiting(processes, last, name);
  if (std::strcmp(argv[1], "turns") == 0) code = turns(processes, last, name);
  for (const auto& each : locks)
    if (std::strcmp(each.name, argv[1]) == 0) code = measure(each.run, processes, last, name);
  domain::remove(name, true);
  if (code == 2) std::fputs("named_locks: no such lock\n", stderr);
  return code;
}
