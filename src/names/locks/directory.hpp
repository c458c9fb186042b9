// The directory of a domain: which locks there are, and where their words lie. A lock is a block of
// lines: the two of its robust lock, those of the lock inside, and its name. Hash chains lead
// through the blocks themselves.
//
// Readers go through the chains and stop no participant. One participant at a time changes the
// chains; each change is published by one store, after all words that it needs. A death during a
// change leaves at most a block that is neither in use nor free; the next participant that changes
// the directory finds it.
#pragma once

#include <optional>

#include "names/file/text.hpp"
#include "names/locks/attachment.hpp"

namespace lockflight::detail {

/// A lock that has a name.
struct found_lock {
  std::uint32_t line = 0;    ///< the block's first line
  std::uint64_t serial = 0;  ///< no two locks of a domain ever have the same
  const domain_kind* kind = nullptr;
  std::string parameters;
  lock::parameter_values set;       ///< of its class: the same, but for a semaphore's N
  std::uint32_t words = 0;          ///< without those of its name
  std::uint64_t tokens_before = 0;  ///< the greatest that a name's earlier locks may have given
  bool has_set_units = false;       ///< of a semaphore: an operator has chosen its units
};

/// Throws domain_error (invalid).
void check_lock_name(std::string_view name);

/// The lock of that name, if there is one. Takes no slot and does not wait.
[[nodiscard]] std::optional<found_lock> find_lock(const domain_file& file, std::string_view name);
[[nodiscard]] std::vector<std::pair<std::string, found_lock>> all_locks(const domain_file& file);
/// The names alone, with the first lines of their locks: much quicker.
[[nodiscard]] std::vector<std::pair<std::string, std::uint32_t>> lines_of_locks(
    const domain_file& file);
/// Throws domain_error (disagrees), which names the process that made the lock and the lock's kind,
/// unless the kind is the one asked for. Of a semaphore whose units an operator has set, those that
/// are asked for do not count.
void check_agreement(const domain_file& file, std::string_view name, const found_lock& found,
                     const domain_kind& kind, const std::string& canonical);

/// Thrown if another participant changes the directory for longer than a caller with a deadline
/// waits.
struct directory_is_busy {};

/// The lock of that name, made if there is none. `canonical` are the parameters. Throws
/// domain_error (disagrees, full, damaged, system), directory_is_busy.
[[nodiscard]] found_lock look_up(attachment& by, std::string_view name, const domain_kind& kind,
                                 const std::string& canonical, const time_limit& how_long);
/// Removes the name and frees the block, if no participant holds or awaits the lock. Unless
/// `on_request` is set, a name stays if a holder of it died, or if its work counts as done now
/// (done_until). Null if the name was removed, else why not. Throws directory_is_busy.
[[nodiscard]] const char* forget(attachment& by, std::string_view name, const found_lock& what,
                                 bool on_request, const time_limit& how_long);

/// Removes some names that are not in use, the oldest first: only those of kinds that have an
/// attempt, since a lock of another kind can only be waited for. Returns whether there were any.
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
/// The index of that word among the words of rank 0.
[[nodiscard]] std::uint32_t place_of_serial(const found_lock& what);
/// The last token, exclusive acquires and repairs since the lock was made, and whether a holder
/// died: for display only.
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
