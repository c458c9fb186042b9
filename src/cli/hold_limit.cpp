#include "cli/hold_limit.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "lockflight/named_control.hpp"

namespace lockflight::cli {

hold_limit::hold_limit(named_handle& held, const settings& how) : held_(held), how_(how) {
  how_.before_deadline = std::max(how_.before_deadline, deadline_watch::kill_lead);
  if (how_.max_hold) held_.end_after(*how_.max_hold);
}

deadline_watch::times hold_limit::due() {
  deadline_watch::times when;
  const nanoseconds alone = named_control(held_).alone_for();
  if (alone != deadline_watch::never)
    when = {alone - how_.before_deadline, alone - deadline_watch::kill_lead};
  const hold_ending end = held_.ending();
  if (end.why == end_reason::none) return when;
  // The grace begins when this process sees the end: an order may have been written a second ago.
  if (end.in.count() == 0 && ended_at_ns_ == 0) ended_at_ns_ = now_ns();
  const nanoseconds since(ended_at_ns_ == 0 ? 0 : now_ns() - ended_at_ns_);
  when.term = std::min(when.term, end.in);
  when.kill = std::min(when.kill, end.in + how_.after_end - since);
  return when;
}

std::optional<hold_limit::nanoseconds> hold_limit::warning() {
  const hold_ending end = held_.ending();
  if (until_warning().count() > 0 || end.why != end_reason::limit || end.in.count() == 0)
    return std::nullopt;
  has_warned_ = true;
  return end.in;
}

hold_limit::nanoseconds hold_limit::until_warning() const {
  if (!how_.max_hold || has_warned_) return deadline_watch::never;
  return held_.ending().in - *how_.max_hold / 10;
}

const char* word_of_loss(named_handle& held) {
  const hold_ending end = held.ending();
  const bool is_host = named_control(held).alone_for().count() == 0;
  if (is_host || end.why == end_reason::none || end.in.count() > 0) return "host";
  return end.why == end_reason::limit ? "limit" : "broken";
}

}  // namespace lockflight::cli
