// Several locks in the order of their names.
//
// Invariant: while an acquire waits for a lock, it holds no lock whose name comes after that one.
// So of all threads that wait for each other, the one that waits for the last name waits for a
// thread that waits for none of these.
#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "fabric/shm/pause.hpp"
#include "names/file/text.hpp"
#include "names/locks/loss.hpp"
#include "names/locks/one_lock.hpp"

namespace lockflight::detail {
namespace {

std::vector<std::string> in_order(std::vector<std::string> names) {
  if (names.empty())
    throw domain_error(domain_error::reason::invalid, "no lock (accepted: one name or more)");
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    throw domain_error(domain_error::reason::invalid,
                       "lock " + shown(*twice) + " twice (accepted: each name once)");
  return names;
}

class several_locks final : public handle {
 public:
  several_locks(const std::shared_ptr<domain_file>& file, std::vector<std::string> names)
      : names_(in_order(std::move(names))) {
    locks_.reserve(names_.size());
    for (const std::string& name : names_)
      locks_.push_back(handle_of_lock(file, name, named_lock_options{}));
  }

  bool acquire(mode as, limit patience) override {
    if (held() != mode::none)
      throw domain_error(domain_error::reason::held,
                         "lock " + shown(names_.front()) + ": this handle holds it already");
    if (held_ == locks_.size()) check_held(mode::none);  // says whose handle it is
    if (held_ > 0) release_all();                        // the program has jumped out of an acquire
    const bool is_limited = !patience.is_attempt() && !patience.is_for_ever();
    const std::uint64_t until = is_limited ? shm::detail::ns_from_now(patience.nanoseconds()) : 0;
    try {
      for (const auto& each : locks_) {
        awaited_ = held_;
        if (is_limited) patience = limit::of_ns(until - std::min(until, now_ns()));
        if (!each->acquire(as, patience)) return release_all(), false;
        ++held_;
      }
    } catch (...) {
      release_all();
      throw;
    }
    return true;
  }
  void release(mode as) override {
    check_held(as);
    release_all();
  }
  void abandon() override {
    check_held(mode::none);
    release_all([](handle& each) { each.abandon(); });
  }
  void check_held(mode as) const override {
    for (const auto& each : locks_) each->check_held(as);
  }

  [[nodiscard]] mode held() const override {
    return held_ == locks_.size() ? locks_.front()->held() : mode::none;
  }
  [[nodiscard]] bool is_held_by_parent() const override {
    return held_ == locks_.size() && locks_.front()->is_held_by_parent();
  }
  [[nodiscard]] bool can_share() const override { return true; }
  [[nodiscard]] const std::vector<std::string>& names() const override { return names_; }
  [[nodiscard]] const std::string& awaited() const override { return names_[awaited_]; }
  [[nodiscard]] std::vector<std::uint64_t> tokens() const override {
    std::vector<std::uint64_t> all;
    for (const auto& each : locks_) all.push_back(each->tokens().front());
    return all;
  }
  [[nodiscard]] bool owner_died() const override {
    return std::ranges::any_of(locks_, [](const auto& each) { return each->owner_died(); });
  }
  void mark_consistent() override {
    for (const auto& each : locks_) each->mark_consistent();
  }
  [[nodiscard]] bool still_valid() const override {
    return std::ranges::all_of(locks_, [](const auto& each) { return each->still_valid(); });
  }
  [[nodiscard]] bool is_intact() const override {
    return std::ranges::all_of(locks_, [](const auto& each) { return each->is_intact(); });
  }
  [[nodiscard]] std::uint64_t alone_for() const override {
    std::uint64_t least = UINT64_MAX;
    for (const auto& each : locks_) least = std::min(least, each->alone_for());
    return least;
  }
  [[nodiscard]] hold_ending ending() const override {
    hold_ending first;
    for (const auto& each : locks_)
      if (const hold_ending its = each->ending(); its.in < first.in) first = its;
    return first;
  }
  void end_after(std::uint64_t nanoseconds) override {
    check_held(mode::none);
    for (const auto& each : locks_) each->end_after(nanoseconds);
  }
  // One page says so of all that the thread holds.
  void keep(std::uint64_t token, const std::string& note) override {
    locks_.front()->keep(token, note);
  }
  [[nodiscard]] std::stop_token loss() override {
    check_held(mode::none);
    if (!loss_) {
      std::vector<std::stop_token> of_each;
      for (const auto& each : locks_) of_each.push_back(each->loss());
      loss_.emplace(of_each);
    }
    return loss_->token();
  }

  void interrupt_with(const std::function<bool()>& is_interrupted) override {
    for (const auto& each : locks_) each->interrupt_with(is_interrupted);
  }
  // All locks are used by one thread, which waits for one at a time.
  void ask_now() override {
    for (const auto& each : locks_) each->ask_now();
  }
  // The first lock is enough: the process is to guard the thread's slot, and with it all locks that
  // the thread holds.
  void extend_to(int pid) override {
    locks_.front()->extend_to(pid);
    guard_nothing(false);
  }
  void extend_to_this_process() noexcept override {
    locks_.front()->extend_to_this_process();
    guard_nothing(false);
  }
  void guard_nothing(bool yet) override {
    for (const auto& each : locks_) each->guard_nothing(yet);
  }
  void finish() noexcept override { locks_.front()->finish(); }

 private:
  void release_all() {
    release_all([](handle& each) { each.release(mode::none); });
  }
  // Releases in reverse order, so that a waiter that wants all of them waits in one queue. Releases
  // all of them also if one release fails; the caller gets that error afterwards.
  template <class Release>
  void release_all(Release release_one) {
    loss_.reset();
    std::exception_ptr failed;
    while (held_ > 0) {
      try {
        release_one(*locks_[--held_]);
      } catch (...) {
        if (!failed) failed = std::current_exception();
      }
    }
    if (failed) std::rethrow_exception(failed);
  }

  std::vector<std::string> names_;
  std::vector<std::unique_ptr<handle>> locks_;  // in the order of their names
  std::optional<joint_loss> loss_;              // of this hold, once loss() was called
  std::size_t held_ = 0;                        // so many of them, the first ones
  std::size_t awaited_ = 0;                     // by the acquire that goes on, or was the last
};

}  // namespace

std::unique_ptr<handle> handle_of_several(const std::shared_ptr<domain_file>& file,
                                          std::vector<std::string> names) {
  return std::make_unique<several_locks>(file, std::move(names));
}

}  // namespace lockflight::detail
