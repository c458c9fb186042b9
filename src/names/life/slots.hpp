// The slots of a domain: taken, given back, found dead, freed. Only this part of the code knows how
// a death is found out.
//
// Invariants:
// - `owner` names the thread that has the slot. It changes by compare-swap from 0 to the thread
//   that takes it, and from there back to 0 or, once that thread has ended, to one that cleans up.
//   So a death at any point leaves a slot whose owner has ended, which others find.
// - The owner's process has the slot's byte of the file locked from before it is the owner until it
//   is not any more, except when it says itself that it is dead.
// - A slot becomes `living` before the first of its words is written, and `dead` only when its
//   thread, and the process that it guards, have ended.
//
// The function lives() alone decides whether a participant lives. It is in slots.cpp, beside the
// table of its sources.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "names/file/file.hpp"
#include "names/life/liveness.hpp"

namespace lockflight::detail {

/// Takes a free slot for this thread. Returns -1 if there is none. Frees slots that it meets whose
/// owners have ended and that no lock needs. A client does not take the agent's slots
/// (base/agent_slots.hpp).
[[nodiscard]] int take_slot(domain_file& file);
/// Takes the steward's slot, for a thread that finds no free slot while there are dead ones; -1
/// while another thread has it.
[[nodiscard]] int take_steward(domain_file& file);
/// The traces of a thread that are left in its slot.
enum class remains : std::uint8_t {
  nothing,      ///< the slot is free
  queue_nodes,  ///< others may still write to them: until they do not, the slot is dead
  uses,         ///< of locks, as if the thread had died
};
/// Gives back the own slot.
void leave_slot(domain_file& file, int slot, remains what = remains::nothing);
/// Marks as dead the slots of earlier images of this process, and of earlier processes of its
/// number. Called when a process image begins to use the domain: from then on it maps the file, and
/// others cannot distinguish it from the one before. Does nothing if the image has called it
/// before.
void mark_earlier_images(domain_file& file);

/// How thoroughly a participant is examined: `quick` is a system call if it lives, and finds every
/// death but that of a thread of this process whose number another one of its threads has by now.
enum class thoroughness : std::uint8_t { quick, full };
/// Marks the slot dead if its participant has died. Returns whether it is dead.
bool examine(domain_file& file, int slot, thoroughness how);
/// The same for all slots.
void examine_all(domain_file& file);
/// Frees a dead slot whose records are idle. False if another thread does so.
bool free_slot(domain_file& file, int slot);
/// True if the slot is that of a thread that has left, and not died.
[[nodiscard]] bool has_left(const domain_slot_page& slot);
/// True if all records of the slot are idle.
[[nodiscard]] bool is_idle(const domain_file& file, int slot);
[[nodiscard]] bool has_dead(const domain_file& file);
/// From now on the slot's participant lives as long as that process does, too. Processes of other
/// namespaces do not see that process, nor do users from whom /proc hides it: for them the
/// participant lives as long as the byte of the guarded process is locked
/// (domain_file::lock_guard). Async-signal-safe.
void guard(domain_slot_page& slot, const thread_identity& also) noexcept;
/// True if the slot guards the process that has this number in the namespaces of the slot's owner.
[[nodiscard]] bool guards_process(const domain_slot_page& slot, std::int32_t pid) noexcept;
/// The command of the slot's thread, or of the process that it guards if that runs another program.
[[nodiscard]] std::string command_of(const domain_slot_page& slot);
/// The command of this process, or what show_process_as() has set.
[[nodiscard]] std::string command_of_process();
/// Sets what command_of() gives for the slots that threads of this process take from now on.
void show_process_as(std::string_view command) noexcept;
/// True if the numbers of the slot's processes are those of another namespace of processes.
[[nodiscard]] bool has_foreign_pid(const domain_file& file, int slot);
/// "process 4711", or "process 7 of another PID namespace".
[[nodiscard]] std::string process_text(const domain_file& file, int slot);
[[nodiscard]] bool is_stopped(const domain_slot_page& slot);

/// Calls `visit(slot)` for each slot that was ever taken, and the steward's if that was.
template <class Visit>
void for_each_slot(const domain_file& file, Visit visit) {
  // Sequentially consistent, as a remover reads it after its mark (removal.hpp).
  const auto used = static_cast<int>(file.header().used_slots.load());
  for (int i = 0; i < std::min(used, file.steward() + 1); ++i) visit(i);
}

}  // namespace lockflight::detail
