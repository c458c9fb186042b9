#include "handle_object.hpp"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <ranges>
#include <utility>

#include "errors.hpp"
#include "lockflight/named_control.hpp"
#include "seconds.hpp"

namespace lockflight::python {
namespace {

mode mode_of(const part& one, mode as) { return as == mode::none ? one.as : as; }

bool is_held_by_a_task(const recipe& of) {
  return nanobind::cast<bool>(
      nanobind::module_::import_("lockflight._tasks")
          .attr("is_held_by_a_task")(of.in.path().c_str(), of.name.c_str()));
}

/// The holder of a lock that this thread's handle does not hold in the mode of a release, as the
/// end of a sentence. A handle knows of no other one: the domain and this process's tables do.
std::string holder_instead(const recipe& of, const named_handle& mine) {
  if (mine.held() == mode::shared)
    return "this thread holds as a reader (accepted: release_shared)";
  if (mine.is_held()) return "this thread holds alone (accepted: release)";
  if (is_held_by_parent(of))
    return "the parent of this process held when it forked (accepted: the parent releases it)";
  if (is_held_by_another_object(of))
    return "this thread holds by another object of that name (accepted: that object releases it)";
  if (is_held_by_a_task(of))
    return "a task of this process holds (accepted: the end of its `async with`)";
  const auto users = [&] {
    const others_run meanwhile;
    return of.in.users_of(of.name, nullptr, std::chrono::milliseconds(0));  // of this host
  }();
  if (std::ranges::any_of(users, &is_held_by_this_process))
    return "another thread of this process holds (accepted: the thread that acquired releases it)";
  const auto holder = std::ranges::find_if(
      users, [](const lock_user& user) { return !user.waits() && !user.dead; });
  if (holder == users.end()) return "this thread does not hold";
  return "this thread does not hold, but process " + std::to_string(holder->running_pid());
}

/// With `raises_on_loss`, throws lost_error if the hold was lost.
void release_one(const part& one, mode as, bool raises_on_loss = false) {
  entry& mine = my_entry(one.of);
  as = mode_of(one, as);
  if (mine.again > 0 && as == mode::exclusive) [[unlikely]] {
    --mine.again;
    return;
  }
  try {
    const call_in_progress call(*one.of);
    if (one.of->may_be_lost) [[unlikely]] {
      mine.at_loss.reset();
      if (raises_on_loss && (as == mode::none || mine.handle->held() == as)) {
        mine.was_lost = false;
        return mine.handle->release(if_lost::throws);
      }
      mine.was_lost = mine.handle->is_lost();
    }
    mine.handle->release(as);
  } catch (const lost_error&) {
    mine.was_lost = true;
    throw;
  } catch (const domain_error& e) {
    if (e.why != domain_error::reason::not_held) throw;
    throw domain_error(e.why, std::string("release of ") + (one.of->units ? "semaphore" : "lock") +
                                  " '" + one.of->name + "', which " +
                                  holder_instead(*one.of, *mine.handle));
  }
}

void check_can_share(const recipe& of, const named_handle& handle) {
  if (!of.shared)
    refuse(PyExc_TypeError, std::string("acquire_shared of ") + (of.units ? "Semaphore" : "Mutex") +
                                " '" + of.name + "' (accepted: that of a SharedMutex)");
  if (!handle.can_share())
    throw domain_error(domain_error::reason::invalid,
                       "lock '" + handle.name() +
                           "': readers do not share it (accepted: a kind with readers, such as "
                           "flight-rw)");
}

/// Acquires. A candidate's priority is shown until it does not wait any more, or leads
/// (values.hpp).
[[gnu::noinline]] bool acquire_as_candidate(named_handle& handle, mode as, limit patience,
                                            int priority) {
  named_control(handle).set_priority(priority);
  try {
    if (handle.acquire(as, patience)) return true;
  } catch (...) {
    named_control(handle).set_priority(0);
    throw;
  }
  named_control(handle).set_priority(0);
  return false;
}

/// True if the lock is held now. `loss_number` is reported when the hold is lost, unless it is 0.
bool take_one(const part& one, limit patience, mode as, std::uint64_t loss_number) {
  entry& mine = my_entry(one.of);
  as = mode_of(one, as);
  if (one.of->reentrant && as == mode::exclusive && mine.handle->held() == mode::exclusive)
      [[unlikely]]
    return ++mine.again, true;
  if (as == mode::shared) check_can_share(*one.of, *mine.handle);
  {
    call_in_progress call(*one.of);
    if (!mine.used) [[unlikely]] {  // files may have to be opened and made
      call.give_up_interpreter();
      mine.used = true;
    }
    const int priority = one.of->priority;
    const bool has = priority == 0 ? mine.handle->acquire(as, patience)
                                   : acquire_as_candidate(*mine.handle, as, patience, priority);
    if (!has) return false;
    if (call.never_returns()) [[unlikely]]
      mine.handle->release(as);  // else the next holder would be told of a death
  }
  mine.was_lost = false;
  if (one.of->max_hold.count() > 0) [[unlikely]]
    mine.handle->end_after(one.of->max_hold);
  if (loss_number != 0) [[unlikely]] {
    try {
      mine.at_loss = std::make_unique<number_at_loss>(mine.handle->loss(), add_number{loss_number});
    } catch (const std::exception&) {
      release_one(one, as);  // an acquire that raises does not hold the lock
      throw;
    }
  }
  if (one.of->raises && mine.handle->owner_died()) {
    release_one(one, as);  // an acquire that raises does not hold the lock
    refuse(owner_died_type,
           "lock '" + one.of->name +
               "': a holder died, and what the lock guards may be half written (accepted: "
               "on_owner_died='tell', and mark_consistent)");
  }
  return true;
}

/// True if this thread holds one of which `ask` is true.
template <class Ask>
bool any_held(const std::vector<part>& parts, Ask ask) {
  return std::ranges::any_of(parts, [&](const part& each) {
    const named_handle* const mine = holding_handle(*each.of);
    return mine != nullptr && std::invoke(ask, *mine);
  });
}

/// Calls `give` for each, the last first, and throws at the end what was thrown first.
template <class Parts, class Give>
void give_all(const Parts& parts, Give give) {
  std::exception_ptr error;
  for (const part& each : std::views::reverse(parts)) {
    try {
      give(each);
    } catch (const std::exception&) {  // not the end of a thread, as which Python may unwind it
      if (!error) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}

/// As handle_object::take(). `is_over` is asked before each lock, and `loss_number_of` is that of a
/// part.
template <class IsOver, class LossNumberOf>
const recipe* take_all(const std::vector<part>& parts, limit patience, mode as, IsOver is_over,
                       LossNumberOf loss_number_of) {
  const deadline until(patience);
  for (auto each = parts.begin(); each != parts.end(); ++each) {
    const auto give_back = [&] {
      try {
        give_all(std::ranges::subrange(parts.begin(), each),
                 [&](const part& taken) { release_one(taken, as); });
      } catch (const std::exception&) {  // the caller is told why there was no acquire
      }
    };
    try {
      if (!is_over() && take_one(*each, until.left(), as, loss_number_of(*each))) continue;
    } catch (const std::exception&) {
      give_back();
      throw;
    }
    give_back();
    return each->of.get();
  }
  return nullptr;
}

/// True if the lock is held, or all units of the semaphore are.
bool has_no_free_unit(const domain_lock& lock) {
  if (lock.units == 0)
    return std::ranges::any_of(lock.users,
                               [](const lock_user& user) { return !user.dead && !user.waits(); });
  std::vector<int> free = lock.unit_numbers;
  for (const lock_user& user : lock.users)
    if (!user.dead)
      for (const int unit : user.units_held) std::erase(free, unit);
  return free.empty();
}

}  // namespace

cancellable::cancellable(cancellation& by, const std::vector<part>& parts) : by_(by) {
  std::vector<named_handle*> handles;
  for (const part& each : parts) handles.push_back(my_entry(each.of).handle.get());
  by_.set_waiting([handles] {
    for (named_handle* each : handles) named_control(*each).ask_now();
  });
  ends_acquire = &by_;
}

cancellable::~cancellable() {
  ends_acquire = nullptr;
  by_.set_waiting(nullptr);
}

handle_object::handle_object(recipe made) {
  parts_.push_back({.of = std::make_shared<const recipe>(std::move(made))});
  my_entry(parts_.front().of);
}

handle_object::~handle_object() {
  // In a handler of a signal the thread's table may be in use. It drops the handle later.
  if (present_call != nullptr) return;
  for (const part& each : parts_)
    if (each.of.use_count() == 1) my_table().drop(each.of.get());
}

const recipe* handle_object::take(limit patience, mode as) const {
  const auto own_number = [](const part& one) { return one.of->loss_number; };
  if (parts_.size() == 1) [[likely]] {
    const part& one = parts_.front();
    return take_one(one, patience, as, own_number(one)) ? nullptr : one.of.get();
  }
  return take_all(
      parts_, patience, as, [] { return false; }, own_number);
}

const recipe* handle_object::take_for_task(limit patience,
                                           const std::vector<std::uint64_t>& loss_numbers,
                                           const std::function<bool()>& is_over) const {
  return take_all(parts_, patience, mode::none, is_over, [&](const part& one) {
    return loss_numbers[static_cast<std::size_t>(&one - parts_.data())];
  });
}

void handle_object::release(mode as) const {
  give_all(parts_, [&](const part& each) { release_one(each, as); });
}

void handle_object::leave(mode as) const {
  give_all(parts_, [as](const part& each) {
    try {
      release_one(each, as, each.of->raises_on_loss);
    } catch (const domain_error& e) {
      if (e.why != domain_error::reason::not_held || !leaves_hold_of_parent(*each.of)) throw;
    }
  });
}

handle_object::outcome handle_object::take_unless(
    cancellation& cancelled, limit patience, const std::vector<std::uint64_t>& loss_numbers) const {
  const cancellable meanwhile(cancelled, parts_);
  try {
    const recipe* const late =
        take_for_task(patience, loss_numbers, [&] { return cancelled.is_cancelled(); });
    if (late == nullptr) return {};
    return {.is_cancelled = cancelled.is_cancelled(), .late = late};
  } catch (const domain_error& e) {
    if (e.why != domain_error::reason::interrupted || !cancelled.is_cancelled()) throw;
    return {.is_cancelled = true};
  }
}

bool handle_object::is_in_use() const { return any_held(parts_, &named_handle::is_held); }

void handle_object::abandon() const {
  for (const part& each : parts_) my_table().drop(each.of.get());
}

bool handle_object::held() const {
  return std::ranges::all_of(parts_,
                             [](const part& each) { return holding_handle(*each.of) != nullptr; });
}

bool handle_object::owner_died() const { return any_held(parts_, &named_handle::owner_died); }

bool handle_object::lost() const {
  return std::ranges::any_of(parts_, [](const part& each) {
    const auto found = my_table().entries.find(each.of.get());
    if (found == my_table().entries.end()) return false;
    const entry& mine = found->second;
    return mine.handle->is_held() ? mine.handle->is_lost() : mine.was_lost;
  });
}

void handle_object::mark_consistent() const {
  for (const part& each : parts_) my_entry(each.of).handle->mark_consistent();
}

std::uint64_t handle_object::token() const {
  const auto found = my_table().entries.find(parts_.front().of.get());
  return found != my_table().entries.end() ? found->second.handle->token() : 0;
}

std::vector<int> handle_object::units_held() const {
  const named_handle* const mine = holding_handle(*parts_.front().of);
  return mine != nullptr ? mine->units_held() : std::vector<int>{};
}

bool handle_object::still_valid() const {
  return std::ranges::all_of(parts_, [](const part& each) {
    const named_handle* const mine = holding_handle(*each.of);
    return mine != nullptr ? mine->still_valid() : each.of->in.still_valid();
  });
}

double handle_object::valid_for() const {
  auto shortest = std::chrono::nanoseconds::max();
  for (const part& each : parts_) {
    const named_handle* const mine = holding_handle(*each.of);
    shortest =
        std::min(shortest, mine != nullptr ? mine->valid_for() : std::chrono::nanoseconds{0});
  }
  return seconds_of(shortest);
}

bool handle_object::locked() const {
  const auto is_locked = [](const part& one) {
    const recipe& of = *one.of;
    if (!of.units && holding_handle(of) != nullptr) return true;
    const others_run meanwhile;
    for (const domain_lock& each : of.in.locks())
      if (each.name == of.name) return has_no_free_unit(each);
    return false;
  };
  return std::ranges::any_of(parts_, is_locked);
}

}  // namespace lockflight::python
