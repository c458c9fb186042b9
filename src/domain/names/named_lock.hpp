// What a handle of a named lock does: it finds the lock of its name, acquires it on this host and,
// in a cluster's domain, among the hosts, and goes on in the present domain if its own is removed.
// named_semaphore is made of such handles, too.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/number.hpp"
#include "domain/cluster/across_hosts.hpp"
#include "domain/cluster/elsewhere.hpp"
#include "domain/membership/removal.hpp"
#include "domain/names/attachment.hpp"
#include "domain/names/directory.hpp"
#include "fabric/shm/pause.hpp"
#include "lockflight/domain.hpp"
#include "lockflight/lock/robust/participant.hpp"

namespace lockflight::detail {

class named_lock_impl {
 public:
  enum class mode : std::uint8_t { none, exclusive, shared };
  static constexpr std::uint64_t forever = UINT64_MAX;

  /// The name may be one that no user's lock can have (semaphore_kind.hpp).
  named_lock_impl(std::shared_ptr<domain_file> file, std::string_view name, const domain_kind& kind,
                  const std::string& parameters,
                  named_lock_options::on_death death = named_lock_options::on_death::tell)
      : file_(std::move(file)),
        name_(name),
        raises_(death == named_lock_options::on_death::raise),
        kind_(&kind),
        canonical_(kind.canonical(parse_parameters(parameters))) {
    file_->check();
    // A caller that asks for what exists otherwise learns it here.
    if (const auto found = find_lock(*file_, name_))
      check_agreement(*file_, name_, *found, *kind_, canonical_);
  }
  ~named_lock_impl() {
    if (held_ == mode::none) return;
    try {
      if (me_->is_ours()) {
        if (held_ == mode::exclusive) lock_->abandon();
        across_.reset();  // other hosts, too, see it as after a death
        release();
      } else {
        drop_from_elsewhere();
      }
    } catch (...) {  // the domain is damaged or removed, and with it whatever was guarded
    }
  }
  named_lock_impl(const named_lock_impl&) = delete;
  named_lock_impl& operator=(const named_lock_impl&) = delete;

  /// `take(lock, nanoseconds)` is an acquire that takes so long at most; 0 is an attempt. True if
  /// we hold now, as we do if and only if this returns true.
  template <class Take>
  bool acquire(mode as, std::uint64_t nanoseconds, Take take) {
    if (is_ready()) [[likely]] {
      if (!me_->holds_nothing()) [[unlikely]]
        refuse_to_wait_for_ourselves(as);
      bool had = false;
      if (try_once(as, nanoseconds, take, had)) [[likely]]
        return had;
    }
    return acquire_slowly(as, nanoseconds, take);
  }

  /// Exclusively, by the kind's way for that time; 0 is an attempt.
  bool acquire_exclusively(std::uint64_t nanoseconds) {
    return acquire(mode::exclusive, nanoseconds, [](any_robust& l, std::uint64_t left) {
      if (left == forever) return l.lock();
      return left == 0 ? l.try_lock() : l.try_lock_within(left);
    });
  }

  void unlock(mode as) {
    if (held_ != as || !me_->is_ours()) not_held(as);
    release();
  }
  [[gnu::always_inline]] void need(bool catalogue::abilities::*ability, const char* lacks) const {
    if (!(kind_->can.*ability)) [[unlikely]]
      cannot(ability, lacks);
  }
  [[noreturn, gnu::noinline]] void cannot(bool catalogue::abilities::*ability,
                                          const char* lacks) const {
    throw domain_error(domain_error::reason::invalid,
                       "lock " + shown(name_) + ", a " + std::string(kind_->about.name) + ": " +
                           lacks + " (accepted for that: " +
                           catalogue::names_of_those_with(ability, domain_kinds()) + ")");
  }
  void need_exclusive() const {
    if (held_ == mode::exclusive && me_->is_ours()) return;
    not_held(mode::exclusive);
  }

