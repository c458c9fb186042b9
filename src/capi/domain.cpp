// The functions of lockflight.h for domains and named locks.
#include "lockflight/domain.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "capi/error.hpp"

struct lockflight_domain {
  lockflight::domain it;
};

struct lockflight_named {
  lockflight::domain in;
  lockflight::named_lock it;
};

struct lockflight_semaphore {
  lockflight::domain in;
  lockflight::named_semaphore it;
};

namespace lockflight::capi {
namespace {

lockflight_code code_of(domain_error::reason why) {
  using reason = domain_error::reason;
  switch (why) {
    case reason::invalid:
    case reason::wrong_thread:
      return LOCKFLIGHT_INVALID;
    case reason::missing:
      return LOCKFLIGHT_UNKNOWN;
    case reason::disagrees:
      return LOCKFLIGHT_WRONG_KIND;
    case reason::full:
      return LOCKFLIGHT_FULL;
    case reason::not_held:
      return LOCKFLIGHT_NOT_HELD;
    case reason::held:
      return LOCKFLIGHT_HELD;
    case reason::removed:
      return LOCKFLIGHT_REMOVED;
    case reason::interrupted:
      return LOCKFLIGHT_INTERRUPTED;
    case reason::damaged:
    case reason::system:
      return LOCKFLIGHT_UNAVAILABLE;
  }
  return LOCKFLIGHT_INTERNAL;
}

/// guarded(), for calls that throw domain_error.
template <class Call>
int guarded_domain(Call call) noexcept {
  return guarded([&] {
    try {
      return int{call()};
    } catch (const domain_error& e) {
      throw refusal(code_of(e.why), e.what());
    }
  });
}

named_lock& live(lockflight_named* given) {
  return need(given, "lock", "one that lockflight_named_create has made").it;
}
const named_lock& live(const lockflight_named* given) {
  return need(given, "lock", "one that lockflight_named_create has made").it;
}

named_semaphore& live(lockflight_semaphore* given) {
  return need(given, "semaphore", "one that lockflight_semaphore_create has made").it;
}
const named_semaphore& live(const lockflight_semaphore* given) {
  return need(given, "semaphore", "one that lockflight_semaphore_create has made").it;
}

std::string described(const named_lock& lock) { return "lock '" + lock.name() + "'"; }
std::string described(const named_semaphore& semaphore) {
  return "semaphore '" + semaphore.name() + "'";
}

// What follows is the same for a lock and for a semaphore, whose unit is held as a lock is.

template <class Held>
void require_holding(const Held& it, const char* what) {
  if (!it.is_held())
    throw refusal(LOCKFLIGHT_NOT_HELD,
                  std::string(what) + " of " + described(it) + ", which this thread does not hold");
}
/// The code of an acquire that has succeeded.
template <class Held>
int told(const Held& it) {
  if (!it.owner_died()) return LOCKFLIGHT_OK;
  return lockflight_detail_fail(
      LOCKFLIGHT_OWNER_DIED,
      (described(it) + " is held, and a holder before has died (" +
       (std::is_same_v<Held, named_lock> ? "lockflight_named" : "lockflight_semaphore") +
       "_mark_consistent ends this)")
          .c_str());
}
template <class Handle>
int destroy(Handle* handle) {
  return guarded_domain([&] {
    const auto& it = live(handle);
    if (it.is_held())
      throw refusal(LOCKFLIGHT_HELD, "destroy of " + described(it) +
                                         ", which this thread holds (accepted: one that it does "
                                         "not hold)");
    delete handle;
    return LOCKFLIGHT_OK;
  });
}
/// Of an array of the C interface, whose last byte stays 0.
template <std::size_t Size>
void copy(const std::string& from, char (&to)[Size]) {
  from.copy(to, Size - 1);
}
template <class Handle>
int holder(const Handle* handle, lockflight_holder* to) {
  return guarded_domain([&] {
    lockflight_holder& out = need(to, "holder", "where to put it");
    const auto& it = live(handle);
    const auto uses = handle->in.uses_of(it.name());
    const auto holders = std::count_if(uses.begin(), uses.end(), [](const auto& each) {
      return each.what != domain_lock_use::how::waits;
    });
    if (holders == 0)
      throw refusal(LOCKFLIGHT_UNKNOWN, "holder of " + described(it) + ", which nobody holds");
    const domain_use_elsewhere& first = uses.front();
    out = {};
    out.holders = static_cast<int>(holders);
    out.pid = first.has_foreign_pid ? 0 : first.pid;
    out.unit = first.unit;
    out.nanoseconds = first.milliseconds * 1'000'000;
    copy(first.command, out.command);
    copy(first.host, out.host);
    return LOCKFLIGHT_OK;
  });
}
template <class Handle>
int owner_died(const Handle* handle) {
  return guarded_domain([&] {
    const auto& it = live(handle);
    require_holding(it, "owner_died");
    return told(it);
  });
}
template <class Handle>
int still_valid(const Handle* handle) {
  return guarded_domain([&] {
    const auto& it = live(handle);
    require_holding(it, "still_valid");
    if (!it.still_valid())
      throw refusal(LOCKFLIGHT_REMOVED,
                    described(it) + ", whose domain has been removed: it excludes nobody now");
    return LOCKFLIGHT_OK;
  });
}
template <class Handle>
int valid_for(const Handle* handle, uint64_t* nanoseconds) {
  return guarded_domain([&] {
    uint64_t& out = need(nanoseconds, "nanoseconds", "where to put them");
    const std::chrono::nanoseconds left = live(handle).valid_for();
    out =
        left == std::chrono::nanoseconds::max() ? UINT64_MAX : static_cast<uint64_t>(left.count());
    return LOCKFLIGHT_OK;
  });
}
template <class Handle>
int is_lost(const Handle* handle) {
  return guarded_domain([&] {
    const auto& it = live(handle);
    require_holding(it, "is_lost");
    if (it.is_lost())
      throw refusal(
          LOCKFLIGHT_LOST,
          described(it) + ", whose host was cut off from its cluster: others may hold it");
    return LOCKFLIGHT_OK;
  });
}
template <class Handle>
int token(const Handle* handle, uint64_t* to) {
  return guarded_domain([&] {
    need(to, "token", "where to put it") = live(handle).token();
    return LOCKFLIGHT_OK;
  });
}
template <class Handle>
int mark_consistent(Handle* handle) {
  return guarded_domain([&] {
    live(handle).mark_consistent();
    return LOCKFLIGHT_OK;
  });
}
template <class Handle>
int interrupt_with(Handle* handle, int (*is_interrupted)(void*), void* argument) {
  return guarded_domain([&] {
    auto& it = live(handle);
    if (is_interrupted == nullptr)
      it.interrupt_with(nullptr);
    else
      it.interrupt_with([=] { return is_interrupted(argument) != 0; });
    return LOCKFLIGHT_OK;
  });
}

void require_sharing(const named_lock& lock) {
  if (!lock.can_share())
    throw refusal(LOCKFLIGHT_WRONG_KIND, "lock '" + lock.name() +
                                             "', which readers do not share (accepted: one of kind "
                                             "flight-rw)");
}

template <class Acquire>
int acquire(lockflight_named* given, bool shared, Acquire call) {
  return guarded_domain([&] {
    named_lock& lock = live(given);
    if (shared) require_sharing(lock);
    return call(lock) ? told(lock) : LOCKFLIGHT_BUSY;
  });
}
template <class Acquire>
int acquire(lockflight_semaphore* given, Acquire call) {
  return guarded_domain([&] {
    named_semaphore& semaphore = live(given);
    return call(semaphore) ? told(semaphore) : LOCKFLIGHT_BUSY;
  });
}

}  // namespace
}  // namespace lockflight::capi

