// The functions of lockflight.h that are the same on every fabric.
#include <algorithm>
#include <cstdint>
#include <ctime>
#include <string>
#include <utility>

#include "bindings/c/participant.hpp"

namespace lockflight::capi {
namespace {

using catalogue::hold;

lockflight_participant& participant(lockflight_participant* me) {
  return need(me, "me",
              "a participant, from lockflight_run, lockflight_join_mpi or lockflight_join_ucx");
}

[[noreturn, gnu::cold]] void refuse_destroyed(const handle& of) {
  throw std::invalid_argument("mutex " + of.name +
                              ", which is destroyed (accepted: one that is not)");
}

/// The handle, unless it is NULL or destroyed.
inline handle& live(handle* given) {
  handle& found = need(given, "mutex", "one that lockflight_mutex_create or its like has made");
  if (!found.lock) [[unlikely]]
    refuse_destroyed(found);
  return found;
}

/// The same for a call that needs shared holders. A mutex can come here only by a cast.
handle& live_shared(handle* given) {
  handle& found = live(given);
  if (!found.shares)
    throw refusal(LOCKFLIGHT_WRONG_KIND, "mutex " + found.name +
                                             ", which readers do not share (accepted: one that "
                                             "lockflight_shared_mutex_create has made)");
  return found;
}

void need_ability(const handle& of, bool catalogue::abilities::*ability, const char* lacks) {
  if (of.can.*ability) return;
  throw refusal(LOCKFLIGHT_WRONG_KIND, "lock '" + of.name + "': " + lacks +
                                           " (accepted for that: " + of.owner->locks_with(ability) +
                                           ")");
}

/// The same for a call that upgrades or downgrades.
handle& live_upgradable(handle* given) {
  handle& found = live_shared(given);
  need_ability(found, &catalogue::abilities::upgrades, "it has no upgrade and no downgrade");
  return found;
}

[[noreturn, gnu::cold]] void refuse_held(const handle& of, const char* call) {
  throw refusal(LOCKFLIGHT_HELD, std::string(call) + " of " + of.name +
                                     ", which this participant holds already (accepted: a lock "
                                     "that it does not hold)");
}

inline void require_free(const handle& of, const char* call) {
  if (of.held != hold::none) [[unlikely]]
    refuse_held(of, call);
}

[[nodiscard]] const char* described(hold how) {
  switch (how) {
    case hold::shared:
      return "holds with other readers";
    case hold::exclusive:
      return "holds exclusively";
    case hold::upgrade:
      return "holds for upgrade";
    case hold::none:
      break;
  }
  return "does not hold";
}

[[noreturn, gnu::cold]] void refuse_not_held(const handle& of, const char* call) {
  throw refusal(LOCKFLIGHT_NOT_HELD, std::string(call) + " of " + of.name +
                                         ", which this participant " + described(of.held));
}

inline void require_held(const handle& of, hold how, const char* call) {
  if (of.held != how) [[unlikely]]
    refuse_not_held(of, call);
}

// ---- creating ----

template <class Handle>
Handle& create(lockflight_participant& me, std::deque<Handle>& all,
               const lockflight_lock_options* options, bool shares) {
  const lockflight_lock_options what = options != nullptr ? *options : lockflight_lock_options{};
  lock_request request{
      .name = what.name != nullptr ? what.name : (shares ? "flight-rw" : "flight"),
      .set = catalogue::parse_assignments(what.parameters != nullptr ? what.parameters : ""),
      .home = what.home,
      .shares = shares};
  const lock::parameter_values& tuned = me.tuned.values_of(request.name);
  request.set.insert(tuned.begin(), tuned.end());  // the caller's values go before them
  made_lock made = me.make_lock(request);
  return all.emplace_back(Handle{{&me, request.name, std::move(made.it), shares, made.can}});
}

int destroy(handle* given) {
  return guarded([&] {
    handle& it = live(given);
    require_free(it, "destroy");
    it.lock.reset();
    return LOCKFLIGHT_OK;
  });
}

// ---- locking ----

/// The handle, if it can be held so.
inline handle& live_for(handle* given, hold how) {
  if (how == hold::upgrade) return live_upgradable(given);
  return how == hold::shared ? live_shared(given) : live(given);
}

// Inlined, so that a function of the interface is as short as its own case.
[[gnu::always_inline]] inline int acquire(handle* given, hold how, limit patience, const char* call,
                                          bool leaves = false) {
  return guarded([&] {
    handle& it = live_for(given, how);
    require_free(it, call);
    if (leaves)
      need_ability(
          it,
          how == hold::shared ? &catalogue::abilities::times_shared : &catalogue::abilities::times,
          "a waiter cannot leave");
    any_lock& lock = *it.lock;
    const bool had = how == hold::upgrade ? lock.turn(hold::none, how, patience)
                                          : lock.acquire(static_cast<mode>(how), patience);
    if (!had) return LOCKFLIGHT_BUSY;
    it.held = how;
    return LOCKFLIGHT_OK;
  });
}

int lock(handle* given, hold how) { return acquire(given, how, limit::for_ever(), "lock"); }
int try_lock(handle* given, hold how) { return acquire(given, how, limit::at_once(), "try_lock"); }
int try_lock_for(handle* given, hold how, std::uint64_t nanoseconds) {
  return acquire(given, how, limit::of_ns(nanoseconds), "try_lock_for", true);
}

/// From now until the moment; 0 if it has passed.
std::uint64_t nanoseconds_until(const timespec& moment) {
  constexpr std::int64_t second = 1'000'000'000;
  timespec now{};
  timespec_get(&now, TIME_UTC);
  if (moment.tv_nsec < 0 || moment.tv_nsec >= second)
    throw std::invalid_argument("moment: tv_nsec " + std::to_string(moment.tv_nsec) +
                                " (accepted: 0 to 999999999)");
  const std::int64_t seconds = moment.tv_sec - now.tv_sec;
  if (seconds < 0) return 0;
  if (seconds > INT64_MAX / second - 2) return INT64_MAX;
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, seconds * second + moment.tv_nsec - now.tv_nsec));
}