  [[nodiscard]] const domain_kind& kind() const { return *kind_; }
  [[nodiscard]] std::uint64_t token() const {
    if (across_) return across_->token();
    const std::uint64_t own = lock_ ? lock_->token() : 0;
    return own != 0 ? found_.tokens_before + own : token_before_;
  }
  [[nodiscard]] mode held() const { return held_; }
  [[nodiscard]] bool owner_died() const { return across_ ? across_->died() : lock_->owner_died(); }
  void mark_consistent() {
    if (across_)
      across_->mark_consistent();
    else
      lock_->mark_consistent();
  }
  [[nodiscard]] std::uint64_t valid_for() const {
    if (held_ == mode::none) return 0;
    return across_ ? across_->valid_for() : forever;
  }
  [[nodiscard]] std::uint64_t done_until() const {
    if (file_->is_of_cluster()) return done_as_agent_says({name_});
    if (held_ != mode::none) return detail::done_until(*file_, found_);
    // Without a slot, and without waiting.
    const auto found = find_lock(*file_, name_);
    if (!found) return 0;
    const std::uint64_t until = detail::done_until(*file_, *found);
    // If the name was forgotten meanwhile, the word may be another name's.
    return serial_of(*file_, *found).load(std::memory_order_acquire) == found->serial ? until : 0;
  }
  void set_done_until(std::uint64_t seconds) {
    if (!file_->is_of_cluster()) return detail::set_done_until(*file_, found_, seconds);
    // With the token, so that a holder that was lost does not write over what a later one has.
    static_cast<void>(
        done_as_agent_says({name_, std::to_string(seconds), std::to_string(token())}));
  }
  [[nodiscard]] const std::string& name() const { return name_; }

  // ---- for probes ----

  [[nodiscard]] const char* kind_name() const { return kind_->about.name.data(); }
  [[nodiscard]] domain_port::events taken_events() {
    if (!me_) [[unlikely]]
      return {};
    return me_->port().taken_events();
  }

  // ---- for a semaphore, which is made of such handles ----

  /// Of the lock that the handle used last; null if it has not used one.
  [[nodiscard]] const found_lock* found() const { return lock_ ? &found_ : nullptr; }
  [[nodiscard]] domain_file& file() const { return *file_; }
  /// Of this thread, once the handle has acquired.
  [[nodiscard]] domain_port& port() const { return me_->port(); }
  /// Whether an attempt needs no other host.
  [[nodiscard]] bool is_at_hand() const {
    if (!file_->is_of_cluster()) return true;
    if (!lock_ || !is_current()) return false;
    const words_in_file words(*file_, found_.line);
    const cluster::ownership owned = words.get_ownership();
    return owned.incarnation == words.incarnation() && owned.owned == cluster::mode::exclusive;
  }

  [[nodiscard]] bool still_valid() const { return file_->is_current(); }
  void interrupt_with(std::function<bool()> what) { interrupt_ = std::move(what); }
  void ask_now() {
    const std::lock_guard hold(me_is_used_);
    if (me_ && !me_->is_over()) me_->port().ask_now();
  }
  void extend_to_this_process() noexcept {
    if (held_ == mode::none) return;
    domain_slot_page& ours = file_->slot(me_->slot());
    file_->lock_guard(me_->slot(), ours.life_now().incarnation);
    guard(ours, this_thread());
  }
  void extend_to(int pid) {
    if (held_ == mode::none) return;
    guard(file_->slot(me_->slot()), pid == 0 ? thread_identity{} : first_thread_of(pid));
  }
  void finish() noexcept {
    if (held_ == mode::none) return;
    domain_slot_page& ours = file_->slot(me_->slot());
    ours.finished.store(ours.life_now().incarnation, std::memory_order_relaxed);
    guard(ours, {});
    has_finished_ = true;
  }

