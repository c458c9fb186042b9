// The end of a domain: its file loses its path, and nobody takes a slot in it any more.
//
// Invariants:
// - Only the owner of the right to remove (store/place.hpp) sets and clears the mark `removal` of
//   the header. A mark whose owner is gone, while the path is still there, says nothing.
// - A thread that takes a slot says so first and then asks whether the domain is being removed; a
//   remover marks the domain first and then looks for slots. So one of them sees the other.
#pragma once

#include "domain/store/file.hpp"

namespace lockflight::detail {

/// Whether no thread may take a slot, because a process removes the domain or has removed it.
[[nodiscard]] bool is_removed(const domain_file& file);
/// The process that has marked it last.
[[nodiscard]] int remover_of(const domain_file& file);

/// The slot of that domain that the calling thread has, or -1: it does not count while it is idle.
using own_slot = int (*)(const domain_file&);

/// Called with the file when it has lost its path, if it is not damaged.
using end_of_file = void (*)(const domain_file&);

/// Removes the domain at that place. False if there is none. Throws domain_error (held) if a living
/// participant has a slot. With `force` it does not, and also a damaged file is removed.
bool remove_domain(const domain_place& at, bool force, own_slot own, end_of_file then);

}  // namespace lockflight::detail
