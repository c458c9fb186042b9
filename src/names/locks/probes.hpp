// USDT probes of named locks and semaphores, for the provider `lockflight`. docs/domains.md lists
// them for users.
//
// After a wait a clock is read for a probe; nothing else is computed for one.
#pragma once

#include <cstdint>

#include "base/usdt.hpp"

namespace lockflight::detail::probes {

// The names and kinds end with a NUL.

/// An acquire or an attempt begins. It may fail: then `acquired` does not follow.
[[gnu::always_inline]] inline void acquire(const char* name, const char* kind, bool shared) {
  LOCKFLIGHT_PROBE3(lockflight, acquire, name, kind, shared);
}
/// The caller holds. `wait_ns` is the time since it first had to wait for others; 0: it did not.
[[gnu::always_inline]] inline void acquired(const char* name, const char* kind,
                                            std::uint64_t wait_ns) {
  LOCKFLIGHT_PROBE3(lockflight, acquired, name, kind, wait_ns);
}
/// The caller does not hold any more.
[[gnu::always_inline]] inline void released(const char* name, const char* kind) {
  LOCKFLIGHT_PROBE2(lockflight, released, name, kind);
}
/// The caller has replaced the words of the lock, or of a unit, after a death or a stop.
[[gnu::always_inline]] inline void repaired(const char* name, const char* kind) {
  LOCKFLIGHT_PROBE2(lockflight, repaired, name, kind);
}

// Of a lock or of a semaphore: `Handle` has name(), kind_name() and taken_events().

/// Fires the probes after a release.
template <class Handle>
[[gnu::always_inline]] inline void after_release(Handle& of) {
  if (of.taken_events().has_repaired) [[unlikely]]
    repaired(of.name().c_str(), of.kind_name());
  released(of.name().c_str(), of.kind_name());
}

/// Fires the probes around an acquire.
template <class Handle>
class around_acquire {
 public:
  around_acquire(Handle& of, bool shared) : of_(of) {
    acquire(of_.name().c_str(), of_.kind_name(), shared);
  }
  ~around_acquire() {
    // A repair also counts if the acquire throws.
    if (!told_) [[unlikely]]
      tell(false);
  }
  around_acquire(const around_acquire&) = delete;
  around_acquire& operator=(const around_acquire&) = delete;

  [[gnu::always_inline]] bool ended(bool had) {
    told_ = true;
    return tell(had), had;
  }

 private:
  [[gnu::always_inline]] void tell(bool had) {
    const auto events = of_.taken_events();
    if (events.has_repaired) [[unlikely]]
      repaired(of_.name().c_str(), of_.kind_name());
    if (had) acquired(of_.name().c_str(), of_.kind_name(), events.wait_ns);
  }

  Handle& of_;
  bool told_ = false;
};

}  // namespace lockflight::detail::probes