namespace capi = lockflight::capi;

// ---- domains ----

int lockflight_domain_open(const char* name, const lockflight_domain_options* options,
                           lockflight_domain** domain) {
  return capi::guarded_domain([&] {
    auto& out = capi::need(domain, "domain", "where to put it");
    const char& first = capi::need(name, "name", "the domain's name");
    lockflight::domain_options what;
    if (options != nullptr) {
      if (options->slots != 0) what.slots = options->slots;
      if (options->names != 0) what.names = options->names;
      what.mode = options->mode;
      if (options->group != nullptr) what.group = options->group;
    }
    out = new lockflight_domain{lockflight::domain::open(&first, what)};
    return LOCKFLIGHT_OK;
  });
}

int lockflight_domain_close(lockflight_domain* domain) {
  return capi::guarded_domain([&] {
    delete &capi::need(domain, "domain", "one that lockflight_domain_open has opened");
    return LOCKFLIGHT_OK;
  });
}

int lockflight_domain_remove(const char* name, int force) {
  return capi::guarded_domain([&] {
    const char& first = capi::need(name, "name", "the domain's name");
    if (!lockflight::domain::remove(&first, force != 0))
      throw capi::refusal(LOCKFLIGHT_UNKNOWN, "domain '" + std::string(&first) +
                                                  "', which does not exist (accepted: one that "
                                                  "does)");
    return LOCKFLIGHT_OK;
  });
}

