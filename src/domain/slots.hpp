// The slots of a domain: taken, given back, found dead, freed.
#pragma once

#include "domain/file.hpp"

namespace lockflight::detail {

/// Words [first_own_word, first_block) of a participant's segment: records and queue nodes.
constexpr std::uint32_t first_own_word = rma::line_words;
constexpr std::uint32_t first_record = first_own_word + 32 * rma::line_words;  ///< behind the nodes

/// Marks the dead that nobody has marked, but not `self`. Returns how many live.
int mark_the_dead(domain_file& file, int self);
/// A free slot that is now this thread's, or -1.
[[nodiscard]] int take_slot(domain_file& file);
/// The steward's, for which the caller may have to wait: for a thread that finds no free slot, and
/// for a moment. Throws domain_error (full).
[[nodiscard]] int take_steward(domain_file& file);
/// Gives back the own slot. With `dead`: as if the thread had died.
void leave_slot(domain_file& file, int slot, bool dead);
/// Makes a dead slot free whose records are idle. False if somebody else does.
bool free_slot(domain_file& file, int slot);
/// Whether no record of the slot says anything.
[[nodiscard]] bool is_idle(const domain_file& file, int slot);
[[nodiscard]] bool has_dead(const domain_file& file);
void ring_all_bells(const domain_file& file);

/// Calls `visit(slot)` for each slot that was ever taken, and the steward's.
template <class Visit>
void for_each_slot(const domain_file& file, Visit visit) {
  const auto used = static_cast<int>(file.header().used_slots.load(std::memory_order_acquire));
  for (int i = 0; i < std::min(used, file.steward()); ++i) visit(i);
  visit(file.steward());
}

}  // namespace lockflight::detail
