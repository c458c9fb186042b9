// named_locks: several locks in the order of their names.
//
// Invariant: while an acquire waits for a lock, it holds no lock whose name comes after that one.
// So of all threads that wait for each other, the one that waits for the last name waits for a
// thread that waits for none of these.
#include <algorithm>
#include <limits>

#include "domain/store/text.hpp"
#include "fabric/shm/pause.hpp"
#include "lockflight/domain.hpp"

namespace lockflight {

named_locks::named_locks(const domain& in, std::vector<std::string> names) {
  if (names.empty())
    throw domain_error(domain_error::reason::invalid, "no lock (accepted: one name or more)");
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    throw domain_error(domain_error::reason::invalid,
                       "lock " + detail::shown(*twice) + " twice (accepted: each name once)");
  locks_.reserve(names.size());
  for (const std::string& name : names) locks_.emplace_back(in, name);
}
named_locks::named_locks(named_locks&&) noexcept = default;
named_locks& named_locks::operator=(named_locks&&) noexcept = default;
named_locks::~named_locks() = default;

template <class Take>
bool named_locks::acquire(std::uint64_t nanoseconds, bool shared, Take take) {
  if (held_ != 0)
    throw domain_error(domain_error::reason::held, "lock " + detail::shown(locks_.front().name()) +
                                                       ": this handle holds it already");
  const bool is_limited = nanoseconds != 0 && nanoseconds != UINT64_MAX;
  const std::uint64_t until = is_limited ? shm::detail::ns_from_now(nanoseconds) : 0;
  try {
    for (named_lock& each : locks_) {
      if (is_limited) nanoseconds = until - std::min(until, now_ns());
      if (!take(each, nanoseconds)) return release(shared), false;
      ++held_;
    }
  } catch (...) {
    release(shared);
    throw;
  }
  return true;
}

// In reverse, so that a waiter that wants them all waits in one queue.
void named_locks::release(bool shared) {
  while (held_ > 0) {
    named_lock& last = locks_[--held_];
    shared ? last.unlock_shared() : last.unlock();
  }
}

namespace {

bool take_alone(named_lock& lock, std::uint64_t nanoseconds) {
  if (nanoseconds == UINT64_MAX) return lock.lock(), true;
  return lock.try_lock_within(nanoseconds);
}
bool take_shared(named_lock& lock, std::uint64_t nanoseconds) {
  if (nanoseconds == UINT64_MAX) return lock.lock_shared(), true;
  return lock.try_lock_shared_within(nanoseconds);
}

}  // namespace

void named_locks::lock() { acquire(UINT64_MAX, false, take_alone); }
bool named_locks::try_lock() { return acquire(0, false, take_alone); }
bool named_locks::try_lock_within(std::uint64_t nanoseconds) {
  return acquire(nanoseconds, false, take_alone);
}
void named_locks::unlock() {
  if (held_ == 0) locks_.front().unlock();  // says that it is not held
  release(false);
}
void named_locks::lock_shared() { acquire(UINT64_MAX, true, take_shared); }
bool named_locks::try_lock_shared() { return acquire(0, true, take_shared); }
bool named_locks::try_lock_shared_within(std::uint64_t nanoseconds) {
  return acquire(nanoseconds, true, take_shared);
}
void named_locks::unlock_shared() {
  if (held_ == 0) locks_.front().unlock_shared();
  release(true);
}

const std::string& named_locks::awaited() const {
  return locks_[std::min(held_, locks_.size() - 1)].name();
}
bool named_locks::owner_died() const {
  return std::any_of(locks_.begin(), locks_.end(),
                     [](const named_lock& each) { return each.owner_died(); });
}
void named_locks::mark_consistent() {
  for (named_lock& each : locks_) each.mark_consistent();
}
bool named_locks::still_valid() const {
  return std::all_of(locks_.begin(), locks_.end(),
                     [](const named_lock& each) { return each.still_valid(); });
}
std::chrono::nanoseconds named_locks::valid_for() const {
  auto least = std::chrono::nanoseconds::max();
  for (const named_lock& each : locks_) least = std::min(least, each.valid_for());
  return least;
}
void named_locks::interrupt_with(const std::function<bool()>& is_interrupted) {
  for (named_lock& each : locks_) each.interrupt_with(is_interrupted);
}
// All of them are used by one thread, which waits in one at a time.
void named_locks::ask_now() {
  for (named_lock& each : locks_) each.ask_now();
}
// One is enough, since what is guarded is the thread's slot, and with it all that it holds.
void named_locks::extend_to_this_process() noexcept { locks_.front().extend_to_this_process(); }
void named_locks::extend_to(int pid) { locks_.front().extend_to(pid); }
void named_locks::finish() noexcept { locks_.front().finish(); }

}  // namespace lockflight
