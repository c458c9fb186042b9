// What `lockflight run` takes before its command starts: a lock, alone or shared, several locks, or
// a unit of a semaphore.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cli/guarded.hpp"
#include "lockflight/domain.hpp"

namespace lockflight::cli {

class holding {
 public:
  holding(const domain& in, const guarded_command& what);

  /// As long as it takes; for so long at most; 0: without waiting. False if it was not free in that
  /// time.
  [[nodiscard]] bool acquire(std::optional<std::uint64_t> within_ns);
  void release();
  [[nodiscard]] bool is_held() const;

  /// What the command finds in its environment. A run inside of a run inherits nothing of the
  /// outer.
  void tell_command() const;
  /// Of each name, in their order; none if it is shared.
  [[nodiscard]] std::vector<std::uint64_t> tokens() const;
  /// Of a semaphore.
  [[nodiscard]] std::optional<int> unit() const;
  [[nodiscard]] bool owner_died() const;
  /// The command has ended well: if it held alone, what is guarded counts as repaired.
  void mark_consistent();

  /// The lock alone, for --once-per and --leader; these are refused beside what is not one lock.
  [[nodiscard]] named_lock& lock() { return std::get<named_lock>(it_); }
  [[nodiscard]] const named_lock& lock() const { return std::get<named_lock>(it_); }

  // As those of named_lock.
  [[nodiscard]] std::chrono::nanoseconds valid_for() const;
  [[nodiscard]] bool is_lost() const { return is_held() && valid_for().count() == 0; }
  void interrupt_with(const std::function<bool()>& is_interrupted);
  /// The name that an acquire waits for.
  [[nodiscard]] const std::string& awaited() const;
  void extend_to_this_process() noexcept;
  void extend_to(int pid);
  void finish() noexcept;

 private:
  using any = std::variant<named_lock, named_locks, named_semaphore>;
  [[nodiscard]] static any made(const domain& in, const guarded_command& what);

  bool is_shared_;
  any it_;
};

}  // namespace lockflight::cli