int try_lock_until(handle* given, hold how, const timespec* moment) {
  std::uint64_t patience = 0;
  const int code = guarded([&] {
    patience = nanoseconds_until(need(moment, "moment", "of TIME_UTC"));
    return LOCKFLIGHT_OK;
  });
  return code == LOCKFLIGHT_OK ? try_lock_for(given, how, patience) : code;
}

[[gnu::always_inline]] inline int unlock(handle* given, hold how) {
  return guarded([&] {
    handle& it = live_for(given, how);
    require_held(it, how, "unlock");
    it.held = hold::none;
    if (how == hold::upgrade)
      static_cast<void>(it.lock->turn(how, hold::none, limit::for_ever()));
    else
      it.lock->release(static_cast<mode>(how));
    return LOCKFLIGHT_OK;
  });
}

/// From one way of holding to another.
int turn(handle* given, hold from, hold to, const char* call) {
  return guarded([&] {
    handle& it = live_upgradable(given);
    require_held(it, from, call);
    if (!it.lock->turn(from, to, limit::for_ever())) return LOCKFLIGHT_BUSY;
    it.held = to;
    return LOCKFLIGHT_OK;
  });
}

// ---- words ----

/// The first of `count` words from `first` on, in the memory of `rank`.
rma::plain_cell cells_of(const lockflight_words& words, int rank, std::uint32_t first,
                         std::uint32_t count) {
  const int ranks = words.owner->ranks();
  if (rank < 0 || rank >= ranks)
    throw std::invalid_argument("rank " + std::to_string(rank) + " (accepted: 0 to " +
                                std::to_string(ranks - 1) + ")");
  if (std::uint64_t{first} + count > words.count)
    throw std::invalid_argument(
        (count == 1 ? "word " + std::to_string(first)
                    : std::to_string(count) + " words from " + std::to_string(first)) +
        " (accepted: below " + std::to_string(words.count) + ", the words there are)");
  return words.first.at(rank) + first;
}

lockflight_words& checked(lockflight_words* given) {
  return need(given, "words", "some that lockflight_words_create has taken");
}

}  // namespace
}  // namespace lockflight::capi

namespace capi = lockflight::capi;

// ---- participants ----

int lockflight_rank(const lockflight_participant* me) { return me != nullptr ? me->rank() : -1; }
int lockflight_ranks(const lockflight_participant* me) { return me != nullptr ? me->ranks() : -1; }

