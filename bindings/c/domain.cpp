// The functions of lockflight.h for domains and named locks. A lock, several locks and a semaphore
// are one kind of handle; the functions of semaphores are those of locks by other names.
#include "bindings/c/domain.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "lockflight/named_control.hpp"

namespace lockflight::capi {
namespace {

lockflight_code code_of(domain_error::reason why) {
  using reason = domain_error::reason;
  switch (why) {
    case reason::invalid:
    case reason::wrong_thread:
      return LOCKFLIGHT_INVALID;
    case reason::missing:
      return LOCKFLIGHT_UNKNOWN;
    case reason::disagrees:
      return LOCKFLIGHT_WRONG_KIND;
    case reason::full:
      return LOCKFLIGHT_FULL;
    case reason::not_held:
      return LOCKFLIGHT_NOT_HELD;
    case reason::held:
      return LOCKFLIGHT_HELD;
    case reason::removed:
      return LOCKFLIGHT_REMOVED;
    case reason::interrupted:
      return LOCKFLIGHT_INTERRUPTED;
    case reason::damaged:
    case reason::system:
      return LOCKFLIGHT_UNAVAILABLE;
  }
  return LOCKFLIGHT_INTERNAL;
}

}  // namespace

int code_of_domain_exception() noexcept {
  try {
    throw;
  } catch (const domain_error& e) {
    return lockflight_detail_fail(code_of(e.why), e.what());
  } catch (...) {
    return code_of_exception();
  }
}

// ---- losses ----

void at_loss::call(const std::stop_token& loss, std::function<void()> function) {
  end();
  set_by_ = getpid();
  it_ = std::make_unique<callback>(loss, std::move(function));
}

void at_loss::end() {
  if (it_ != nullptr && set_by_ != getpid()) static_cast<void>(it_.release());
  it_.reset();
}

int loss_reports::descriptor_for(const std::stop_token& loss, const std::string& whose) {
  if (!readable_) readable_ = descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!readable_)
    throw refusal(LOCKFLIGHT_UNAVAILABLE, "a descriptor for the loss of " + whose + ": " +
                                              std::generic_category().message(errno));
  end_descriptor();
  makes_readable_.call(loss, [fd = readable_.get()] {
    const std::uint64_t one = 1;
    static_cast<void>(write(fd, &one, sizeof one));
  });
  return readable_.get();
}

void loss_reports::call(const std::stop_token& loss, void (*function)(void*), void* with) {
  calls_.end();
  if (function != nullptr) calls_.call(loss, [=] { function(with); });
}

void loss_reports::end_descriptor() {
  makes_readable_.end();
  std::uint64_t unread = 0;
  static_cast<void>(read(readable_.get(), &unread, sizeof unread));
}

std::uint64_t nanoseconds_from(std::chrono::nanoseconds left) {
  return left == std::chrono::nanoseconds::max() ? UINT64_MAX
                                                 : static_cast<std::uint64_t>(left.count());
}

}  // namespace lockflight::capi

namespace lockflight::capi {

struct named {
  named(domain where, named_handle made) : in(std::move(where)), it(std::move(made)) {}
  domain in;
  named_handle it;
  loss_reports losses;
};
}  // namespace lockflight::capi

struct lockflight_named : lockflight::capi::named {
  using named::named;
};
struct lockflight_semaphore : lockflight::capi::named {
  using named::named;
};

