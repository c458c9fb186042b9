// The units that a semaphore has: the first N numbers, or up to 62 numbers that its user chooses,
// such as those of devices. One word says which, in the domain file and in etcd.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockflight/domain.hpp"
#include "lockflight/rma/cell.hpp"
#include "names/cluster/client/elsewhere.hpp"

namespace lockflight::detail {

constexpr int most_units = 1024;
/// The greatest number that a chosen unit can have.
constexpr int last_chosen = 61;

class unit_set {
 public:
  /// 0 to count - 1.
  [[nodiscard]] static constexpr unit_set first(int count) {
    return unit_set(static_cast<rma::word>(count));
  }
  /// Throws domain_error (invalid), which names the semaphore.
  [[nodiscard]] static unit_set of(std::string_view semaphore, const units& what);
  /// Nothing for a word that is none of a set.
  [[nodiscard]] static std::optional<unit_set> from(rma::word bits);
  /// Of chosen units: a bit for each number. Nothing if there is none, or a number above the last.
  [[nodiscard]] static std::optional<unit_set> of_mask(rma::word mask);

  [[nodiscard]] constexpr rma::word bits() const { return bits_; }
  [[nodiscard]] rma::word mask() const { return bits_ & ~chosen; }
  [[nodiscard]] bool is_chosen() const { return (bits_ & chosen) != 0; }
  [[nodiscard]] int count() const {
    return is_chosen() ? std::popcount(mask()) : static_cast<int>(bits_);
  }
  [[nodiscard]] bool has(int unit) const { return unit >= 0 && at_or_after(unit) == unit; }
  /// The smallest number of a unit that is not below this one; -1: there is none.
  [[nodiscard]] int at_or_after(int unit) const {
    if (!is_chosen()) [[likely]]
      return unit < static_cast<int>(bits_) ? unit : -1;
    const rma::word rest = unit > last_chosen ? 0 : mask() >> unit;
    return rest == 0 ? -1 : unit + std::countr_zero(rest);
  }
  [[nodiscard]] std::vector<int> numbers() const;
  /// "3 units", "1 unit", "the units 0, 1 and 3".
  [[nodiscard]] std::string described() const;
  friend bool operator==(const unit_set&, const unit_set&) = default;

 private:
  static constexpr rma::word chosen = rma::word{1} << 63;
  explicit constexpr unit_set(rma::word bits) : bits_(bits) {}
  rma::word bits_;  // N, or `chosen` and a bit for each number
};

/// A set with the word that says who chose it: 0: nobody, and the semaphore has the units that its
/// users give; else an operator has set these (domain::set_units).
struct set_by_operator {
  static constexpr rma::word mark = set_units_mark;
  [[nodiscard]] static rma::word bits_of(const unit_set& what) { return what.bits() | mark; }
  /// Nothing if no operator has set it.
  [[nodiscard]] static std::optional<unit_set> from(rma::word bits) {
    return (bits & mark) == 0 ? std::nullopt : unit_set::from(bits & ~mark);
  }
};

}  // namespace lockflight::detail
