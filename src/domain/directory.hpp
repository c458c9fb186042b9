// The directory of a domain: which locks there are, and where their words lie.
//
// Each change is published by one store, after all that it needs. A death inside leaves at most
// something that is neither in use nor free; the next one inside finds it.
#pragma once

#include <optional>

#include "domain/attachment.hpp"

namespace lockflight::detail {

/// A lock that has a name.
struct found_lock {
  std::uint32_t line = 0;
  std::uint64_t serial = 0;  ///< no two locks of a domain ever have the same
  const domain_kind* kind = nullptr;
  std::string parameters;
  std::uint32_t words = 0;
  std::uint64_t tokens_before = 0;  ///< what a name's earlier locks may have given
};

/// Beside a lock's control line (robust::cells::beside).
constexpr std::uint32_t serial_beside = 5;
constexpr std::uint32_t class_beside = 6;  ///< 1 + the class, for ever once the block is made
constexpr std::uint32_t next_beside = 7;   ///< of a free block: the next one's line

/// Throws domain_error (invalid).
void check_lock_name(std::string_view name);
/// "'jobs'", for errors: without what would spoil a line.
[[nodiscard]] std::string shown(std::string_view name);

/// The lock of that name, made if there is none. `canonical` are the parameters. Throws
/// domain_error (disagrees, full, damaged).
[[nodiscard]] found_lock look_up(domain_file& file, std::string_view name, const domain_kind& kind,
                                 const std::string& canonical);
/// The same without making it.
[[nodiscard]] std::optional<found_lock> find_lock(domain_file& file, std::string_view name);
[[nodiscard]] std::vector<std::pair<std::string, found_lock>> all_locks(domain_file& file);
/// Forgets the name. The caller holds its lock and lets nobody in before `serial` is gone. False if
/// the name has another lock by now.
bool forget(domain_file& file, std::string_view name, const found_lock& what);
/// Gives its words back: nobody holds it.
void free_block(domain_file& file, const found_lock& what);

/// A handle of the lock with that control line, whatever its name.
[[nodiscard]] std::unique_ptr<any_robust> lock_at(attachment& me, std::uint32_t line);
[[nodiscard]] std::unique_ptr<any_robust> lock_at(attachment& me, const found_lock& what);

}  // namespace lockflight::detail
