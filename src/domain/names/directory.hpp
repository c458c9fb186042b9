// The directory of a domain: which locks there are, and where their words lie. A lock is a block of
// lines: the two of its robust lock, those of the lock inside, and its name. Hash chains lead
// through the blocks themselves.
//
// Readers go through the chains without stopping anybody. One participant at a time changes them;
// each change is published by one store, after all that it needs. A death inside leaves at most a
// block that is neither in use nor free; the next one inside finds it.
#pragma once

#include <optional>

#include "domain/names/attachment.hpp"
#include "domain/store/text.hpp"

namespace lockflight::detail {

/// A lock that has a name.
struct found_lock {
  std::uint32_t line = 0;    ///< its first one
  std::uint64_t serial = 0;  ///< no two locks of a domain ever have the same
  const domain_kind* kind = nullptr;
  std::string parameters;
  lock::parameter_values set;       ///< of its class: the same, but for a semaphore's N
  std::uint32_t words = 0;          ///< without those of its name
  std::uint64_t tokens_before = 0;  ///< what a name's earlier locks may have given
};

/// Throws domain_error (invalid).
void check_lock_name(std::string_view name);

/// The lock of that name, if there is one. Takes no slot and waits for nobody.
[[nodiscard]] std::optional<found_lock> find_lock(const domain_file& file, std::string_view name);
[[nodiscard]] std::vector<std::pair<std::string, found_lock>> all_locks(const domain_file& file);
/// The names alone, with the first lines of their locks: much quicker.
[[nodiscard]] std::vector<std::pair<std::string, std::uint32_t>> lines_of_locks(
    const domain_file& file);
/// Throws domain_error (disagrees), which names the process that made it and its kind, unless
/// that is the one asked for.
void check_agreement(const domain_file& file, std::string_view name, const found_lock& found,
                     const domain_kind& kind, const std::string& canonical);

/// Somebody else changes the directory for longer than a caller with a deadline waits.
struct directory_is_busy {};

/// The lock of that name, made if there is none. `canonical` are the parameters. Throws
/// domain_error (disagrees, full, damaged, system), directory_is_busy.
[[nodiscard]] found_lock look_up(attachment& by, std::string_view name, const domain_kind& kind,
                                 const std::string& canonical, const time_limit& how_long);
/// Forgets the name and frees the block, if nobody holds or awaits the lock. Unless `on_request` is
/// set, a name stays in which somebody died, or whose work counts as done now (done_until). Null if
/// that was done, else why not. Throws directory_is_busy.
[[nodiscard]] const char* forget(attachment& by, std::string_view name, const found_lock& what,
                                 bool on_request, const time_limit& how_long);

/// Forgets some names that nobody uses, the oldest first: only of kinds that have an attempt, since
/// the others can be waited for alone. Whether there were any.
bool make_room(attachment& by, const time_limit& how_long);

/// The moment until which the name's work counts as done (named_handle::done_until). Written by an
/// exclusive holder.
[[nodiscard]] std::uint64_t done_until(const domain_file& file, const found_lock& what);
void set_done_until(const domain_file& file, const found_lock& what, std::uint64_t seconds);

/// Ends all locks of the file. No thread acquires them any more: handles open the domain that has
/// the name now.
void end_all(const domain_file& file);

/// The word in which a handle reads whether the words are still its lock's.
[[nodiscard]] const std::atomic<rma::word>& serial_of(const domain_file& file,
                                                      const found_lock& what);
/// The same as a word of rank 0.
[[nodiscard]] std::uint32_t place_of_serial(const found_lock& what);
/// The last token, exclusive acquires and repairs since the lock was made, and whether a holder
/// died, for show.
struct lock_numbers {
  std::uint64_t token, acquires, repairs;
  bool owner_died;
};
[[nodiscard]] lock_numbers numbers_of(const domain_file& file, const found_lock& what);

/// The lock with that first line, and its name.
[[nodiscard]] std::pair<std::string, found_lock> named_at(const domain_file& file,
                                                          std::uint32_t line);
/// A handle of the lock with that first line, whatever its name.
[[nodiscard]] std::unique_ptr<any_robust> lock_at(attachment& me, std::uint32_t line);
[[nodiscard]] std::unique_ptr<any_robust> lock_at(attachment& me, const found_lock& what);

}  // namespace lockflight::detail
