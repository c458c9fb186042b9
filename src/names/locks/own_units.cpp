#include "names/locks/own_units.hpp"

#include <algorithm>
#include <exception>

namespace lockflight::detail {

one_lock& own_units::make_lock_of(int unit) {
  const auto at = static_cast<std::size_t>(unit);
  if (at >= locks_.size()) locks_.resize(at + 1);
  auto& one = locks_[at];
  if (!one) one = std::make_unique<one_lock>(file_, name_of_unit(name_, unit), unit_kind(), "");
  return *one;
}

// ---- an acquire ----

bool own_units::are_of(const domain_file& file) const {
  return std::ranges::all_of(taken_, [&](int unit) { return &held_lock(unit).file() == &file; });
}

bool own_units::are_valid() const {
  return std::ranges::all_of(taken_, [&](int unit) { return held_lock(unit).valid_for() != 0; });
}

void own_units::keep_only(const unit_set& units) {
  for (std::size_t i = taken_.size(); i-- > 0;) {
    if (units.has(taken_[i]) && held_lock(taken_[i]).valid_for() != 0) continue;
    held_lock(taken_[i]).give(mode::exclusive);
    taken_.erase(taken_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void own_units::give_back() noexcept {
  for (; !taken_.empty(); taken_.pop_back()) {
    try {
      held_lock(taken_.back()).give(mode::exclusive);
    } catch (...) {  // the domain is damaged or removed, and with it the unit
    }
  }
}

// ---- a hold ----

void own_units::begin_to_hold_several() {
  std::ranges::sort(last_);
  tokens_.clear();
  for_each_held([this](one_lock& each) { tokens_.push_back(each.token()); });
}

std::vector<std::uint64_t> own_units::tokens() const {
  if (last_.empty()) return {0};
  return take_ == 1 ? std::vector{first().token()} : tokens_;
}

std::stop_token own_units::loss() {
  if (last_.size() == 1) return first().loss();
  if (!loss_) {
    std::vector<std::stop_token> of_each;
    for_each_held([&](one_lock& each) { of_each.push_back(each.loss()); });
    loss_.emplace(of_each);
  }
  return loss_->token();
}

template <class Give>
void own_units::end_hold(Give give_one) {
  loss_.reset();
  is_held_ = false;
  std::exception_ptr failed;
  for_each_held([&](one_lock& each) {
    try {
      give_one(each);
    } catch (...) {
      if (!failed) failed = std::current_exception();
    }
  });
  if (failed) std::rethrow_exception(failed);
}

void own_units::give_all() {
  end_hold([](one_lock& each) { each.give(mode::exclusive); });
}

void own_units::abandon() {
  end_hold([](one_lock& each) { each.abandon(); });
}

void own_units::drop() {
  loss_.reset();
  is_held_ = false;
  taken_.clear();
  locks_.clear();
}

}  // namespace lockflight::detail
