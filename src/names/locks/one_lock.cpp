#include "names/locks/one_lock.hpp"

#include <algorithm>
#include <utility>

#include "fabric/shm/pause.hpp"
#include "lockflight/lock/robust/participant.hpp"
#include "names/locks/present_domain.hpp"
#include "names/locks/probes.hpp"

namespace lockflight::detail {

one_lock::one_lock(std::shared_ptr<domain_file> file, std::string_view name,
                   const domain_kind& kind, const std::string& parameters,
                   named_lock_options::on_death death)
    : file_(std::move(file)),
      names_{std::string(name)},
      raises_(death == named_lock_options::on_death::raise),
      kind_(&kind),
      canonical_(kind.canonical(parse_parameters(parameters))) {
  file_->check();
  // A caller that asks for what exists otherwise learns it here.
  if (const auto found = find_lock(*file_, name))
    check_agreement(*file_, name, *found, *kind_, canonical_);
}

one_lock::~one_lock() {
  if (guards_nothing_ && me_ && me_->is_ours()) say_finished(false);
  if (held_ == mode::none) return;
  try {
    if (!me_->is_ours()) {
      drop_from_elsewhere();
      return;
    }
    abandon();
  } catch (...) {  // the domain is damaged or removed, and with it whatever was guarded
  }
}

void one_lock::abandon() {
  check_held(mode::none);
  if (held_ == mode::exclusive) at_->lock->abandon();
  give_back(true);
}

// ---- acquire ----

bool one_lock::acquire(mode as, limit patience) {
  if (as != mode::exclusive || !patience.is_for_ever()) check_ability(as, patience);
  probes::around_acquire probe(*this, as == mode::shared);
  return probe.ended(take(as, patience));
}

void one_lock::check_ability(mode as, limit patience) const {
  using can = catalogue::abilities;
  const auto need = [this](bool can::*ability, const char* lacks) {
    if (kind_->can.*ability) return;
    throw domain_error(domain_error::reason::invalid,
                       "lock " + shown(name()) + ", a " + std::string(kind_->about.name) + ": " +
                           lacks + " (accepted for that: " +
                           catalogue::names_of_those_with(ability, domain_kinds()) + ")");
  };
  constexpr const char* cannot_leave = "a waiter of this lock cannot leave";
  const bool shares = as == mode::shared;
  if (shares) need(&can::shares, "it has no shared holders");
  if (patience.is_attempt()) return need(shares ? &can::tries_shared : &can::tries, cannot_leave);
  if (!patience.is_for_ever()) need(shares ? &can::times_shared : &can::times, cannot_leave);
}

bool one_lock::take(mode as, limit patience) {
  if (is_ready()) [[likely]] {
    if (!me_->holds_nothing() && join_own_share(as)) [[unlikely]]
      return true;
    bool had = false;
    if (try_once(as, patience, had)) [[likely]]
      return had;
  }
  return acquire_slowly(as, patience);
}

// For a thread that would wait for itself. If both of its handles share, the thread holds the lock
// once, by both of them.
[[gnu::noinline]] bool one_lock::join_own_share(mode as) {
  if (!me_->may_hold(at_->found.line)) return false;
  // Another thread that drops the handle that holds comes before this, or after it.
  me_->unless_over([&] {
    const auto own = me_->own_hold(at_->found.line);
    if (!own) return;
    if (as != mode::shared || !own->is_shared)
      refuse_second_hold("another handle of this thread holds it");
    joined_ = own->of->shared_from_this();
    ++joined_->holders;
    held_ = as;
  });
  if (held_ == mode::none) return false;
  if (raises_) raise_if_owner_died();
  return true;
}

// False if the lock or the domain is another one by now: then we hold nothing.
[[gnu::always_inline]] inline bool one_lock::try_once(mode as, limit patience, bool& had) {
  lock_in_use& at = *at_;
  if (interrupt_) [[unlikely]]
    me_->port().set_interrupt(&interrupt_);
  try {
    if (!at.across) [[likely]]
      had = at.lock->acquire(as, patience);
    else
      had = take_across(as, patience);
  } catch (...) {
    failed(std::current_exception());
    return had = false;
  }
  if (interrupt_) {
    if (had) [[likely]]
      me_->port().set_interrupt(nullptr);
    else
      check_interrupt();
  }
  if (!at.is_current()) [[unlikely]] {
    // The name was removed meanwhile, and the words may have become another lock's.
    if (had) at.lock->release(as);
    return had = false;
  }
  if (!had) return true;
  held_ = as;
  at.holders.store(1, std::memory_order_relaxed);  // other threads use it once it is registered
  if (at.lock->held_since_ns >= check_at_ns_ && !is_in_present_domain()) [[unlikely]]
    return had = false;
  me_->register_hold({at.found.line, at.lock->held_record, as == mode::shared, &at});
  if (raises_) [[unlikely]]
    raise_if_owner_died();
  return true;
}

// The lock of this host, and then the name among the hosts. Nothing is held unless this returns
// true.
[[gnu::noinline]] bool one_lock::take_across(mode as, limit patience) {
  lock_in_use& at = *at_;
  domain_port& port = me_->port();
  // Without a limit, and for an attempt, the clock is not read.
  const bool is_limited = !patience.is_attempt() && !patience.is_for_ever();
  const rma::deadline until =
      is_limited ? port.deadline_in(patience.nanoseconds()) : rma::deadline{patience.nanoseconds()};
  if (!at.lock->acquire(as, patience)) return false;
  bool entered = false;
  try {
    // A name that was forgotten meanwhile has no words any more.
    entered = !at.is_current() || at.across->enter(as, port, until, at.lock->held_since_ns);
  } catch (...) {
    at.lock->release(as);
    throw;
  }
  // The name's own words say whether a holder died inside. The lock's mark is also set if a
  // participant died while it waited for other hosts, and has no meaning here.
  if (entered && as == mode::exclusive && at.lock->owner_died()) at.lock->mark_consistent();
  if (!entered) at.lock->release(as);
  return entered;
}

[[gnu::noinline]] bool one_lock::acquire_slowly(mode as, limit patience) {
  const std::uint64_t until = shm::detail::ns_from_now(patience.nanoseconds());
  const bool is_limited = !patience.is_attempt() && !patience.is_for_ever();
  const time_limit how_long{until, interrupt_ ? &interrupt_ : nullptr};
  while (true) {
    try {
      if (!start(how_long)) return false;
      if (!me_->holds_nothing() && join_own_share(as)) return true;
      if (is_limited) patience = limit::of_ns(until - std::min(until, now_ns()));
      bool had = false;
      if (try_once(as, patience, had)) return had;
    } catch (const directory_is_busy&) {
      return false;
    } catch (const domain_error& e) {
      if (e.why != domain_error::reason::removed) throw;
      if (!move_to_present_domain(how_long)) return false;
    }
  }
}

// For a handle that does not hold, whose domain was removed. False if the name has no domain in
// time.
bool one_lock::move_to_present_domain(const time_limit& how_long) {
  token_before_ = token();
  forget_lock();
  use(nullptr);
  auto there = open_present_domain(*file_, how_long);
  if (!there) return false;
  file_ = std::move(there);
  is_stale_ = false;
  return true;
}

// Attaches the thread, and makes a handle of the lock that has our name now. False if there is no
// slot in time.
bool one_lock::start(const time_limit& how_long) {
  if (me_ && !me_->is_ours()) wrong_thread();
  if (held_ != mode::none) refuse_second_hold("this handle holds it already");
  if (is_stale_) file_->throw_removed();
  if (!me_) use(attach_thread(file_, how_long));
  if (!me_) return false;
  // The record says so before the thread can hold: no later holder learns of a death at any
  // moment from here on.
  if (guards_nothing_) [[unlikely]]
    say_finished(true);
  if (is_usable()) return true;
  token_before_ = token();
  forget_lock();
  if (!file_->is_current()) file_->throw_removed();
  const auto made = std::make_shared<lock_in_use>();
  made->found = look_up(*me_, name(), *kind_, canonical_, how_long);
  made->serial = &serial_of(*file_, made->found);
  made->lock = lock_at(*me_, made->found);
  if (file_->is_of_cluster()) made->across.emplace(*file_, made->found.line, name());
  at_ = made;
  if (priority_ != 0) [[unlikely]]
    show_priority();
  return true;
}

void one_lock::forget_lock() { at_.reset(); }

void one_lock::use(std::shared_ptr<attachment> made) {
  const std::lock_guard hold(me_is_used_);
  me_.swap(made);
}

// Called for a holder once a second: a lock in a file without its path excludes no newcomer.
[[gnu::noinline]] bool one_lock::is_in_present_domain() {
  constexpr std::uint64_t check_every_ns = 1'000'000'000;
  check_at_ns_ = at_->lock->held_since_ns + check_every_ns;
  if (file_->is_current()) return true;
  give_back_unregistered(*at_, false);
  is_stale_ = true;
  return false;
}

// Nothing is held when an exception leaves. Returns if the caller is to ask again in the domain
// that has our name now.
[[gnu::noinline]] void one_lock::failed(const std::exception_ptr& how) {
  me_->port().set_interrupt(nullptr);
  me_->port().rest();
  try {
    std::rethrow_exception(how);
  } catch (const domain_error& e) {
    if (e.why != domain_error::reason::removed) throw;
    is_stale_ = true;
  } catch (const lock::not_returned&) {
    throw domain_error(domain_error::reason::interrupted,
                       "lock " + shown(name()) +
                           ": the program jumped out of this handle's last acquire or release, "
                           "which is undone now (the next acquire can succeed)");
  } catch (const std::length_error&) {
    throw domain_error(domain_error::reason::full,
                       "lock " + shown(name()) + ": this thread holds " + std::to_string(records) +
                           " locks already, which is the most");
  }
}

[[gnu::noinline]] void one_lock::check_interrupt() {
  const bool was = me_->port().was_interrupted();
  me_->port().set_interrupt(nullptr);
  if (was)
    throw domain_error(domain_error::reason::interrupted,
                       "lock " + shown(name()) + ": the acquire was interrupted");
}

// The caller does not hold when this throws, and its next acquire succeeds.
[[gnu::noinline]] void one_lock::raise_if_owner_died() {
  if (std::exchange(was_told_, false) || !owner_died()) return;
  was_told_ = true;
  give_back();
  throw owner_died_error("lock " + shown(name()) +
                         ": a holder died (the next acquire of this handle succeeds)");
}

// ---- release ----

void one_lock::release(mode as) {
  give(as);
  probes::after_release(*this);
}

// True if the hold is to be left as by a death: the program was told that it is lost, and may have
// stopped in the middle.
[[gnu::noinline]] bool one_lock::end_watch() {
  const bool was_told = watch_->is_told();
  watch_.reset();
  if (!was_told || held_ != mode::exclusive) return false;
  at_->lock->abandon();
  return true;
}

void one_lock::leave_share() {
  joined_.reset();
  held_ = mode::none;
  if (std::exchange(has_finished_, false)) say_finished(false);
}

// Takes the lock away from the thread that holds, wherever that is, as after a death.
void one_lock::drop_from_elsewhere() {
  if (me_->is_over()) return;  // also in a child, which may have the mutex of unless_over locked
  const auto us = any_attachment(file_);
  me_->unless_over([&] {
    lock_in_use& at = hold();
    if (--at.holders > 0) return;
    at.is_taken_away = true;
    lock_at(*us, at.found)->abandon_from_elsewhere(rank_of_slot(me_->slot()), at.lock->held_record);
    static_cast<void>(us->port().taken_events());
  });
}

// ---- what a handle says ----

std::uint64_t one_lock::token() const {
  if (!at_) return token_before_;
  if (at_->across) return at_->across->token();
  const std::uint64_t own = at_->lock->token();
  return own != 0 ? at_->found.tokens_before + own : token_before_;
}

bool one_lock::owner_died() const {
  if (held_ == mode::none) return false;
  const lock_in_use& at = hold();
  return at.across ? at.across->died() : at.lock->owner_died();
}

void one_lock::mark_consistent() {
  need_exclusive();
  // The next holder then learns of a death. A hold that has come to its end is still alone.
  if (alone_for() == 0) return;
  if (at_->across)
    at_->across->mark_consistent();
  else
    at_->lock->mark_consistent();
}

std::uint64_t one_lock::alone_for() const {
  if (held_ == mode::none || (watch_ && watch_->is_told())) return 0;
  const lock_in_use& at = hold();
  return at.across ? at.across->valid_for() : UINT64_MAX;
}

// In a child of a fork it is about the hold of the parent.
hold_ending one_lock::ending() const {
  if (held_ == mode::none) return {};
  const hold_end end = end_of(own_page(), own_name());
  if (end.why == end_reason::none) return {};
  const std::uint64_t now = boot_time_ns();
  return {std::chrono::nanoseconds(end.at_ns - std::min(now, end.at_ns)), end.why};
}

void one_lock::end_after(std::uint64_t nanoseconds) {
  check_held(mode::none);
  const std::uint64_t now = boot_time_ns();
  set_end(own_page(), own_name(),
          {now + std::min(nanoseconds, UINT64_MAX - now), end_reason::limit});
  if (watch_) watch_->look_now();
}

void one_lock::keep(std::uint64_t token, const std::string& note) {
  check_held(mode::none);
  keep_by(own_page(), token, note);
}

// Shown at once if the thread has its slot and the lock, else as soon as an acquire has them.
void one_lock::set_priority(int priority) {
  priority_ = priority;
  if (!me_ || !me_->is_ours()) return;
  if (priority != 0 && is_usable()) show_priority();
  if (priority == 0) own_page().priority.store(0, std::memory_order_relaxed);
}

void one_lock::show_priority() {
  domain_slot_page& ours = own_page();
  ours.candidate_for.store(at_->found.line, std::memory_order_relaxed);
  const std::uint64_t incarnation = ours.life_now().incarnation;
  // Release: the line is there before the priority.
  ours.priority.store(incarnation << 32 | static_cast<std::uint32_t>(priority_),
                      std::memory_order_release);
}

hold_name one_lock::own_name() const { return name_of_hold(own_page(), hold().lock->held_record); }

std::stop_token one_lock::loss() {
  check_held(mode::none);
  if (!watch_) {
    watch_ = std::make_unique<hold_watch>(file_, own_page(), own_name());
    // The watch began with the host's incarnation of now, which may be later than this hold's.
    if (valid_for() == 0) watch_->tell();
  }
  return watch_->token();
}

// The file is another one after the domain was removed.
name_notes& one_lock::notes() { return notes_.emplace(*file_, name()); }

time_limit one_lock::limit_of_note(limit patience) const {
  return {
      shm::detail::ns_from_now(patience.is_attempt() ? attempts_wait_ns : patience.nanoseconds()),
      interrupt_ ? &interrupt_ : nullptr};
}

std::optional<std::uint64_t> one_lock::done_until(limit patience) {
  if (file_->is_of_cluster()) return notes().done_until(limit_of_note(patience));
  if (held_ != mode::none) return detail::done_until(*file_, at_->found);
  // Without a slot, and without waiting.
  const auto found = find_lock(*file_, name());
  if (!found) return 0;
  const std::uint64_t until = detail::done_until(*file_, *found);
  // If the name was forgotten meanwhile, the word may be another name's.
  return serial_of(*file_, *found).load(std::memory_order_acquire) == found->serial ? until : 0;
}

bool one_lock::set_done_until(std::uint64_t seconds, limit patience) {
  need_exclusive();
  if (file_->is_of_cluster())
    return notes().set_done_until(seconds, token(), limit_of_note(patience));
  detail::set_done_until(*file_, at_->found, seconds);
  return true;
}

bool one_lock::is_at_hand() const {
  if (!file_->is_of_cluster()) return true;
  if (!at_ || !at_->is_current()) return false;
  const words_in_file words(*file_, at_->found.line);
  const cluster::ownership owned = words.get_ownership();
  return owned.incarnation == words.incarnation() && owned.owned == mode::exclusive;
}

// ---- control ----

void one_lock::ask_now() {
  const std::lock_guard hold(me_is_used_);
  if (me_ && !me_->is_over()) me_->port().ask_now();
}

// A child may call this for its parent, which holds. A child of vfork passes for its parent.
void one_lock::extend_to_this_process() noexcept {
  if (held_ == mode::none || (!me_->is_ours() && !me_->is_of_parent())) return;
  domain_slot_page& ours = file_->slot(me_->slot());
  file_->lock_guard(me_->slot(), ours.life_now().incarnation);
  guard(ours, this_thread());
  begin_to_guard();
}

void one_lock::extend_to(int pid) {
  if (held_ == mode::none || !me_->is_ours()) return;
  domain_slot_page& ours = file_->slot(me_->slot());
  // A child of vfork has done it already, unless it is in other namespaces.
  if (!guards_process(ours, pid)) guard(ours, pid == 0 ? thread_identity{} : first_thread_of(pid));
  begin_to_guard();
}

void one_lock::begin_to_guard() noexcept {
  guards_nothing_ = false;
  has_finished_ = false;
  say_finished(false);
}

void one_lock::say_finished(bool is) noexcept {
  domain_slot_page& ours = file_->slot(me_->slot());
  ours.finished.store(is ? ours.life_now().incarnation : 0, std::memory_order_relaxed);
}

void one_lock::guard_nothing_meanwhile(bool is) noexcept {
  if (is == guards_nothing_meanwhile_ || guards_nothing_ || !me_->is_ours()) return;
  if (is && !me_->holds_only(at_.get())) return;
  guards_nothing_meanwhile_ = is;
  say_finished(is);
}

bool one_lock::guard_all_during(const std::function<bool()>& what) {
  const bool guarded_nothing = guards_nothing_meanwhile_;
  const std::size_t holds = me_->holds();
  guard_nothing_meanwhile(false);
  const bool result = what();
  if (guarded_nothing && me_->is_ours() && me_->holds() == holds)
    say_finished(guards_nothing_meanwhile_ = true);
  return result;
}

void one_lock::finish() noexcept {
  if (held_ == mode::none || !me_->is_ours()) return;
  say_finished(true);
  guard(file_->slot(me_->slot()), {});
  has_finished_ = true;
}

// ---- refusals ----

void one_lock::need_exclusive() const {
  if (held_ != mode::exclusive || !me_->is_ours()) not_held(mode::exclusive);
}

void one_lock::refuse_second_hold(const char* by) const {
  throw domain_error(domain_error::reason::held, "lock " + shown(name()) + ": " + by);
}

void one_lock::wrong_thread() const {
  throw domain_error(
      domain_error::reason::wrong_thread,
      "lock " + shown(name()) + ": this handle is another thread's, or was before a fork");
}

void one_lock::not_held(mode as) const {
  if (me_ && !me_->is_ours()) wrong_thread();
  throw domain_error(domain_error::reason::not_held, "lock " + shown(name()) +
                                                         ": this handle does not hold it" +
                                                         (as == mode::exclusive ? " exclusively"
                                                          : as == mode::shared  ? " shared"
                                                                                : ""));
}

std::unique_ptr<handle> handle_of_lock(const std::shared_ptr<domain_file>& file,
                                       std::string_view name, const named_lock_options& what) {
  check_lock_name(name);
  return std::make_unique<one_lock>(file, name, kind_named(what.kind), what.parameters, what.death);
}

}  // namespace lockflight::detail
