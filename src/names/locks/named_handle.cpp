// The public handle, over the classes behind it.
#include <algorithm>

#include "lockflight/named_control.hpp"
#include "names/file/file.hpp"
#include "names/file/text.hpp"
#include "names/life/slots.hpp"
#include "names/life/time_limit.hpp"
#include "names/locks/handle.hpp"

namespace lockflight {

std::optional<std::uint64_t> detail::handle::done_until(limit /*patience*/) {
  throw domain_error(domain_error::reason::invalid,
                     "a note of work that is done (accepted: of one lock)");
}
bool detail::handle::set_done_until(std::uint64_t /*seconds*/, limit patience) {
  return done_until(patience).has_value();
}
std::optional<published_value> detail::handle::published(limit /*patience*/) {
  throw domain_error(domain_error::reason::invalid, "a published value (accepted: of one lock)");
}
bool detail::handle::publish(const std::optional<std::string_view>& /*bytes*/, lasts /*until*/,
                             limit patience) {
  return published(patience).has_value();
}
published_value detail::handle::await_published(const published_value& seen, limit patience) {
  return published(patience).value_or(seen);
}

namespace {
constexpr limit etcd_answers_within = limit::of_ns(5'000'000'000);

[[noreturn, gnu::cold]] void no_answer(const named_handle& of, const std::string& why) {
  throw domain_error(domain_error::reason::system,
                     "lock " + detail::shown(of.name()) + ": its note in etcd: " + why);
}

std::chrono::nanoseconds duration_of(std::uint64_t ns) {
  constexpr auto most = static_cast<std::uint64_t>(std::chrono::nanoseconds::max().count());
  return std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(ns, most)));
}

[[noreturn, gnu::cold]] void refuse_moved() {
  throw domain_error(domain_error::reason::invalid,
                     "a handle from which another was moved (accepted: assigning to it)");
}
}  // namespace

[[gnu::always_inline]] inline detail::handle& named_handle::live() const {
  if (!impl_) [[unlikely]]
    refuse_moved();
  return *impl_;
}

named_handle::named_handle(const domain& in, std::string_view name, const named_lock_options& what)
    : impl_(detail::handle_of_lock(in.file_, name, what)) {}
named_handle::named_handle(const domain& in, std::vector<std::string> names)
    : impl_(detail::handle_of_several(in.file_, std::move(names))) {}
named_handle::named_handle(const domain& in, std::string_view name, const lockflight::units& n)
    : impl_(detail::handle_of_semaphore(in.file_, name, n)) {}
named_handle::named_handle(named_handle&&) noexcept = default;
named_handle& named_handle::operator=(named_handle&&) noexcept = default;
named_handle::~named_handle() = default;

bool named_handle::acquire(mode as, limit patience) {
  if (as == mode::none) [[unlikely]]
    throw domain_error(domain_error::reason::invalid, "mode none (accepted: shared or exclusive)");
  return live().acquire(as, patience);
}
void named_handle::release() { live().release(mode::none); }
void named_handle::release(mode as) { live().release(as); }
void named_handle::release(if_lost /*throws*/) {
  detail::handle& of = live();
  of.check_held(mode::none);
  if (of.valid_for() != 0 && of.is_intact()) return of.release(mode::none);
  of.abandon();
  throw lost_error("lock " + detail::shown(name()) +
                   ": the hold was lost before it was released, so another one may have held "
                   "meanwhile");
}
std::stop_token named_handle::loss() { return live().loss(); }

hold_state named_handle::state() const {
  hold_state now{.held = held(), .token = token(), .unit = unit(), .units_held = units_held()};
  if (now.held == mode::none) return now;
  now.owner_died = owner_died();
  now.valid_for = valid_for();
  now.is_lost = now.valid_for.count() == 0;
  return now;
}