namespace lockflight::capi {
namespace {

static_assert(LOCKFLIGHT_SHARED == static_cast<int>(mode::shared) &&
              LOCKFLIGHT_EXCLUSIVE == static_cast<int>(mode::exclusive));

/// The names of a type of handles in messages.
struct handle_type {
  const char* name;
  const char* accepted;
  const char* ends_death;
};
constexpr handle_type a_lock{"lock", "one that lockflight_named_create has made",
                             "lockflight_named_mark_consistent"};
constexpr handle_type a_semaphore{"semaphore", "one that lockflight_semaphore_create has made",
                                  "lockflight_semaphore_mark_consistent"};

/// A handle as a caller gives it.
struct argument {
  const named* it;
  const handle_type* type;
};
argument given(const lockflight_named* lock) { return {lock, &a_lock}; }
argument given(const lockflight_semaphore* semaphore) { return {semaphore, &a_semaphore}; }

const named& live(argument from) { return need(from.it, from.type->name, from.type->accepted); }
// The caller had a pointer to what is not const where the function changes the handle.
named_handle& changeable(argument from) { return const_cast<named&>(live(from)).it; }
loss_reports& losses_of(argument from) { return const_cast<named&>(live(from)).losses; }

std::string described(argument of) {
  const named_handle& it = of.it->it;
  return (it.units_of() != 0 ? "semaphore '" : "lock '") + it.name() + "'";
}

const named_handle& holding(argument of, const char* what) {
  const named_handle& it = live(of).it;
  if (!it.is_held())
    throw refusal(LOCKFLIGHT_NOT_HELD,
                  std::string(what) + " of " + described(of) + ", which this thread does not hold");
  return it;
}

/// The code of an acquire that has succeeded.
[[gnu::cold]] int owner_died_code(argument of) {
  return lockflight_detail_fail(LOCKFLIGHT_OWNER_DIED,
                                (described(of) + " is held, and a holder before has died (" +
                                 of.type->ends_death + " ends this)")
                                    .c_str());
}
int code_after_acquire(argument of) {
  return of.it->it.owner_died() ? owner_died_code(of) : LOCKFLIGHT_OK;
}

[[noreturn, gnu::cold]] void refuse_mode(argument of, int as) {
  if (as == LOCKFLIGHT_SHARED)
    throw refusal(LOCKFLIGHT_WRONG_KIND,
                  described(of) + ", which readers do not share (accepted: one of kind flight-rw)");
  throw refusal(LOCKFLIGHT_INVALID, "mode " + std::to_string(as) +
                                        " (accepted: LOCKFLIGHT_SHARED, LOCKFLIGHT_EXCLUSIVE)");
}

int acquire(argument of, int as, std::uint64_t nanoseconds) {
  return guarded_domain([&] {
    named_handle& it = changeable(of);
    if (as != LOCKFLIGHT_EXCLUSIVE && (as != LOCKFLIGHT_SHARED || !it.can_share())) [[unlikely]]
      refuse_mode(of, as);
    const bool had = it.acquire(static_cast<mode>(as), limit::of_ns(nanoseconds));
    return had ? code_after_acquire(of) : LOCKFLIGHT_BUSY;
  });
}
int release(argument of, mode as) {
  return guarded_domain([&] {
    changeable(of).release(as);
    losses_of(of).end_hold();
    return LOCKFLIGHT_OK;
  });
}

template <class Handle>
int destroy(Handle* handle) {
  return guarded_domain([&] {
    const argument of = given(handle);
    if (live(of).it.is_held())
      throw refusal(LOCKFLIGHT_HELD, "destroy of " + described(of) +
                                         ", which the thread holds that acquired it (accepted: one "
                                         "that is not held)");
    delete handle;
    return LOCKFLIGHT_OK;
  });
}

/// Copies a text into an array of the C interface, whose last byte stays 0.
template <std::size_t Size>
void copy(const std::string& from, char (&to)[Size]) {
  from.copy(to, Size - 1);
}

int holder(argument of, lockflight_holder* to) {
  return guarded_domain([&] {
    lockflight_holder& out = need(to, "holder", "where to put it");
    const named& its = live(of);
    std::vector<lock_user> holders;
    std::vector<std::string> silent;
    for (const std::string& name : its.it.names())
      for (lock_user& user : its.in.users_of(name, &silent))
        if (!user.waits()) holders.push_back(std::move(user));
    const auto first = std::ranges::max_element(holders, {}, &lock_user::for_ns);
    if (first == holders.end())
      throw refusal(LOCKFLIGHT_UNKNOWN,
                    "holder of " + described(of) +
                        (silent.empty() ? ", which nobody holds" : "; " + silence_text(silent)));
    out = {};
    out.holders = static_cast<int>(std::ssize(holders));
    out.pid = first->has_foreign_pid ? 0 : first->running_pid();
    out.unit = first->unit;
    out.nanoseconds = first->for_ns;
    copy(first->command, out.command);
    copy(first->host, out.host);
    return LOCKFLIGHT_OK;
  });
}
int owner_died(argument of) {
  return guarded_domain([&] {
    static_cast<void>(holding(of, "owner_died"));
    return code_after_acquire(of);
  });
}
int still_valid(argument of) {
  return guarded_domain([&] {
    if (!holding(of, "still_valid").still_valid())
      throw refusal(LOCKFLIGHT_REMOVED,
                    described(of) + ", whose domain has been removed: it excludes nobody now");
    return LOCKFLIGHT_OK;
  });
}
int valid_for(argument of, uint64_t* nanoseconds) {
  return guarded_domain([&] {
    uint64_t& out = need(nanoseconds, "nanoseconds", "where to put them");
    out = nanoseconds_from(live(of).it.valid_for());
    return LOCKFLIGHT_OK;
  });
}
int end_after(argument of, uint64_t nanoseconds) {
  return guarded_domain([&] {
    constexpr auto most = static_cast<uint64_t>(std::chrono::nanoseconds::max().count());
    changeable(of).end_after(
        std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(nanoseconds, most))));
    return LOCKFLIGHT_OK;
  });
}
int is_lost(argument of) {
  return guarded_domain([&] {
    if (holding(of, "is_lost").is_lost())
      throw refusal(LOCKFLIGHT_LOST, described(of) + ", whose hold is lost: others may hold it");
    return LOCKFLIGHT_OK;
  });
}
int token(argument of, uint64_t* to) {
  return guarded_domain([&] {
    need(to, "token", "where to put it") = live(of).it.token();
    return LOCKFLIGHT_OK;
  });
}
int unit(argument of, int* to) {
  return guarded_domain([&] {
    need(to, "unit", "where to put it") = holding(of, "unit").unit();
    return LOCKFLIGHT_OK;
  });
}
int units_held(argument of, int* to, int most, int* count) {
  return guarded_domain([&] {
    int& out = need(count, "count", "where to put it");
    if (most < 0)
      throw refusal(LOCKFLIGHT_INVALID, "most " + std::to_string(most) + " (accepted: 0 or more)");
    const std::vector<int> units = holding(of, "units").units_held();
    out = static_cast<int>(units.size());
    const int written = std::min(out, most);
    if (written > 0) std::copy_n(units.begin(), written, &need(to, "units", "where to put them"));
    return LOCKFLIGHT_OK;
  });
}
int mark_consistent(argument of) {
  return guarded_domain([&] {
    changeable(of).mark_consistent();
    return LOCKFLIGHT_OK;
  });
}
int interrupt_with(argument of, int (*is_interrupted)(void*), void* with) {
  return guarded_domain([&] {
    named_control control(changeable(of));
    if (is_interrupted == nullptr)
      control.interrupt_with(nullptr);
    else
      control.interrupt_with([=] { return is_interrupted(with) != 0; });
    return LOCKFLIGHT_OK;
  });
}

