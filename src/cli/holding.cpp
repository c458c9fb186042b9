#include "cli/holding.hpp"

#include <cstdlib>
#include <string>
#include <utility>

namespace lockflight::cli {
namespace {

// A lock, or several.
template <class Lock>
bool acquire(Lock& lock, bool shared, std::optional<std::uint64_t> within_ns) {
  if (!within_ns) {
    shared ? lock.lock_shared() : lock.lock();
    return true;
  }
  if (*within_ns == 0) return shared ? lock.try_lock_shared() : lock.try_lock();
  return shared ? lock.try_lock_shared_within(*within_ns) : lock.try_lock_within(*within_ns);
}
template <class Lock>
void release(Lock& lock, bool shared) {
  shared ? lock.unlock_shared() : lock.unlock();
}

bool acquire(named_semaphore& semaphore, bool /*shared*/, std::optional<std::uint64_t> within_ns) {
  if (!within_ns) return semaphore.acquire(), true;
  return semaphore.try_acquire_within(*within_ns);
}
void release(named_semaphore& semaphore, bool /*shared*/) { semaphore.release(); }

std::vector<std::uint64_t> tokens_of(const named_lock& lock) { return {lock.token()}; }
std::vector<std::uint64_t> tokens_of(const named_semaphore& semaphore) {
  return {semaphore.token()};
}
std::vector<std::uint64_t> tokens_of(const named_locks& locks) {
  std::vector<std::uint64_t> all;
  for (const named_lock& each : locks.each()) all.push_back(each.token());
  return all;
}

std::string name_of(const named_lock& lock) { return lock.name(); }
std::string token_of(const named_lock& lock) { return std::to_string(lock.token()); }
std::string unit_of(const named_lock&) { return ""; }

std::string name_of(const named_semaphore& semaphore) { return semaphore.name(); }
std::string token_of(const named_semaphore& semaphore) { return std::to_string(semaphore.token()); }
std::string unit_of(const named_semaphore& semaphore) { return std::to_string(semaphore.unit()); }

// A line for each, since no name has a new line.
template <class Of>
std::string lines(const named_locks& locks, Of of) {
  std::string all;
  for (const named_lock& each : locks.each()) all += (all.empty() ? "" : "\n") + of(each);
  return all;
}
std::string name_of(const named_locks& locks) {
  return lines(locks, [](const named_lock& each) { return each.name(); });
}
std::string token_of(const named_locks& locks) {
  return lines(locks, [](const named_lock& each) { return std::to_string(each.token()); });
}
std::string unit_of(const named_locks&) { return ""; }

/// An empty value: the variable is not there.
void set_variable(const char* name, const std::string& value) {
  if (value.empty())
    unsetenv(name);
  else
    setenv(name, value.c_str(), 1);
}

}  // namespace

holding::any holding::made(const domain& in, const guarded_command& what) {
  if (what.units) return named_semaphore(in, what.names.front(), *what.units);
  if (what.names.size() > 1) return named_locks(in, what.names);
  return named_lock(in, what.names.front());
}

holding::holding(const domain& in, const guarded_command& what)
    : is_shared_(what.shared), it_(made(in, what)) {}

bool holding::acquire(std::optional<std::uint64_t> within_ns) {
  return std::visit([&](auto& it) { return cli::acquire(it, is_shared_, within_ns); }, it_);
}
void holding::release() {
  std::visit([&](auto& it) { cli::release(it, is_shared_); }, it_);
}
bool holding::is_held() const {
  return std::visit([](const auto& it) { return it.is_held(); }, it_);
}

void holding::tell_command() const {
  std::visit(
      [&](const auto& it) {
        set_variable("LOCKFLIGHT_LOCK", name_of(it));
        set_variable("LOCKFLIGHT_UNIT", unit_of(it));
        set_variable("LOCKFLIGHT_TOKEN", is_shared_ ? "" : token_of(it));
        set_variable("LOCKFLIGHT_OWNER_DIED", it.owner_died() ? "1" : "");
      },
      it_);
}
std::vector<std::uint64_t> holding::tokens() const {
  if (is_shared_) return {};
  return std::visit([](const auto& it) { return tokens_of(it); }, it_);
}
std::optional<int> holding::unit() const {
  const auto* const semaphore = std::get_if<named_semaphore>(&it_);
  return semaphore != nullptr ? std::optional(semaphore->unit()) : std::nullopt;
}
bool holding::owner_died() const {
  return std::visit([](const auto& it) { return it.owner_died(); }, it_);
}
void holding::mark_consistent() {
  if (is_shared_ || !owner_died()) return;
  std::visit([](auto& it) { it.mark_consistent(); }, it_);
}

std::chrono::nanoseconds holding::valid_for() const {
  return std::visit([](const auto& it) { return it.valid_for(); }, it_);
}
const std::string& holding::awaited() const {
  if (const auto* const several = std::get_if<named_locks>(&it_)) return several->awaited();
  if (const auto* const semaphore = std::get_if<named_semaphore>(&it_)) return semaphore->name();
  return lock().name();
}
void holding::interrupt_with(const std::function<bool()>& is_interrupted) {
  std::visit([&](auto& it) { it.interrupt_with(is_interrupted); }, it_);
}
void holding::extend_to_this_process() noexcept {
  std::visit([](auto& it) { it.extend_to_this_process(); }, it_);
}
void holding::extend_to(int pid) {
  std::visit([&](auto& it) { it.extend_to(pid); }, it_);
}
void holding::finish() noexcept {
  std::visit([](auto& it) { it.finish(); }, it_);
}

}  // namespace lockflight::cli