 private:
  [[gnu::always_inline]] bool is_ready() const {
    return lock_ && me_->is_ours() && held_ == mode::none && is_current();
  }
  [[nodiscard]] bool is_current() const {
    // Acquire: what the word says was there before we had the lock.
    return serial_->load(std::memory_order_acquire) == found_.serial;
  }

  // False if the lock or the domain is another one by now: then we hold nothing.
  template <class Take>
  [[gnu::always_inline]] bool try_once(mode as, std::uint64_t nanoseconds, Take take, bool& had) {
    if (interrupt_) [[unlikely]]
      me_->port().set_interrupt(&interrupt_);
    try {
      if (!across_) [[likely]]
        had = take(*lock_, nanoseconds);
      else
        had = take_across(as, nanoseconds, take);
    } catch (...) {
      return had = false, failed(std::current_exception());
    }
    if (interrupt_) {
      if (had) [[likely]]
        me_->port().set_interrupt(nullptr);
      else
        check_interrupt();
    }
    if (!is_current()) [[unlikely]] {
      // Forgotten meanwhile; its words may have become another lock's.
      if (had) release_lock(as);
      return had = false;
    }
    if (!had) return true;
    held_ = as;
    if (lock_->held_since_ns >= check_at_ns_ && !is_in_present_domain()) [[unlikely]]
      return had = false;
    me_->register_hold(found_.line, as == mode::shared, lock_->place());
    if (raises_) [[unlikely]]
      raise_if_owner_died();
    return true;
  }

  // The lock of this host, and then the name among the hosts. Nothing is held unless this returns
  // true.
  template <class Take>
  [[gnu::noinline]] bool take_across(mode as, std::uint64_t nanoseconds, Take take) {
    domain_port& port = me_->port();
    // Without a limit, and for an attempt, the clock is not read.
    const bool is_limited = nanoseconds != 0 && nanoseconds != forever;
    const rma::deadline until =
        is_limited ? port.deadline_in(nanoseconds) : rma::deadline{nanoseconds};
    if (!take(*lock_, nanoseconds)) return false;
    bool entered = false;
    try {
      // What was forgotten meanwhile has no words any more.
      entered = !is_current() || across_->enter(as == mode::shared ? cluster::mode::shared
                                                                   : cluster::mode::exclusive,
                                                port, until, lock_->held_since_ns);
    } catch (...) {
      release_lock(as);
      throw;
    }
    // Whether a holder died inside is said by the name's own words. The lock's mark is also set if
    // one died while it waited for other hosts, and means nothing here.
    if (entered && as == mode::exclusive && lock_->owner_died()) lock_->mark_consistent();
    if (!entered) release_lock(as);
    return entered;
  }
  void leave_across() {
    if (across_ && is_current()) across_->leave();
  }
  void release_lock(mode as) { as == mode::exclusive ? lock_->unlock() : lock_->unlock_shared(); }

  template <class Take>
  [[gnu::noinline]] bool acquire_slowly(mode as, std::uint64_t nanoseconds, Take take) {
    const std::uint64_t until = shm::detail::ns_from_now(nanoseconds);
    const time_limit how_long{until, interrupt_ ? &interrupt_ : nullptr};
    while (true) {
      try {
        if (!start(how_long)) return false;
        refuse_to_wait_for_ourselves(as);
        const std::uint64_t now = nanoseconds == 0 || nanoseconds == forever ? 0 : now_ns();
        bool had = false;
        if (try_once(as, now == 0 ? nanoseconds : until - std::min(until, now), take, had))
          return had;
      } catch (const directory_is_busy&) {
        return false;
      } catch (const domain_error& e) {
        if (e.why != domain_error::reason::removed) throw;
        if (!open_present_domain(how_long)) return false;
      }
    }
  }