mode named_handle::held() const { return impl_ ? impl_->held() : mode::none; }
bool named_handle::can_share() const { return live().can_share(); }
const std::vector<std::string>& named_handle::names() const { return live().names(); }
const std::string& named_handle::awaited() const { return live().awaited(); }
int named_handle::units_of() const { return live().units(); }
int named_handle::unit() const { return live().unit(); }
std::vector<int> named_handle::units_held() const { return live().units_held(); }
std::vector<std::uint64_t> named_handle::tokens() const { return live().tokens(); }
bool named_handle::owner_died() const { return is_held() && live().owner_died(); }
void named_handle::mark_consistent() { live().mark_consistent(); }
bool named_handle::still_valid() const { return live().still_valid(); }
bool named_handle::is_held_in_some_way() const {
  return is_held() || (impl_ && impl_->is_held_by_parent());
}
std::chrono::nanoseconds named_handle::valid_for() const {
  return duration_of(is_held_in_some_way() ? live().valid_for() : 0);
}
void named_handle::end_after(std::chrono::nanoseconds time) {
  if (time.count() < 0)
    throw domain_error(
        domain_error::reason::invalid,
        "a time limit of " + std::to_string(time.count()) + " ns (accepted: 0 or more)");
  live().end_after(nanoseconds_of(time));
}
hold_ending named_handle::ending() const {
  return is_held_in_some_way() ? live().ending() : hold_ending{};
}
std::uint64_t named_handle::done_until() const {
  const auto until = live().done_until(etcd_answers_within);
  if (!until) no_answer(*this, live().missing_answer());
  return *until;
}
void named_handle::set_done_until(std::uint64_t seconds_since_1970) {
  if (!live().set_done_until(seconds_since_1970, etcd_answers_within))
    no_answer(*this, live().missing_answer());
}

void named_handle::publish(std::string_view bytes, lasts until) {
  if (!live().publish(bytes, until, etcd_answers_within)) no_answer(*this, live().missing_answer());
}
void named_handle::withdraw() {
  if (!live().publish(std::nullopt, lasts::with_name, etcd_answers_within))
    no_answer(*this, live().missing_answer());
}
published_value named_handle::published() const {
  auto found = live().published(etcd_answers_within);
  if (!found) no_answer(*this, live().missing_answer());
  return *std::move(found);
}
published_value named_handle::await_published(const published_value& seen, limit patience) {
  return live().await_published(seen, patience);
}

// A handle that was moved from has nothing to extend or to finish.
void named_control::interrupt_with(std::function<bool()> is_interrupted) {
  of_.live().interrupt_with(is_interrupted);
}
std::chrono::nanoseconds named_control::alone_for() const {
  return duration_of(of_.is_held_in_some_way() ? of_.live().alone_for() : 0);
}
void named_control::keep(std::uint64_t token, const std::string& note) {
  of_.live().keep(token, note);
}
bool named_control::is_held_by_parent() const {
  return of_.impl_ && of_.impl_->is_held_by_parent();
}
std::optional<std::uint64_t> named_control::done_until(limit patience) {
  return of_.live().done_until(patience);
}
bool named_control::set_done_until(std::uint64_t seconds_since_1970, limit patience) {
  return of_.live().set_done_until(seconds_since_1970, patience);
}
void named_control::set_priority(int priority) { of_.live().set_priority(priority); }
bool named_control::publish(std::string_view bytes, lasts until, limit patience) {
  return of_.live().publish(bytes, until, patience);
}
bool named_control::withdraw(limit patience) {
  return of_.live().publish(std::nullopt, lasts::with_name, patience);
}
std::optional<published_value> named_control::published(limit patience) {
  return of_.live().published(patience);
}
std::string named_control::missing_answer() const {
  return of_.impl_ ? of_.impl_->missing_answer() : "";
}
void named_control::ask_now() { of_.live().ask_now(); }
void named_control::guard_nothing_yet() { of_.live().guard_nothing(true); }
void named_control::extend_to_this_process() noexcept {
  if (of_.impl_) of_.impl_->extend_to_this_process();
}
void named_control::extend_to(int pid) { of_.live().extend_to(pid); }
void named_control::finish() noexcept {
  if (of_.impl_) of_.impl_->finish();
}

void call_before_waits(void (*function)()) noexcept { detail::before_waits = function; }

void show_process_as(std::string_view command) noexcept { detail::show_process_as(command); }

}  // namespace lockflight