// ---- named locks ----

int lockflight_named_create(lockflight_domain* domain, const char* name,
                            const lockflight_named_options* options, lockflight_named** lock) {
  return capi::guarded_domain([&] {
    auto& out = capi::need(lock, "lock", "where to put the handle");
    const auto& in = capi::need(domain, "domain", "one that lockflight_domain_open has opened");
    const char& first = capi::need(name, "name", "the lock's name");
    lockflight::named_lock_options what;
    if (options != nullptr) {
      if (options->kind != nullptr) what.kind = options->kind;
      if (options->parameters != nullptr) what.parameters = options->parameters;
    }
    out = new lockflight_named{in.it, lockflight::named_lock(in.it, &first, what)};
    return LOCKFLIGHT_OK;
  });
}

int lockflight_named_destroy(lockflight_named* lock) { return capi::destroy(lock); }

int lockflight_named_lock(lockflight_named* lock) {
  return capi::acquire(lock, false, [](auto& it) {
    it.lock();
    return true;
  });
}
int lockflight_named_try_lock(lockflight_named* lock) {
  return capi::acquire(lock, false, [](auto& it) { return it.try_lock(); });
}
int lockflight_named_try_lock_for(lockflight_named* lock, uint64_t nanoseconds) {
  return capi::acquire(lock, false, [&](auto& it) { return it.try_lock_within(nanoseconds); });
}
int lockflight_named_unlock(lockflight_named* lock) {
  return capi::guarded_domain([&] {
    capi::live(lock).unlock();
    return LOCKFLIGHT_OK;
  });
}

int lockflight_named_lock_shared(lockflight_named* lock) {
  return capi::acquire(lock, true, [](auto& it) {
    it.lock_shared();
    return true;
  });
}
int lockflight_named_try_lock_shared(lockflight_named* lock) {
  return capi::acquire(lock, true, [](auto& it) { return it.try_lock_shared(); });
}
int lockflight_named_try_lock_shared_for(lockflight_named* lock, uint64_t nanoseconds) {
  return capi::acquire(lock, true,
                       [&](auto& it) { return it.try_lock_shared_within(nanoseconds); });
}
int lockflight_named_unlock_shared(lockflight_named* lock) {
  return capi::guarded_domain([&] {
    capi::live(lock).unlock_shared();
    return LOCKFLIGHT_OK;
  });
}