int loss_descriptor(argument of, int* to) {
  return guarded_domain([&] {
    int& out = need(to, "descriptor", "where to put it");
    const std::stop_token loss = changeable(of).loss();
    out = losses_of(of).descriptor_for(loss, described(of));
    return LOCKFLIGHT_OK;
  });
}
int on_loss(argument of, void (*function)(void*), void* with) {
  return guarded_domain([&] {
    losses_of(of).call(changeable(of).loss(), function, with);
    return LOCKFLIGHT_OK;
  });
}
int release_unless_lost(argument of) {
  return guarded_domain([&] {
    try {
      changeable(of).release(if_lost::throws);
    } catch (const lost_error& e) {
      losses_of(of).end_hold();
      throw refusal(LOCKFLIGHT_LOST, e.what());
    }
    return LOCKFLIGHT_OK;
  });
}

/// `make(domain)` makes the handle.
template <class Handle, class Make>
int create(lockflight_domain* domain, Handle** handle, const char* type, Make make) {
  return guarded_domain([&] {
    Handle*& out = need(handle, type, "where to put the handle");
    auto& in = need(domain, "domain", "one that lockflight_domain_open has opened").it;
    out = new Handle(in, make(in));
    return LOCKFLIGHT_OK;
  });
}

units units_from(const int* numbers, int count, int take) {
  units what{.count = count, .take = take};
  if (numbers != nullptr && count > 0) what.numbers.assign(numbers, numbers + count);
  return what;
}

template <class Handle>
int create_semaphore(lockflight_domain* domain, const char* name, int units, Handle** handle,
                     const char* type) {
  return create(domain, handle, type, [&](const lockflight::domain& in) {
    const char& first = need(name, "name", "the semaphore's name");
    return named_handle(in, &first, lockflight::units{units});
  });
}

}  // namespace
}  // namespace lockflight::capi

namespace capi = lockflight::capi;

// ---- domains ----

int lockflight_domain_open(const char* name, const lockflight_domain_options* options,
                           lockflight_domain** domain) {
  return capi::guarded_domain([&] {
    auto& out = capi::need(domain, "domain", "where to put it");
    const char& first = capi::need(name, "name", "the domain's name");
    lockflight::domain_options what;
    if (options != nullptr) {
      if (options->slots != 0) what.slots = options->slots;
      if (options->names != 0) what.names = options->names;
      what.mode = options->mode;
      if (options->group != nullptr) what.group = options->group;
    }
    out = new lockflight_domain{lockflight::domain::open(&first, what)};
    return LOCKFLIGHT_OK;
  });
}