  // Attached, and with a handle of the lock that has our name now. False if there is no slot in
  // time.
  bool start(const time_limit& how_long) {
    if (me_ && !me_->is_ours()) wrong_thread();
    if (held_ != mode::none)
      throw domain_error(domain_error::reason::held,
                         "lock " + shown(name_) + ": this handle holds it already");
    if (is_stale_) file_->throw_removed();
    if (!me_) use(attach_thread(file_, how_long));
    if (!me_) return false;
    if (lock_ && is_current()) return true;
    token_before_ = token();
    forget_lock();
    if (!file_->is_current()) file_->throw_removed();
    found_ = look_up(*me_, name_, *kind_, canonical_, how_long);
    serial_ = &serial_of(*file_, found_);
    lock_ = lock_at(*me_, found_);
    if (file_->is_of_cluster()) across_.emplace(*file_, found_.line, name_);
    return true;
  }

  void forget_lock() {
    across_.reset();
    lock_.reset();
  }

  void use(std::shared_ptr<attachment> made) {
    const std::lock_guard hold(me_is_used_);
    me_.swap(made);
  }

  // The domain of our name is another one by now, or is about to be.
  bool open_present_domain(const time_limit& given) {
    token_before_ = token();
    forget_lock();
    use(nullptr);
    const std::string path = file_->place().path;
    auto there = open_file_of_our_name();
    // This process is another user's by now, or has another root: it is not the same domain.
    if (there->place().path != path) file_->throw_removed();
    file_ = std::move(there);
    is_stale_ = false;
    if (!file_->is_current()) return true;  // it has been removed since, and we look again
    constexpr std::uint64_t ms = 1'000'000;
    const std::uint64_t at_most = shm::detail::ns_from_now(10'000 * ms);
    // Also for an attempt, since a remover takes microseconds.
    const time_limit how_long{std::max(given.until_ns, shm::detail::ns_from_now(100 * ms)),
                              given.is_interrupted};
    while (is_removed(*file_) && file_->is_current()) {
      if (now_ns() > at_most)
        throw domain_error(domain_error::reason::system, "domain " + file_->name() + ": process " +
                                                             std::to_string(remover_of(*file_)) +
                                                             " is removing it and does not go on");
      if (!how_long.sleep(ms)) return false;
    }
    return true;
  }

  [[nodiscard]] std::shared_ptr<domain_file> open_file_of_our_name() const {
    const domain_options as = file_->options();
    try {
      return domain_file::open(file_->name(), &as, as.mode);
    } catch (const domain_error& e) {
      // A cluster's domain is made by its agent, and none runs any more.
      if (e.why != domain_error::reason::missing) throw;
      file_->throw_removed();
    }
  }

  // For a holder, once a second: else it would hold what excludes nobody.
  [[gnu::noinline]] bool is_in_present_domain() {
    constexpr std::uint64_t second = 1'000'000'000;
    check_at_ns_ = lock_->held_since_ns + second;
    if (file_->is_current()) return true;
    release_unnoted();
    is_stale_ = true;
    return false;
  }

  // Nothing is held when an exception leaves. False if the caller is to ask again in the domain
  // that has our name now.
  [[gnu::noinline]] bool failed(const std::exception_ptr& how) {
    me_->port().set_interrupt(nullptr);
    me_->port().rest();
    try {
      std::rethrow_exception(how);
    } catch (const domain_error& e) {
      if (e.why != domain_error::reason::removed) throw;
      is_stale_ = true;
      return false;
    } catch (const lock::not_returned&) {
      throw domain_error(domain_error::reason::interrupted,
                         "lock " + shown(name_) +
                             ": the program jumped out of this handle's last acquire or release, "
                             "which is undone now (the next acquire can succeed)");
    } catch (const std::length_error&) {
      throw domain_error(domain_error::reason::full,
                         "lock " + shown(name_) + ": this thread holds " + std::to_string(records) +
                             " locks already, which is the most");
    }
  }
  [[gnu::noinline]] void check_interrupt() {
    const bool was = me_->port().was_interrupted();
    me_->port().set_interrupt(nullptr);
    if (was)
      throw domain_error(domain_error::reason::interrupted,
                         "lock " + shown(name_) + ": the acquire was interrupted");
  }
  // The caller does not hold when this throws, and its next acquire succeeds.
  [[gnu::noinline]] void raise_if_owner_died() {
    if (std::exchange(was_told_, false) || !owner_died()) return;
    was_told_ = true;
    release();
    throw owner_died_error("lock " + shown(name_) +
                           ": a holder died (the next acquire of this handle succeeds)");
  }
  [[gnu::noinline]] void refuse_to_wait_for_ourselves(mode as) const {
    if (!me_->excludes(found_.line, as == mode::shared)) return;
    throw domain_error(domain_error::reason::held,
                       "lock " + shown(name_) + ": another handle of this thread holds it");
  }

  void release() {
    me_->unregister_hold(found_.line, held_ == mode::shared);
    release_unnoted();
  }
  void release_unnoted() {
    leave_across();
    release_lock(std::exchange(held_, mode::none));
    if (std::exchange(has_finished_, false)) [[unlikely]]
      file_->slot(me_->slot()).finished.store(0, std::memory_order_relaxed);
  }
  // The thread that holds may be anywhere; its participant's lock is taken away as after a death.
  void drop_from_elsewhere() {
    const auto us = any_attachment(file_);
    me_->unless_over([&] {
      lock_at(*us, found_)->abandon_from_elsewhere(rank_of_slot(me_->slot()), lock_->place());
      static_cast<void>(us->port().taken_events());
    });
  }

  // In a cluster the moment has to outlive the hosts, so it does not belong into the file of one.
  // The note of a cluster has to survive all hosts, so the agent keeps it in etcd.
  [[nodiscard]] std::uint64_t done_as_agent_says(std::vector<std::string> question) const {
    question.insert(question.begin(), std::string(done_question));
    constexpr auto at_most = std::chrono::milliseconds(5'000);
    const auto lines = ask_agent(*file_, question, at_most);
    constexpr std::size_t fields = 3;
    const bool has_answered = lines && lines->back().size() == fields;
    const std::string why = has_answered ? lines->back()[2] : "the agent does not answer";
    const auto seconds = has_answered ? read_number<std::uint64_t>(lines->back()[1]) : std::nullopt;
    if (why.empty() && seconds) return *seconds;
    throw domain_error(domain_error::reason::system,
                       "lock " + shown(name_) + ": until when its work is done: " +
                           (why.empty() ? "the note in etcd is none" : why));
  }
  [[noreturn]] void wrong_thread() const {
    throw domain_error(
        domain_error::reason::wrong_thread,
        "lock " + shown(name_) + ": this handle is another thread's, or was before a fork");
  }
  [[noreturn]] void not_held(mode as) const {
    if (me_ && !me_->is_ours()) wrong_thread();
    throw domain_error(domain_error::reason::not_held,
                       "lock " + shown(name_) + ": this handle does not hold it " +
                           (as == mode::exclusive ? "exclusively" : "shared"));
  }

  std::shared_ptr<domain_file> file_;
  std::string name_;
  bool raises_;
  bool was_told_ = false;
  const domain_kind* kind_;
  std::string canonical_;
  found_lock found_;
  const std::atomic<rma::word>* serial_ = nullptr;  // of the lock that has these words
  std::shared_ptr<attachment> me_;
  std::mutex me_is_used_;  // while another thread reads me_, or this one changes it
  std::unique_ptr<any_robust> lock_;
  std::optional<across_hosts> across_;  // of a cluster's domain, while there is a lock
  mode held_ = mode::none;
  std::uint64_t token_before_ = 0;  // the last one, of a lock that is no more
  std::uint64_t check_at_ns_ = 0;   // whether the domain still has its name
  bool is_stale_ = false;           // it has not
  bool has_finished_ = false;       // our thread's page says so
  std::function<bool()> interrupt_;
};

}  // namespace lockflight::detail
