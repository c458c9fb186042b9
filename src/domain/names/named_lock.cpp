#include "domain/names/named_lock.hpp"

#include <algorithm>

#include "domain/names/probes.hpp"

namespace lockflight {

using mode = detail::named_lock_impl::mode;

namespace {
constexpr const char* cannot_leave = "a waiter of this lock cannot leave";
constexpr const char* cannot_share = "it has no shared holders";
using can = catalogue::abilities;
constexpr std::uint64_t forever = detail::named_lock_impl::forever;

template <class Take>
[[gnu::always_inline]] inline bool acquire(detail::named_lock_impl& by, mode as,
                                           std::uint64_t nanoseconds, Take take) {
  detail::probes::around_acquire probe(by, as == mode::shared);
  return probe.ended(by.acquire(as, nanoseconds, take));
}
[[gnu::always_inline]] inline void release(detail::named_lock_impl& by, mode as) {
  by.unlock(as);
  detail::probes::after_release(by);
}
}  // namespace

named_lock::named_lock(const domain& in, std::string_view name, const named_lock_options& what)
    : impl_((detail::check_lock_name(name),
             std::make_unique<detail::named_lock_impl>(
                 in.file_, name, detail::kind_named(what.kind), what.parameters, what.death))) {}
named_lock::named_lock(named_lock&&) noexcept = default;
named_lock& named_lock::operator=(named_lock&&) noexcept = default;
named_lock::~named_lock() = default;

void named_lock::lock() {
  acquire(*impl_, mode::exclusive, forever, [](auto& l, std::uint64_t) { return l.lock(); });
}
bool named_lock::try_lock() {
  impl_->need(&can::tries, cannot_leave);
  return acquire(*impl_, mode::exclusive, 0, [](auto& l, std::uint64_t) { return l.try_lock(); });
}
bool named_lock::try_lock_within(std::uint64_t nanoseconds) {
  if (nanoseconds == 0) return try_lock();
  impl_->need(&can::times, cannot_leave);
  return acquire(*impl_, mode::exclusive, nanoseconds,
                 [](auto& l, std::uint64_t left) { return l.try_lock_within(left); });
}
void named_lock::unlock() { release(*impl_, mode::exclusive); }
bool named_lock::can_share() const { return impl_->kind().can.shares; }
void named_lock::lock_shared() {
  impl_->need(&can::shares, cannot_share);
  acquire(*impl_, mode::shared, forever, [](auto& l, std::uint64_t) { return l.lock_shared(); });
}
bool named_lock::try_lock_shared() {
  impl_->need(&can::shares, cannot_share);
  impl_->need(&can::tries_shared, cannot_leave);
  return acquire(*impl_, mode::shared, 0,
                 [](auto& l, std::uint64_t) { return l.try_lock_shared(); });
}
bool named_lock::try_lock_shared_within(std::uint64_t nanoseconds) {
  if (nanoseconds == 0) return try_lock_shared();
  impl_->need(&can::shares, cannot_share);
  impl_->need(&can::times_shared, cannot_leave);
  return acquire(*impl_, mode::shared, nanoseconds,
                 [](auto& l, std::uint64_t left) { return l.try_lock_shared_within(left); });
}
void named_lock::unlock_shared() { release(*impl_, mode::shared); }

std::uint64_t named_lock::token() const { return impl_->token(); }
bool named_lock::owner_died() const { return is_held() && impl_->owner_died(); }
void named_lock::mark_consistent() {
  impl_->need_exclusive();
  impl_->mark_consistent();
}
std::chrono::nanoseconds named_lock::valid_for() const {
  constexpr auto most = static_cast<std::uint64_t>(std::chrono::nanoseconds::max().count());
  return std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(impl_->valid_for(), most)));
}
std::uint64_t named_lock::done_until() const { return impl_->done_until(); }
void named_lock::set_done_until(std::uint64_t seconds_since_1970) {
  impl_->need_exclusive();
  impl_->set_done_until(seconds_since_1970);
}
bool named_lock::is_held() const { return impl_->held() != mode::none; }
const std::string& named_lock::name() const { return impl_->name(); }
bool named_lock::still_valid() const { return impl_->still_valid(); }
void named_lock::interrupt_with(std::function<bool()> is_interrupted) {
  impl_->interrupt_with(std::move(is_interrupted));
}
void named_lock::ask_now() { impl_->ask_now(); }
void call_before_waits(void (*function)()) noexcept { detail::before_waits = function; }
void named_lock::extend_to_this_process() noexcept { impl_->extend_to_this_process(); }
void named_lock::extend_to(int pid) { impl_->extend_to(pid); }
void named_lock::finish() noexcept { impl_->finish(); }

}  // namespace lockflight