int lockflight_named_holder(const lockflight_named* lock, lockflight_holder* holder) {
  return capi::holder(lock, holder);
}
int lockflight_named_token(const lockflight_named* lock, uint64_t* token) {
  return capi::token(lock, token);
}
int lockflight_named_owner_died(const lockflight_named* lock) { return capi::owner_died(lock); }
int lockflight_named_mark_consistent(lockflight_named* lock) { return capi::mark_consistent(lock); }
int lockflight_named_still_valid(const lockflight_named* lock) { return capi::still_valid(lock); }
int lockflight_named_valid_for(const lockflight_named* lock, uint64_t* nanoseconds) {
  return capi::valid_for(lock, nanoseconds);
}
int lockflight_named_is_lost(const lockflight_named* lock) { return capi::is_lost(lock); }
int lockflight_named_interrupt_with(lockflight_named* lock, int (*is_interrupted)(void*),
                                    void* argument) {
  return capi::interrupt_with(lock, is_interrupted, argument);
}

// ---- named semaphores ----

int lockflight_semaphore_create(lockflight_domain* domain, const char* name, int units,
                                lockflight_semaphore** semaphore) {
  return capi::guarded_domain([&] {
    auto& out = capi::need(semaphore, "semaphore", "where to put the handle");
    const auto& in = capi::need(domain, "domain", "one that lockflight_domain_open has opened");
    const char& first = capi::need(name, "name", "the semaphore's name");
    out = new lockflight_semaphore{in.it, lockflight::named_semaphore(in.it, &first, units)};
    return LOCKFLIGHT_OK;
  });
}
int lockflight_semaphore_destroy(lockflight_semaphore* semaphore) {
  return capi::destroy(semaphore);
}

int lockflight_semaphore_acquire(lockflight_semaphore* semaphore) {
  return capi::acquire(semaphore, [](auto& it) {
    it.acquire();
    return true;
  });
}
int lockflight_semaphore_try_acquire(lockflight_semaphore* semaphore) {
  return capi::acquire(semaphore, [](auto& it) { return it.try_acquire(); });
}
int lockflight_semaphore_try_acquire_for(lockflight_semaphore* semaphore, uint64_t nanoseconds) {
  return capi::acquire(semaphore, [&](auto& it) { return it.try_acquire_within(nanoseconds); });
}
int lockflight_semaphore_release(lockflight_semaphore* semaphore) {
  return capi::guarded_domain([&] {
    capi::live(semaphore).release();
    return LOCKFLIGHT_OK;
  });
}
int lockflight_semaphore_unit(const lockflight_semaphore* semaphore, int* unit) {
  return capi::guarded_domain([&] {
    int& out = capi::need(unit, "unit", "where to put it");
    const auto& it = capi::live(semaphore);
    capi::require_holding(it, "unit");
    out = it.unit();
    return LOCKFLIGHT_OK;
  });
}

int lockflight_semaphore_holder(const lockflight_semaphore* semaphore, lockflight_holder* holder) {
  return capi::holder(semaphore, holder);
}
int lockflight_semaphore_token(const lockflight_semaphore* semaphore, uint64_t* token) {
  return capi::token(semaphore, token);
}
int lockflight_semaphore_owner_died(const lockflight_semaphore* semaphore) {
  return capi::owner_died(semaphore);
}
int lockflight_semaphore_mark_consistent(lockflight_semaphore* semaphore) {
  return capi::mark_consistent(semaphore);
}
int lockflight_semaphore_still_valid(const lockflight_semaphore* semaphore) {
  return capi::still_valid(semaphore);
}
int lockflight_semaphore_valid_for(const lockflight_semaphore* semaphore, uint64_t* nanoseconds) {
  return capi::valid_for(semaphore, nanoseconds);
}
int lockflight_semaphore_is_lost(const lockflight_semaphore* semaphore) {
  return capi::is_lost(semaphore);
}
int lockflight_semaphore_interrupt_with(lockflight_semaphore* semaphore,
                                        int (*is_interrupted)(void*), void* argument) {
  return capi::interrupt_with(semaphore, is_interrupted, argument);
}
