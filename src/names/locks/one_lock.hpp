// A handle of one lock: it finds the lock of its name, acquires it on this host and, in a cluster's
// domain, among the hosts, and goes on in the present domain if its own is removed. A semaphore is
// made of such handles, too.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "names/cluster/client/across_hosts.hpp"
#include "names/cluster/client/name_notes.hpp"
#include "names/life/hold_end.hpp"
#include "names/life/time_limit.hpp"
#include "names/locks/attachment.hpp"
#include "names/locks/directory.hpp"
#include "names/locks/handle.hpp"
#include "names/locks/loss.hpp"

namespace lockflight::detail {

/// The lock that has a name now, as a handle uses it. Other handles of the same thread that share
/// the lock meanwhile hold by this object as well: the thread holds the lock once.
struct lock_in_use : std::enable_shared_from_this<lock_in_use> {
  found_lock found;
  const std::atomic<rma::word>* serial = nullptr;  // of the lock that has these words
  std::unique_ptr<any_robust> lock;
  std::optional<across_hosts> across;  // of a cluster's domain
  /// The number of handles that hold by this object. Another thread may drop one of them.
  std::atomic<int> holders{0};
  /// True if another thread has dropped the last of them: `lock` then still says that it is held,
  /// and its record does not.
  std::atomic<bool> is_taken_away{false};

  [[nodiscard]] bool is_current() const {
    // Acquire: the writes before that of the word are visible to us.
    return serial->load(std::memory_order_acquire) == found.serial;
  }
};

class one_lock final : public handle {
 public:
  /// The name may be one that no user's lock can have (semaphore_kind.hpp).
  one_lock(std::shared_ptr<domain_file> file, std::string_view name, const domain_kind& kind,
           const std::string& parameters,
           named_lock_options::on_death death = named_lock_options::on_death::tell);
  ~one_lock() override;

  [[nodiscard]] bool acquire(mode as, limit patience) override;
  void release(mode as) override;
  /// As acquire(), for a semaphore, whose own calls have the probes.
  [[nodiscard]] bool take(mode as, limit patience);
  void give(mode as) {
    check_held(as);
    give_back();
  }
  /// Throws domain_error (not_held, wrong_thread) unless give() can do its work.
  void check_held(mode as) const override {
    if (held_ == mode::none || (as != mode::none && held_ != as) || !me_->is_ours()) [[unlikely]]
      not_held(as);
  }

  [[nodiscard]] mode held() const override {
    return held_ != mode::none && !me_->is_over() ? held_ : mode::none;
  }
  [[nodiscard]] bool is_held_by_parent() const override {
    return held_ != mode::none && me_->is_of_parent();
  }
  [[nodiscard]] bool can_share() const override { return kind_->can.shares; }
  [[nodiscard]] const std::vector<std::string>& names() const override { return names_; }
  [[nodiscard]] std::uint64_t token() const;
  [[nodiscard]] std::vector<std::uint64_t> tokens() const override { return {token()}; }
  [[nodiscard]] bool owner_died() const override;
  void mark_consistent() override;
  [[nodiscard]] bool still_valid() const override { return file_->is_current(); }
  [[nodiscard]] bool is_intact() const override { return is_in_place(*file_); }
  [[nodiscard]] std::uint64_t alone_for() const override;
  [[nodiscard]] hold_ending ending() const override;
  void end_after(std::uint64_t nanoseconds) override;
  void keep(std::uint64_t token, const std::string& note) override;
  [[nodiscard]] std::stop_token loss() override;
  void abandon() override;
  [[nodiscard]] std::optional<std::uint64_t> done_until(limit patience) override;
  [[nodiscard]] bool set_done_until(std::uint64_t seconds, limit patience) override;
  void set_priority(int priority) override;
  [[nodiscard]] bool publish(const std::optional<std::string_view>& bytes, lasts until,
                             limit patience) override;
  [[nodiscard]] std::optional<published_value> published(limit patience) override;
  [[nodiscard]] published_value await_published(const published_value& seen,
                                                limit patience) override;
  [[nodiscard]] std::string missing_answer() const override {
    return notes_ ? notes_->obstacle() : "";
  }

  void interrupt_with(const std::function<bool()>& what) override { interrupt_ = what; }
  void ask_now() override;
  void extend_to(int pid) override;
  void extend_to_this_process() noexcept override;
  void finish() noexcept override;
  void guard_nothing(bool yet) override { guards_nothing_ = yet; }

  // ---- for probes ----

  [[nodiscard]] const std::string& name() const { return names_.front(); }
  [[nodiscard]] const char* kind_name() const { return kind_->about.name.data(); }
  [[nodiscard]] domain_port::events taken_events() {
    if (!me_) [[unlikely]]
      return {};
    return me_->port().taken_events();
  }

  // ---- for a semaphore, which is made of such handles ----

