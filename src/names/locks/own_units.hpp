// The units of a semaphore that one handle takes, holds and gives back together. Each is a lock of
// the domain (semaphore_kind.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "names/locks/loss.hpp"
#include "names/locks/one_lock.hpp"
#include "names/locks/semaphore_kind.hpp"

namespace lockflight::detail {

class own_units {
 public:
  /// `take` units are held at a time.
  own_units(std::shared_ptr<domain_file> file, std::string name, int take)
      : file_(std::move(file)), name_(std::move(name)), take_(static_cast<std::size_t>(take)) {
    taken_.reserve(take_);
    last_.reserve(take_);
    tokens_.reserve(take_);
  }

  [[nodiscard]] int wanted() const { return static_cast<int>(take_); }
  /// The lock of that unit, which may be anybody's.
  [[nodiscard]] one_lock& lock_of(int unit) {
    const auto at = static_cast<std::size_t>(unit);
    if (at < locks_.size() && locks_[at]) [[likely]]
      return *locks_[at];
    return make_lock_of(unit);
  }
  /// Calls `visit` for each lock that this handle has used.
  template <class Visit>
  void for_each_used(Visit visit) const {
    for (const auto& each : locks_)
      if (each) visit(*each);
  }

  // ---- an acquire ----

  /// True if the unit is this handle's within the limit.
  [[nodiscard]] bool take(int unit, limit patience) {
    if (!lock_of(unit).take(mode::exclusive, patience)) return false;
    taken_.push_back(unit);
    return true;
  }
  [[nodiscard]] bool has_taken(int unit) const {
    return std::ranges::find(taken_, unit) != taken_.end();
  }
  [[nodiscard]] bool has_taken_any() const { return !taken_.empty(); }
  [[nodiscard]] bool has_all() const { return taken_.size() == take_; }
  /// True if all that are taken are locks of that file: the domain may have been removed meanwhile.
  [[nodiscard]] bool are_of(const domain_file& file) const;
  /// Gives back what is taken and is not one of these, or is lost: a host may have been cut off
  /// from its cluster meanwhile, and another host has the unit.
  void keep_only(const unit_set& units);
  /// True if nothing that is taken is lost.
  [[nodiscard]] bool are_valid() const;
  /// The acquire has succeeded: the handle holds what it has taken, in the order of the numbers.
  void hold() {
    last_.swap(taken_);
    taken_.clear();
    is_held_ = true;
    if (take_ > 1) [[unlikely]]
      begin_to_hold_several();
  }
  /// Gives back what is taken, whatever has happened. Nothing is held.
  void give_back() noexcept;

  // ---- a hold ----

  /// True if the handle was not released; its thread may have ended meanwhile.
  [[nodiscard]] bool is_held() const { return is_held_; }
  /// The units that are held, or were held last.
  [[nodiscard]] const std::vector<int>& last() const { return last_; }
  /// The tokens of these units in that hold. An acquire that was given up does not change those of
  /// several.
  [[nodiscard]] std::vector<std::uint64_t> tokens() const;
  [[nodiscard]] one_lock& first() const { return held_lock(last_.front()); }
  template <class Visit>
  void for_each_held(Visit visit) const {
    for (const int each : last_) visit(held_lock(each));
  }
  template <class Is>
  [[nodiscard]] bool any_held(Is is) const {
    bool any = false;
    for_each_held([&](one_lock& each) { any = any || is(each); });
    return any;
  }
  [[nodiscard]] std::stop_token loss();
  /// Frees all units, also if one cannot be freed; throws afterwards.
  void give() {
    if (take_ > 1) [[unlikely]]
      return give_all();
    is_held_ = false;
    first().give(mode::exclusive);
  }
  void abandon();
  /// At the end of the handle: frees what it holds, as after a death.
  void drop();

 private:
  [[nodiscard]] one_lock& held_lock(int unit) const {
    return *locks_[static_cast<std::size_t>(unit)];
  }
  [[nodiscard]] one_lock& make_lock_of(int unit);
  void begin_to_hold_several();
  void give_all();
  template <class Give>
  void end_hold(Give give_one);

  std::shared_ptr<domain_file> file_;
  std::string name_;
  std::size_t take_;
  std::vector<std::unique_ptr<one_lock>> locks_;  // by number; each is made when it is first tried
  std::vector<int> taken_;                        // by an acquire that is not complete
  std::vector<int> last_;
  std::vector<std::uint64_t> tokens_;  // of the last hold of several units
  bool is_held_ = false;
  std::optional<joint_loss> loss_;  // of a hold of several units, once loss() was called
};

}  // namespace lockflight::detail
