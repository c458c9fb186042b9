// The end of a domain: its file loses its path, and no thread takes a slot in it any more.
//
// Invariants:
// - Only the owner of the right to remove (names/file/place.hpp) sets and clears the mark `removal`
// of
//   the header. A mark whose owner is gone, while the path is still there, has no meaning.
// - A thread first takes a slot and then reads whether the domain is being removed; a remover first
//   marks the domain and then reads the slots. So at least one of them sees the other.
#pragma once

#include "names/file/file.hpp"

namespace lockflight::detail {

/// True if no thread may take a slot, because a process removes the domain or has removed it.
[[nodiscard]] bool is_removed(const domain_file& file);
/// The process that has marked the domain last.
[[nodiscard]] int remover_of(const domain_file& file);

/// The slot of that domain that the calling thread has, or -1: it does not count while it is idle.
using own_slot = int (*)(const domain_file&);

/// Called with the file when it has lost its path, if it is not damaged.
using end_of_file = void (*)(const domain_file&);

/// Removes the domain at that place. False if there is none. Throws domain_error (held) if a living
/// participant has a slot. With `force` it removes the domain in that case too, and also a damaged
/// file.
bool remove_domain(const domain_place& at, bool force, own_slot own, end_of_file then);

}  // namespace lockflight::detail
