// Asks the scheduler for time slices that are as short as it gives, for the calling thread and for
// threads that it starts later.
//
// An agent works for some 20 us at a time, and clients wait for its next message meanwhile. Where
// all cores are busy, Linux's scheduler (EEVDF, since 6.6) lets a thread that wakes up run at once
// only if its slice ends before that of the thread that runs. With equal slices, of 1 to 3 ms, each
// message of a handoff could wait that long. A thread with shorter slices goes first, and gets no
// larger share of the processor, so no privilege is needed (sched_setattr(2)). Kernels before 6.12
// ignore the request.
#pragma once

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace lockflight::cluster {

/// The kernel's struct sched_attr, in its first version. <linux/sched/types.h> cannot be included
/// beside <sched.h>: some versions of both define sched_param.
struct scheduling_attributes {
  std::uint32_t size = sizeof(scheduling_attributes);
  std::uint32_t policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime_ns = 0;
  std::uint64_t deadline_ns = 0;
  std::uint64_t period_ns = 0;
};
static_assert(sizeof(scheduling_attributes) == 48, "SCHED_ATTR_SIZE_VER0");

/// False if the kernel refuses, as under a filter of system calls, or if somebody has chosen
/// another policy for the agent than the usual one: the agent works without.
inline bool ask_for_short_slices() {
  constexpr std::uint64_t shortest_ns = 100'000;
  constexpr pid_t calling_thread = 0;
  constexpr unsigned no_flags = 0;
  scheduling_attributes asked;
  if (syscall(SYS_sched_getattr, calling_thread, &asked, sizeof asked, no_flags) != 0) return false;
  if (asked.policy != SCHED_OTHER) return false;
  asked.runtime_ns = shortest_ns;
  return syscall(SYS_sched_setattr, calling_thread, &asked, no_flags) == 0;
}

}  // namespace lockflight::cluster
