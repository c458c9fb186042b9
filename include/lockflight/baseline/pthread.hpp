// pthread-mutex, pthread-rwlock: process-shared POSIX locks in a segment, as baselines. They are
// not RMA locks.
//
// These locks need cells that are ordinary memory (shm only) and issue no operation of the
// contract, so neither the simulator nor the checker can run them.
#pragma once

#include <pthread.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>

#include "lockflight/lock/about.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::baseline {

/// Throws the error that a pthread call returned, unless it is 0.
inline void check(int error, const char* call) {
  if (error != 0) throw std::system_error(error, std::generic_category(), call);
}

/// The place of a pthread object: enough plain cells at the home.
struct pthread_cells {
  rma::plain_cell state;    // 0 not initialised, 1 being initialised, 2 ready
  rma::plain_cell storage;  // the pthread object

  static constexpr std::uint32_t storage_words = 8;
};

struct pthread_parameters {
  [[nodiscard]] static constexpr std::array<lock::parameter<pthread_parameters>, 0> all() {
    return {};
  }
};

/// The object in the segment; the first participant initialises it.
template <class Object, rma::native_port Port, class Initialise>
Object* shared_object(Port& port, const pthread_cells& where, Initialise initialise) {
  static_assert(sizeof(Object) <= pthread_cells::storage_words * sizeof(rma::word));
  auto* const object = static_cast<Object*>(port.native_address(where.storage));
  auto* const state = static_cast<rma::word*>(port.native_address(where.state));
  rma::word none = 0;
  if (__atomic_compare_exchange_n(state, &none, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    initialise(object);
    rma::put_now(port, where.state, 2);
  }
  // The home may be on another node of a synthetic machine: no store there (C10), no await (C16).
  port.poll(where.state, rma::equals(2), rma::backoff(200, 10'000));
  return object;
}

template <rma::native_port Port>
class pthread_mutex {
 public:
  static constexpr lock::facts about{
      .name = "pthread-mutex",
      .what = lock::kind::mutex,
      .source = "POSIX, pthread_mutex_t with PTHREAD_PROCESS_SHARED",
      .bytes_home = sizeof(pthread_mutex_t),
      .bytes_per_node = 0,
      .bytes_per_participant = 0,
      .needs_native_memory = true,
  };
  using parameters = pthread_parameters;
  struct cells : pthread_cells {
    static cells place(rma::layout& in, const rma::topology&, const parameters&, rma::rank_t home) {
      return {
          {in.take<rma::plain_cell>(1).at(home), in.take<rma::plain_cell>(storage_words).at(home)}};
    }
  };

  pthread_mutex(rma::participant<Port>& me, const cells& where, const parameters& = {})
      : mutex_(shared_object<pthread_mutex_t>(me.port(), where, [](pthread_mutex_t* m) {
          pthread_mutexattr_t attributes;
          check(pthread_mutexattr_init(&attributes), "pthread_mutexattr_init");
          check(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED),
                "pthread_mutexattr_setpshared");
          check(pthread_mutex_init(m, &attributes), "pthread_mutex_init");
          pthread_mutexattr_destroy(&attributes);
        })) {}

  void lock() { check(pthread_mutex_lock(mutex_), "pthread_mutex_lock"); }
  [[nodiscard]] bool try_lock() {
    const int error = pthread_mutex_trylock(mutex_);
    if (error == EBUSY) return false;
    check(error, "pthread_mutex_trylock");
    return true;
  }
  void unlock() { check(pthread_mutex_unlock(mutex_), "pthread_mutex_unlock"); }

 private:
  pthread_mutex_t* mutex_;
};

/// With glibc's default, which prefers readers.
template <rma::native_port Port>
class pthread_rwlock {
 public:
  static constexpr lock::facts about{
      .name = "pthread-rwlock",
      .what = lock::kind::rw,
      .source = "POSIX, pthread_rwlock_t with PTHREAD_PROCESS_SHARED",
      .bytes_home = sizeof(pthread_rwlock_t),
      .bytes_per_node = 0,
      .bytes_per_participant = 0,
      .needs_native_memory = true,
  };
  using parameters = pthread_parameters;
  struct cells : pthread_cells {
    static cells place(rma::layout& in, const rma::topology&, const parameters&, rma::rank_t home) {
      return {
          {in.take<rma::plain_cell>(1).at(home), in.take<rma::plain_cell>(storage_words).at(home)}};
    }
  };

  pthread_rwlock(rma::participant<Port>& me, const cells& where, const parameters& = {})
      : lock_(shared_object<pthread_rwlock_t>(me.port(), where, [](pthread_rwlock_t* l) {
          pthread_rwlockattr_t attributes;
          check(pthread_rwlockattr_init(&attributes), "pthread_rwlockattr_init");
          check(pthread_rwlockattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED),
                "pthread_rwlockattr_setpshared");
          check(pthread_rwlock_init(l, &attributes), "pthread_rwlock_init");
          pthread_rwlockattr_destroy(&attributes);
        })) {}

  void lock() { check(pthread_rwlock_wrlock(lock_), "pthread_rwlock_wrlock"); }
  [[nodiscard]] bool try_lock() {
    const int error = pthread_rwlock_trywrlock(lock_);
    if (error == EBUSY) return false;
    check(error, "pthread_rwlock_trywrlock");
    return true;
  }
  void unlock() { check(pthread_rwlock_unlock(lock_), "pthread_rwlock_unlock"); }

  void lock_shared() { check(pthread_rwlock_rdlock(lock_), "pthread_rwlock_rdlock"); }
  [[nodiscard]] bool try_lock_shared() {
    const int error = pthread_rwlock_tryrdlock(lock_);
    if (error == EBUSY) return false;
    check(error, "pthread_rwlock_tryrdlock");
    return true;
  }
  void unlock_shared() { check(pthread_rwlock_unlock(lock_), "pthread_rwlock_unlock"); }

 private:
  pthread_rwlock_t* lock_;
};

}  // namespace lockflight::baseline