  /// The lock that the handle used last; null if it has not used one.
  [[nodiscard]] const found_lock* found() const { return at_ ? &at_->found : nullptr; }
  /// True if the name has that lock still.
  [[nodiscard]] bool is_current() const { return at_ && at_->is_current(); }
  [[nodiscard]] domain_file& file() const { return *file_; }
  /// The port of this thread, once the handle has acquired.
  [[nodiscard]] domain_port& port() const { return me_->port(); }
  /// True if an attempt needs no other host.
  [[nodiscard]] bool is_at_hand() const;
  /// For the holder of this lock alone, which collects others: until the call with false, no later
  /// holder learns of its death. Does nothing if the thread guards something under other locks.
  void guard_nothing_meanwhile(bool is) noexcept;
  /// Calls a function of the program, which may take other locks: its death is told meanwhile, and
  /// also afterwards if it has kept some.
  [[nodiscard]] bool guard_all_during(const std::function<bool()>& what);

 private:
  [[nodiscard]] name_notes& notes();
  [[nodiscard]] time_limit limit_of_note(limit patience) const;
  [[nodiscard]] stored_value value_here();
  [[nodiscard]] std::optional<stored_value> value_in(const found_lock& block);
  [[nodiscard]] std::optional<published_value> await_other_value(const published_value& seen,
                                                                 rma::deadline until,
                                                                 bool may_grow);
  void check_ability(mode as, limit patience) const;
  [[nodiscard]] bool is_usable() const {
    return at_ && at_->is_current() && !at_->is_taken_away.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool is_ready() const {
    return is_usable() && me_->is_ours() && held_ == mode::none;
  }
  [[nodiscard]] bool join_own_share(mode as);
  [[nodiscard]] bool try_once(mode as, limit patience, bool& had);
  [[nodiscard]] bool take_across(mode as, limit patience);
  [[nodiscard]] bool acquire_slowly(mode as, limit patience);
  [[nodiscard]] bool start(const time_limit& how_long);
  void show_priority();
  [[nodiscard]] bool move_to_present_domain(const time_limit& how_long);
  void forget_lock();
  void use(std::shared_ptr<attachment> made);
  [[nodiscard]] bool is_in_present_domain();
  void failed(const std::exception_ptr& how);
  void check_interrupt();
  void raise_if_owner_died();
  /// The lock by which this handle holds.
  [[nodiscard]] lock_in_use& hold() const { return joined_ ? *joined_ : *at_; }
  /// The page of the thread that holds, and the name of the hold there.
  [[nodiscard]] domain_slot_page& own_page() const { return file_->slot(me_->slot()); }
  [[nodiscard]] hold_name own_name() const;
  // The frequent steps of a release are in this header: each function that is not inlined saves and
  // restores registers, which costs as much as it does.
  void give_back(bool as_death = false) {
    lock_in_use& at = hold();
    if (watch_ != nullptr) [[unlikely]]
      as_death |= end_watch();
    if (at.holders.load(std::memory_order_relaxed) > 1 && --at.holders > 0) [[unlikely]]
      return leave_share();  // another handle of this thread shares the lock
    me_->unregister_hold(&at);
    give_back_unregistered(at, as_death);
  }
  [[nodiscard]] bool end_watch();
  void leave_share();
  /// Gives back the lock, which is not registered as held. `as_death`: as after a death, which
  /// other hosts learn of as well.
  void give_back_unregistered(lock_in_use& at, bool as_death) {
    if (at.across && at.is_current() && !as_death) [[unlikely]]
      at.across->leave();
    at.lock->release(std::exchange(held_, mode::none));
    if (std::exchange(has_finished_, false)) [[unlikely]]
      say_finished(false);
    if (joined_) [[unlikely]]
      joined_.reset();
  }
  void drop_from_elsewhere();
  void begin_to_guard() noexcept;
  void say_finished(bool is) noexcept;
  void need_exclusive() const;
  [[noreturn]] void refuse_second_hold(const char* by) const;
  [[noreturn]] void wrong_thread() const;
  [[noreturn]] void not_held(mode as) const;

  std::shared_ptr<domain_file> file_;
  std::vector<std::string> names_;  // one
  bool raises_;
  bool was_told_ = false;
  const domain_kind* kind_;
  std::string canonical_;
  std::shared_ptr<attachment> me_;
  mutable std::mutex me_is_used_;  // while another thread reads me_, or this one changes it
  std::shared_ptr<lock_in_use> at_;
  std::shared_ptr<lock_in_use> joined_;  // of another handle, by which this one shares; or null
  std::unique_ptr<hold_watch> watch_;    // of this hold, once loss() was called
  mode held_ = mode::none;
  std::uint64_t token_before_ = 0;  // the last one, of a lock that is no more
  std::uint64_t check_at_ns_ = 0;   // when to look if the domain still has its name
  bool is_stale_ = false;           // the domain has lost its name
  int priority_ = 0;                // of a candidate that waits
  bool has_finished_ = false;       // our thread's page says so
  bool guards_nothing_ = false;     // until it is extended
  bool guards_nothing_meanwhile_ = false;
  std::function<bool()> interrupt_;
  std::optional<name_notes> notes_;  // in a cluster's domain, once the handle has asked for it
};

}  // namespace lockflight::detail