int lockflight_leave(lockflight_participant* me) {
  return capi::guarded([&] {
    const auto& it = capi::need(me, "me", "a participant that has joined");
    if (!it.leaves())
      throw std::invalid_argument(
          "me, a rank of lockflight_run (accepted: a participant that has joined; a rank of a run "
          "ends when its body returns)");
    if (const capi::handle* const held = it.held())
      throw capi::refusal(LOCKFLIGHT_HELD,
                          "leave while this participant holds a lock, " + held->name);
    delete me;
    return LOCKFLIGHT_OK;
  });
}

int lockflight_barrier(lockflight_participant* me) {
  return capi::guarded([&] {
    capi::participant(me).barrier();
    return LOCKFLIGHT_OK;
  });
}

int lockflight_flush(lockflight_participant* me) {
  return capi::guarded([&] {
    capi::participant(me).flush();
    return LOCKFLIGHT_OK;
  });
}

// ---- locks ----

int lockflight_mutex_create(lockflight_participant* me, const lockflight_lock_options* options,
                            lockflight_mutex** mutex) {
  return capi::guarded([&] {
    auto& out = capi::need(mutex, "mutex", "where to put the handle");
    out = &capi::create(capi::participant(me), me->mutexes, options, false);
    return LOCKFLIGHT_OK;
  });
}

int lockflight_shared_mutex_create(lockflight_participant* me,
                                   const lockflight_lock_options* options,
                                   lockflight_shared_mutex** mutex) {
  return capi::guarded([&] {
    auto& out = capi::need(mutex, "mutex", "where to put the handle");
    out = &capi::create(capi::participant(me), me->shared_mutexes, options, true);
    return LOCKFLIGHT_OK;
  });
}

int lockflight_mutex_destroy(lockflight_mutex* mutex) { return capi::destroy(mutex); }
int lockflight_shared_mutex_destroy(lockflight_shared_mutex* mutex) { return capi::destroy(mutex); }

int lockflight_mutex_lock(lockflight_mutex* mutex) {
  return capi::lock(mutex, capi::hold::exclusive);
}
int lockflight_mutex_try_lock(lockflight_mutex* mutex) {
  return capi::try_lock(mutex, capi::hold::exclusive);
}
int lockflight_mutex_try_lock_for(lockflight_mutex* mutex, uint64_t nanoseconds) {
  return capi::try_lock_for(mutex, capi::hold::exclusive, nanoseconds);
}
int lockflight_mutex_try_lock_until(lockflight_mutex* mutex, const struct timespec* moment) {
  return capi::try_lock_until(mutex, capi::hold::exclusive, moment);
}
int lockflight_mutex_unlock(lockflight_mutex* mutex) {
  return capi::unlock(mutex, capi::hold::exclusive);
}

int lockflight_shared_mutex_lock(lockflight_shared_mutex* mutex) {
  return capi::lock(mutex, capi::hold::exclusive);
}
int lockflight_shared_mutex_try_lock(lockflight_shared_mutex* mutex) {
  return capi::try_lock(mutex, capi::hold::exclusive);
}
int lockflight_shared_mutex_try_lock_for(lockflight_shared_mutex* mutex, uint64_t nanoseconds) {
  return capi::try_lock_for(mutex, capi::hold::exclusive, nanoseconds);
}
int lockflight_shared_mutex_try_lock_until(lockflight_shared_mutex* mutex,
                                           const struct timespec* moment) {
  return capi::try_lock_until(mutex, capi::hold::exclusive, moment);
}
int lockflight_shared_mutex_unlock(lockflight_shared_mutex* mutex) {
  return capi::unlock(mutex, capi::hold::exclusive);
}

int lockflight_shared_mutex_lock_shared(lockflight_shared_mutex* mutex) {
  return capi::lock(mutex, capi::hold::shared);
}
int lockflight_shared_mutex_try_lock_shared(lockflight_shared_mutex* mutex) {
  return capi::try_lock(mutex, capi::hold::shared);
}
int lockflight_shared_mutex_try_lock_shared_for(lockflight_shared_mutex* mutex,
                                                uint64_t nanoseconds) {
  return capi::try_lock_for(mutex, capi::hold::shared, nanoseconds);
}
int lockflight_shared_mutex_try_lock_shared_until(lockflight_shared_mutex* mutex,
                                                  const struct timespec* moment) {
  return capi::try_lock_until(mutex, capi::hold::shared, moment);
}
int lockflight_shared_mutex_unlock_shared(lockflight_shared_mutex* mutex) {
  return capi::unlock(mutex, capi::hold::shared);
}