int lockflight_domain_close(lockflight_domain* domain) {
  return capi::guarded_domain([&] {
    delete &capi::need(domain, "domain", "one that lockflight_domain_open has opened");
    return LOCKFLIGHT_OK;
  });
}

int lockflight_domain_remove(const char* name, int force) {
  return capi::guarded_domain([&] {
    const char& first = capi::need(name, "name", "the domain's name");
    if (!lockflight::domain::remove(&first, force != 0))
      throw capi::refusal(LOCKFLIGHT_UNKNOWN, "domain '" + std::string(&first) +
                                                  "', which does not exist (accepted: one that "
                                                  "does)");
    return LOCKFLIGHT_OK;
  });
}

// ---- named locks ----

int lockflight_named_create(lockflight_domain* domain, const char* name,
                            const struct lockflight_named_options* options,
                            lockflight_named** lock) {
  return capi::create(domain, lock, "lock", [&](const lockflight::domain& in) {
    const char& first = capi::need(name, "name", "the lock's name");
    lockflight::named_lock_options what;
    if (options != nullptr) {
      if (options->kind != nullptr) what.kind = options->kind;
      if (options->parameters != nullptr) what.parameters = options->parameters;
    }
    return lockflight::named_handle(in, &first, what);
  });
}
int lockflight_named_create_several(lockflight_domain* domain, const char* const* names, int count,
                                    lockflight_named** lock) {
  return capi::create(domain, lock, "lock", [&](const lockflight::domain& in) {
    const char* const& first = capi::need(names, "names", "an array of names");
    std::vector<std::string> all;
    for (int i = 0; i < count; ++i)
      all.emplace_back(&capi::need((&first)[i], "name", "a lock's name"));
    return lockflight::named_handle(in, std::move(all));
  });
}
int lockflight_named_create_semaphore(lockflight_domain* domain, const char* name, int units,
                                      lockflight_named** lock) {
  return capi::create_semaphore(domain, name, units, lock, "lock");
}
int lockflight_named_create_units(lockflight_domain* domain, const char* name, const int* numbers,
                                  int count, int take, lockflight_named** lock) {
  return capi::create(domain, lock, "lock", [&](const lockflight::domain& in) {
    const char& first = capi::need(name, "name", "the semaphore's name");
    return lockflight::named_handle(in, &first, capi::units_from(numbers, count, take));
  });
}
int lockflight_named_destroy(lockflight_named* lock) { return capi::destroy(lock); }

int lockflight_named_acquire(lockflight_named* lock, int mode, uint64_t nanoseconds) {
  return capi::acquire(capi::given(lock), mode, nanoseconds);
}
int lockflight_named_release(lockflight_named* lock) {
  return capi::release(capi::given(lock), lockflight::mode::none);
}

int lockflight_named_lock(lockflight_named* lock) {
  return capi::acquire(capi::given(lock), LOCKFLIGHT_EXCLUSIVE, UINT64_MAX);
}
int lockflight_named_try_lock(lockflight_named* lock) {
  return capi::acquire(capi::given(lock), LOCKFLIGHT_EXCLUSIVE, 0);
}
int lockflight_named_try_lock_for(lockflight_named* lock, uint64_t nanoseconds) {
  return capi::acquire(capi::given(lock), LOCKFLIGHT_EXCLUSIVE, nanoseconds);
}
int lockflight_named_unlock(lockflight_named* lock) {
  return capi::release(capi::given(lock), lockflight::mode::exclusive);
}
int lockflight_named_lock_shared(lockflight_named* lock) {
  return capi::acquire(capi::given(lock), LOCKFLIGHT_SHARED, UINT64_MAX);
}
int lockflight_named_try_lock_shared(lockflight_named* lock) {
  return capi::acquire(capi::given(lock), LOCKFLIGHT_SHARED, 0);
}
int lockflight_named_try_lock_shared_for(lockflight_named* lock, uint64_t nanoseconds) {
  return capi::acquire(capi::given(lock), LOCKFLIGHT_SHARED, nanoseconds);
}
int lockflight_named_unlock_shared(lockflight_named* lock) {
  return capi::release(capi::given(lock), lockflight::mode::shared);
}

