#include "cli/period_note.hpp"

#include <algorithm>
#include <cstdint>

namespace lockflight::cli {

period_note::answer period_note::read(named_handle& of, limit patience) {
  const auto until = named_control(of).done_until(patience);
  if (!until) return answer::none;
  constexpr std::uint64_t last_moment = std::uint64_t{1} << 40;  // later ones are units
  if (*until > last_moment)
    throw domain_error(domain_error::reason::disagrees,
                       "lock '" + of.name() +
                           "' is a semaphore whose units were set (accepted: another name for work "
                           "in periods)");
  done_until_ = *until;
  period_end_ = end_of_present_period(length_);
  return done_until_ >= period_end_ ? answer::done : answer::open;
}

period_note::answer period_note::write(named_handle& of, limit patience) {
  period_end_ = end_of_present_period(length_);
  if (done_until_ >= period_end_) return answer::done;
  may_be_written_ = true;  // also if etcd's answer is lost
  return named_control(of).set_done_until(period_end_, patience) ? answer::open : answer::none;
}

bool period_note::take_back(named_handle& of, limit patience) {
  if (may_be_written_ && named_control(of).set_done_until(done_until_, patience))
    may_be_written_ = false;
  return !may_be_written_;
}

bool period_note::take_back_at_end(named_handle& of, limit left) {
  // For this long a run goes on after a signal: an etcd that elects a leader answers within a
  // second or so, and a user who has pressed Ctrl-C does not wait much longer.
  constexpr std::uint64_t at_most_ns = 2'000'000'000;
  if (!may_be_written_) return true;
  named_control(of).interrupt_with(nullptr);
  try {
    return take_back(of, limit::of_ns(std::min(left.nanoseconds(), at_most_ns)));
  } catch (const domain_error& e) {
    return leave_if_lost(of, e);
  }
}

bool period_note::leave_if_lost(const named_handle& of, const domain_error& thrown) {
  if (thrown.why != domain_error::reason::system || !of.is_lost()) return false;
  may_be_written_ = false;
  return true;
}

}  // namespace lockflight::cli