int lockflight_shared_mutex_lock_upgrade(lockflight_shared_mutex* mutex) {
  return capi::lock(mutex, capi::hold::upgrade);
}
int lockflight_shared_mutex_try_lock_upgrade(lockflight_shared_mutex* mutex) {
  return capi::try_lock(mutex, capi::hold::upgrade);
}
int lockflight_shared_mutex_unlock_upgrade(lockflight_shared_mutex* mutex) {
  return capi::unlock(mutex, capi::hold::upgrade);
}

int lockflight_shared_mutex_unlock_upgrade_and_lock(lockflight_shared_mutex* mutex) {
  return capi::turn(mutex, capi::hold::upgrade, capi::hold::exclusive, "unlock_upgrade_and_lock");
}
int lockflight_shared_mutex_try_unlock_shared_and_lock(lockflight_shared_mutex* mutex) {
  return capi::turn(mutex, capi::hold::shared, capi::hold::exclusive, "try_unlock_shared_and_lock");
}
int lockflight_shared_mutex_unlock_and_lock_shared(lockflight_shared_mutex* mutex) {
  return capi::turn(mutex, capi::hold::exclusive, capi::hold::shared, "unlock_and_lock_shared");
}
int lockflight_shared_mutex_unlock_and_lock_upgrade(lockflight_shared_mutex* mutex) {
  return capi::turn(mutex, capi::hold::exclusive, capi::hold::upgrade, "unlock_and_lock_upgrade");
}
int lockflight_shared_mutex_unlock_upgrade_and_lock_shared(lockflight_shared_mutex* mutex) {
  return capi::turn(mutex, capi::hold::upgrade, capi::hold::shared,
                    "unlock_upgrade_and_lock_shared");
}

// ---- words ----

int lockflight_words_create(lockflight_participant* me, uint32_t count, lockflight_words** words) {
  return capi::guarded([&] {
    auto& out = capi::need(words, "words", "where to put the handle");
    lockflight_participant& of = capi::participant(me);
    if (count == 0) throw std::invalid_argument("count 0 (accepted: from 1)");
    out = &of.words.emplace_back(lockflight_words{&of, of.take_words(count), count});
    return LOCKFLIGHT_OK;
  });
}

int lockflight_put(lockflight_words* words, int rank, uint32_t first, uint32_t count,
                   const uint64_t* values) {
  return capi::guarded([&] {
    const lockflight_words& of = capi::checked(words);
    const auto to = capi::cells_of(of, rank, first, count);
    if (count == 0) return LOCKFLIGHT_OK;
    capi::need(values, "values", "as many as are put");
    for (std::uint32_t i = 0; i < count; ++i) of.owner->put(to + i, values[i]);
    return LOCKFLIGHT_OK;
  });
}

int lockflight_get(lockflight_words* words, int rank, uint32_t first, uint32_t count,
                   uint64_t* values) {
  return capi::guarded([&] {
    const lockflight_words& of = capi::checked(words);
    const auto from = capi::cells_of(of, rank, first, count);
    if (count == 0) return LOCKFLIGHT_OK;
    capi::need(values, "values", "room for as many as are got");
    for (std::uint32_t i = 0; i < count; ++i) of.owner->get(from + i, values[i]);
    return LOCKFLIGHT_OK;
  });
}

int lockflight_put_now(lockflight_words* words, int rank, uint32_t index, uint64_t value) {
  return capi::guarded([&] {
    const lockflight_words& of = capi::checked(words);
    of.owner->put(capi::cells_of(of, rank, index, 1), value);
    of.owner->flush(rank);
    return LOCKFLIGHT_OK;
  });
}

int lockflight_get_now(lockflight_words* words, int rank, uint32_t index, uint64_t* value) {
  return capi::guarded([&] {
    const lockflight_words& of = capi::checked(words);
    auto& into = capi::need(value, "value", "room for one word");
    of.owner->get(capi::cells_of(of, rank, index, 1), into);
    of.owner->flush(rank);
    return LOCKFLIGHT_OK;
  });
}