int lockflight_named_holder(const lockflight_named* lock, struct lockflight_holder* holder) {
  return capi::holder(capi::given(lock), holder);
}
int lockflight_named_unit(const lockflight_named* lock, int* unit) {
  return capi::unit(capi::given(lock), unit);
}
int lockflight_named_units(const lockflight_named* lock, int* units, int most, int* count) {
  return capi::units_held(capi::given(lock), units, most, count);
}
int lockflight_named_token(const lockflight_named* lock, uint64_t* token) {
  return capi::token(capi::given(lock), token);
}
int lockflight_named_owner_died(const lockflight_named* lock) {
  return capi::owner_died(capi::given(lock));
}
int lockflight_named_mark_consistent(lockflight_named* lock) {
  return capi::mark_consistent(capi::given(lock));
}
int lockflight_named_still_valid(const lockflight_named* lock) {
  return capi::still_valid(capi::given(lock));
}
int lockflight_named_valid_for(const lockflight_named* lock, uint64_t* nanoseconds) {
  return capi::valid_for(capi::given(lock), nanoseconds);
}
int lockflight_named_end_after(lockflight_named* lock, uint64_t nanoseconds) {
  return capi::end_after(capi::given(lock), nanoseconds);
}
int lockflight_named_is_lost(const lockflight_named* lock) {
  return capi::is_lost(capi::given(lock));
}
int lockflight_named_loss_descriptor(lockflight_named* lock, int* descriptor) {
  return capi::loss_descriptor(capi::given(lock), descriptor);
}
int lockflight_named_on_loss(lockflight_named* lock, void (*function)(void*), void* argument) {
  return capi::on_loss(capi::given(lock), function, argument);
}
int lockflight_named_release_unless_lost(lockflight_named* lock) {
  return capi::release_unless_lost(capi::given(lock));
}
int lockflight_named_interrupt_with(lockflight_named* lock, int (*is_interrupted)(void*),
                                    void* argument) {
  return capi::interrupt_with(capi::given(lock), is_interrupted, argument);
}

// ---- named semaphores ----

int lockflight_semaphore_create(lockflight_domain* domain, const char* name, int units,
                                lockflight_semaphore** semaphore) {
  return capi::create_semaphore(domain, name, units, semaphore, "semaphore");
}
int lockflight_semaphore_destroy(lockflight_semaphore* semaphore) {
  return capi::destroy(semaphore);
}

int lockflight_semaphore_acquire(lockflight_semaphore* semaphore) {
  return capi::acquire(capi::given(semaphore), LOCKFLIGHT_EXCLUSIVE, UINT64_MAX);
}
int lockflight_semaphore_try_acquire(lockflight_semaphore* semaphore) {
  return capi::acquire(capi::given(semaphore), LOCKFLIGHT_EXCLUSIVE, 0);
}
int lockflight_semaphore_try_acquire_for(lockflight_semaphore* semaphore, uint64_t nanoseconds) {
  return capi::acquire(capi::given(semaphore), LOCKFLIGHT_EXCLUSIVE, nanoseconds);
}
int lockflight_semaphore_release(lockflight_semaphore* semaphore) {
  return capi::release(capi::given(semaphore), lockflight::mode::none);
}
int lockflight_semaphore_unit(const lockflight_semaphore* semaphore, int* unit) {
  return capi::unit(capi::given(semaphore), unit);
}

int lockflight_semaphore_holder(const lockflight_semaphore* semaphore,
                                struct lockflight_holder* holder) {
  return capi::holder(capi::given(semaphore), holder);
}
int lockflight_semaphore_token(const lockflight_semaphore* semaphore, uint64_t* token) {
  return capi::token(capi::given(semaphore), token);
}
int lockflight_semaphore_owner_died(const lockflight_semaphore* semaphore) {
  return capi::owner_died(capi::given(semaphore));
}
int lockflight_semaphore_mark_consistent(lockflight_semaphore* semaphore) {
  return capi::mark_consistent(capi::given(semaphore));
}
int lockflight_semaphore_still_valid(const lockflight_semaphore* semaphore) {
  return capi::still_valid(capi::given(semaphore));
}
int lockflight_semaphore_valid_for(const lockflight_semaphore* semaphore, uint64_t* nanoseconds) {
  return capi::valid_for(capi::given(semaphore), nanoseconds);
}
int lockflight_semaphore_is_lost(const lockflight_semaphore* semaphore) {
  return capi::is_lost(capi::given(semaphore));
}
int lockflight_semaphore_interrupt_with(lockflight_semaphore* semaphore,
                                        int (*is_interrupted)(void*), void* argument) {
  return capi::interrupt_with(capi::given(semaphore), is_interrupted, argument);
}
