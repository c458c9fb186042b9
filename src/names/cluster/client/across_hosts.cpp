#include "names/cluster/client/across_hosts.hpp"

#include <algorithm>

#include "fabric/shm/pause.hpp"
#include "names/cluster/client/agent_bell.hpp"

namespace lockflight::detail {
namespace {

/// By how much the coarse clock may be late, in microseconds: some of its ticks, since a processor
/// that ticks for all may be held up. The clock of deadlines is read if less than that is left.
constexpr cluster::instant coarse_clock_is_late = 100'000;
/// How often a handle that is in use finds out whether its process has moved to another time
/// namespace.
constexpr std::uint64_t check_clock_every_ns = 100'000'000;

}  // namespace

bool across_hosts::enter(cluster::mode wanted, domain_port& port, rma::deadline until,
                         std::uint64_t coarse_ns) {
  acquire_.emplace(wanted, words_);
  was_lost_ = false;
  try {
    if (go_on(port, until, coarse_ns)) {
      if (wanted == cluster::mode::exclusive) token_ = number_of(acquire_->fence());
      return true;
    }
  } catch (...) {
    give_up(port);
    throw;
  }
  give_up(port);
  return false;
}

void across_hosts::check_clock(std::uint64_t coarse_ns) {
  const std::uint64_t of_agent = file_.cluster().time_space;
  if (of_agent == time_space_ && coarse_ns - clock_checked_ns_ < check_clock_every_ns) return;
  require_agents_clock(file_);
  time_space_ = of_agent;
  clock_checked_ns_ = coarse_ns;
}

cluster::instant across_hosts::boot_time_at(std::uint64_t coarse_ns) {
  const cluster::instant enters_until =
      words_.deadline() - cluster::told_before(words_.time_to_live());
  if (coarse_ns == read_in_tick_ && enters_until - read_ > coarse_clock_is_late) return read_;
  read_in_tick_ = coarse_ns;
  return read_ = boot_time();
}

bool across_hosts::go_on(domain_port& port, rma::deadline until, std::uint64_t coarse_ns) {
  // The words before the last step that read them, so that any later change is noticed.
  std::optional<words_seen> before;
  for (;;) {
    cluster::instant now = 0;
    if (acquire_->reads_clock()) {
      check_clock(coarse_ns);
      now = before ? boot_time() : boot_time_at(coarse_ns);
    }
    switch (acquire_->step(now)) {
      case acquire::next::step:
        continue;
      case acquire::next::holds:
        return true;
      case acquire::next::rings:
        before = read_words();
        ring_agent(file_, name_);
        continue;
      case acquire::next::waits:
        break;
    }
    if (until.at == 0) until = port.deadline_in(attempts_wait_ns);
    if (before && !await_change(*before, port, until)) return false;
    before = read_words();
  }
}

void across_hosts::give_up(domain_port& port) {
  acquire_->give_up();
  acquire_.reset();
  port.rest();
}

void across_hosts::give_back() {
  if (acquire_->give_back()) ring_agent(file_, name_);
}

// The agent rings the bell of the name's line after each change.
bool across_hosts::await_change(const words_seen& from, domain_port& port,
                                rma::deadline until) const {
  const rma::plain_cell ownership{0, line_ * rma::line_words + words_in_file::ownership_at};
  port.await_until(
      ownership, [&](rma::word) { return read_words() != from; }, until);
  return read_words() != from;
}

std::uint64_t across_hosts::valid_for() const {
  if (!acquire_ || was_lost_) return 0;
  const cluster::instant left = acquire_->valid_until() - boot_time();
  was_lost_ = left <= 0;
  return static_cast<std::uint64_t>(std::max<cluster::instant>(left, 0)) * 1'000;
}

}  // namespace lockflight::detail
