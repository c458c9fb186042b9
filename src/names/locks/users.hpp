// The users of the locks of a domain on this host. This is the one place that makes a lock_user of
// a participant: `who`, `top`, messages, the agents of a cluster and all languages read it from
// here.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lockflight/domain.hpp"
#include "names/locks/directory.hpp"

namespace lockflight::detail {

using named_locks_found = std::vector<std::pair<std::string, found_lock>>;

/// The given locks of the directory as their users know them, in the order of their names. A
/// semaphore is one entry, and its units have none. Its users are those of the given units.
[[nodiscard]] std::vector<domain_lock> locks_as_users_see(const domain_file& file,
                                                          const named_locks_found& found);
/// The users of that name on this host.
[[nodiscard]] std::vector<lock_user> users_here(domain_file& file, std::string_view name);
/// True if a participant that lives holds the lock of that block alone; in a cluster's domain also
/// if it waits for other hosts.
[[nodiscard]] bool is_held_alone(domain_file& file, const found_lock& of);
/// True if a participant that lives, and is not of an agent, waits for the lock of that block.
[[nodiscard]] bool is_awaited(const domain_file& file, const found_lock& of);
/// The participant that holds the lock of that block or awaits it; -1: there is none that lives.
[[nodiscard]] int slot_of_user(const domain_file& file, const found_lock& of);

/// The holders first, and then the waiters, each the longest first.
void sort_users(std::vector<lock_user>& users);

}  // namespace lockflight::detail
