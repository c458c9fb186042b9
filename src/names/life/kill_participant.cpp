#include "names/life/kill_participant.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/descriptor.hpp"
#include "names/life/hold_end.hpp"
#include "names/life/liveness.hpp"

namespace lockflight::detail {
namespace {

/// `is_meant` is asked when the process is pinned: from then on its number means no other one.
template <class IsMeant>
kill_result kill_process(const thread_identity& who, extent what, IsMeant is_meant) {
  if (who.pid <= 0) return kill_result::gone;
  if (who.pid == getpid()) return kill_result::not_permitted;
  const descriptor pinned(static_cast<int>(syscall(SYS_pidfd_open, who.pid, 0)));
  if (!pinned && errno == ESRCH) return kill_result::gone;
  if (!is_meant() || life_of(who, what) == life::gone) return kill_result::gone;
  const long failed = pinned ? syscall(SYS_pidfd_send_signal, pinned.get(), SIGKILL, nullptr, 0)
                             : kill(who.pid, SIGKILL);  // a kernel before Linux 5.3
  if (failed == 0) return kill_result::sent;
  return errno == ESRCH ? kill_result::gone : kill_result::not_permitted;
}

}  // namespace

// The participant comes first: a run that finds its command killed would release as if the command
// had ended by itself.
kill_result kill_participant(const domain_file& file, int slot, std::uint32_t incarnation) {
  const domain_slot_page& s = file.slot(slot);
  const auto is_meant = [&] {
    return s.life_now().bits() == slot_life{slot_state::living, incarnation}.bits();
  };
  const std::uint64_t owner = s.owner.load(std::memory_order_acquire);
  if (!is_meant()) return kill_result::gone;
  if (!thread_identity::is_of(our_space(), owner)) return kill_result::elsewhere;
  const bool is_born_known = s.born_of.load(std::memory_order_acquire) == owner;
  const std::uint64_t born = s.born.load(std::memory_order_acquire);
  const std::uint64_t guarded = s.guarded.load(std::memory_order_acquire);
  const std::uint64_t guarded_born = s.guarded_born.load(std::memory_order_acquire);
  const kill_result of_owner = kill_process(thread_identity::from(owner, is_born_known ? born : 0),
                                            extent::thread, is_meant);
  if (of_owner == kill_result::not_permitted || guarded_born == 0 ||
      !thread_identity::is_of(our_space(), guarded))
    return of_owner;
  const kill_result of_guarded = kill_process(thread_identity::from(guarded, guarded_born),
                                              extent::process, [] { return true; });
  return of_owner == kill_result::sent ? of_owner : of_guarded;
}

void wake_participant(const domain_slot_page& s) {
  const std::uint64_t owner = s.owner.load(std::memory_order_acquire);
  const bool looks = s.guarded.load(std::memory_order_acquire) != 0 || kept_token(s) != 0;
  if (!looks || !thread_identity::is_of(our_space(), owner)) return;
  const thread_identity who = thread_identity::from(owner, 0);
  if (who.pid > 0 && who.pid != getpid()) kill(who.pid, SIGCHLD);
}

}  // namespace lockflight::detail
