#include "fabric/wired/link.hpp"

#include <sched.h>

#include "fabric/shm/pause.hpp"

namespace lockflight::wired::detail {

link::link(world& in, bool patient) : in_(in), patient_(patient), run_(in.runs) {}

bool link::try_receive(rma::message& got) {
  progress();
  return in_.net->step([&] {
    std::deque<envelope>& inbox = in_.net->inbox();
    while (!inbox.empty()) {
      const envelope first = inbox.front();
      inbox.pop_front();
      if (first.run != run_) continue;  // left over from an earlier run
      got = {static_cast<rma::rank_t>(first.from), first.body};
      return true;
    }
    return false;
  });
}

// The clock is read after a number of steps: so seldom that the reads cost little, and so often
// that a rank that is gone is noticed soon.
void link::progress() {
  constexpr std::uint32_t steps_between_looks = 64;
  constexpr std::uint64_t between_checks_ns = 100'000'000;
  in_.progress();
  if (--steps_until_check_ != 0) return;
  steps_until_check_ = steps_between_looks;
  const std::uint64_t now = now_ns();
  if (now - checked_at_ < between_checks_ns) return;
  checked_at_ = now;
  in_.check();
}

void link::step_while_waiting(unsigned steps) {
  constexpr unsigned steps_before_yield = 2;
  constexpr unsigned steps_between_yields = 1'024;
  progress();
  if (patient_ ? steps >= steps_before_yield : steps % steps_between_yields == 1'023) sched_yield();
}

}  // namespace lockflight::wired::detail
